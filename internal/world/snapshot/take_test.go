package snapshot

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/base/keep"
)

func TestTakeKeepsWhatThereIs(t *testing.T) {
	s := newStore(t)
	s.MaxFile = 2 << 20
	s.Skip = func(path string, dir bool) bool { return path == "skipped" && dir || path == "in/skipped.txt" && !dir }
	text := strings.Repeat("0123456789abcdef", 1<<17)
	lay(t, s.Root, map[string]string{
		"a": "text", "same": "text", "empty": "", "dir/": "", "in/x": "1", "in/skipped.txt": "no", "skipped/x": "no", "link": "-> ../outside",
		".git/HEAD": "no", "in/.git": "gitdir: no", "big": text, "huge": text + "!", "\xff\xfe": "bytes", strings.Repeat("n", 255): "long",
		strings.Repeat("deep/", 60) + "x": "deep",
	})
	must(t, pipe(filepath.Join(s.Root, "pipe")))
	c, err := s.Take(t.Context())
	must(t, err)
	if c.Files != 8 || c.Left != 1 || c.Bytes != 4+4+0+1+2<<20+5+4+4 || c.New < 2<<20 {
		t.Fatalf("%+v", c)
	}
	got := map[string]Kind{}
	list, err := s.Diff(t.Context(), c.ID, emptied(t, s))
	must(t, err)
	for _, d := range list {
		if !strings.HasPrefix(d.Path, "deep") {
			got[d.Path] = d.Kind
		}
	}
	want := map[string]Kind{}
	for _, path := range []string{"a", "same", "empty", "dir", "in", "in/x", "link", "big", "huge", "\xff\xfe", strings.Repeat("n", 255)} {
		want[path] = Delete
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	for path, want := range map[string]string{
		"a": "text", "big": text, "link": "../outside", "\xff\xfe": "bytes",
		strings.Repeat("deep/", 60) + "x": "deep",
	} {
		if data, err := s.Read(t.Context(), c.ID, path, 1<<30); err != nil || string(data) != want {
			t.Errorf("%.20q: %.20q, %v", path, data, err)
		}
	}
	for path, want := range map[string]error{
		"in": fs.ErrInvalid, "huge": fs.ErrInvalid, "none": fs.ErrNotExist, "a/b": fs.ErrNotExist,
		"../x": fs.ErrNotExist, ".git/HEAD": fs.ErrNotExist,
	} {
		if _, err := s.Read(t.Context(), c.ID, path, 1); !errors.Is(err, want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if data, err := s.Read(t.Context(), c.ID, "big", 3); err != nil || string(data) != "012" {
		t.Errorf("%q, %v", data, err)
	}
}

// emptied takes a checkpoint of the emptied workspace.
func emptied(t *testing.T, s *Store) string {
	t.Helper()
	must(t, os.RemoveAll(s.Root), os.Mkdir(s.Root, 0o755))
	return take(t, s)
}

func TestStoreIsPrivateAndApart(t *testing.T) {
	s := newStore(t)
	if list, err := s.List(t.Context()); err != nil || len(list) > 0 {
		t.Fatal(list, err)
	}
	if r, err := s.Recover(t.Context()); err != nil || r != nil {
		t.Fatal(r, err)
	}
	if freed, err := s.Clean(t.Context()); err != nil || freed != 0 {
		t.Fatal(freed, err)
	}
	must(t, s.Remove(t.Context(), "x"))
	if _, err := os.Stat(s.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal("a store was made to read it:", err)
	}
	take(t, s)
	if info, err := os.Stat(s.Dir); err != nil || info.Mode().Perm() != 0o700 && runtime.GOOS != "windows" {
		t.Fatal(info.Mode(), err)
	}
	aside := filepath.Join(filepath.Dir(s.Root), "aside")
	must(t, os.Symlink(s.Root, aside))
	for _, bad := range []*Store{
		{Dir: s.Root, Root: s.Root},
		{Dir: filepath.Join(s.Root, "x", "y"), Root: s.Root},
		{Dir: filepath.Join(aside, "x"), Root: s.Root},
		{Dir: filepath.Dir(s.Root), Root: s.Root},
		{Dir: s.Dir, Root: "relative"},
		{Dir: "", Root: s.Root},
	} {
		if _, err := bad.Take(t.Context()); err == nil {
			t.Errorf("%q in %q is taken", bad.Root, bad.Dir)
		}
	}
	must(t, os.WriteFile(s.path(formatName), []byte("inspan snapshots 9\n"), 0o600))
	if _, err := s.Take(t.Context()); err == nil {
		t.Error("another version's store is used")
	}
}

func TestSecondTakeCostsNothing(t *testing.T) {
	s := newStore(t)
	lay(t, s.Root, map[string]string{"a": "1", "b/c": "2", "big": strings.Repeat("x", bigObject)})
	first, err := s.Take(t.Context())
	must(t, err)
	second, err := s.Take(t.Context())
	must(t, err)
	if second.New != 0 || second.Files != 3 || second.ID <= first.ID {
		t.Fatalf("%+v", second)
	}
	lay(t, s.Root, map[string]string{"d/e": "1"}) // known content at a new place
	third, err := s.Take(t.Context())
	must(t, err)
	if third.New == 0 || third.New > 1000 {
		t.Fatalf("%+v", third)
	}
	list, err := s.List(t.Context())
	if diff := cmp.Diff([]Checkpoint{first, second, third}, list); err != nil || diff != "" {
		t.Fatal(diff, err)
	}
}

// TestClockGoesBack has a checkpoint from the future.
func TestClockGoesBack(t *testing.T) {
	s := newStore(t)
	r, err := s.record(take(t, s))
	must(t, err)
	r.ID = "29991231-235959-999999-zzzz"
	data, err := r.encode()
	must(t, err, os.WriteFile(s.path(recordsName, r.ID), data, 0o600))
	for range 3 {
		id := take(t, s)
		if all := ids(t, s); all[len(all)-1] != id {
			t.Fatal(id, all)
		}
	}
}

// TestOnlyTheFolderThatWasSeenIsEntered looks at one folder and enters another.
func TestOnlyTheFolderThatWasSeenIsEntered(t *testing.T) {
	s := newStore(t)
	lay(t, s.Root, map[string]string{"a/x": "1", "b/y": "2", "link": "-> a"})
	root, err := os.OpenRoot(s.Root)
	must(t, err)
	defer func() { _ = root.Close() }()
	info, err := root.Lstat("a")
	must(t, err)
	if _, err := enter(root, "b", info); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	info, err = root.Lstat("link")
	must(t, err)
	if _, err := enter(root, "link", info); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestFastChangesAreNoticed changes files again and again, without a pause,
// size or time of modification that tells.
func TestFastChangesAreNoticed(t *testing.T) {
	s := newStore(t)
	file := filepath.Join(s.Root, "a")
	for i := range byte(100) {
		f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o644)
		must(t, err)
		_, err = f.WriteAt([]byte{i}, 0)
		must(t, err, f.Close(), os.Chtimes(file, time.Time{}, time.Unix(1e9, 0)))
		if got, err := s.Read(t.Context(), take(t, s), "a", 9); err != nil || !bytes.Equal(got, []byte{i}) {
			t.Fatal(i, got, err)
		}
	}
}

func TestStampsThatAreTooYoungAreNotTrusted(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		stamp keep.Stamp
		old   bool
	}{
		{keep.Stamp{Mtime: 1, Ctime: now.UnixNano()}, false},
		{keep.Stamp{Mtime: 1, Ctime: now.Add(-settled).UnixNano()}, false},
		{keep.Stamp{Mtime: now.UnixNano(), Ctime: now.Add(-settled).UnixNano() - 1}, true},
		{keep.Stamp{Mtime: now.UnixNano()}, false},
		{keep.Stamp{Mtime: now.Add(time.Hour).UnixNano()}, false},
		{keep.Stamp{Mtime: now.Add(-time.Hour).UnixNano()}, true},
	} {
		if old(c.stamp, now) != c.old {
			t.Errorf("%+v: %v", c.stamp, !c.old)
		}
	}
}

// TestCacheIsOnlyATimeSaver plants a cache that lies, and damages it.
func TestCacheIsOnlyATimeSaver(t *testing.T) {
	s := newStore(t)
	lay(t, s.Root, map[string]string{"a": "1", "b": "2", "d/c": "3"})
	want := take(t, s)
	info, err := os.Lstat(filepath.Join(s.Root, "a"))
	must(t, err)
	b, err := s.loadView(t, want).at("b")
	must(t, err)
	lie := &statCache{folders: map[string][]byte{}, fresh: map[string][]byte{}}
	lie.note("", []cached{{"a", keep.StampOf(info), b.sum}})
	s.saveCache(lie)
	if data, err := s.Read(t.Context(), take(t, s), "a", 9); err != nil || string(data) != "2" {
		t.Fatal("the cache is not used:", string(data), err)
	}
	p, err := s.Plan(t.Context(), want, []Span{{want, ids(t, s)[1]}})
	if diff := cmp.Diff(map[string]Kind{"a": Edit}, kinds(p.Changes)); err != nil || diff != "" {
		t.Fatal("the cache is not used to plan:", diff, err)
	}
	lie.fresh[""][1] ^= 1 // the name
	s.saveCache(lie)
	good, err := os.ReadFile(s.path(cacheName))
	must(t, err)
	lie.folders, lie.fresh = map[string][]byte{}, map[string][]byte{}
	lie.note("", []cached{{"a", keep.StampOf(info), digest{1}}}) // content that isn't there
	s.saveCache(lie)
	for i := range good {
		if i > 0 {
			bad := bytes.Clone(good)
			bad[i] ^= 1
			must(t, os.WriteFile(s.path(cacheName), bad[:len(bad)-i%3], 0o600))
		}
		if diff, err := s.Diff(t.Context(), want, take(t, s)); err != nil || len(diff) > 0 {
			t.Fatal(i, diff, err)
		}
	}
}

func (s *Store) loadView(t *testing.T, id string) *view {
	t.Helper()
	v, err := s.load()
	must(t, err)
	t.Cleanup(v.close)
	w, err := s.view(v, id)
	must(t, err)
	return w
}

// TestFilesChangeWhileTheyAreRead takes checkpoints of files that are written,
// replaced and removed all the time.
func TestFilesChangeWhileTheyAreRead(t *testing.T) {
	s := newStore(t)
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for i := range byte(2) {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				name := filepath.Join(s.Root, string('a'+i))
				_ = os.WriteFile(name, bytes.Repeat([]byte{byte(n)}, bigObject-5+n%10), 0o644)
				_ = os.Rename(name, name+"2")
				if n%3 == 0 {
					_ = os.Remove(name + "2")
					_ = os.MkdirAll(filepath.Join(name+"2", "x"), 0o755)
					_ = os.RemoveAll(name + "2")
					_ = os.Symlink("a", name+"2")
				}
			}
		})
	}
	for range 20 {
		must(t, s.Check(t.Context(), take(t, s)))
	}
	cancel()
	wg.Wait()
	id := take(t, s)
	for path, text := range state(t, s.Root) {
		if text[0] == '-' && text[1] != '>' {
			want, err := os.ReadFile(filepath.Join(s.Root, path))
			must(t, err)
			if got, err := s.Read(t.Context(), id, path, 1<<30); err != nil || !bytes.Equal(got, want) {
				t.Fatal(path, err)
			}
		}
	}
}

func TestManyTakeAtOnce(t *testing.T) {
	s := newStore(t)
	lay(t, s.Root, map[string]string{"a": "1", "b/c": "2", "big": strings.Repeat("x", bigObject)})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 5 {
				c, err := s.Take(context.Background())
				if err == nil {
					_, err = s.Clean(context.Background(), c.ID)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() { run(t, s, "take", 0) })
		wg.Go(func() {
			if _, err := s.List(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := intact(t, s); n != 24 {
		t.Fatal(n)
	}
	unlock, err := s.change(t.Context())
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := s.Take(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if _, err := s.Diff(ctx, "", ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	unlock()
	canceled, stop := context.WithCancel(t.Context())
	stop()
	if _, err := s.Take(canceled); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
