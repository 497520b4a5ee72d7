package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
)

const (
	chunk    = 128  // names in one folder per goroutine
	maxDepth = 1000 // of folders; deeper ones count as unreadable
)

// sink receives the objects that a scan finds. It is safe for concurrent use.
type sink interface {
	// known reports whether a file's content need not be read.
	known(d digest, size int64) bool
	tree(data []byte) (digest, error)
	small(data []byte) (digest, error)
	// large reads content of at least bigObject bytes, up to a limit; size is the number of bytes read.
	large(r *os.File, limit int64) (d digest, size int64, err error)
}

// scan reads the workspace.
type scan struct {
	s      *Store
	ctx    context.Context
	to     sink
	cache  *statCache
	tokens chan struct{} // for goroutines in addition to the first

	files, left atomic.Int64
	bytes       atomic.Int64
	stop        atomic.Bool
	mu          sync.Mutex
	err         error // the first error
}

// scan reads the whole workspace and returns its entry.
func (s *Store) scan(ctx context.Context, to sink, cache *statCache) (*scan, entry, error) {
	w := &scan{s: s, ctx: ctx, to: to, cache: cache, tokens: make(chan struct{}, 2*runtime.GOMAXPROCS(0))}
	root, err := os.OpenRoot(s.Root)
	if err != nil {
		return nil, entry{}, err
	}
	defer func() { _ = root.Close() }()
	info, err := root.Stat(".")
	if err != nil {
		return nil, entry{}, err
	}
	e := w.folder(root, "", entry{kind: isDir, perm: perm(info)}, 0)
	if w.err == nil && e.kind != isDir {
		w.err = &fs.PathError{Op: "read", Path: s.Root, Err: fs.ErrPermission}
	}
	return w, e, w.err
}

func perm(info fs.FileInfo) uint16 { return uint16(info.Mode() & permission) }

func (w *scan) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
	w.stop.Store(true)
}

// do runs f concurrently if a goroutine is available, otherwise directly.
func (w *scan) do(wg *sync.WaitGroup, f func()) {
	select {
	case w.tokens <- struct{}{}:
		wg.Go(func() {
			defer func() { <-w.tokens }()
			f()
		})
	default:
		f()
	}
}

// found is the result for one name in a folder.
type found struct {
	entry entry
	cache cached // without a name: none
	part  bool   // left out
	shut  bool   // not even its metadata is readable, so the folder is unknown
}

// folder reads an open folder; e is its entry so far.
func (w *scan) folder(root *os.Root, path string, e entry, depth int) entry {
	if err := w.ctx.Err(); err != nil {
		w.fail(err)
		return e
	}
	names, err := readNames(root)
	if depth > maxDepth {
		err = fs.ErrPermission
	}
	if err != nil {
		w.left.Add(1)
		w.scarce(err)
		e.kind = isShut
		return e
	}
	known := w.cache.folder(path)
	list := make([]found, len(names))
	var wg sync.WaitGroup
	for i := 0; i < len(names); i += chunk {
		to := min(i+chunk, len(names))
		look := func() {
			for j := i; j < to && !w.stop.Load(); j++ {
				w.look(&wg, root, path, names[j], known, &list[j], depth)
			}
		}
		if to == len(names) {
			look()
		} else {
			w.do(&wg, look)
		}
	}
	wg.Wait()
	if slices.ContainsFunc(list, func(f found) bool { return f.shut }) {
		w.left.Add(1)
		e.kind = isShut
	} else if !w.stop.Load() {
		w.close(path, list, &e)
	}
	return e
}

// close creates the tree of a folder that was read.
func (w *scan) close(path string, list []found, e *entry) {
	t := tree{entries: make([]entry, 0, len(list))}
	files := make([]cached, 0, len(list))
	for _, f := range list {
		t.part = t.part || f.part
		if f.entry.kind != nothing {
			t.entries = append(t.entries, f.entry)
		}
		if f.cache.name != "" {
			files = append(files, f.cache)
		}
	}
	w.cache.note(path, files)
	sum, err := w.to.tree(t.encode())
	if err != nil {
		w.fail(err)
	}
	e.sum = sum
}

// scarce fails the scan if an error is due to missing resources of the machine.
func (w *scan) scarce(err error) {
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM) {
		w.fail(err)
	}
}

// look scans one name.
func (w *scan) look(wg *sync.WaitGroup, root *os.Root, dir, name string, known []cached, out *found, depth int) {
	info, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		out.shut = true
		w.scarce(err)
		return
	}
	path := join(dir, name)
	if private(name) && !w.s.Whole || w.s.Skip != nil && w.s.Skip(path, info.IsDir()) {
		out.part = true
		return
	}
	e := entry{name: name, perm: perm(info)}
	switch info.Mode().Type() {
	case 0:
		w.file(root, info, e, known, out)
	case fs.ModeSymlink:
		w.link(root, name, out)
	case fs.ModeDir:
		w.enter(wg, root, info, path, e, out, depth)
	default:
		out.part = true
	}
}

// private reports names that git uses for itself.
func private(name string) bool {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		return strings.EqualFold(name, ".git")
	}
	return name == ".git"
}

func (w *scan) link(root *os.Root, name string, out *found) {
	target, err := root.Readlink(name)
	if err == nil {
		out.entry = entry{name: name, kind: isLink, target: target}
		return
	}
	out.part = true
}

func (w *scan) enter(wg *sync.WaitGroup, root *os.Root, info fs.FileInfo, path string, e entry, out *found, depth int) {
	sub, err := enter(root, e.name, info)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		w.left.Add(1)
		w.scarce(err)
		e.kind = isShut
		out.entry = e
		return
	}
	e.kind = isDir
	w.do(wg, func() {
		defer func() { _ = sub.Close() }()
		out.entry = w.folder(sub, path, e, depth+1)
	})
}

// enter opens the folder that info describes, and no other; the error is fs.ErrNotExist if it is gone.
func enter(root *os.Root, name string, info fs.FileInfo) (*os.Root, error) {
	sub, err := root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	now, err := sub.Stat(".")
	if err == nil && !os.SameFile(info, now) {
		err = &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, errors.Join(err, sub.Close())
	}
	return sub, nil
}

func readNames(root *os.Root) ([]string, error) {
	f, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// file scans a regular file.
func (w *scan) file(root *os.Root, info fs.FileInfo, e entry, known []cached, out *found) {
	st := keep.StampOf(info)
	if sum, ok := find(known, e.name, st); ok && w.to.known(sum, st.Size) {
		e.kind, e.size, e.mtime, e.sum = isFile, st.Size, w.time(st), sum
		out.cache = cached{e.name, st, sum}
	} else {
		e, out.cache = w.read(root, info, e)
	}
	out.entry = e
	switch e.kind {
	case isFile:
		w.files.Add(1)
		w.bytes.Add(e.size)
	case isLarge, isSealed:
		w.left.Add(1)
	}
}

// time returns the modification time to store for a file whose content is kept.
func (w *scan) time(st keep.Stamp) int64 {
	if w.s.Whole {
		return st.Mtime
	}
	return 0
}

// read reads a file. If it changes meanwhile, partly changed content is kept, and the file is read again next time,
// because its stamp is too new.
func (w *scan) read(root *os.Root, info fs.FileInfo, e entry) (entry, cached) {
	left := func(kind byte) (entry, cached) {
		if kind == isLarge && w.s.Whole {
			w.fail(fmt.Errorf("%w: the file %q has more than %d bytes", ErrFull, e.name, w.s.maxFile()))
		}
		e.kind, e.size, e.mtime = kind, info.Size(), info.ModTime().UnixNano()
		return e, cached{}
	}
	if info.Size() > w.s.maxFile() {
		return left(isLarge)
	}
	hashed := time.Now()
	f, st, err := openFile(root, e.name, info)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ELOOP) {
		return entry{}, cached{}
	}
	if err != nil {
		w.scarce(err)
		return left(isSealed)
	}
	defer f.Close()
	info, e.perm = st, perm(st)
	sum, size, err := w.content(f, info.Size())
	switch {
	case errors.Is(err, errUnreadable):
		return left(isSealed)
	case err != nil:
		w.fail(err)
		return entry{}, cached{}
	case size > w.s.maxFile():
		return left(isLarge)
	}
	s := keep.StampOf(info)
	e.kind, e.size, e.mtime, e.sum = isFile, size, w.time(s), sum
	if old(s, hashed) && s.Size == size {
		return e, cached{e.name, s, sum}
	}
	return e, cached{}
}

// openFile opens the regular file that info describes, or its replacement. The error is fs.ErrNotExist if that
// is not a regular file.
func openFile(root *os.Root, name string, info fs.FileInfo) (*os.File, fs.FileInfo, error) {
	gone := &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	for range 3 {
		f, err := root.OpenFile(name, os.O_RDONLY|openFlags, 0)
		if err != nil {
			return nil, nil, err
		}
		now, err := f.Stat()
		if err == nil && os.SameFile(info, now) {
			return f, now, nil
		}
		_ = f.Close()
		if info, err = root.Lstat(name); err != nil || !info.Mode().IsRegular() {
			return nil, nil, gone
		}
	}
	return nil, nil, gone
}

var errUnreadable = errors.New("can't be read")

// content reads an open file into the sink. A size above the limit means that it grew too large and isn't kept.
func (w *scan) content(f *os.File, size int64) (digest, int64, error) {
	if size < bigObject {
		buf := make([]byte, size+1)
		n, err := io.ReadFull(f, buf)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return digest{}, 0, errUnreadable
		}
		if n <= int(size) && int64(n) <= w.s.maxFile() {
			sum, err := w.to.small(buf[:n])
			return sum, int64(n), err
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return digest{}, 0, errUnreadable
		}
	}
	return w.to.large(f, w.s.maxFile())
}
