package session

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/tool"
)

var blobName = regexp.MustCompile(`sha256-[0-9a-f]{64}`)

// isBlob reports whether a name has the form of a blob's.
func isBlob(name string) bool {
	digest, is := strings.CutPrefix(name, "sha256-")
	return is && keep.IsDigest(digest)
}

// blobs is the folder of blobs of one session.
type blobs struct {
	store *Store
	dir   string
}

var _ tool.Blobs = blobs{}

// Blobs returns the blobs of the session. They can be used until the session is removed, even while the log is
// closed.
func (l *Log) Blobs() tool.Blobs { return blobs{store: l.store, dir: filepath.Join(l.dir, blobsName)} }

// Put implements [tool.Blobs].
func (b blobs) Put(ctx context.Context, r io.Reader) (string, error) {
	name, err := b.put(ctx, r)
	if err != nil {
		return "", fmt.Errorf("put blob: %w", err)
	}
	return name, nil
}

func (b blobs) put(ctx context.Context, r io.Reader) (name string, err error) {
	d := b.store.fs()
	if err := mkdirAll(d, b.dir, b.store.Sync == SyncPower); err != nil {
		return "", err
	}
	tmp := filepath.Join(b.dir, putMark+rand.Text())
	f, err := d.Open(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	err = copyChunks(io.MultiWriter(b.durable(f), sum), keep.Reading(ctx, r))
	if err == nil {
		err = b.store.sync(f)
	}
	err = errors.Join(err, f.Close())
	name = keep.BlobName(sum.Sum(nil))
	if err == nil {
		// Even if it exists already: that file may not be durable yet.
		err = d.Rename(tmp, filepath.Join(b.dir, name))
	}
	if err != nil {
		return "", errors.Join(err, d.Remove(tmp))
	}
	return name, b.store.syncDir(b.dir)
}

// durable returns a writer for a file that will be synced.
func (b blobs) durable(f file) io.Writer {
	if begins, ok := f.(beginner); ok && b.store.Sync != SyncKill {
		return &ahead{file: f, begins: begins}
	}
	return f
}

// beginner is a file that can begin to make its data durable without waiting. Only Sync reports success.
type beginner interface{ Begin(from, size int64) }

// ahead writes to a file. The disk begins to write early data long before the end, so that the final sync is
// short.
type ahead struct {
	file        io.Writer
	begins      beginner
	begun, size int64 // bytes
}

// aheadBy is the number of bytes handed to the disk at once.
const aheadBy = 8 << 20

func (a *ahead) Write(p []byte) (int, error) {
	n, err := a.file.Write(p)
	if a.size += int64(n); a.size-a.begun >= aheadBy {
		a.begins.Begin(a.begun, a.size-a.begun)
		a.begun = a.size
	}
	return n, err
}

// pourChunk is how many bytes of a blob are written together.
const pourChunk = 128 << 10

// copyChunks copies all of r to w. If r is longer than a chunk, one chunk is written while the next one is read.
func copyChunks(w io.Writer, r io.Reader) error {
	var chunks [2][]byte
	wrote := make(chan error, 1)
	wrote <- nil
	for n := 0; ; n++ {
		chunk := &chunks[n%2]
		if *chunk == nil {
			*chunk = make([]byte, pourChunk)
		}
		size, err := fill(r, *chunk)
		if failure := <-wrote; failure != nil {
			return failure
		}
		switch {
		case errors.Is(err, io.EOF):
			_, err = w.Write((*chunk)[:size])
			return err
		case err != nil:
			return err
		}
		go func() {
			_, err := w.Write(*chunk)
			wrote <- err
		}()
	}
}

// fill reads until the chunk is full or r is at its end or fails.
func fill(r io.Reader, chunk []byte) (n int, err error) {
	for n < len(chunk) && err == nil {
		var k int
		k, err = r.Read(chunk[n:])
		n += k
	}
	return n, err
}

// Get implements [tool.Blobs]. The content is checked while it is read: if it does not match the name, the last
// Read fails instead of reporting the end.
func (b blobs) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !isBlob(name) {
		return nil, fmt.Errorf("get blob: %q is not a blob's name: %w", name, fs.ErrNotExist)
	}
	f, err := b.store.fs().Open(filepath.Join(b.dir, name), os.O_RDONLY)
	if err != nil {
		return nil, fmt.Errorf("get blob: %w", err)
	}
	size, err := f.Size()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("get blob: %w", err), f.Close())
	}
	return keep.CheckBlob(struct {
		io.Reader
		io.Closer
	}{io.NewSectionReader(f, 0, size), f}, name), nil
}

// Names lists the blobs, in no particular order.
func (b blobs) Names(ctx context.Context) ([]string, error) {
	names, err := b.store.fs().ReadDir(b.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ctx.Err()
	}
	return slices.DeleteFunc(names, func(name string) bool { return !isBlob(name) }), errors.Join(err, ctx.Err())
}

// Remove removes a blob for good. A missing one is not an error. The caller must know that nothing refers to
// it.
func (b blobs) Remove(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil || !isBlob(name) {
		return err
	}
	if err := b.store.fs().Remove(filepath.Join(b.dir, name)); err != nil {
		return fmt.Errorf("remove blob: %w", err)
	}
	return b.store.syncDir(b.dir)
}
