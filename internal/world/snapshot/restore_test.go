package snapshot

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRestoreKeepsOthersWork has an agent and then a person at work.
func TestRestoreKeepsOthersWork(t *testing.T) {
	rm := func(paths ...string) func(*testing.T, string) {
		return func(t *testing.T, root string) {
			for _, path := range paths {
				must(t, os.RemoveAll(filepath.Join(root, path)))
			}
		}
	}
	put := func(files map[string]string) func(*testing.T, string) {
		return func(t *testing.T, root string) {
			for path := range files {
				_ = os.Remove(filepath.Join(root, path))
			}
			lay(t, root, files)
		}
	}
	type m = map[string]string
	for name, c := range map[string]struct {
		start         m
		agent, person func(*testing.T, string)
		kept, forced  m
		gone          []string // afterwards
	}{
		"edited since":            {m{"a": "1"}, put(m{"a": "2"}), put(m{"a": "3"}), m{"a": whySince}, m{}, nil},
		"deleted since":           {m{"a": "1"}, put(m{"a": "2"}), rm("a"), m{"a": whySince}, m{}, nil},
		"made in the agent's":     {m{}, put(m{"d/a": "1"}), put(m{"d/b": "2"}), m{"d": whyHolds}, m{"d": whyHolds}, []string{"d/a"}},
		"git in the agent's":      {m{}, put(m{"d/a": "1"}), put(m{"d/.git/x": "2"}), m{"d": whyHolds}, m{"d": whyHolds}, []string{"d/a"}},
		"folder gone":             {m{"d/a": "1"}, rm("d/a"), rm("d"), m{"d/a": whyParent}, m{}, nil},
		"folder is a link now":    {m{"d/a": "1"}, rm("d/a"), put(m{"d": "-> ."}), m{"d/a": whyNoFolder}, m{"d/a": whyNoFolder}, nil},
		"the same as it was":      {m{"a": "1"}, put(m{"a": "2"}), put(m{"a": "1"}), m{}, m{}, nil},
		"file where a folder was": {m{"d/a": "1"}, rm("d"), put(m{"d": "2"}), m{"d": whySince, "d/a": whyNoFolder}, m{}, nil},
		"in what became a folder": {
			m{"d": "1"},
			func(t *testing.T, root string) { rm("d")(t, root); put(m{"d/a": "2"})(t, root) },
			put(m{"d/b": "3"}),
			m{"d": whyHolds},
			m{"d": whyHolds},
			[]string{"d/a"},
		},
		"elsewhere":                {m{"a": "1"}, put(m{"a": "2"}), put(m{"b": "3"}), m{}, m{}, nil},
		"too large to bring back":  {m{}, put(m{"a": "0123456789"}), put(m{}), m{"a": whyNotHeld}, m{"a": whyNotHeld}, nil},
		"too large to be kept":     {m{"a": "0123456789"}, put(m{"a": "2"}), put(m{}), m{"a": whyNotKept}, m{"a": whyNotKept}, nil},
		"large, and gone":          {m{"a": "0123456789"}, rm("a"), put(m{}), m{"a": whyNotKept}, m{"a": whyNotKept}, nil},
		"skipped":                  {m{"skip/a": "1"}, put(m{"skip/a": "2"}), put(m{}), m{}, m{}, nil},
		"skipped in the agent's":   {m{}, put(m{"d/skip": "2"}), put(m{}), m{"d": whyHolds}, m{"d": whyHolds}, nil},
		"another kind of the same": {m{"a": "-> b"}, put(m{"a": "b"}), put(m{"a": "-> c"}), m{"a": whySince}, m{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for _, force := range []bool{false, true} {
				s := newStore(t)
				s.MaxFile = 9
				s.Skip = func(path string, _ bool) bool { return filepath.Base(path) == "skip" }
				lay(t, s.Root, c.start)
				span := during(t, s, func() { c.agent(t, s.Root) })
				c.person(t, s.Root)
				now := state(t, s.Root)
				p, err := s.Plan(t.Context(), span.Before, []Span{span})
				must(t, err)
				if diff := cmp.Diff(c.kept, whys(p.Kept)); diff != "" {
					t.Fatal("planned:", diff)
				}
				r := restore(t, s, span.Before, force, span)
				want := c.kept
				if force {
					want = c.forced
				}
				if diff := cmp.Diff(want, whys(r.Kept)); diff != "" {
					t.Fatal("force", force, diff)
				}
				after := state(t, s.Root)
				for _, path := range c.gone {
					if after[path] != "" {
						t.Error(path, "is still there")
					}
				}
				restore(t, s, r.Before, false, Span{r.Before, r.After})
				if diff := cmp.Diff(now, state(t, s.Root)); diff != "" {
					t.Error("force", force, "undone:", diff)
				}
			}
		})
	}
}

// TestAFolderStaysForWhatIsPutBackInIt has a person put a file into the agent's folder, which
// the agent then replaces.
func TestAFolderStaysForWhatIsPutBackInIt(t *testing.T) {
	s := newStore(t)
	made := during(t, s, func() { lay(t, s.Root, map[string]string{"d/mine": "1"}) })
	lay(t, s.Root, map[string]string{"d/yours": "2"})
	replaced := during(t, s, func() {
		must(t, os.Remove(filepath.Join(s.Root, "d/yours")))
		lay(t, s.Root, map[string]string{"d/yours": "-> mine"})
	})
	spans := []Span{made, replaced}
	p, err := s.Plan(t.Context(), made.Before, spans)
	must(t, err)
	r := restore(t, s, made.Before, false, spans...)
	if diff := cmp.Diff(p, r.Plan); diff != "" {
		t.Error("the plan differs from what was done:", diff)
	}
	if diff := cmp.Diff(map[string]string{"d": whyHolds}, whys(r.Kept)); diff != "" {
		t.Error("kept:", diff)
	}
	if text, err := os.ReadFile(filepath.Join(s.Root, "d/yours")); err != nil || string(text) != "2" {
		t.Errorf("the person's file is %q, %v", text, err)
	}
}

func TestRestoreModes(t *testing.T) {
	s := newStore(t)
	lay(t, s.Root, map[string]string{"f": "1", "d/x": "2", "large": "0123456789"})
	s.MaxFile = 9
	want := state(t, s.Root)
	links := filepath.Join(s.Root, "f2")
	span := during(t, s, func() {
		for path, mode := range map[string]os.FileMode{"f": 0o600, "d": 0o700, "large": 0o755, "": 0o700} {
			must(t, os.Chmod(filepath.Join(s.Root, path), mode))
		}
	})
	must(t, os.Link(filepath.Join(s.Root, "f"), links))
	r := restore(t, s, span.Before, false, span)
	if diff := cmp.Diff(map[string]Kind{"f": ChangeMod, "d": ChangeMod, "large": ChangeMod, ".": ChangeMod}, kinds(r.Changes)); diff != "" ||
		len(r.Kept) > 0 {
		t.Fatal(diff, r.Kept)
	}
	a, err1 := os.Stat(links)
	b, err2 := os.Stat(filepath.Join(s.Root, "f"))
	must(t, err1, err2, os.Remove(links))
	if diff := cmp.Diff(want, state(t, s.Root)); diff != "" || !os.SameFile(a, b) {
		t.Fatal(diff)
	}
}

func TestSpecialBitsAreNeitherGivenNorTaken(t *testing.T) {
	s := newStore(t)
	lay(t, s.Root, map[string]string{"f": "1", "g": "1"})
	f, g := filepath.Join(s.Root, "f"), filepath.Join(s.Root, "g")
	must(t, os.Chmod(f, 0o755|os.ModeSetuid), os.Chmod(g, 0o755|os.ModeSetuid))
	span := during(t, s, func() { must(t, os.Chmod(f, 0o700|os.ModeSetuid), os.Remove(g)) })
	restore(t, s, span.Before, false, span)
	for path, want := range map[string]os.FileMode{f: 0o755 | os.ModeSetuid, g: 0o755} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Error(info.Mode(), err)
		}
	}
}

// TestWhatIsSkippedNowIsNotTouched leaves out paths that an earlier checkpoint kept.
func TestWhatIsSkippedNowIsNotTouched(t *testing.T) {
	s := newStore(t)
	lay(t, s.Root, map[string]string{"a": "1", "d/x": "2", "d/gone": "3", "e": "4"})
	span := during(t, s, func() {
		must(t, os.Remove(filepath.Join(s.Root, "d/gone")))
		lay(t, s.Root, map[string]string{"a": "one", "d/x": "two", "d/new": "5", "e": "four"})
	})
	want := state(t, s.Root)
	now := &Store{Dir: s.Dir, Root: s.Root, Skip: func(path string, dir bool) bool { return path == "a" && !dir || path == "d" && dir }}
	r := restore(t, now, span.Before, true, span)
	want["e"] = state(t, s.Root)["e"]
	if diff := cmp.Diff(want, state(t, s.Root)); diff != "" || !cmp.Equal(kinds(r.Changes), map[string]Kind{"e": Edit}) || len(r.Kept) > 0 {
		t.Fatal(diff, r.Plan)
	}
}

// TestRestoreIsNotStoppedHalfway gives up as soon as there is a journal.
func TestRestoreIsNotStoppedHalfway(t *testing.T) {
	s, span, want, now := scene(t)
	ctx, cancel := context.WithCancel(t.Context())
	s.hook = func(string) {
		if _, err := os.Stat(s.path(journalName)); err == nil {
			cancel()
		}
	}
	r, err := s.Restore(ctx, span.Before, []Span{span}, false)
	if diff := cmp.Diff(want, state(t, s.Root)); err != nil || ctx.Err() == nil || diff != "" {
		t.Fatal(err, diff)
	}
	if _, err := s.Restore(ctx, r.Before, []Span{{r.Before, r.After}}, false); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	restore(t, s, r.Before, false, Span{r.Before, r.After})
	if diff := cmp.Diff(now, state(t, s.Root)); diff != "" {
		t.Fatal(diff)
	}
}

func TestWrongNamesAreRefused(t *testing.T) {
	s := newStore(t)
	id := take(t, s)
	for _, bad := range []string{"", "../lock", "20061122-000000-000000-aaaa"} {
		_, err1 := s.Restore(t.Context(), bad, nil, false)
		_, err2 := s.Restore(t.Context(), id, []Span{{id, bad}}, false)
		_, err3 := s.Plan(t.Context(), id, []Span{{bad, id}})
		_, err4 := s.Diff(t.Context(), id, bad)
		for i, err := range []error{err1, err2, err3, err4, s.Check(t.Context(), bad)} {
			if !errors.Is(err, ErrNoCheckpoint) {
				t.Errorf("%q, %d: %v", bad, i, err)
			}
		}
	}
	if list := ids(t, s); len(list) != 1 {
		t.Error("checkpoints were taken for nothing:", list)
	}
}

// TestUnfinishedRestoreComesFirst has nothing done until a restore is finished.
func TestUnfinishedRestoreComesFirst(t *testing.T) {
	s, span, want, _ := scene(t)
	if _, killed := run(t, s, "restore", 60, span.Before, span.After); !killed {
		t.Fatal("not killed")
	}
	_, err1 := s.Take(t.Context())
	_, err2 := s.Plan(t.Context(), span.Before, nil)
	_, err3 := s.Restore(t.Context(), span.Before, nil, false)
	_, err4 := s.Clean(t.Context())
	for i, err := range []error{err1, err2, err3, err4, s.Remove(t.Context(), span.Before)} {
		if !errors.Is(err, ErrUnfinished) {
			t.Error(i, err)
		}
	}
	lay(t, s.Root, map[string]string{"deleted": "a person's", "mine": "too"})
	now := state(t, s.Root)
	r, err := s.Recover(t.Context())
	must(t, err)
	want["mine"] = now["mine"]
	if why := whys(r.Kept)["deleted"]; why == whySince {
		want["deleted"] = now["deleted"]
	}
	if diff := cmp.Diff(want, state(t, s.Root)); diff != "" {
		t.Fatal(diff)
	}
	take(t, s)
}
