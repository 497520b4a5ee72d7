package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/tool"
)

// folderBlobs are blobs in a folder.
type folderBlobs string

var _ tool.Blobs = folderBlobs("")

func (b folderBlobs) Put(_ context.Context, r io.Reader) (string, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	name := keep.BlobName(sum[:])
	return name, os.WriteFile(filepath.Join(string(b), name), data, 0o600)
}

func (b folderBlobs) Get(_ context.Context, name string) (io.ReadCloser, error) {
	return os.Open(filepath.Join(string(b), name))
}

// bytes is how much they hold.
func (b folderBlobs) bytes(t testing.TB) (total int64) {
	t.Helper()
	total, err := size(string(b))
	must(t, err)
	return total
}

// traveller is a workspace that travels, on one machine of several.
func traveller(t testing.TB) *Store {
	t.Helper()
	s := newStore(t)
	s.Whole = true
	return s
}

func send(t testing.TB, s *Store, b folderBlobs, before string) Sent {
	t.Helper()
	sent, err := s.Send(context.Background(), b, before)
	must(t, err)
	return sent
}

func fetch(t testing.TB, s *Store, b folderBlobs, name string) Sent {
	t.Helper()
	sent, err := s.Fetch(context.Background(), b, name)
	must(t, err)
	return sent
}

// TestTravel checks that another machine gets a workspace as it is, including .git, and that a later state costs only
// the changes.
func TestTravel(t *testing.T) {
	b := folderBlobs(t.TempDir())
	one, two := traveller(t), traveller(t)
	lay(t, one.Root, map[string]string{
		"a": "1", "empty/": "", "dir/deep/x": "2", "link": "-> dir", "out": "-> ../../../etc/passwd", ".git/HEAD": "ref: x",
		".git/hooks/h":     "#!/bin/sh",
		"node_modules/m/x": "3", "big": strings.Repeat("big", bigObject), "none": "", "odd \x01 name": "4",
	})
	old := time.Unix(1_000_000_000, 123_000_000)
	must(t, os.Chmod(filepath.Join(one.Root, "dir/deep/x"), 0o741), os.Chmod(filepath.Join(one.Root, "dir"), 0o555),
		os.Chtimes(filepath.Join(one.Root, "dir/deep/x"), old, old))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(one.Root, "dir"), 0o755) })
	first := send(t, one, b, "")
	lay(t, two.Root, map[string]string{"stale": "x", "dir/stale": "y"})
	fetch(t, two, b, first.Manifest)
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(two.Root, "dir"), 0o755) })
	if diff := cmp.Diff(state(t, one.Root), state(t, two.Root)); diff != "" {
		t.Fatal(diff)
	}
	if info, err := os.Stat(filepath.Join(two.Root, "dir/deep/x")); err != nil || !info.ModTime().Equal(old) {
		t.Errorf("the time of a file: %v, %v", info, err)
	}
	if again := send(t, two, b, first.Manifest); again.New != 0 || again.Manifest != first.Manifest || len(again.Gone) > 0 {
		t.Errorf("a workspace that has not changed is sent: %+v", again)
	}
	lay(t, two.Root, map[string]string{"a": "one", "new/x": "5"})
	second := send(t, two, b, first.Manifest)
	if second.New == 0 || second.New > 4<<10 {
		t.Errorf("a small change takes %d bytes", second.New)
	}
	if diff := cmp.Diff([]string{first.Manifest}, second.Gone); diff != "" {
		t.Error("gone:", diff)
	}
	fetch(t, one, b, second.Manifest)
	if diff := cmp.Diff(state(t, two.Root), state(t, one.Root)); diff != "" {
		t.Fatal(diff)
	}
	if first.Files != 8 || first.Left != 0 {
		t.Errorf("the first state: %+v", first)
	}
}

// TestTravelOfGit checks that git says the same of a repository on both machines.
func TestTravelOfGit(t *testing.T) {
	b := folderBlobs(t.TempDir())
	one, two := traveller(t), traveller(t)
	git := func(dir string, args ...string) string {
		calm := []string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"}
		cmd := exec.Command("git", append(calm, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
		return string(out)
	}
	git(one.Root, "init", "-q")
	lay(t, one.Root, map[string]string{"a": "1", ".gitignore": "ignored", "ignored": "2"})
	git(one.Root, "add", ".")
	git(one.Root, "commit", "-qm", "first")
	git(one.Root, "checkout", "-qb", "work")
	lay(t, one.Root, map[string]string{"staged": "3", "a": "changed", "loose": "4"})
	git(one.Root, "add", "staged")
	fetch(t, two, b, send(t, one, b, "").Manifest)
	for _, args := range [][]string{
		{"log", "--all", "--oneline"}, {"status", "--porcelain"}, {"branch"}, {"diff", "--cached"}, {"fsck", "--full"},
	} {
		if diff := cmp.Diff(git(one.Root, args...), git(two.Root, args...)); diff != "" {
			t.Errorf("git %v: %s", args, diff)
		}
	}
}

// TestManyBigFiles checks that big files, however many, are sent once.
func TestManyBigFiles(t *testing.T) {
	b := folderBlobs(t.TempDir())
	one, two := traveller(t), traveller(t)
	files := map[string]string{}
	for i := range 2*mostPacks + 2 {
		files[fmt.Sprint(i)] = noise(bigObject + i)
	}
	lay(t, one.Root, files)
	last := send(t, one, b, "")
	for n := range 3 {
		lay(t, one.Root, map[string]string{"0": noise(bigObject), "small": fmt.Sprint(n)})
		last = send(t, one, b, last.Manifest)
		if last.New > 2*bigObject {
			t.Errorf("%d bytes were sent where one big file has changed", last.New)
		}
	}
	fetch(t, two, b, last.Manifest)
	if diff := cmp.Diff(state(t, one.Root), state(t, two.Root)); diff != "" {
		t.Fatal(diff)
	}
}

// TestChain checks that a long row of states stays small, and that each of its packs is needed by the one who has only
// the last.
func TestChain(t *testing.T) {
	b := folderBlobs(t.TempDir())
	one, two := traveller(t), traveller(t)
	for i := range 200 {
		lay(t, one.Root, map[string]string{fmt.Sprintf("base/%d", i): strings.Repeat(fmt.Sprint(i), 1000)})
	}
	last := ""
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 300 {
		lay(t, one.Root, map[string]string{fmt.Sprintf("base/%d", random.IntN(200)): strings.Repeat(fmt.Sprint(n, "."), 1000)})
		sent := send(t, one, b, last)
		for _, name := range sent.Gone {
			must(t, os.Remove(filepath.Join(string(b), name)))
		}
		last = sent.Manifest
	}
	m, _, err := one.sentManifest(t.Context(), b, last)
	must(t, err)
	if len(m.Packs) > mostPacks+1 {
		t.Errorf("%d packs", len(m.Packs))
	}
	if held := b.bytes(t); held > 3*m.Bytes {
		t.Errorf("the blobs hold %d bytes for %d", held, m.Bytes)
	}
	names, err := os.ReadDir(string(b))
	must(t, err)
	if len(names) != len(m.Packs)+1 {
		t.Errorf("%d blobs for %d packs and a manifest", len(names), len(m.Packs))
	}
	needed, err := Needed(t.Context(), b, last)
	if err != nil || len(needed) != len(names) {
		t.Errorf("%d blobs are needed, %v", len(needed), err)
	}
	fetch(t, two, b, last)
	if diff := cmp.Diff(state(t, one.Root), state(t, two.Root)); diff != "" {
		t.Fatal(diff)
	}
	for _, p := range m.Packs { // no pack is there in vain
		path := filepath.Join(string(b), p.Blob)
		must(t, os.Rename(path, path+".away"))
		if _, err := two.Fetch(t.Context(), b, last); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("without a pack: %v", err)
		}
		must(t, os.Rename(path+".away", path))
	}
	if diff := cmp.Diff(state(t, one.Root), state(t, two.Root)); diff != "" {
		t.Fatal("a failed fetch has changed the workspace:", diff)
	}
}

// TestForgotten checks that a machine without its indexes of packs sends everything again.
func TestForgotten(t *testing.T) {
	b := folderBlobs(t.TempDir())
	one, two := traveller(t), traveller(t)
	lay(t, one.Root, map[string]string{"a": "1", "b": "2"})
	first := send(t, one, b, "")
	must(t, os.RemoveAll(one.Dir))
	second := send(t, one, b, first.Manifest)
	m, _, err := one.sentManifest(t.Context(), b, first.Manifest)
	must(t, err)
	must(t, os.Remove(filepath.Join(string(b), m.Packs[0].Blob)))
	fetch(t, two, b, second.Manifest)
	if diff := cmp.Diff(state(t, one.Root), state(t, two.Root)); diff != "" {
		t.Fatal(diff)
	}
}

// TestTooLarge checks that a workspace above the quota is not sent, and none above it is made.
func TestTooLarge(t *testing.T) {
	b := folderBlobs(t.TempDir())
	one, two := traveller(t), traveller(t)
	lay(t, one.Root, map[string]string{"a": strings.Repeat("x", 1000), "b": strings.Repeat("y", 1000)})
	one.Quota, one.MaxFile = 1999, 1999
	if _, err := one.Send(t.Context(), b, ""); !errors.Is(err, ErrFull) {
		t.Errorf("a workspace above the quota: %v", err)
	}
	one.Quota = 2000
	sent := send(t, one, b, "")
	two.Quota = 1999
	if _, err := two.Fetch(t.Context(), b, sent.Manifest); !errors.Is(err, ErrFull) {
		t.Errorf("a workspace above the quota is made: %v", err)
	}
	must(t, os.Chmod(filepath.Join(one.Root, "a"), 0))
	if os.Geteuid() != 0 {
		if sent := send(t, one, b, sent.Manifest); sent.Left != 1 {
			t.Errorf("a file that can't be read: %+v", sent)
		}
	}
}

// TestBlobsFail checks that a store that fails at any blob makes Send fail with its error, and that the next Send
// continues.
func TestBlobsFail(t *testing.T) {
	errAway := errors.New("away")
	for n := 0; ; n++ {
		b := folderBlobs(t.TempDir())
		one, two := traveller(t), traveller(t)
		lay(t, one.Root, map[string]string{"a": "1", "big": strings.Repeat("z", bigObject), "big2": strings.Repeat("y", bigObject)})
		failing := &failingBlobs{folderBlobs: b, after: n, err: errAway}
		_, err := one.Send(t.Context(), failing, "")
		if err == nil && n >= 4 {
			break
		}
		if !errors.Is(err, errAway) || n >= 4 {
			t.Fatalf("with %d blobs: %v", n, err)
		}
		fetch(t, two, b, send(t, one, b, "").Manifest)
		if diff := cmp.Diff(state(t, one.Root), state(t, two.Root)); diff != "" {
			t.Fatal(n, diff)
		}
	}
}

type failingBlobs struct {
	folderBlobs
	after int
	err   error
}

func (b *failingBlobs) Put(ctx context.Context, r io.Reader) (string, error) {
	if b.after--; b.after < 0 {
		return "", b.err
	}
	return b.folderBlobs.Put(ctx, r)
}

// TestSendIsKilledAnywhere checks that after a kill the next state is as good as without.
func TestSendIsKilledAnywhere(t *testing.T) {
	for n := 1; ; n += few() {
		b := folderBlobs(t.TempDir())
		one, two := traveller(t), traveller(t)
		lay(t, one.Root, map[string]string{"a": "1", "d/b": "2", "big": strings.Repeat("z", bigObject)})
		first := send(t, one, b, "")
		lay(t, one.Root, map[string]string{"a": "one", "c": "3", "big2": strings.Repeat("y", bigObject)})
		_, killed := run(t, one, "send", n, string(b), first.Manifest)
		fetch(t, two, b, first.Manifest)
		fetch(t, two, b, send(t, one, b, first.Manifest).Manifest)
		if diff := cmp.Diff(state(t, one.Root), state(t, two.Root)); diff != "" {
			t.Fatal(n, diff)
		}
		if !killed {
			break
		}
	}
}

// TestFetchIsKilledAnywhere checks that after a kill the workspace is the old one, gone, or the new one, and that
// another Fetch makes it.
func TestFetchIsKilledAnywhere(t *testing.T) {
	b := folderBlobs(t.TempDir())
	one := traveller(t)
	lay(t, one.Root, map[string]string{"a": "1", "d/b": "2", "l": "-> a", "big": strings.Repeat("z", bigObject)})
	must(t, os.Chmod(filepath.Join(one.Root, "d"), 0o555))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(one.Root, "d"), 0o755) })
	sent := send(t, one, b, "")
	want := state(t, one.Root)
	for n := 1; ; n += few() {
		two := traveller(t)
		lay(t, two.Root, map[string]string{"old": "1"})
		old := state(t, two.Root)
		_, killed := run(t, two, "fetch", n, string(b), sent.Manifest)
		if _, err := os.Stat(two.Root); err == nil {
			if got := state(t, two.Root); !cmp.Equal(got, old) && !cmp.Equal(got, want) {
				t.Fatal(n, cmp.Diff(want, got))
			}
		}
		fetch(t, two, b, sent.Manifest)
		if diff := cmp.Diff(want, state(t, two.Root)); diff != "" {
			t.Fatal(n, diff)
		}
		beside, err := filepath.Glob(two.Root + ".*")
		if err != nil || len(beside) > 0 {
			t.Fatal(n, "left beside the workspace:", beside, err)
		}
		must(t, two.Drop())
		for _, gone := range []string{two.Root, two.Dir} {
			if _, err := os.Stat(gone); !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(gone, err)
			}
		}
		if !killed {
			break
		}
	}
}

// forge puts a state that no Send would make.
type forge struct {
	t testing.TB
	b folderBlobs
	p *pack
}

func newForge(t testing.TB) *forge {
	t.Helper()
	s := traveller(t)
	unlock, err := s.change(t.Context())
	must(t, err)
	t.Cleanup(unlock)
	p, err := s.newPack()
	must(t, err)
	return &forge{t: t, b: folderBlobs(t.TempDir()), p: p}
}

func (f *forge) object(data []byte) digest {
	f.t.Helper()
	d := digest(sha256.Sum256(data))
	must(f.t, f.p.put(d, data))
	return d
}

// manifest ends the pack, and returns the name of a manifest with that root.
func (f *forge) manifest(root digest, change func(*manifest)) string {
	f.t.Helper()
	size := f.p.size()
	must(f.t, f.p.end())
	data, err := os.ReadFile(f.p.f.Name())
	must(f.t, err)
	blob, err := f.b.Put(f.t.Context(), bytes.NewReader(data))
	must(f.t, err)
	m := &manifest{Tree: root.String(), Perm: 0o755, Packs: []sentPack{{Blob: blob, Size: size}}}
	if change != nil {
		change(m)
	}
	raw, err := json.Marshal(m)
	must(f.t, err)
	name, err := f.b.Put(f.t.Context(), strings.NewReader(stateMark+string(raw)))
	must(f.t, err)
	return name
}

// TestHostileStates checks that, whatever the blobs contain, nothing is written outside the workspace, data that does
// not match its digest is refused, and the workspace stays as it was.
func TestHostileStates(t *testing.T) {
	file := func(f *forge, name, text string) entry {
		return entry{name: name, kind: isFile, perm: 0o644, size: int64(len(text)), sum: f.object([]byte(text))}
	}
	folder := func(f *forge, name string, entries ...entry) entry {
		return entry{name: name, kind: isDir, perm: 0o755, sum: f.object((&tree{entries: entries}).encode())}
	}
	link := func(name, target string) entry { return entry{name: name, kind: isLink, target: target} }
	for name, make := range map[string]func(f *forge) string{
		"a name that leads up": func(f *forge) string {
			return f.manifest(folder(f, "", file(f, "../planted", "x")).sum, nil)
		},
		"two dots": func(f *forge) string {
			return f.manifest(folder(f, "", folder(f, "..", file(f, "planted", "x"))).sum, nil)
		},
		"a link and a folder of one name": func(f *forge) string {
			return f.manifest(folder(f, "", link("d", "../outside"), folder(f, "d", file(f, "planted", "x"))).sum, nil)
		},
		"a folder of the name of a link, unsorted": func(f *forge) string {
			return f.manifest(folder(f, "", link("d", "../outside"), file(f, "a", "x"), folder(f, "d", file(f, "planted", "x"))).sum, nil)
		},
		"a file that its digest does not fit": func(f *forge) string {
			e := file(f, "a", "x")
			f.p.index[len(f.p.index)-1].sum[0]++
			e.sum[0]++
			return f.manifest(folder(f, "", e).sum, nil)
		},
		"a tree that is none": func(f *forge) string { return f.manifest(f.object([]byte("no tree")), nil) },
		"a time that is none": func(f *forge) string {
			tree := []byte{treeMark, 0, isDated, 0, 2, 'a'}
			return f.manifest(f.object(append(tree, make([]byte, 34)...)), nil)
		},
		"a size that is not so": func(f *forge) string {
			e := file(f, "a", "x")
			e.size = 2
			return f.manifest(folder(f, "", e).sum, nil)
		},
		"an object that is absent": func(f *forge) string {
			e := file(f, "a", "x")
			e.sum[0]++
			return f.manifest(folder(f, "", e).sum, nil)
		},
		"a bomb of folders": func(f *forge) string {
			e := folder(f, "0", file(f, "a", strings.Repeat("x", 1000)))
			for range 12 {
				left, right := e, e
				left.name, right.name = "0", "1"
				e = folder(f, "0", left, right)
			}
			return f.manifest(e.sum, nil)
		},
		"a depth without end": func(f *forge) string {
			e := folder(f, "0")
			for range maxDepth + 2 {
				e = folder(f, "0", e)
			}
			return f.manifest(e.sum, nil)
		},
		"a pack of another size": func(f *forge) string {
			return f.manifest(folder(f, "").sum, func(m *manifest) { m.Packs[0].Size++ })
		},
		"a pack that is no blob": func(f *forge) string {
			return f.manifest(folder(f, "").sum, func(m *manifest) { m.Packs[0].Blob = "../../outside/secret" })
		},
		"a pack that is none": func(f *forge) string {
			text := strings.Repeat("no pack", 100)
			blob, err := f.b.Put(t.Context(), strings.NewReader(text))
			must(t, err)
			more := sentPack{Blob: blob, Size: int64(len(text))}
			return f.manifest(folder(f, "").sum, func(m *manifest) { m.Packs = append(m.Packs, more) })
		},
		"bits that are no permissions": func(f *forge) string { return f.manifest(folder(f, "").sum, func(m *manifest) { m.Perm = 0o4755 }) },
		"no manifest": func(f *forge) string {
			name, err := f.b.Put(t.Context(), strings.NewReader("{"))
			must(t, err)
			return name
		},
		"no name of a blob": func(*forge) string { return "../outside/secret" },
	} {
		t.Run(name, func(t *testing.T) {
			f := newForge(t)
			manifest := make(f)
			s := traveller(t)
			s.Quota = 1 << 20
			top := filepath.Dir(s.Root)
			lay(t, top, map[string]string{"outside/secret": "1", "work/mine": "2"})
			before := state(t, s.Root)
			if _, err := s.Fetch(t.Context(), f.b, manifest); err == nil {
				t.Error("it was taken")
			}
			if diff := cmp.Diff(before, state(t, s.Root)); diff != "" {
				t.Error("the workspace has changed:", diff)
			}
			planted := state(t, top)
			for path := range planted {
				if strings.Contains(path, "planted") || strings.HasPrefix(path, "work.") {
					t.Error("written:", path)
				}
			}
		})
	}
}

// TestLinkInTheWay checks that a link in the place of the folder that a workspace is made in is not followed.
func TestLinkInTheWay(t *testing.T) {
	b := folderBlobs(t.TempDir())
	one, two := traveller(t), traveller(t)
	lay(t, one.Root, map[string]string{"a": "1"})
	sent := send(t, one, b, "")
	outside := filepath.Join(filepath.Dir(two.Root), "outside")
	lay(t, outside, map[string]string{"kept": "1"})
	for _, suffix := range []string{newSuffix, oldSuffix} {
		must(t, os.Symlink(outside, two.Root+suffix))
	}
	fetch(t, two, b, sent.Manifest)
	if got := state(t, outside); len(got) != 2 {
		t.Errorf("the folder outside: %v", got)
	}
}

// removableBlobs can be listed and removed.
type removableBlobs struct{ folderBlobs }

func (b removableBlobs) Names(context.Context) (names []string, err error) {
	list, err := os.ReadDir(string(b.folderBlobs))
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names, err
}

func (b removableBlobs) Remove(_ context.Context, name string) error {
	return os.Remove(filepath.Join(string(b.folderBlobs), name))
}

// TestSendTakesBack checks that a failed state, such as of a workspace that is too large, leaves no blobs, and that all
// blobs of states can be removed, and nothing else.
func TestSendTakesBack(t *testing.T) {
	b := removableBlobs{folderBlobs(t.TempDir())}
	s := traveller(t)
	s.Quota = 3 * bigObject
	lay(t, s.Root, map[string]string{"a": noise(bigObject), "b": noise(bigObject), "c": noise(bigObject), "d": noise(bigObject), "e": "1"})
	sent, err := s.Send(t.Context(), b, "")
	if !errors.Is(err, ErrFull) || sent.Bytes <= s.Quota {
		t.Errorf("%d bytes, %v", sent.Bytes, err)
	}
	if names, err := b.Names(t.Context()); err != nil || len(names) > 0 {
		t.Errorf("there are %q, %v", names, err)
	}
	must(t, os.Remove(filepath.Join(s.Root, "a")))
	must(t, os.Remove(filepath.Join(s.Root, "b")))
	if _, err := s.Send(t.Context(), b, ""); err != nil {
		t.Fatal(err)
	}
	other, err := b.Put(t.Context(), strings.NewReader("an output"))
	must(t, err)
	must(t, RemoveStates(t.Context(), b))
	if names, err := b.Names(t.Context()); err != nil || !cmp.Equal(names, []string{other}) {
		t.Errorf("there are %q, %v", names, err)
	}
}

// TestWithoutStates checks that an agent can read its session's blobs, but no state of its workspace, which contains
// more than the agent may read there.
func TestWithoutStates(t *testing.T) {
	b := folderBlobs(t.TempDir())
	s := traveller(t)
	lay(t, s.Root, map[string]string{".env": "KEY=secret", "big": noise(bigObject)})
	send(t, s, b, "")
	states, err := os.ReadDir(string(b))
	must(t, err)
	if len(states) != 3 {
		t.Fatalf("%d blobs for a manifest, a pack and a big file", len(states))
	}
	agent := WithoutStates(b)
	for _, e := range states {
		if _, err := agent.Get(t.Context(), e.Name()); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s can be read: %v", e.Name(), err)
		}
	}
	for _, text := range []string{"", "short", stateMark[:len(stateMark)-1], strings.Repeat("long ", 100_000)} {
		name, err := agent.Put(t.Context(), strings.NewReader(text))
		must(t, err)
		r, err := agent.Get(t.Context(), name)
		must(t, err)
		got, err := io.ReadAll(r)
		if must(t, r.Close()); err != nil || string(got) != text {
			t.Errorf("%d bytes were read of %d: %v", len(got), len(text), err)
		}
	}
	if _, err := agent.Get(t.Context(), "sha256-0"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a blob that is not there: %v", err)
	}
}

func FuzzManifest(f *testing.F) {
	good, err := json.Marshal(&manifest{Tree: digest{}.String(), Packs: []sentPack{{Blob: "sha256-" + digest{}.String(), Size: 48}}})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{
		string(good), "{}", "[]", `{"tree":"00","packs":[{"blob":"../x"}]}`, `{"packs":[{"size":9223372036854775807}]}`,
	} {
		f.Add([]byte(stateMark + seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, root, err := parseManifest(data)
		if err != nil {
			return
		}
		if !strings.EqualFold(m.Tree, root.String()) || m.Perm > permission || len(m.Packs) > mostAll {
			t.Errorf("%+v", m)
		}
		for _, p := range m.Packs {
			if filepath.Base(p.Blob) != p.Blob || p.Size < trailerSize || p.Live > p.Size {
				t.Errorf("%+v", p)
			}
		}
	})
}

// BenchmarkSend is of a small change in a workspace of so many files, of about 2 KiB each, because each step of an
// agent makes one.
func BenchmarkSend(b *testing.B) {
	for _, files := range []int{1_000, 20_000} {
		b.Run(fmt.Sprint(files), func(b *testing.B) {
			blobs := folderBlobs(b.TempDir())
			s := &Store{Dir: filepath.Join(b.TempDir(), "store"), Root: resolved(b, b.TempDir()), Whole: true}
			plant(b, s.Root, files)
			last := rested(b, s, blobs)
			old := filepath.Join(s.Root, "area00", "part0000", "source_0.go")
			n, put := 0, int64(0)
			for b.Loop() {
				n++
				must(b, os.WriteFile(old, fmt.Appendf(nil, "changed %d\n", n), 0o644))
				sent := send(b, s, blobs, last)
				last, put = sent.Manifest, put+sent.New
			}
			b.ReportMetric(float64(put)/float64(n), "put-B/op")
		})
	}
}

// rested sends a workspace whose files are old enough not to be read again.
func rested(b *testing.B, s *Store, blobs folderBlobs) (manifest string) {
	b.Helper()
	<-time.After(2 * settled)
	return send(b, s, blobs, "").Manifest
}

// BenchmarkUnchanged is of a step that has changed nothing after all.
func BenchmarkUnchanged(b *testing.B) {
	for _, files := range []int{1_000, 20_000} {
		b.Run(fmt.Sprint(files), func(b *testing.B) {
			blobs := folderBlobs(b.TempDir())
			s := &Store{Dir: filepath.Join(b.TempDir(), "store"), Root: resolved(b, b.TempDir()), Whole: true}
			plant(b, s.Root, files)
			last := rested(b, s, blobs)
			for b.Loop() {
				if sent := send(b, s, blobs, last); sent.New > 0 {
					b.Fatal(sent)
				}
			}
		})
	}
}

// BenchmarkFetch makes a workspace of so many files from scratch.
func BenchmarkFetch(b *testing.B) {
	for _, files := range []int{1_000, 20_000} {
		b.Run(fmt.Sprint(files), func(b *testing.B) {
			blobs := folderBlobs(b.TempDir())
			s := &Store{Dir: filepath.Join(b.TempDir(), "store"), Root: resolved(b, b.TempDir()), Whole: true}
			plant(b, s.Root, files)
			sent := send(b, s, blobs, "")
			b.ReportMetric(float64(sent.Bytes), "bytes")
			for b.Loop() {
				fetch(b, s, blobs, sent.Manifest)
			}
		})
	}
}
