package processes

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"
	"syscall"
	"time"
)

// KillMarked kills every process with the mark in its environment. It repeats until none is left, as processes
// may fork meanwhile.
func KillMarked(mark string) {
	for range 10 {
		pids := Marked(mark)
		if len(pids) == 0 {
			return
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// Marked returns the running processes that were started with the mark in their environment. Those of other
// users can't be seen, nor those that overwrote their environment.
func Marked(mark string) []int {
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	needle := []byte("/" + mark + "/")
	var pids []int
	for _, dir := range dirs {
		pid, err := strconv.Atoi(dir.Name())
		if err != nil {
			continue
		}
		if bytes.Contains(environOf(pid), needle) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// loading bounds the wait for a process that is loading its program. If the disk is slower, the process counts
// as unrelated.
const loading = 10 * time.Second

// environOf returns the initial environment of a process, nil if it can't be read. While a process is loading
// its program it has none, so this waits.
func environOf(pid int) []byte {
	for late := time.Now().Add(loading); ; time.Sleep(time.Millisecond) {
		env, err := readAtOnce("/proc/" + strconv.Itoa(pid) + "/environ")
		if err != nil || len(env) > 0 || withoutEnviron(pid) || time.Now().After(late) {
			return env
		}
	}
}

// readAtOnce reads a file in a single read: /proc files end early if the process executes another program
// between two reads.
func readAtOnce(path string) ([]byte, error) {
	for size := 16 << 10; ; size *= 4 {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		data := make([]byte, size)
		n, err := file.Read(data)
		file.Close()
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if n < size {
			return data[:n], nil
		}
	}
}

// withoutEnviron reports whether a process has no environment and won't get one: it has ended, is a kernel
// thread, or was started without one.
func withoutEnviron(pid int) bool {
	const memory, code, from, to = 22, 25, 49, 50 // proc(5) counts from one
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	fields := statFields(data)
	if err != nil || len(fields) <= to {
		return true
	}
	none := func(field int) bool { return string(fields[field]) == "0" }
	return none(memory) || !none(code) && bytes.Equal(fields[from], fields[to])
}

// KillSession kills the rest of a session whose leader has ended.
func KillSession(id int) {
	for range 10 {
		none := true
		for _, s := range stats() {
			if s.session == id {
				none = false
				_ = syscall.Kill(s.pid, syscall.SIGKILL)
			}
		}
		if none {
			return
		}
	}
}
