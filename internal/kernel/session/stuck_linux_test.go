package session

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
)

// TestLockIsStuck checks that who keeps a lock and writes nothing is named, and that others wait once for that.
func TestLockIsStuck(t *testing.T) {
	s := &Store{Dir: t.TempDir(), Sync: SyncKill, patience: 20 * time.Millisecond}
	l := driven(t, s)
	mustAppend(t, l, said("1"))
	other, err := os.OpenFile(filepath.Join(l.dir, lockName), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if got, err := keep.TryLock(other, false); err != nil || !got {
		t.Fatal(got, err)
	}
	want := fmt.Sprintf("process %d (session.test) holds its lock %s, and has written nothing", os.Getpid(), other.Name())
	for range 2 {
		if _, err := l.Append(t.Context(), said("2")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("told %v, want %q", err, want)
		}
		s.patience = time.Hour // the second one fails at once
	}
	if err := keep.Unlock(other); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, said("3"))
	if n := len(readAll(t, l)); n != 2 {
		t.Errorf("%d events, want 2", n)
	}
}

// TestPipeForALog checks that a path that is not a regular file blocks nothing, and that other sessions are listed.
func TestPipeForALog(t *testing.T) {
	s := &Store{Dir: t.TempDir(), Sync: SyncKill}
	bad, good := driven(t, s), driven(t, s)
	path := s.logPath(bad.ID())
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	const want = "log.jsonl: it is neither a file nor a folder"
	if _, err := s.Open(t.Context(), bad.ID()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("opened: %v", err)
	}
	if r, err := s.Fsck(t.Context(), bad.ID(), false); err == nil {
		t.Errorf("checked: %+v", r)
	}
	infos, err := s.List(t.Context())
	if err != nil || len(infos) != 2 {
		t.Fatalf("listed %+v, %v", infos, err)
	}
	for _, i := range infos {
		if told := fmt.Sprint(i.Damage); (i.ID == bad.ID()) != strings.Contains(told, want) || i.ID == good.ID() && i.Damage != nil {
			t.Errorf("%s: %s", i.ID, told)
		}
	}
}

// lockless is a file system like NFS without its lock service.
type lockless struct{ osDisk }

func (d lockless) Open(path string, flag int) (file, error) {
	f, err := d.osDisk.Open(path, flag)
	return locklessFile{f}, err
}

type locklessFile struct{ file }

func (f locklessFile) TryLock() (bool, error) {
	return false, keep.NoLocks("sessions/log", syscall.ENOLCK)
}

// TestNoLocks checks that no session is left where none could be driven, and that a way out is named.
func TestNoLocks(t *testing.T) {
	s := &Store{Dir: t.TempDir(), Sync: SyncKill, disk: lockless{}}
	_, err := s.Create(t.Context())
	if err == nil || !strings.Contains(err.Error(), "without locks (flock: no locks available); choose another one with --state DIR") {
		t.Errorf("told %v", err)
	}
	if names, err := os.ReadDir(s.Dir); err != nil || len(names) > 0 {
		t.Errorf("left %v, %v", names, err)
	}
}
