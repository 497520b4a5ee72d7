package keep

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// Patience is how long to wait for a lock that others hold for milliseconds only.
const Patience = 5 * time.Second

// tryEvery is how often a lock is tried that another process holds.
const tryEvery = 2 * time.Millisecond

// A Lock is an exclusive or shared lock of a file or folder. The system releases it when the process dies.
// Locks exclude each other also within a process.
type Lock struct{ f *os.File }

// LockFile locks a file, which is created for this user only if it is missing. It waits until ctx is done, and
// at most most if that is not 0; then the error names the process that holds it.
func LockFile(ctx context.Context, path string, most time.Duration) (*Lock, error) {
	f, err := openLock(path)
	if err != nil {
		return nil, err
	}
	return wait(ctx, f, most, false)
}

// LockShared is LockFile for readers: several may hold the lock at once.
func LockShared(ctx context.Context, path string, most time.Duration) (*Lock, error) {
	f, err := openLock(path)
	if err != nil {
		return nil, err
	}
	return wait(ctx, f, most, true)
}

// LockFolder is LockFile for an existing folder, without a lock file in it. Windows can't lock folders: there
// it uses the file ".lock" in it.
func LockFolder(ctx context.Context, dir string, most time.Duration) (*Lock, error) {
	if runtime.GOOS == "windows" {
		return LockFile(ctx, filepath.Join(dir, ".lock"), most)
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	return wait(ctx, f, most, false)
}

// wait locks an open file, and closes it on failure.
func wait(ctx context.Context, f *os.File, most time.Duration, shared bool) (*Lock, error) {
	limited, cancel := ctx, context.CancelFunc(func() {})
	if most > 0 {
		limited, cancel = context.WithTimeout(ctx, most)
	}
	defer cancel()
	for {
		got, err := false, limited.Err() // no lock if ctx is already done
		if err == nil {
			got, err = TryLock(f, shared)
		}
		if got {
			return &Lock{f}, nil
		}
		if err == nil {
			err = Sleep(limited, tryEvery)
		}
		switch {
		case err == nil:
			continue
		case ctx.Err() == nil && limited.Err() != nil:
			err = fmt.Errorf("%s has held the lock %s for more than %s: end that process, and try again", Locker(f.Name()), f.Name(), most)
		}
		return nil, errors.Join(err, f.Close())
	}
}

// NoLocks returns the error for a file that can't be locked where it is.
func NoLocks(path string, why error) error {
	return fmt.Errorf("%s is on a file system without locks (flock: %w); choose another one with --state DIR or INSPAN_STATE_DIR "+
		"(for settings INSPAN_CONFIG_DIR)", filepath.Dir(path), why)
}

// openLock opens a file to lock. Some file systems lock only files that are open for writing; on a read-only
// disk that is impossible.
func openLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|nonblock, 0o600)
	if err == nil {
		return f, nil
	}
	if f, readErr := os.OpenFile(path, os.O_RDONLY|nonblock, 0); readErr == nil {
		return f, nil
	}
	return nil, err
}

// Close releases the lock. On nil, or again, it does nothing.
func (l *Lock) Close() error {
	if l == nil {
		return nil
	}
	_ = Unlock(l.f) // closing is not enough: a process being started has a copy of the descriptor
	if err := l.f.Close(); !errors.Is(err, fs.ErrClosed) {
		return err
	}
	return nil
}

// Sleep waits for a duration, or until ctx is done, and then returns its error. It is here because most
// packages sleep to wait for a lock.
func Sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
