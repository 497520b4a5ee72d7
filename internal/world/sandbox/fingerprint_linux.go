package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/world/sandbox/paths"
	"github.com/inspan/inspan/internal/world/sandbox/protocol"
	"github.com/inspan/inspan/internal/world/sandbox/sensitive"
)

// fingerprint identifies the box of an order: its fields, and the identities of its places and mounts at that
// time. A mount keeps its content when something outside replaces it, and Landlock opens the entries around a
// hole that existed then. It is empty if the same order could build a different box in a moment.
func (b *boxes) fingerprint(o protocol.Order) string {
	o.Path, o.Args, o.Dir, o.Env, o.TTY, o.Temp = "", nil, "", nil, false, ""
	data, err := protocol.Marshal(o)
	if err != nil {
		return ""
	}
	var out strings.Builder
	out.Write(data)
	top, _ := paths.StampOf("/")
	fmt.Fprintln(&out, top, b.mounts.changes())
	for _, g := range o.Read {
		is(&out, g.Path)
		for _, hole := range g.Holes {
			is(&out, hole)
			if !o.Isolated && !around(&out, g.Path, hole) {
				return ""
			}
		}
	}
	for _, path := range slices.Concat(o.Write, o.View.Frozen, o.View.Pinned, []string{o.Tmp, o.Cache}) {
		is(&out, path)
	}
	return out.String()
}

// is writes the identity of a place.
func is(out *strings.Builder, path string) {
	st, _ := paths.StampOf(path)
	fmt.Fprintln(out, st.Dev, st.Ino)
}

// around writes the entries around a hole, folder by folder. It returns false if one has just changed, since a
// further change might be invisible.
func around(out *strings.Builder, top, hole string) bool {
	for dir := filepath.Dir(hole); text.Inside(top, dir); dir = filepath.Dir(dir) {
		st, _ := paths.StampOf(dir)
		if time.Since(st.Changed()) < sensitive.Racy {
			return false
		}
		fmt.Fprintln(out, st)
		if dir == top {
			break
		}
	}
	return true
}

// mounts detects changes of the machine's mounts. The zero value is ready.
type mounts struct {
	mu    sync.Mutex
	table *os.File
	count int
}

// changes returns a counter of detected changes; it increases each time if changes can't be detected.
func (m *mounts) changes() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.table == nil {
		m.table, _ = os.Open("/proc/self/mountinfo")
	}
	if m.table == nil {
		m.count++
		return m.count
	}
	fds := []unix.PollFd{{Fd: int32(m.table.Fd()), Events: unix.POLLPRI}}
	if n, err := unix.Poll(fds, 0); n > 0 || err != nil {
		m.count++
	}
	return m.count
}

func (m *mounts) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.table == nil {
		return nil
	}
	table := m.table
	m.table = nil
	return table.Close()
}
