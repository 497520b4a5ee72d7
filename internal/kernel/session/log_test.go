package session

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/store"
)

func TestDiskStore(t *testing.T) {
	for _, policy := range []Policy{SyncPower, SyncKill} {
		harnesstest.TestStore(t, stores(func(t *testing.T) *Store { return &Store{Dir: t.TempDir(), Sync: policy} }))
	}
}

// stores are stores on disk, with the possible events of their files.
func stores(open func(t *testing.T) *Store) harnesstest.Stores {
	file := func(s store.Store, l store.Log, name string) string {
		return filepath.Join(s.(*Store).Dir, l.ID(), name)
	}
	return harnesstest.Stores{
		Open: func(t *testing.T) store.Store {
			s := open(t)
			s.disk = &fullDisk{disk: s.fs()}
			return s
		},
		Reopen: func(_ *testing.T, s store.Store) store.Store {
			of := s.(*Store)
			return &Store{Dir: of.Dir, Sync: of.Sync, disk: of.disk, now: of.now}
		},
		LoseLease: func(t *testing.T, s store.Store, l store.Log) {
			if err := s.(*Store).fs().Remove(file(s, l, leaseName)); err != nil {
				t.Fatal(err)
			}
		},
		FillStorage: func(_ *testing.T, s store.Store, _ store.Log) func() {
			full := s.(*Store).disk.(*fullDisk)
			full.is.Store(true)
			return func() { full.is.Store(false) }
		},
		Replace: func(t *testing.T, s store.Store, l store.Log) {
			d := s.(*Store).fs()
			if err := d.Rename(file(s, l, logName), file(s, l, "elsewhere")); err != nil {
				t.Fatal(err)
			}
			f, err := d.Open(file(s, l, logName), os.O_RDWR|os.O_CREATE)
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
	l, err := s.create(t.Context(), empty)
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
