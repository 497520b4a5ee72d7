package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/inspan/inspan/store"
)

// Lease makes this log the driver of the session, until [Log.Release], [Log.Close] or the end of the process,
// however that comes. If another holds the lease it fails at once with a [*store.BusyError]. A log that has it
// already keeps it.
//
// The lease is a lock of the operating system. A stopped holder keeps it: no one else can become the driver
// before the holder is dead.
func (l *Log) Lease(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lease != nil {
		return nil
	}
	err := ctx.Err()
	if err == nil && l.closed {
		err = fs.ErrClosed
	}
	if err == nil {
		l.lease, err = l.store.take(ctx, filepath.Join(l.dir, leaseName))
	}
	if err != nil {
		return fmt.Errorf("lease session %s: %w", l.id, err)
	}
	return nil
}

// Release gives up the lease. It does nothing if the log does not hold it.
func (l *Log) Release() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lease == nil {
		return nil
	}
	if err := l.letGo(); err != nil {
		return fmt.Errorf("release session %s: %w", l.id, err)
	}
	return nil
}

// letGo unlocks the lease file and closes it. Closing is not enough: a child process that is just starting has
// a copy of it. The caller holds l.mu.
func (l *Log) letGo() error {
	f := l.lease
	l.lease = nil
	_ = f.Truncate(0)
	return errors.Join(f.Unlock(), f.Close())
}

// deadGrace is how long a lock may outlive its holder: a child that was just starting has copies of all the
// holder's files, until it runs its own program. It is also the wait for a lock whose file names no holder: another
// process is checking who drives the session (see locked), or is about to write its name.
const deadGrace = 2 * time.Second

// take locks the lease file at path or fails with a [*store.BusyError].
func (s *Store) take(ctx context.Context, path string) (file, error) {
	f, err := s.fs().Open(path, os.O_RDWR|os.O_CREATE|os.O_APPEND)
	if err != nil {
		return nil, err
	}
	got, err := f.TryLock()
	if err == nil && !got {
		got, err = await(ctx, f)
	}
	if err == nil && !got {
		err = holder(f)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	// Only for messages: a full disk must not prevent driving.
	host, _ := os.Hostname()
	me, _ := json.Marshal(store.BusyError{PID: os.Getpid(), Host: host, Since: s.clock().UTC()})
	_ = f.Truncate(0)
	_, _ = f.Write(append(me, '\n'))
	return f, nil
}

// await takes the lock as soon as it is free. It gives up once the file names a live holder, and after deadGrace.
func await(ctx context.Context, f file) (got bool, err error) {
	ctx, stop := context.WithTimeout(ctx, deadGrace)
	defer stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil && err == nil && !got {
		if busy := holder(f); busy.PID != 0 && !dead(busy) {
			return false, nil
		}
		<-tick.C
		got, err = f.TryLock()
	}
	return got, err
}

// dead reports whether the holder ran on this machine and is gone.
func dead(e *store.BusyError) bool {
	host, err := os.Hostname()
	return err == nil && e.Host == host && e.PID > 0 && gone(e.PID)
}

// holder reads the identity of the holder from the lease file.
func holder(f file) *store.BusyError {
	e := new(store.BusyError)
	data, err := io.ReadAll(io.NewSectionReader(f, 0, 4096))
	if err != nil || json.Unmarshal(data, e) != nil {
		return new(store.BusyError)
	}
	return e
}
