package snapshot

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFolderBecomesALink swaps a folder for a link to the outside before each
// change of a restore in turn.
func TestFolderBecomesALink(t *testing.T) {
	for _, target := range []string{"outside", "work/inside"} {
		for n := 1; ; n++ {
			s := newStore(t)
			top := filepath.Dir(s.Root)
			lay(t, s.Root, map[string]string{"d/a": "1", "d/b": "2", "d/sub/c": "3", "d/l": "-> x", "d/m": "4"})
			span := during(t, s, func() {
				must(t, os.Remove(filepath.Join(s.Root, "d/a")), os.RemoveAll(filepath.Join(s.Root, "d/sub")), os.Remove(filepath.Join(s.Root, "d/l")))
				must(t, os.Chmod(filepath.Join(s.Root, "d/m"), 0o600))
				lay(t, s.Root, map[string]string{"d/b": "two", "d/new": "5", "d/newdir/x": "6"})
			})
			outside := filepath.Join(top, target)
			lay(t, outside, map[string]string{"b": "two", "new": "5", "newdir/x": "6", "m": "4"})
			must(t, os.Chmod(filepath.Join(outside, "m"), 0o600))
			want := state(t, outside)
			swap := func() {
				must(t, os.Rename(filepath.Join(s.Root, "d"), filepath.Join(top, "moved")), os.Symlink(outside, filepath.Join(s.Root, "d")))
			}
			_, err := s.Plan(t.Context(), span.Before, []Span{span})
			must(t, err)
			left, journal := n, false
			if n == 1 {
				swap()
			}
			s.hook = func(string) {
				if _, err := os.Stat(s.path(journalName)); err == nil {
					journal = true
				}
				if journal && left > 0 {
					if left--; left == 1 {
						swap()
					}
				}
			}
			_, err = s.Restore(t.Context(), span.Before, []Span{span}, true)
			must(t, err)
			if diff := cmp.Diff(want, state(t, outside)); diff != "" {
				t.Fatal(target, n, diff)
			}
			if left > 1 {
				break
			}
		}
	}
}

// TestSomebodyIsFaster makes a file where a restore is about to put one.
func TestSomebodyIsFaster(t *testing.T) {
	for _, at := range []string{"create file", "write file", "rename file"} {
		for _, path := range []string{"deleted", "edited"} {
			s := newStore(t)
			lay(t, s.Root, map[string]string{"deleted": "1", "edited": "2"})
			span := during(t, s, func() {
				must(t, os.Remove(filepath.Join(s.Root, "deleted")))
				lay(t, s.Root, map[string]string{"edited": "3"})
			})
			full := filepath.Join(s.Root, path)
			count := 0
			s.hook = func(op string) {
				if op == at {
					if count++; (count == 1) == (path == "deleted") {
						must(t, os.WriteFile(full, []byte("mine"), 0o644))
					}
				}
			}
			r := restore(t, s, span.Before, true, span)
			if data, err := os.ReadFile(full); err != nil || string(data) != "mine" || whys(r.Kept)[path] != whySince {
				t.Errorf("%s of %s: %q, %v, %v", at, path, data, err, r.Kept)
			}
			if len(state(t, s.Root)) != 3 {
				t.Error("something is left over:", state(t, s.Root))
			}
		}
	}
}

// TestFolderFillsUp makes a file in a folder that is about to go.
func TestFolderFillsUp(t *testing.T) {
	s := newStore(t)
	lay(t, s.Root, map[string]string{"d": "1"})
	span := during(t, s, func() {
		must(t, os.Remove(filepath.Join(s.Root, "d")))
		lay(t, s.Root, map[string]string{"d/": ""})
	})
	s.hook = func(op string) {
		if op == "remove" {
			lay(t, s.Root, map[string]string{"d/mine": "2"})
		}
	}
	r := restore(t, s, span.Before, true, span)
	if diff := cmp.Diff(map[string]string{"d": whyHolds}, whys(r.Kept)); diff != "" || state(t, s.Root)["d/mine"] == "" {
		t.Fatal(diff)
	}
}

// TestDamage flips a bit at places all over the store, and cuts files off.
func TestDamage(t *testing.T) {
	s, span, want, now := scene(t)
	files := map[string]int64{}
	err := filepath.WalkDir(s.Dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && !strings.Contains(path, lockName) {
			info, err := d.Info()
			must(t, err)
			rel, _ := filepath.Rel(s.Dir, path)
			files[rel] = info.Size()
		}
		return err
	})
	must(t, err)
	refused := 0
	for rel, size := range files {
		for i := range int64(12) {
			c := twin(t, s)
			path := filepath.Join(c.Dir, rel)
			data, err := os.ReadFile(path)
			must(t, err)
			at := size * i / 12
			data[at] ^= 1 << (i % 8)
			if i%3 == 2 {
				data = data[:at]
			}
			must(t, os.WriteFile(path, data, 0o600))
			if damaged(t, c, span, want, now) {
				refused++
			}
		}
	}
	if refused < len(files)*3 {
		t.Error("refused only", refused)
	}
}

// damaged restores in a store that may be damaged. It must work, or change
// nothing.
func damaged(t *testing.T, c *Store, span Span, want, now map[string]string) bool {
	t.Helper()
	_, err := c.Restore(t.Context(), span.Before, []Span{span}, false)
	var damage *DamageError
	switch {
	case err == nil:
		if diff := cmp.Diff(want, state(t, c.Root)); diff != "" {
			t.Error("damage is restored:", diff)
		}
		return false
	case errors.As(err, &damage):
		if damage.Checkpoint != span.Before && damage.Checkpoint != span.After || !strings.Contains(err.Error(), damage.Checkpoint) {
			t.Error(err)
		}
	case !strings.Contains(err.Error(), "version"):
		t.Error(err)
	}
	if diff := cmp.Diff(now, state(t, c.Root)); diff != "" {
		t.Error(err, diff)
	}
	if err := errors.Join(c.Check(t.Context(), span.Before), c.Check(t.Context(), span.After)); err == nil {
		t.Error("not found by Check")
	}
	return true
}

func TestDamagedJournalIsNotFollowed(t *testing.T) {
	s, span, _, _ := scene(t)
	run(t, s, "restore", 60, span.Before, span.After)
	now := state(t, s.Root)
	data, err := os.ReadFile(s.path(journalName))
	must(t, err)
	for i := 0; i < len(data); i += 7 {
		bad := bytes.Clone(data)
		bad[i] ^= 4
		must(t, os.WriteFile(s.path(journalName), bad, 0o600))
		var damage *DamageError
		if _, err := s.Recover(t.Context()); !errors.As(err, &damage) {
			t.Fatal(i, err)
		}
	}
	if diff := cmp.Diff(now, state(t, s.Root)); diff != "" {
		t.Fatal(diff)
	}
}

// TestMissingContentIsKept loses a big object altogether.
func TestMissingContentIsKept(t *testing.T) {
	s, span, want, now := scene(t)
	must(t, os.RemoveAll(s.path(objectsName)))
	r := restore(t, s, span.Before, false, span)
	if diff := cmp.Diff(map[string]string{"big": whyMissing}, whys(r.Kept)); diff != "" {
		t.Fatal(diff)
	}
	want["big"] = now["big"]
	if diff := cmp.Diff(want, state(t, s.Root)); diff != "" {
		t.Fatal(diff)
	}
}

func FuzzParse(f *testing.F) {
	full := tree{true, []entry{
		{name: "a", kind: isFile, perm: 0o644, size: 3, sum: digest{1}},
		{name: "b", kind: isDir, sum: digest{2}},
		{name: "c", kind: isLink, target: "x"},
		{name: "d", kind: isLarge, size: 1 << 40, mtime: -1},
		{name: "e", kind: isSealed},
		{name: "f", kind: isShut, perm: 0o700},
	}}
	f.Add(full.encode())
	f.Add(encodeIndex([]indexed{{digest{1}, 0, 0}}))
	f.Add((&journal{before: "x", todo: []change{{path: "a/b", from: full.entries[0], to: full.entries[2]}}}).encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		if got, ok := parseTree(data); ok {
			again, ok := parseTree(got.encode())
			if diff := cmp.Diff(got, again, cmp.AllowUnexported(tree{}, entry{})); !ok || diff != "" {
				t.Fatal(diff)
			}
		}
		if got, ok := parseJournal(data); ok {
			if again, ok := parseJournal(got.encode()); !ok || len(again.todo) != len(got.todo) {
				t.Fatal(again)
			}
		}
		_, _ = parseCache(data)
		_, _ = parseRecord("x", data)
		index, err := parseIndex(bytes.NewReader(data), int64(len(data)))
		if err != nil && !errors.Is(err, errDamaged) {
			t.Fatal(err)
		}
		for _, x := range index {
			if x.off+int64(x.size) > int64(len(data)) {
				t.Fatal(x)
			}
		}
		(&statCache{folders: map[string][]byte{"": data}}).folder("")
	})
}

func TestBadTreesAndPaths(t *testing.T) {
	for _, names := range [][]string{{""}, {"."}, {".."}, {"a/b"}, {"a\x00"}, {"b", "a"}, {"a", "a"}} {
		var tr tree
		for _, name := range names {
			tr.entries = append(tr.entries, entry{name: name, kind: isShut})
		}
		if _, ok := parseTree(tr.encode()); ok {
			t.Errorf("%q is good", names)
		}
	}
	for path, good := range map[string]bool{
		"a": true, "a/b": true, "/a": false, "a/": false,
		"a//b": false, "../a": false, "a/../b": false, ".": false, "a\x00b": false,
	} {
		j := journal{todo: []change{{path: path}}}
		if _, ok := parseJournal(j.encode()); ok != good || goodPath(path) != good {
			t.Errorf("%q: %v", path, ok)
		}
	}
}
