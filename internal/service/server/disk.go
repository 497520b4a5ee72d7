package server

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"sync"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
)

// A full disk does not end a task. Failed writes are retried. While there is less room than Server.Floor, no
// task begins, and running ones pause between two calls.

// DefaultFloor is the default number of bytes that must stay free.
const DefaultFloor = 256 << 20

// disk is the state of the server's disks. The zero value is ready.
type disk struct {
	mu    sync.Mutex
	why   string        // the current problem; empty means none
	until time.Time     // a reported fault counts until then
	fault string        // the reported fault
	low   chan struct{} // closed while why is set
}

// DiskError says that there is no room to continue.
type DiskError struct{ Why string }

// Error implements error.
func (e *DiskError) Error() string { return e.Why }

// forgotten is how long a fault of the disk counts after it was last seen.
const forgotten = 3 * again

// failed records a fault.
func (d *disk) failed(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault, d.until = err.Error(), time.Now().Add(forgotten)
}

// trouble returns the current problem of the disks; nil means none.
func (d *disk) trouble() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.why == "" {
		return nil
	}
	return &DiskError{d.why}
}

// full returns a channel that is closed while there is a problem.
func (d *disk) full() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.low == nil {
		d.low = make(chan struct{})
	}
	return d.low
}

// set sets the current problem, and returns whether it has changed.
func (d *disk) set(why string, now time.Time) (news bool, said string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if why == "" && now.Before(d.until) {
		why = d.fault
	}
	if d.low == nil {
		d.low = make(chan struct{})
	}
	news = (d.why == "") != (why == "")
	switch {
	case news && why != "":
		close(d.low)
	case news:
		d.low = make(chan struct{})
	}
	d.why = why
	return news, why
}

// rarely is the pause between two scans of workspaces, in multiples of the time that a scan takes.
const rarely = 10

// watchDisk checks the disks until the server ends.
func (s *Server) watchDisk() {
	tick := time.NewTicker(again)
	defer tick.Stop()
	next := time.Time{}
	for {
		s.lookAtDisk()
		if began := time.Now(); began.After(next) {
			s.weigh()
			next = time.Now().Add(rarely * time.Since(began))
		}
		select {
		case <-tick.C:
		case <-s.ctx.Done():
			return
		}
	}
}

// lookAtDisk tells the operator when the disk is full, and when there is room again.
func (s *Server) lookAtDisk() {
	news, why := s.disk.set(s.short(), time.Now())
	switch {
	case news && why != "":
		s.warn("no room to work: " + why + "; tasks pause until there is")
	case news:
		s.warn("there is room again; tasks continue")
		s.stir()
	}
}

// short describes the disk that has less room than required; empty means none.
func (s *Server) short() string {
	for _, dir := range []string{s.State, s.Dir} {
		if dir == "" || s.Floor <= 0 {
			continue
		}
		free, err := keep.Free(dir)
		for ; errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir); free, err = keep.Free(dir) {
			dir = filepath.Dir(dir) // it does not exist yet
		}
		if err == nil && free < uint64(s.Floor) {
			return fmt.Sprintf("%s has %s MiB free, and %s must stay", dir, text.Thousands(int(free>>20)), text.Thousands(int(s.Floor>>20)))
		}
	}
	return ""
}

// quota is the size of the workspaces of tenants that have a limit for it, as of the last scan. The zero value
// is ready.
type quota struct {
	mu    sync.Mutex
	bytes map[string]int64 // by tenant
	sizes map[string]int64 // of travelling workspaces, by session
}

// state returns the size of the workspace of a session, if that is known.
func (q *quota) state(session string) (bytes int64, known bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	bytes, known = q.sizes[session]
	return bytes, known
}

func (q *quota) note(session string, bytes int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.sizes == nil {
		q.sizes = map[string]int64{}
	}
	q.sizes[session] = bytes
}

func (q *quota) held(tenant string) int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bytes[tenant]
}

// errQuota ends a task whose tenant is over its disk quota.
var errQuota = errors.New("disk quota: the tenant holds more than its limit; remove some, or raise it")

// overQuota reports whether a tenant has reached its disk quota.
func (s *Server) overQuota(tenant string) bool {
	most := s.book.tenant(tenant).Disk
	return most > 0 && s.quota.held(tenant)+s.book.kept(tenant) >= most
}

// weigh measures workspaces, and stops the tasks of tenants that are over their limit.
func (s *Server) weigh() {
	bounded := s.book.bounded()
	if len(bounded) == 0 {
		return
	}
	held := map[string]int64{}
	for _, t := range s.book.list("", math.MaxInt, func(t *Task) bool { return bounded[t.Tenant] && t.Spec.Folder+t.Spec.Beside == "" }) {
		held[t.Tenant] += s.workspaceSize(t)
	}
	s.quota.mu.Lock()
	s.quota.bytes = held
	s.quota.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.book.open() {
		if w := s.at[t.ID]; w != nil && s.overQuota(t.Tenant) && t.Spec.Folder == "" {
			w.cancel(errQuota)
		}
	}
}

// weight returns the number of bytes that a folder takes on its disk.
func weight(dir string) (sum int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // unreadable and removed files count as nothing
		}
		if info, err := d.Info(); err == nil && !d.IsDir() {
			sum += keep.Taken(info)
		}
		return nil
	})
	return sum
}
