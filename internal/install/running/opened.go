package running

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/store"
)

func (t *Table) opened() string { return filepath.Join(t.StateDir, "open") }

// Opened tells other processes that a person has a session open here, even while no process drives it, until closed
// is called or this process ends. It uses a locked file; where that is impossible, others are not told.
func (t *Table) Opened(id string) (closed func()) {
	nothing := func() {}
	if keep.MakeDir(t.opened()) != nil {
		return nothing
	}
	path := filepath.Join(t.opened(), id+"-"+strconv.Itoa(os.Getpid())+".json")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nothing
	}
	if got, err := keep.TryLock(f, false); !got || err != nil {
		_ = f.Close()
		return nothing
	}
	host, _ := os.Hostname()
	raw, err := json.Marshal(store.Holder{Session: id, PID: os.Getpid(), Host: host, Since: time.Now()})
	if err == nil && f.Truncate(0) == nil {
		_, _ = f.WriteAt(raw, 0) // an incomplete file is ignored
	}
	return func() {
		_ = os.Remove(path) // otherwise the next reader removes it
		_ = keep.Unlock(f)
		_ = f.Close()
	}
}

// WithOpen adds the sessions that someone has open and no process drives to those that are driven.
func (t *Table) WithOpen(ctx context.Context, list []Driven) []Driven {
	names, _ := filepath.Glob(filepath.Join(t.opened(), "*.json"))
	for _, name := range names {
		h, ok := openIn(name)
		if !ok || slices.ContainsFunc(list, func(d Driven) bool { return d.ID == h.Session }) {
			continue
		}
		st, err := t.Status(ctx, h.Session)
		if err != nil {
			continue // it was deleted, or is damaged, which 'sessions list' reports
		}
		d := drivenBy(h, st)
		if d.State != StateWaiting {
			d.State = StateIdle
		}
		list = append(list, d)
	}
	slices.SortStableFunc(list, func(a, b Driven) int { return strings.Compare(a.ID, b.ID) })
	return list
}

// openIn returns who has a session open, from its file. It removes the file of a process that has ended.
func openIn(path string) (h store.Holder, ok bool) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return h, false
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, 1<<12))
	if err != nil || json.Unmarshal(raw, &h) != nil || !store.IsID(h.Session) {
		return h, false // it is being written
	}
	free, err := keep.TryLock(f, false)
	if free {
		_ = os.Remove(path)
	}
	return h, !free && err == nil
}
