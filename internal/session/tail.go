package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/inspan/inspan/event"
)

// advance verifies what has been written behind the tail and moves the tail
// behind it. What cannot be verified is left: its size, and what is wrong with
// its first line; why is empty if that line only has no end yet. l.mu is held.
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

// catchUp brings the tail to the end of the file. A torn tail is cut and
// noted; damage makes the log refuse all appends. The append lock and l.mu
// are held, so nobody is writing.
func (l *Log) catchUp() error {
	if l.broken != nil {
		return l.broken
	}
	left, why, err := l.advance()
	if err != nil || left == 0 {
		return err
	}
	torn, err := l.torn(left)
	if err != nil {
		return err
	}
	if why == "" {
		why = "the line has no end"
	}
	if !torn {
		l.broken = l.tail.damage(why)
		l.dropIndex()
		return l.broken
	}
	return l.repair(left, why)
}

// torn reports whether the last left bytes of the log are what a crash leaves
// of the last write: nothing behind their first piece can be read as an event.
func (l *Log) torn(left int64) (bool, error) {
	first := true
	for rec, err := range salvage(l.f, l.tail, l.tail.Off+left) {
		if err != nil {
			return false, err
		}
		if !first && rec.Event.Body != nil {
			return false, nil
		}
		first = false
	}
	return true, nil
}

// repair sets the last left bytes aside, cuts them off and notes it in the
// log.
func (l *Log) repair(left int64, why string) error {
	name, err := l.setAside(left)
	if err != nil {
		return fmt.Errorf("set torn tail aside: %w", err)
	}
	if err := l.f.Truncate(l.tail.Off); err != nil {
		return fmt.Errorf("cut torn tail: %w", err)
	}
	if err := l.store.sync(l.f); err != nil {
		l.broken = fmt.Errorf("the log takes no more: cut torn tail: %w", err)
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

// refresh moves the tail to what anybody has appended. Only if a whole line
// does not verify it takes the append lock, to tell a crash from damage; a
// line without an end may just be on its way.
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
	_, why, err := l.advance()
	l.mu.Unlock()
	if err != nil || why == "" {
		return err
	}
	return l.settle(ctx, true)
}

// settle cuts a torn tail or finds the log damaged. That it could not be cut
// is no error here: the log can be read, and the next append will tell.
func (l *Log) settle(ctx context.Context, wait bool) error {
	_ = l.exclusive(ctx, wait, l.catchUp)
	return ctx.Err()
}
