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

// tryEvery is how often a lock is tried that somebody else holds.
const tryEvery = 2 * time.Millisecond

// A Lock keeps others out of what a file stands for. The system gives it back when the
// process dies, however it dies. Each value excludes every other one, also in the same
// process.
type Lock struct{ f *os.File }

// LockFile takes the lock of a file, which is made for this user alone if it is not there.
// It waits until ctx is done, and for at most so long if most is not 0; the error says then
// what is to be looked at.
func LockFile(ctx context.Context, path string, most time.Duration) (*Lock, error) {
	f, err := openLock(path)
	if err != nil {
		return nil, err
	}
	return wait(ctx, f, most, false)
}

// LockShared is LockFile for those who only read: several may have it at once.
func LockShared(ctx context.Context, path string, most time.Duration) (*Lock, error) {
	f, err := openLock(path)
	if err != nil {
		return nil, err
	}
	return wait(ctx, f, most, true)
}

// LockFolder is LockFile for a folder that is there, so that no file for the lock shows up
// in it. Windows can't lock folders: there the file is ".lock" in it.
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

// wait takes the lock of an open file, and closes it if it can't.
func wait(ctx context.Context, f *os.File, most time.Duration, shared bool) (*Lock, error) {
	limited, cancel := ctx, context.CancelFunc(func() {})
	if most > 0 {
		limited, cancel = context.WithTimeout(ctx, most)
	}
	defer cancel()
	for {
		got, err := false, limited.Err() // whoever has given up gets nothing
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
			err = fmt.Errorf("another process has held %s for more than %s: is it stopped?", f.Name(), most)
		}
		return nil, errors.Join(err, f.Close())
	}
}

// openLock opens a file to be locked. Some file systems lock only what is open for writing;
// a file on a disk that is only read can't be opened so.
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

// Close gives the lock back. Without a lock, or again, it does nothing.
func (l *Lock) Close() error {
	if l == nil {
		return nil
	}
	_ = Unlock(l.f) // to close it is not enough: a process that is just being started has a copy of it
	if err := l.f.Close(); !errors.Is(err, fs.ErrClosed) {
		return err
	}
	return nil
}

// Sleep waits so long, or until ctx is done, and returns why it is then. It stands here,
// as waiting for what somebody else holds is what most rooms sleep for.
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
