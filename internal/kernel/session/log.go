package session

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
)

// Log is the log of one session. It implements [event.Log], [event.Waiter] and [event.Starter] and is safe for
// concurrent use, even with other logs of the same session in this and in other processes. Make one with
// [Store.Open], [Store.Create] or [Store.Fork].
//
// AppendAs needs [Log.Lease] first.
//
// Once a sync has failed, or the log is found damaged, or its file is no longer the one in the session's folder,
// the log accepts no more appends and gives the reason why. It stays readable. After a failed sync, close and open
// it again.
type Log struct {
	store *Store
	id    string
	dir   string
	f     file // for reading
	bell  *bell
	turn  chan struct{} // has a token while this log holds the append lock
	acts  sync.WaitGroup
	stuck atomic.Int64 // size of the log, plus 1, when another process held the lock and wrote nothing; 0 means none did
	sync  commit

	mu       sync.Mutex
	tail     cursor // end of the verified lines
	last     cursor // start of the last line before tail
	marks    marks
	saved    int64     // size of the log that the index on disk covers
	promised int64     // bytes that must exist, because they were synced once
	recent   [8]cursor // earlier tails, for readers that follow
	lock     file      // nil until first needed
	out      file      // for appending; nil until first needed
	lease    file      // nil unless held
	folder   file      // nil until first needed
	looked   time.Time // the last change of the folder before our files were checked there
	broken   error     // why no more appends are accepted
	wrote    bool      // this log has appended an event
	atRest   int64     // size of the log when it was found with a torn tail
	claim    struct {  // the last claim that was looked up
		at    cursor
		epoch uint64
	}
	closed bool
}

var (
	_ event.Log     = (*Log)(nil)
	_ event.Waiter  = (*Log)(nil)
	_ event.Starter = (*Log)(nil)
	_ event.Leaser  = (*Log)(nil)
)

// ID returns the id of the session.
func (l *Log) ID() string { return l.id }

// Append implements [event.Log].
//
// When the disk is full or fails, a partial write is undone and the next Append may succeed; errors of syncs
// are final for this log.
func (l *Log) Append(ctx context.Context, bodies ...event.Body) ([]event.Event, error) {
	return l.appended(l.appendBodies(ctx, nil, bodies))
}

// AppendAs implements [event.Log]. Without the lease it fails with [event.ErrNotDriver].
func (l *Log) AppendAs(ctx context.Context, as event.Driver, bodies ...event.Body) ([]event.Event, error) {
	events, err := l.appendBodies(ctx, &as, bodies)
	claim, end := l.claimed()
	if stored := as.Repeated(ctx, l, err, claim, bodies); stored != nil {
		return stored, l.flush(end)
	}
	return l.appended(events, err)
}

func (l *Log) appended(events []event.Event, err error) ([]event.Event, error) {
	if err != nil {
		return nil, fmt.Errorf("append to session %s: %w", l.id, err)
	}
	return events, nil
}

// appendBodies stores bodies, those of a driver if there is one.
func (l *Log) appendBodies(ctx context.Context, as *event.Driver, bodies []event.Body) (events []event.Event, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	sync, err := examine(bodies, as != nil)
	if err != nil || len(bodies) == 0 {
		return nil, err
	}
	if err := l.begin(); err != nil {
		return nil, err
	}
	defer l.acts.Done()
	defer l.bell.ring()

	var end int64
	err = l.exclusive(ctx, true, func() error {
		if err := l.catchUp(); err != nil {
			return err
		}
		if err := l.admit(as, bodies); err != nil {
			return err
		}
		events, err = l.write(bodies)
		end = l.tail.Off
		return err
	})
	if err != nil {
		return nil, err
	}
	if sync {
		err = l.flush(end)
	}
	if err == nil && l.unindexed() {
		_ = l.exclusive(ctx, false, func() error { l.saveIndexNow(false); return nil })
	}
	return events, err
}

// unindexed reports whether so much has been appended that it is worth writing the index again.
func (l *Log) unindexed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tail.Off-l.saved >= saveEvery
}

// admit returns the reason why the log refuses events of a driver; nil if it accepts them, or there is no driver.
// The caller holds the append lock and l.mu, and the tail is the end of the file.
func (l *Log) admit(as *event.Driver, bodies []event.Body) error {
	if as == nil {
		return nil
	}
	if l.lease == nil {
		return event.ErrNotDriver
	}
	epoch, err := l.epoch()
	if err != nil {
		return err
	}
	return as.Admit(epoch, l.tail.Seq, bodies)
}

// epoch returns the epoch of the last claim; 0 if there is none. The caller holds l.mu.
func (l *Log) epoch() (uint64, error) {
	at := l.marks.Claimed
	if at == nil {
		return 0, nil
	}
	if l.claim.epoch == 0 || l.claim.at != *at {
		e, err := l.at(*at)
		if err != nil {
			return 0, err
		}
		c, ok := e.Body.(event.Claimed)
		if !ok {
			return 0, at.damage("it should be claimed, and is " + e.Body.Kind())
		}
		l.claim.at, l.claim.epoch = *at, c.Epoch
	}
	return l.claim.epoch, nil
}

// claimed returns the number of the last claim, 0 if there is none, and the known end of the log.
func (l *Log) claimed() (seq uint64, end int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.marks.Claimed != nil {
		seq = l.marks.Claimed.Seq + 1
	}
	return seq, l.tail.Off
}

// examine reports whether bodies must be synced; the error says why they can't be stored.
func examine(bodies []event.Body, driver bool) (sync bool, err error) {
	if err := event.Storable(bodies, driver); err != nil {
		return false, err
	}
	for _, b := range bodies {
		if b, ok := b.(event.Unknown); ok {
			// Its bytes are written into the line unchanged.
			if bytes.IndexByte(b.Raw, '\n') >= 0 || !json.Valid(b.Raw) {
				return false, fmt.Errorf("%q is not one line of JSON", b.Name)
			}
			if plainKind(b.Name) != b.Name {
				return false, fmt.Errorf("%q: %w", b.Name, errReserved)
			}
		}
		sync = sync || event.Synced(b)
	}
	return sync, nil
}

// begin enters an operation that Close waits for; end it with acts.Done.
func (l *Log) begin() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return fs.ErrClosed
	}
	l.acts.Add(1)
	return nil
}

// exclusive calls do with the exclusive right, in this and all processes, to change the log, and with l.mu
// held. Without wait it does nothing if another holds the lock.
func (l *Log) exclusive(ctx context.Context, wait bool, do func() error) error {
	select {
	case l.turn <- struct{}{}:
	default:
		if !wait {
			return nil
		}
		select {
		case l.turn <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer func() { <-l.turn }()
	lock, err := l.locked(ctx, wait)
	if err != nil || lock == nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(do(), lock.Unlock())
}

// locked returns the lock file, locked; nil if another holds it and wait is false. A file that is no longer the
// one in the folder does not lock others out.
func (l *Log) locked(ctx context.Context, wait bool) (file, error) {
	for {
		l.mu.Lock()
		lock, err := l.file(&l.lock, lockName, os.O_RDWR|os.O_CREATE)
		l.mu.Unlock()
		if err != nil {
			return nil, err
		}
		got, err := l.acquire(ctx, lock, wait)
		if err != nil || !got {
			return nil, err
		}
		l.mu.Lock()
		there, err := l.found(lock)
		if err == nil && there {
			l.mu.Unlock()
			return lock, nil
		}
		l.lock = nil
		l.mu.Unlock()
		if err = errors.Join(err, lock.Unlock(), lock.Close()); err != nil {
			return nil, err
		}
	}
}

// justNow is how old a change of a folder must be for the next one to have another time.
const justNow = 20 * time.Millisecond

// found reports whether the lock file is the one in the folder. If the log is not, it accepts no more appends:
// data in another file would be lost. While the folder is in its place and unchanged, both files are unchanged.
// The caller holds the lock and l.mu.
func (l *Log) found(lock file) (there bool, err error) {
	if _, err := l.file(&l.folder, "", os.O_RDONLY); err != nil {
		return false, err
	}
	if there, err = l.folder.Is(l.dir); err == nil && !there { // a folder above it was removed or renamed
		l.lose()
		return true, nil
	}
	changed, err := l.folder.Changed()
	if err != nil || changed.Equal(l.looked) {
		return true, err
	}
	if there, err = lock.Is(filepath.Join(l.dir, lockName)); err != nil || !there {
		return there, err
	}
	there, err = l.f.Is(filepath.Join(l.dir, logName))
	switch {
	case err == nil && !there:
		l.lose()
	case err == nil && there && time.Since(changed) > justNow:
		l.looked = changed
	}
	return true, err
}

// lose keeps the log from writing to a file that is no longer in the folder. The caller holds l.mu.
func (l *Log) lose() {
	if l.broken == nil {
		l.broken = errors.New("the log takes no more: its file was removed or replaced")
	}
}

// changed is called when the log itself has changed something in the folder, just after its check: that needs
// no new check. The caller holds the append lock and l.mu.
func (l *Log) changed() {
	if l.folder != nil {
		l.looked, _ = l.folder.Changed()
	}
}

// file returns one of the log's files, and opens it when it is first needed. The caller holds l.mu.
func (l *Log) file(known *file, name string, flag int) (file, error) {
	if *known == nil {
		f, err := l.store.fs().Open(filepath.Join(l.dir, name), flag)
		if err != nil {
			return nil, err
		}
		*known = f
	}
	return *known, nil
}

// lockPatience is how long another may hold the append lock while the log does not grow. Appends hold it for
// milliseconds.
const lockPatience = 5 * time.Second

// acquire locks the lock file of the log. If another keeps it and writes nothing, it fails and names the
// holder, and then fails at once until the log grows or the lock is free.
func (l *Log) acquire(ctx context.Context, lock file, wait bool) (bool, error) {
	for {
		size, err := l.f.Size()
		if err != nil {
			return false, err
		}
		patience := cmp.Or(l.store.patience, lockPatience)
		if l.stuck.Load() == size+1 {
			patience = 0
		}
		bounded, stop := context.WithTimeout(ctx, patience)
		got, err := acquire(bounded, lock, wait)
		stop()
		if got {
			l.stuck.Store(0)
		}
		if got || !wait || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return got, err
		}
		if now, err := l.f.Size(); err != nil || now == size {
			l.stuck.Store(size + 1)
			path := filepath.Join(l.dir, lockName)
			return false, fmt.Errorf("%s holds its lock %s, and has written nothing for %v: end that process, and try again", keep.Locker(path), path, cmp.Or(l.store.patience, lockPatience))
		}
	}
}

// acquire locks f. Another holder only writes a batch of events, so it retries soon, and then less and less
// often.
func acquire(ctx context.Context, f file, wait bool) (bool, error) {
	for pause := 50 * time.Microsecond; ; pause = min(2*pause, 5*time.Millisecond) {
		got, err := f.TryLock()
		if got || err != nil || !wait {
			return got, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false, ctx.Err()
		}
	}
}

// write appends the bodies in one write. The caller holds the append lock and l.mu, and the tail is the end of
// the file.
func (l *Log) write(bodies []event.Body) ([]event.Event, error) {
	now := l.store.clock().UTC().Truncate(time.Millisecond)
	events := make([]event.Event, len(bodies))
	starts := make([]cursor, len(bodies))
	next := l.tail
	var buf []byte
	for i, b := range bodies {
		events[i] = event.Event{Seq: next.Seq + 1, Time: now, Session: l.id, Body: b}
		starts[i] = next
		enc, err := l.store.encode(events[i])
		if err == nil {
			buf, err = next.add(buf, events[i], enc)
		}
		if err != nil {
			return nil, err
		}
		if u, ok := b.(event.Unknown); ok && !l.readable(buf[starts[i].Off-l.tail.Off:]) {
			return nil, fmt.Errorf("%q could not be read back", u.Name)
		}
	}
	out, err := l.writer()
	if err != nil {
		return nil, err
	}
	if err := writeAll(out, buf); err != nil {
		return nil, l.takeBack(keep.Fault{Err: err})
	}
	l.remember(l.tail)
	for i, b := range bodies {
		l.marks.note(b.Kind(), starts[i])
	}
	l.last, l.tail, l.wrote = starts[len(starts)-1], next, true
	return events, nil
}

// readable reports whether a reader can decode an event from the line.
func (l *Log) readable(line []byte) bool {
	_, err := l.store.decode(bytes.Clone(bytes.TrimSuffix(line, []byte("\n"))))
	return err == nil
}

// takeBack cuts off the remains of a failed write, so that nothing is appended to them.
func (l *Log) takeBack(cause error) error {
	err := l.out.Truncate(l.tail.Off)
	if err == nil {
		err = l.store.sync(l.out)
	}
	if err != nil {
		l.broken = fmt.Errorf("the log takes no more: %w, and that could not be taken back: %w", cause, err)
		return l.broken
	}
	return cause
}

// flush makes everything below end durable, if that is the policy.
func (l *Log) flush(end int64) error {
	if l.store.Sync == SyncKill {
		return nil
	}
	err := l.sync.wait(end, l.syncLog)
	if err == nil {
		return nil
	}
	err = keep.Fault{Err: err}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken == nil {
		l.broken = fmt.Errorf("the log takes no more: an earlier sync failed: %w", err)
	}
	return fmt.Errorf("sync: %w", err)
}

// writer returns the log's file for appending. The caller holds the append lock and l.mu, so the file in the
// folder is the one that is read.
func (l *Log) writer() (file, error) { return l.file(&l.out, logName, os.O_WRONLY|os.O_APPEND) }

// remember stores c as a place where a reader may continue.
func (l *Log) remember(c cursor) {
	copy(l.recent[1:], l.recent[:])
	l.recent[0] = c
}

// Close gives up the lease and closes the files. It waits for running appends; later ones fail with
// [fs.ErrClosed].
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	l.mu.Unlock()
	l.acts.Wait()

	var err error
	if end, unsaved := l.unsaved(); unsaved {
		err = l.flush(end)
		_ = l.exclusive(context.Background(), false, func() error {
			l.saveIndexNow(true)
			return nil
		})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lease != nil {
		err = errors.Join(err, l.letGo())
	}
	for _, f := range []file{l.lock, l.folder, l.out} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	err = errors.Join(err, l.f.Close())
	l.store.release(l.id)
	l.bell.ring()
	return err
}

// unsaved reports whether something appended here may not be durable yet.
func (l *Log) unsaved() (end int64, unsaved bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tail.Off, l.wrote && l.broken == nil
}
