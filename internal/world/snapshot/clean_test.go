package snapshot

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// noise is text that is nowhere else.
func noise(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rand.IntN(256))
	}
	return string(b)
}

func ids(t *testing.T, s *Store) (out []string) {
	t.Helper()
	list, err := s.List(t.Context())
	must(t, err)
	for _, c := range list {
		out = append(out, c.ID)
	}
	return out
}

func TestCleanDropsTheOldest(t *testing.T) {
	s := newStore(t)
	s.Quota = 4 << 20
	var all []string
	for i := range 10 {
		lay(t, s.Root, map[string]string{"small": noise(100_000), fmt.Sprintf("other%d", i): "x", "big": noise(bigObject / 2 * (1 + i%2))})
		c, err := s.Take(t.Context())
		if errors.Is(err, ErrFull) {
			intact(t, s)
			freed, err := s.Clean(t.Context(), all[0])
			must(t, err)
			if freed <= 0 {
				t.Fatal("nothing freed")
			}
			c, err = s.Take(t.Context())
			must(t, err)
		} else {
			must(t, err)
		}
		all = append(all, c.ID)
	}
	used, err := size(s.Dir)
	must(t, err)
	if used > s.Quota {
		t.Fatal("the quota is exceeded:", used)
	}
	left := ids(t, s)
	if len(left) < 3 || len(left) == 10 || left[0] != all[0] || !cmp.Equal(left[1:], all[len(all)-len(left)+1:]) {
		t.Fatal(left, all)
	}
	intact(t, s)
}

func TestCleanFreesAllThatIsUnused(t *testing.T) {
	s := newStore(t)
	empty := take(t, s)
	before, err := size(s.Dir)
	must(t, err)
	for range 3 {
		lay(t, s.Root, map[string]string{"small": noise(5000), "big": noise(bigObject)})
		take(t, s)
	}
	keep := ids(t, s)[3]
	must(t, s.Remove(t.Context(), ids(t, s)[1:3]...))
	_, err = s.Clean(t.Context())
	must(t, err)
	if n := intact(t, s); n != 2 {
		t.Fatal(n)
	}
	must(t, s.Remove(t.Context(), keep, "nonsense"), os.RemoveAll(s.path(cacheName)))
	_, err = s.Clean(t.Context())
	must(t, err)
	after, err := size(s.Dir)
	must(t, err)
	if after != before || !cmp.Equal(ids(t, s), []string{empty}) {
		t.Fatal(before, after)
	}
}

func TestManyPacksBecomeOne(t *testing.T) {
	s := newStore(t)
	for i := range manyPacks + 2 {
		lay(t, s.Root, map[string]string{"a": fmt.Sprint(i)})
		take(t, s)
	}
	_, err := s.Clean(t.Context())
	must(t, err)
	packs, err := os.ReadDir(s.path(packsName))
	must(t, err)
	if len(packs) != 1 || intact(t, s) != manyPacks+2 {
		t.Fatal(len(packs))
	}
}

func TestFullChangesNothing(t *testing.T) {
	s := newStore(t)
	lay(t, s.Root, map[string]string{"a": "1"})
	id := take(t, s)
	before := state(t, s.Dir)
	used, err := size(s.Dir)
	must(t, err)
	s.Quota = used + bigObject/2
	for _, files := range []map[string]string{{"small": noise(bigObject - 1)}, {"big": noise(bigObject)}} {
		lay(t, s.Root, files)
		if _, err := s.Take(t.Context()); !errors.Is(err, ErrFull) {
			t.Fatal(err)
		}
		got := state(t, s.Dir)
		for path := range got {
			if strings.HasPrefix(path, objectsName+"/") && len(path) < len(objectsName)+4 {
				delete(got, path) // an empty folder
			}
		}
		if diff := cmp.Diff(before, got); diff != "" {
			t.Fatal(diff)
		}
		for path := range files {
			must(t, os.Remove(filepath.Join(s.Root, path)))
		}
	}
	lay(t, s.Root, map[string]string{"a": noise(bigObject)})
	r := restore(t, s, id, true, Span{id, id})
	must(t, s.Check(t.Context(), r.Before)) // a restore is not held back by the quota
}
