package session

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/harnesstest"
)

func TestDiskLog(t *testing.T) {
	for _, policy := range []Policy{SyncPower, SyncKill} {
		harnesstest.TestLog(t, logs(&Store{Dir: t.TempDir(), Sync: policy}))
	}
}

// logs are the logs of a store, with what can happen to their files.
func logs(s *Store) harnesstest.Logs {
	file := func(l event.Log, name string) string { return filepath.Join(l.(*Log).dir, name) }
	full := &fullDisk{disk: s.fs()}
	s.disk = full
	return harnesstest.Logs{
		Open: func(t *testing.T) event.Log { return driven(t, s) },
		Again: func(t *testing.T, l event.Log) event.Log {
			again, err := s.Open(t.Context(), l.(*Log).ID())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = again.Close() })
			return again
		},
		Lose: func(t *testing.T, l event.Log) {
			if err := s.fs().Remove(file(l, leaseName)); err != nil {
				t.Fatal(err)
			}
		},
		Fill: func(*testing.T, event.Log) func() {
			full.is.Store(true)
			return func() { full.is.Store(false) }
		},
		Replace: func(t *testing.T, l event.Log) {
			if err := s.fs().Rename(file(l, logName), file(l, "elsewhere")); err != nil {
				t.Fatal(err)
			}
			f, err := s.fs().Open(file(l, logName), os.O_RDWR|os.O_CREATE)
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		},
	}
}

// fullDisk is a disk that takes no more data while it is full.
type fullDisk struct {
	disk
	is atomic.Bool
}

func (d *fullDisk) Open(path string, flag int) (file, error) {
	f, err := d.disk.Open(path, flag)
	if err != nil {
		return nil, err
	}
	return fullFile{f, d}, nil
}

type fullFile struct {
	file
	disk *fullDisk
}

func (f fullFile) Write(p []byte) (int, error) {
	if f.disk.is.Load() {
		n, err := f.file.Write(p[:len(p)/2])
		return n, errors.Join(syscall.ENOSPC, err)
	}
	return f.file.Write(p)
}

// driven makes a session and takes its lease.
func driven(t *testing.T, s *Store) *Log {
	t.Helper()
	l, err := s.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	if err := l.Lease(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l
}
