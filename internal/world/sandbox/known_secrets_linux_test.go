package sandbox

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/places"
)

// TestKnownSecrets changes a home in random ways and checks after each that the boxes close the same secrets that a
// look at every place finds.
func TestKnownSecrets(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	seeds := uint64(20)
	if testing.Short() {
		seeds = 5
	}
	for seed := range seeds {
		home := filepath.Join(dir, fmt.Sprint("home", seed))
		away := filepath.Join(dir, fmt.Sprint("away", seed))
		for _, folder := range []string{home, away} {
			if err := os.Mkdir(folder, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		m := places.Map{Home: home, State: []string{filepath.Join(home, ".local/state/inspan")}}.Indexed()
		b := &boxes{o: Options{Map: m}}
		random := rand.New(rand.NewPCG(seed, 1))
		var names []string
		for _, name := range []string{".ssh", ".aws", ".config/gh", ".kube/config", ".local/state/inspan", ".netrc", ".gnupg/x", ".config/other/y"} {
			for ; name != "."; name = filepath.Dir(name) {
				names = append(names, name)
			}
		}
		var done []string
		for range 60 {
			done = append(done, happens(random, home, away, names[random.IntN(len(names))]))
			for again := range 2 {
				want := lookedFor(m)
				got := b.knownSecrets()
				for now := lookedFor(m); !slices.Equal(now, want); now = lookedFor(m) { // others change the machine meanwhile
					want, got = now, b.knownSecrets()
				}
				slices.Sort(got)
				if got = slices.Compact(got); !slices.Equal(got, want) {
					t.Fatalf("seed %d, look %d: closed %q, want %q, after\n%s", seed, again+1, got, want, strings.Join(done, "\n"))
				}
			}
		}
		if err := b.mounts.close(); err != nil {
			t.Error(err)
		}
	}
}

// TestKnownSecretsJustChanged checks that nothing is concluded from a folder that has changed so lately
// that it can change again without a trace.
func TestKnownSecretsJustChanged(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &boxes{o: Options{Map: places.Map{Home: home}.Indexed()}}
	defer func() { _ = b.mounts.close() }() // never fails
	for b.knownSecrets(); b.known.way == nil; b.knownSecrets() {
	}
	if err := os.Chtimes(home, time.Time{}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if b.knownSecrets(); b.known.way != nil {
		t.Error("what was found holds on")
	}
}

// happens changes a named entry of a home, or a folder on the way, and describes the change.
func happens(random *rand.Rand, home, away, name string) string {
	path := filepath.Join(home, name)
	_ = os.MkdirAll(filepath.Dir(path), 0o700) // each may fail: what is there is in the way
	switch random.IntN(6) {
	case 0:
		return fmt.Sprint("mkdir ", name, os.MkdirAll(path, 0o700))
	case 1:
		return fmt.Sprint("write ", name, os.WriteFile(path, nil, 0o600))
	case 2:
		return fmt.Sprint("remove ", name, os.RemoveAll(path))
	case 3:
		to := filepath.Join(away, filepath.Base(name))
		return fmt.Sprint("link ", name, os.MkdirAll(to, 0o700), os.Symlink(to, path))
	case 4:
		return fmt.Sprint("move away ", name, os.Rename(path, filepath.Join(away, fmt.Sprint(random.Uint64()))))
	}
	list, _ := filepath.Glob(filepath.Join(away, "*"))
	if len(list) == 0 {
		return "nothing"
	}
	return fmt.Sprint("move back to ", name, os.Rename(list[random.IntN(len(list))], path))
}

// lookedFor is the result of a look at every place.
func lookedFor(m places.Map) []string {
	var out []string
	for _, k := range m.Known() {
		if k.Guard != places.Secret || text.Inside("/proc", k.Path) || text.Inside("/dev", k.Path) || m.Of(k.Path).Guard != places.Secret {
			continue
		}
		if real, err := filepath.EvalSymlinks(k.Path); err == nil {
			out = append(out, real)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
