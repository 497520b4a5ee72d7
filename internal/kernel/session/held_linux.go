package session

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// holds reports whether the process has locked the file at path, and whether that is known, by the list of its
// open files. A process that has it open without a visible lock may only read it, or run on a system that does
// not show locks.
func holds(pid int, path string) (holds, known bool) {
	lease, err := os.Stat(path)
	if err != nil {
		return false, false
	}
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	names, err := os.ReadDir(filepath.Join(proc, "fd"))
	if err != nil {
		return false, false
	}
	known = true
	for _, name := range names {
		info, err := os.Stat(filepath.Join(proc, "fd", name.Name()))
		if err != nil || !os.SameFile(info, lease) {
			continue
		}
		about, _ := os.ReadFile(filepath.Join(proc, "fdinfo", name.Name()))
		if bytes.Contains(about, []byte("FLOCK")) {
			return true, true
		}
		known = pid == os.Getpid() // we know our own open files
	}
	return false, known
}
