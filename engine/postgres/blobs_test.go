package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/inspan/inspan/engine/postgres"
	"github.com/inspan/inspan/engine/postgres/testkit"
	"github.com/inspan/inspan/store"
)

func put(t *testing.T, l store.Log, data []byte) string {
	t.Helper()
	name, err := l.Blobs().Put(t.Context(), iotest.HalfReader(bytes.NewReader(data)))
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func has(t *testing.T, l store.Log, name string, want []byte) {
	t.Helper()
	r, err := l.Blobs().Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s: read %d of %d bytes, %v", name, len(got), len(want), err)
	}
}

// counted is how many rows a table has.
func counted(t *testing.T, c postgres.Config, table string) (n int) {
	t.Helper()
	conn, err := connect(t, c)
	if err == nil {
		err = conn.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&n)
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// blobLife puts blobs of many sizes, shares them with a fork, and removes both sessions.
func blobLife(t *testing.T, c postgres.Config, loose func() int) {
	s := open(t, c)
	l, err := s.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	data := bytes.Repeat([]byte("0123456789abcde\n"), 3<<16) // 3 MiB
	names := map[string]int{}
	for _, size := range []int{0, 1, 1<<20 - 1, 1 << 20, 1<<20 + 1, 2 << 20, 3 << 20} {
		name := put(t, l, data[:size])
		if again := put(t, l, data[:size]); again != name {
			t.Errorf("%d bytes are %s and %s", size, name, again)
		}
		names[name] = size
	}
	fork, err := s.Fork(t.Context(), l.ID(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if n := counted(t, c, "blobs"); n != len(names) {
		t.Errorf("there are %d blobs, want %d", n, len(names))
	}
	if err := errors.Join(l.Close(), s.Remove(t.Context(), l.ID())); err != nil {
		t.Fatal(err)
	}
	for name, size := range names {
		has(t, fork, name, data[:size])
		if _, err := l.Blobs().Get(t.Context(), name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a blob of a session that is removed: %v", err)
		}
	}
	if _, err := l.Blobs().Put(t.Context(), strings.NewReader("x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a blob was put into a session that is removed: %v", err)
	}
	if err := errors.Join(fork.Close(), s.Remove(t.Context(), fork.ID())); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"blobs", "blob_pieces", "session_blobs", "events", "sessions", "loose_objects"} {
		if n := counted(t, c, table); n != 0 {
			t.Errorf("%s has %d rows", table, n)
		}
	}
	if n := loose(); n != 0 {
		t.Errorf("the bucket has %d objects", n)
	}
}

func TestBlobs(t *testing.T) { blobLife(t, fresh(t), func() int { return 0 }) }

// TestBucket is TestBlobs with a real server of the S3 protocol.
func TestBucket(t *testing.T) {
	c := fresh(t)
	server, err := testkit.StartBucket(t.TempDir())
	if errors.Is(err, testkit.ErrNoBucket) {
		t.Skip("SKIPPED: " + err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	c.Bucket = &postgres.Bucket{
		Endpoint: server.Endpoint, Name: server.Name, Prefix: "blobs/", Region: "us-east-1",
		AccessKey: server.Key, SecretKey: server.Secret, Plain: true,
	}
	s := open(t, c)
	l, err := s.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<17)
	name := put(t, l, big)
	if n := counted(t, c, "blob_pieces"); n != 0 || server.Objects() != 1 || counted(t, c, "loose_objects") != 0 {
		t.Errorf("a big blob is in %d pieces and %d objects", n, server.Objects())
	}
	has(t, l, name, big)
	if err := errors.Join(l.Close(), s.Remove(t.Context(), l.ID())); err != nil {
		t.Fatal(err)
	}
	blobLife(t, c, server.Objects)
	c.Bucket.SecretKey = "wrong"
	if _, err := postgres.Open(t.Context(), c); err == nil || strings.Contains(err.Error(), server.Secret) {
		t.Errorf("with a wrong key: %v", err)
	}
}

// TestBlobRaces puts and removes the same blob from many sessions at once: a session that has put it has it.
func TestBlobRaces(t *testing.T) {
	c := fresh(t)
	c.Conns = 8
	s := open(t, c)
	var group sync.WaitGroup
	for range 6 {
		group.Go(func() {
			for range 15 {
				l, err := s.Create(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				has(t, l, put(t, l, []byte("the same")), []byte("the same"))
				if err := errors.Join(l.Close(), s.Remove(t.Context(), l.ID())); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if n := counted(t, c, "blobs"); n != 0 {
		t.Errorf("%d blobs are left", n)
	}
}

// TestBlobNames lists and removes the blobs of a book.
func TestBlobNames(t *testing.T) {
	s := open(t, fresh(t))
	l, err := s.Book(t.Context(), "server")
	if err != nil {
		t.Fatal(err)
	}
	a, b := put(t, l, []byte("a")), put(t, l, []byte("b"))
	blobs := l.Blobs().(interface {
		Names(ctx context.Context) ([]string, error)
		Remove(ctx context.Context, name string) error
	})
	names, err := blobs.Names(t.Context())
	slices.Sort(names)
	if want := slices.Sorted(slices.Values([]string{a, b})); err != nil || !slices.Equal(names, want) {
		t.Errorf("Names: %v, %v; want %v", names, err, want)
	}
	if err := errors.Join(blobs.Remove(t.Context(), a), blobs.Remove(t.Context(), a), blobs.Remove(t.Context(), "../x")); err != nil {
		t.Error(err)
	}
	if names, err := blobs.Names(t.Context()); err != nil || !slices.Equal(names, []string{b}) {
		t.Errorf("Names: %v, %v; want %v", names, err, b)
	}
}

// TestBlobDamaged changes a blob in the database: a reader who reads to the end gets an error.
func TestBlobDamaged(t *testing.T) {
	c := fresh(t)
	s := open(t, c)
	l, err := s.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	name := put(t, l, []byte("good"))
	sql(t, c, "UPDATE blob_pieces SET content = 'evil'")
	r, err := l.Blobs().Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if data, err := io.ReadAll(r); err == nil {
		t.Errorf("read %q", data)
	}
}
