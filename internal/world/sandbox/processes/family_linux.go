package processes

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
)

// Family are the descendants of this process, which adopts those whose parents
// have ended.
type Family struct {
	// signals is held while a process is waited for and while signals are
	// sent, so that no number of a direct child is used again in between, and while done
	// is closed, so that no signal is for those who come next.
	signals sync.Mutex
	Done    chan struct{} // closed when there are no descendants
}

// Reap waits for every descendant until there is none, and tells of each that has ended. A
// child's end rings.
func (f *Family) Reap(rings <-chan os.Signal, ended func(pid int, ws syscall.WaitStatus)) {
	for f.Sweep(ended) {
		<-rings
	}
	f.signals.Lock()
	defer f.signals.Unlock()
	close(f.Done)
}

// over reports whether the family is gone. f.signals is held.
func (f *Family) over() bool {
	select {
	case <-f.Done:
		return true
	default:
		return false
	}
}

// Sweep waits for those who have ended. It reports whether any descendant is
// left.
func (f *Family) Sweep(ended func(pid int, ws syscall.WaitStatus)) bool {
	f.signals.Lock()
	defer f.signals.Unlock()
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return false
		}
		if pid == 0 {
			return true
		}
		ended(pid, ws)
	}
}

// Kill kills all descendants, again and again until none is left.
func (f *Family) Kill() {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		f.strike()
		select {
		case <-f.Done:
			return
		case <-tick.C:
		}
	}
}

// strike kills all descendants that there are now. The first process of a
// namespace lets the kernel do so. Any other stops them first, so that none
// forks while it is looking.
func (f *Family) strike() {
	f.signals.Lock()
	defer f.signals.Unlock()
	if f.over() {
		return
	}
	if os.Getpid() == 1 {
		_ = syscall.Kill(-1, syscall.SIGKILL)
		return
	}
	stopped := make(map[int]bool)
	for range 100 {
		fresh := false
		for _, pid := range Descendants(os.Getpid()) {
			if !stopped[pid] {
				stopped[pid], fresh = true, true
				_ = syscall.Kill(pid, syscall.SIGSTOP)
			}
		}
		if !fresh {
			break
		}
	}
	for pid := range stopped {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// Signal sends a signal to a process or a group. When the family is gone, their number may
// be that of strangers.
func (f *Family) Signal(pid int, sig syscall.Signal) error {
	f.signals.Lock()
	defer f.signals.Unlock()
	if f.over() {
		return syscall.ESRCH
	}
	return syscall.Kill(pid, sig)
}

// Descendants lists the children of a process and all below them; nil on systems other than Linux.
func Descendants(pid int) []int {
	if list, ok := childrenDeep(pid, 0); ok {
		return list
	}
	return descendantsByParent(pid)
}

// childrenDeep lists what is below a process. The depth is bounded by what a
// machine can hold.
func childrenDeep(pid, depth int) ([]int, bool) {
	list, ok := children(pid)
	if !ok || depth > 10000 {
		return nil, false
	}
	out := list
	for _, child := range list {
		below, _ := childrenDeep(child, depth+1)
		out = append(out, below...)
	}
	return out, true
}

// children lists the children of all threads of a process. Not every kernel
// can tell.
func children(pid int) ([]int, bool) {
	tasks := "/proc/" + strconv.Itoa(pid) + "/task"
	dir, err := os.Open(tasks)
	if err != nil {
		return nil, pid != os.Getpid()
	}
	threads, _ := dir.Readdirnames(-1)
	dir.Close()
	var out []int
	known := false
	for _, thread := range threads {
		data, err := keep.Read(tasks + "/" + thread + "/children")
		if err != nil {
			continue
		}
		known = true
		for field := range bytes.FieldsSeq(data) {
			if child, err := strconv.Atoi(string(field)); err == nil {
				out = append(out, child)
			}
		}
	}
	return out, known
}

// descendantsByParent finds them by what each process of the machine says of
// its parent.
func descendantsByParent(pid int) []int {
	kids := make(map[int][]int)
	for _, s := range stats() {
		kids[s.parent] = append(kids[s.parent], s.pid)
	}
	var out []int
	todo := []int{pid}
	for len(todo) > 0 && len(out) < 1<<20 {
		list := kids[todo[0]]
		todo = append(todo[1:], list...)
		out = append(out, list...)
	}
	return out
}

// stat is what is known of a process.
type stat struct{ pid, parent, session int }

// stats lists all processes that have not ended.
func stats() []stat {
	names, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil
	}
	var out []stat
	for _, name := range names {
		data, err := keep.Read(name)
		if err != nil {
			continue
		}
		fields := statFields(data)
		if len(fields) < 6 || fields[2][0] == 'Z' || fields[2][0] == 'X' {
			continue
		}
		s := stat{}
		s.pid, _ = strconv.Atoi(string(fields[0]))
		s.parent, _ = strconv.Atoi(string(fields[3]))
		s.session, _ = strconv.Atoi(string(fields[5]))
		out = append(out, s)
	}
	return out
}

// statFields splits what /proc/PID/stat says, nil if that is nothing. The name of the program, which is
// the second, stands in parentheses and may hold any.
func statFields(data []byte) [][]byte {
	from, to := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if from < 0 || to < from {
		return nil
	}
	return append(bytes.Fields(data[:from]), append([][]byte{data[from+1 : to]}, bytes.Fields(data[to+1:])...)...)
}

// Terminate sends SIGTERM to all descendants.
func (f *Family) Terminate() {
	f.signals.Lock()
	defer f.signals.Unlock()
	if f.over() {
		return
	}
	if os.Getpid() == 1 {
		_ = syscall.Kill(-1, syscall.SIGTERM)
		return
	}
	for _, pid := range Descendants(os.Getpid()) {
		_ = syscall.Kill(pid, syscall.SIGTERM)
	}
}
