package snapshot

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// act performs a random action on a random path; impossible ones are skipped.
func act(t *rapid.T, root string) {
	names := rapid.SampledFrom([]string{"a", "b", "c", "d\xff"})
	draw := func(label string) string {
		return filepath.Join(root, path.Join(rapid.SliceOfN(names, 1, 3).Draw(t, label)...))
	}
	full := draw("path")
	switch rapid.SampledFrom([]string{"write", "write", "replace", "mkdir", "remove", "link", "chmod", "move"}).Draw(t, "act") {
	case "write":
		_ = os.WriteFile(full, []byte(rapid.SampledFrom([]string{"", "1", "2", "3"}).Draw(t, "text")), 0o644)
	case "replace":
		_ = os.RemoveAll(full)
		_ = os.MkdirAll(filepath.Dir(full), 0o755)
		_ = os.WriteFile(full, []byte(rapid.SampledFrom([]string{"4", "5"}).Draw(t, "text")), 0o600)
	case "mkdir":
		_ = os.MkdirAll(full, 0o755)
	case "remove":
		_ = os.RemoveAll(full)
	case "link":
		_ = os.Remove(full)
		_ = os.Symlink(rapid.SampledFrom([]string{"a", "..", "/", "nowhere"}).Draw(t, "target"), full)
	case "chmod":
		if info, err := os.Lstat(full); err == nil && info.Mode().Type() != fs.ModeSymlink {
			_ = os.Chmod(full, rapid.SampledFrom([]fs.FileMode{0o755, 0o700, 0o555, 0o600, 0o644}).Draw(t, "mode"))
		}
	case "move":
		_ = os.Rename(full, draw("to"))
	}
}

func acts(t *rapid.T, root string, most int) {
	for range rapid.IntRange(0, most).Draw(t, "acts") {
		act(t, root)
	}
}

// history is the history of a workspace, as seen from outside.
type history struct {
	to      string
	want    map[string]string      // at to
	touched map[string][][2]string // what each span found and left
	spans   []Span
	now     map[string]string
}

func happen(t *rapid.T, tb testing.TB, s *Store, person bool) history {
	h := history{touched: map[string][][2]string{}}
	acts(t, s.Root, 12)
	h.want = state(tb, s.Root)
	for i := range rapid.IntRange(1, 3).Draw(t, "spans") {
		before := state(tb, s.Root)
		span := during(tb, s, func() { acts(t, s.Root, 6) })
		after := state(tb, s.Root)
		for name := range union(before, after) {
			if before[name] != after[name] {
				h.touched[name] = append(h.touched[name], [2]string{before[name], after[name]})
			}
		}
		if i == 0 {
			h.to = span.Before
		}
		h.spans = append(h.spans, span)
		if person {
			acts(t, s.Root, 3)
		}
	}
	h.now = state(tb, s.Root)
	return h
}

func union(a, b map[string]string) map[string]bool {
	out := map[string]bool{}
	for name := range a {
		out[name] = true
	}
	for name := range b {
		out[name] = true
	}
	return out
}

// without is the expected content of a path, in a small model: texts have one line. It is the current content if
// someone else has changed it too and the changes can't be separated.
func (h history) without(name string) (want string, both bool) {
	want = h.now[name]
	for _, leg := range slices.Backward(h.touched[name]) {
		x, left, found := fields(want), fields(leg[1]), fields(leg[0])
		text, alike := three(x[1], left[1], found[1])
		switch {
		case want == leg[1]:
			want = leg[0]
		case x[1] == "" || left[1] == "" || found[1] == "" || !alike:
			return h.want[name], true
		default:
			mode, ok := three(x[0], left[0], found[0])
			if !ok {
				mode = x[0]
			}
			want = mode + " " + text
		}
	}
	return want, false
}

// fields are the mode and the text of a file; without a text there is not a file.
func fields(state string) [2]string {
	mode, text, _ := strings.Cut(state, " ")
	if !strings.HasPrefix(mode, "-r") {
		return [2]string{mode, ""}
	}
	return [2]string{mode, text}
}

// three merges texts that can't be divided.
func three(ours, base, theirs string) (string, bool) {
	switch {
	case ours == base:
		return theirs, true
	case theirs == base, ours == theirs:
		return ours, true
	}
	return "", false
}

// check compares the restored workspace with the expected one.
func (h history) check(t *rapid.T, after map[string]string, r Restored, force bool) {
	kept, changed := whys(r.Kept), kinds(r.Changes)
	for name := range union(h.now, after) {
		if _, listed := changed[name]; listed != (h.now[name] != after[name]) {
			t.Fatalf("%q was %q and is %q, listed: %v", name, h.now[name], after[name], listed)
		}
	}
	for name := range changed {
		_, touched := h.touched[name]
		want, both := h.without(name)
		made := force && h.now[name] == "" && strings.HasPrefix(h.want[name], "d") // a folder that something in it needs
		if !made && (!touched || both && !force || after[name] != want) {
			t.Fatalf("%q: touched %v, by others too %v: it was %q, is %q, wanted %q", name, touched, both, h.now[name], after[name], want)
		}
	}
	for name := range h.touched {
		want, both := h.without(name)
		why, isKept := kept[name]
		if (after[name] != want) != isKept {
			t.Fatalf("%q is %q, wanted %q, kept: %q", name, after[name], want, why)
		}
		if isKept {
			h.justified(t, after, name, both, why, force)
		}
	}
	if extra := len(kept) - len(h.touched); extra > 0 {
		t.Fatalf("%d paths kept that were not touched", extra)
	}
}

// justified checks the reason why a path was kept.
func (h history) justified(t *rapid.T, after map[string]string, name string, both bool, why string, force bool) {
	ok := false
	switch why {
	case whySince:
		ok = !force && both
	case whyHolds:
		for other := range after {
			ok = ok || strings.HasPrefix(other, name+"/")
		}
	case whyParent:
		ok = after[path.Dir(name)] == ""
	case whyNoFolder:
		dir := path.Dir(name)
		for after[dir] == "" && dir != "." { // the nearest that is there
			dir = path.Dir(dir)
		}
		ok = dir != "." && after[dir][0] != 'd'
	}
	if !ok {
		t.Fatalf("%q is kept, and it is not true that %s", name, why)
	}
}

func TestOnlyTheAgentsWorkIsUndone(t *testing.T) {
	for _, person := range []bool{false, true} {
		t.Run(fmt.Sprintf("person %v", person), func(tb *testing.T) {
			rapid.Check(tb, func(t *rapid.T) {
				s := newStore(tb)
				h := happen(t, tb, s, person)
				force := person && rapid.Bool().Draw(t, "force")
				p, err := s.Plan(tb.Context(), h.to, h.spans)
				must(tb, err)
				r := restore(tb, s, h.to, force, h.spans...)
				if diff := cmp.Diff(p, r.Plan); !force && diff != "" {
					t.Fatal("the plan differs from what was done:", diff)
				}
				after := state(tb, s.Root)
				h.check(t, after, r, force)
				if diff := cmp.Diff(h.want, after); !person && diff != "" {
					t.Fatal(diff)
				}
				undone := restore(tb, s, r.Before, false, Span{r.Before, r.After})
				if diff := cmp.Diff(h.now, state(tb, s.Root)); diff != "" || len(undone.Kept) > 0 {
					t.Fatal("undoing the restore:", diff, undone.Kept)
				}
				if !maps.Equal(kinds(p.Changes), kinds(r.Changes)) && !force {
					t.Fatal("kinds differ")
				}
			})
		})
	}
}
