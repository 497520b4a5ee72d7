package corpus

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"slices"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

// reading is one call that reads a corpus.
type reading struct {
	set  *Set
	call *tool.Call
	*manifest
}

// ErrChanged says that a source has changed since the corpus was opened.
var ErrChanged = errors.New("it has changed since the corpus was opened; open the corpus again with corpus_list")

func changed(name string, why error) error {
	if why != nil {
		return fmt.Errorf("%s: %w (%w)", name, ErrChanged, why)
	}
	return fmt.Errorf("%s: %w", name, ErrChanged)
}

// view is an open source. It is read from start to end; going back is possible, but slow for sources without a
// position.
type view struct {
	r    *reading
	i    int
	src  source
	file io.ReadCloser
	at   int64
}

// view opens a source. A changed one is an error.
func (r *reading) view(ctx context.Context, i int) (*view, error) {
	v := &view{r: r, i: i, src: r.Sources[i]}
	return v, v.open(ctx)
}

func (v *view) open(ctx context.Context) (err error) {
	v.at = 0
	switch v.src.Kind {
	case kindFile:
		v.file, err = v.r.openFile(ctx, v.i)
	case kindSession:
		if err = v.r.set.mayRead(ctx, v.r.call, v.src.At); err == nil {
			v.file = v.r.set.log(ctx, v.src.At, v.src.Upto)
		}
	default:
		if v.r.call.Env.Blobs == nil {
			return errNoBlobs
		}
		v.file, err = v.r.call.Env.Blobs.Get(ctx, v.src.At)
	}
	if err != nil && !errors.Is(err, ErrChanged) {
		err = fmt.Errorf("%s: %w", v.src.Name, err)
	}
	return err
}

// close ends the reading. It returns an error if the source has changed meanwhile.
func (v *view) close(ctx context.Context) error {
	f, isFile := v.file.(fs.File)
	if !isFile {
		return v.file.Close()
	}
	info, err := f.Stat()
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return v.r.confirm(ctx, v.i, stampOf(info))
}

// seek moves to a byte.
func (v *view) seek(ctx context.Context, to int64) error {
	if s, ok := v.file.(io.Seeker); ok && to != v.at {
		if _, err := s.Seek(to, io.SeekStart); err == nil {
			v.at = to
			return nil
		}
	}
	if to < v.at {
		if err := errors.Join(v.file.Close(), v.open(ctx)); err != nil {
			return err
		}
	}
	n, err := io.CopyN(io.Discard, v.file, to-v.at)
	v.at += n
	if err != nil {
		return v.short(err)
	}
	return nil
}

// Read implements [io.Reader], up to the source's end when it was opened.
func (v *view) Read(p []byte) (int, error) {
	left := v.src.Bytes - v.at
	if left <= 0 {
		return 0, io.EOF
	}
	n, err := v.file.Read(p[:min(int64(len(p)), left)])
	v.at += int64(n)
	switch {
	case err != nil && v.at >= v.src.Bytes:
		err = nil
	case err != nil:
		err = v.short(err)
	}
	return n, err
}

// short returns the error for a source that can't be read up to its recorded end.
func (v *view) short(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return changed(v.src.Name, nil)
	}
	return fmt.Errorf("%s: %w", v.src.Name, err)
}

// bytes returns the bytes of a range.
func (v *view) bytes(ctx context.Context, from, to int64) ([]byte, error) {
	if err := v.seek(ctx, from); err != nil {
		return nil, err
	}
	out := make([]byte, to-from)
	_, err := io.ReadFull(v, out)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = changed(v.src.Name, nil)
	}
	return out, err
}

// each reads sources one after the other.
func (r *reading) each(ctx context.Context, sources []int, do func(v *view) error) error {
	for _, i := range sources {
		v, err := r.view(ctx, i)
		if err != nil {
			return err
		}
		if err := errors.Join(do(v), v.close(ctx), ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

// openFile opens a file of the corpus, if it is unchanged.
func (r *reading) openFile(ctx context.Context, i int) (fs.File, error) {
	src := r.Sources[i]
	files := r.call.Env.Files
	if !slices.ContainsFunc(r.Roots, func(root string) bool { return text.Inside(root, src.At) }) {
		return nil, errors.New("it is not below what the corpus was opened with")
	}
	at, err := files.Resolve(ctx, src.At)
	if err != nil {
		return nil, err
	}
	if at != src.At {
		return nil, changed(src.Name, errors.New("a link has taken its place"))
	}
	f, err := files.Open(ctx, src.At)
	if err != nil {
		return nil, changed(src.Name, err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := r.compare(ctx, i, f, info); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return src.Decoding.file(f), nil
}

// compare checks whether the content of a file whose metadata has changed is still the same.
func (r *reading) compare(ctx context.Context, i int, f fs.File, info fs.FileInfo) error {
	src, stamp := r.Sources[i], stampOf(info)
	switch {
	case !info.Mode().IsRegular() || (src.Decoding == "" || src.Decoding == narrow) && info.Size() < src.Bytes:
		return changed(src.Name, nil)
	case r.known(i, stamp):
		return nil
	}
	s, ok := f.(io.Seeker)
	if !ok {
		return changed(src.Name, nil)
	}
	m := newMeter()
	if _, err := io.Copy(m, io.LimitReader(src.Decoding.reader(keep.Reading(ctx, f)), src.Bytes)); err != nil {
		return fmt.Errorf("%s: %w", src.Name, err)
	}
	if m.bytes != src.Bytes || m.digest() != src.Digest {
		return changed(src.Name, nil)
	}
	r.set.mu.Lock()
	if r.set.checked == nil || len(r.set.checked) > 10_000 {
		r.set.checked = map[string]string{}
	}
	r.set.checked[r.key(i)] = stamp
	r.set.mu.Unlock()
	_, err := s.Seek(0, io.SeekStart)
	return err
}

// known reports whether a file with this stamp is known to be unchanged.
func (r *reading) known(i int, stamp string) bool {
	r.set.mu.Lock()
	defer r.set.mu.Unlock()
	return stamp == r.Sources[i].Stamp || stamp == r.set.checked[r.key(i)]
}

// confirm checks whether a file was unchanged while it was read. Otherwise the data read is unreliable.
func (r *reading) confirm(ctx context.Context, i int, stamp string) error {
	if r.known(i, stamp) {
		return nil
	}
	f, err := r.openFile(ctx, i)
	if err != nil {
		return err
	}
	return f.Close()
}

func (r *reading) key(i int) string { return fmt.Sprintf("%s %d", r.name, i) }

// stampOf returns metadata that changes with the content of a file.
func stampOf(info fs.FileInfo) string {
	ino, ctime := keep.Inode(info)
	return fmt.Sprintf("%d %d %d %d", info.Size(), info.ModTime().UnixNano(), ino, ctime)
}

// meter measures the data written to it.
type meter struct {
	sum   hash.Hash
	bytes int64
	lines int64
	last  byte
}

func newMeter() *meter { return &meter{sum: sha256.New()} }

// Write implements [io.Writer].
func (m *meter) Write(p []byte) (int, error) {
	m.bytes += int64(len(p))
	m.lines += int64(countLines(p))
	if len(p) > 0 {
		m.last = p[len(p)-1]
	}
	return m.sum.Write(p)
}

// digest returns the digest of the content in the form of [tool.Digest].
func (m *meter) digest() string { return hex.EncodeToString(m.sum.Sum(nil)[:16]) }

// count returns the number of lines; the last may lack a line end.
func (m *meter) count() int64 {
	if m.bytes > 0 && m.last != '\n' {
		return m.lines + 1
	}
	return m.lines
}
