package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
)

// advance verifies the data after the tail and moves the tail after it. It returns the size of the unverified rest,
// and the problem of its first line; why is empty if that line only has no end yet. The caller holds l.mu.
func (l *Log) advance() (left int64, why string, err error) {
	size, err := l.f.Size()
	if err != nil {
		return 0, "", err
	}
	if size < l.tail.Off {
		d := l.tail.damage(fmt.Sprintf("the file has only %d bytes now", size))
		l.broken = d
		return 0, "", d
	}
	if size == l.tail.Off {
		return 0, "", nil
	}
	l.remember(l.tail)
	in := lines{f: l.f, off: l.tail.Off, end: size}
	for {
		line, whole, err := in.next()
		switch {
		case errors.Is(err, io.EOF):
			return 0, "", nil
		case errors.Is(err, errLongLine):
			return size - l.tail.Off, err.Error(), nil
		case err != nil:
			return 0, "", err
		case !whole:
			return size - l.tail.Off, "", nil
		}
		before := l.tail
		kind, why := l.tail.take(line)
		if why != "" {
			return size - before.Off, why, nil
		}
		l.last = before
		l.marks.note(kind, before)
	}
}

// catchUp moves the tail to the end of the file. A torn tail is cut and recorded; damage makes the log refuse
// all appends. The caller holds the append lock and l.mu, so there is no concurrent write.
func (l *Log) catchUp() error {
	if l.broken != nil {
		return l.broken
	}
	left, why, err := l.advance()
	if err != nil || left == 0 {
		return err
	}
	if why == "" {
		why = "the line has no end"
	}
	if torn, err := l.tell(left, why); err != nil || !torn {
		return errors.Join(err, l.broken)
	}
	return l.repair(left, why)
}

// tell distinguishes a torn tail of left bytes from damage, which it sets as broken. The caller holds the
// append lock and l.mu, so there is no concurrent write.
func (l *Log) tell(left int64, why string) (torn bool, err error) {
	l.promised = max(l.promised, l.synced())
	if torn, err = l.torn(left); err == nil && !torn {
		l.broken = l.tail.damage(why)
		l.dropIndex()
	}
	return torn, err
}

// torn reports whether the last left bytes of the log are a partial last write of a crash: none of them was
// promised, nothing after their first piece can be read as an event, and a log with nothing else begins like one.
func (l *Log) torn(left int64) (bool, error) {
	if l.lacking() != nil {
		return false, nil
	}
	if l.tail.Seq == 0 {
		if torn, err := l.begun(left); err != nil || !torn {
			return false, err
		}
	}
	first := true
	for rec, err := range l.salvage(l.tail, l.tail.Off+left) {
		if err != nil {
			return false, err
		}
		if rec.Event.Body != nil && (!first || rec.Event.Seq > l.tail.Seq+1) {
			return false, nil
		}
		first = false
	}
	return true, nil
}

// begun reports whether a log without a good line was at least begun: the disk has some of its first line, or
// NUL bytes in place of it.
func (l *Log) begun(size int64) (bool, error) {
	head := make([]byte, min(size, int64(len(crcHead))))
	if _, err := l.f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	return strings.HasPrefix(crcHead, string(bytes.TrimRight(head, "\x00"))), nil
}

// lacking returns the damage of a log that is shorter than it promised; nil if it is not. The caller holds
// l.mu.
func (l *Log) lacking() *DamageError {
	if l.tail.Off >= l.promised {
		return nil
	}
	return l.tail.damage(fmt.Sprintf("the log was complete up to byte %d, and what follows does not verify", l.promised))
}

// mark is the content of the lock file: how much of the log was synced when it was written. It may be less than
// the current value, and never more.
type mark struct {
	Synced int64 `json:"synced"` // bytes
}

const mostMark = 128 // bytes

// synced reads the mark; 0 if there is none.
func (l *Log) synced() int64 {
	f, err := l.store.fs().Open(filepath.Join(l.dir, lockName), os.O_RDONLY)
	if err != nil {
		return 0
	}
	defer f.Close()
	data := make([]byte, mostMark)
	n, err := f.ReadAt(data, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0
	}
	line, _, _ := bytes.Cut(data[:n], []byte("\n"))
	var m mark
	if !unseal(line, &m) {
		return 0
	}
	return m.Synced
}

// promise writes the mark. If that fails, a later loss looks like a crash. The caller holds l.mu.
func (l *Log) promise(end int64) {
	if end <= l.promised || l.lock == nil {
		return
	}
	l.promised = end
	if line, err := seal(mark{Synced: end}); err == nil {
		_, _ = l.lock.WriteAt(append(line, '\n'), 0)
	}
}

// repair sets the last left bytes aside, cuts them off and records that in the log.
func (l *Log) repair(left int64, why string) error {
	name, err := l.setAside(left)
	if err != nil {
		return fmt.Errorf("set torn tail aside: %w", err)
	}
	out, err := l.writer()
	if err != nil {
		return fmt.Errorf("cut torn tail: %w", err)
	}
	if err := out.Truncate(l.tail.Off); err != nil {
		return fmt.Errorf("cut torn tail: %w", err)
	}
	if err := l.store.sync(out); err != nil {
		l.broken = fmt.Errorf("the log takes no more: cut torn tail: %w", keep.Fault{Err: err})
		return l.broken
	}
	_, err = l.write([]event.Body{event.Note{
		Topic: "recovered",
		Text:  fmt.Sprintf("Cut %d torn bytes behind event %d (%s); kept in %s.", left, l.tail.Seq, why, name),
	}})
	return err
}

// setAside copies the last left bytes of the log to a file of their own.
func (l *Log) setAside(left int64) (name string, err error) {
	d := l.store.fs()
	var f file
	for n := 1; ; n++ {
		name = fmt.Sprintf("torn-%d-%d.bin", l.tail.Off, n)
		f, err = d.Open(filepath.Join(l.dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL)
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err != nil {
		return "", err
	}
	_, err = io.Copy(f, io.NewSectionReader(l.f, l.tail.Off, left))
	if err == nil {
		err = l.store.sync(f)
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = l.store.syncDir(l.dir)
	}
	if err != nil {
		_ = d.Remove(filepath.Join(l.dir, name))
	}
	return name, err
}

// refresh moves the tail to the end of all appends. Only if a complete line does not verify it takes the append
// lock, to distinguish a crash from damage; a line without an end may be in progress.
func (l *Log) refresh(ctx context.Context) error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return fs.ErrClosed
	}
	if _, damaged := errors.AsType[*DamageError](l.broken); damaged {
		l.mu.Unlock()
		return nil
	}
	left, why, err := l.advance()
	known := l.tail.Off+left == l.atRest
	l.mu.Unlock()
	if err != nil || why == "" || known {
		return err
	}
	return l.inspect(ctx)
}

// inspect distinguishes a torn tail from damage while no write is in progress, and changes neither.
func (l *Log) inspect(ctx context.Context) error {
	err := l.alone(ctx, func() error {
		left, why, err := l.advance()
		if err != nil || left == 0 || l.broken != nil {
			return err
		}
		torn, err := l.tell(left, why)
		if torn {
			l.atRest = l.tail.Off + left
		}
		return err
	})
	if errors.Is(err, errNoLock) {
		return nil // the log can be read, and the next append will report it
	}
	return err
}

// errNoLock says that a reader could not lock out writers.
var errNoLock = errors.New("lock the log for reading")

// alone calls do with l.mu held while there is no append. Unlike exclusive it opens nothing for writing:
// without a lock file there has never been an append.
func (l *Log) alone(ctx context.Context, do func() error) error {
	lock, err := l.store.fs().Open(filepath.Join(l.dir, lockName), os.O_RDONLY)
	if err == nil {
		defer func() { _ = errors.Join(lock.Unlock(), lock.Close()) }()
		_, err = l.acquire(ctx, lock, true)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %w", errNoLock, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return do()
}
