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

// KillMarked kills every process with the mark in its environment. Killing and
// forking race, so it looks again until none is left.
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

// Marked returns the processes that were started with the mark in their
// environment and have not ended. Those of other users cannot be seen, nor
// can those that overwrote their environment.
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

// loading is how long a process is waited for that loads its program. If the disk takes longer, it
// is taken for a stranger.
const loading = 10 * time.Second

// environOf returns the environment with which a process was started, nil if that can't be seen. While
// a process loads its program there is none, so it waits until that is done.
func environOf(pid int) []byte {
	for late := time.Now().Add(loading); ; time.Sleep(time.Millisecond) {
		env, err := readAtOnce("/proc/" + strconv.Itoa(pid) + "/environ")
		if err != nil || len(env) > 0 || withoutEnviron(pid) || time.Now().After(late) {
			return env
		}
	}
}

// readAtOnce reads a file in one go: what a process says of itself ends early if it loads another program
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

// withoutEnviron reports whether a process has no environment and won't get one: its memory is gone, as it
// has ended or is the kernel's, or its program is loaded and was given none.
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

// KillSession kills what is left of a session whose leader has ended.
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
