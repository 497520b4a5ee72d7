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

// Family is the descendants of this process, which adopts orphans.
type Family struct {
	// signals is held while a process is reaped and while signals are sent, so that no id of a direct child is
	// reused in between. It is also held while Done is closed, so that no signal reaches later processes.
	signals sync.Mutex
	Done    chan struct{} // closed when there are no descendants
}

// Reap reaps descendants until none is left, and calls ended for each. The end of a child rings.
func (f *Family) Reap(rings <-chan os.Signal, ended func(pid int, ws syscall.WaitStatus)) {
	for f.Sweep(ended) {
		<-rings
	}
	f.signals.Lock()
	defer f.signals.Unlock()
	close(f.Done)
}

// over reports whether the family is gone. The caller holds f.signals.
func (f *Family) over() bool {
	select {
	case <-f.Done:
		return true
	default:
		return false
	}
}

// Sweep reaps ended descendants. It reports whether any descendant is left.
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

// Kill kills all descendants repeatedly until none is left.
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

// strike kills all current descendants. In the first process of a namespace the kernel does that. Otherwise it
// stops them first, so that none forks meanwhile.
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

// Signal sends a signal to a process or a group, unless the family is gone: the id may then belong to another
// process.
func (f *Family) Signal(pid int, sig syscall.Signal) error {
	f.signals.Lock()
	defer f.signals.Unlock()
	if f.over() {
		return syscall.ESRCH
	}
	return syscall.Kill(pid, sig)
}

// Descendants lists all descendants of a process; nil on systems other than Linux.
func Descendants(pid int) []int {
	if list, ok := childrenDeep(pid, 0); ok {
		return list
	}
	return descendantsByParent(pid)
}

// childrenDeep lists all descendants of a process. The depth is bounded by the number of processes on a
// machine.
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

// children lists the children of all threads of a process. Not every kernel supports that.
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

// descendantsByParent finds descendants through the parent ids of all processes on the machine.
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

// stat is the status of a process.
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

// statFields splits the content of /proc/PID/stat, nil if it is invalid. The program's name, the second field,
// is in parentheses and may contain any character.
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
