package session

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// locker names the process that has locked a file, by proc_locks(5), which has the number of its inode.
func locker(path string) string {
	var st syscall.Stat_t
	list, err := os.ReadFile("/proc/locks")
	if err != nil || syscall.Stat(path, &st) != nil {
		return "another process"
	}
	for line := range strings.Lines(string(list)) {
		f := strings.Fields(line)
		if len(f) < 6 || f[1] != "FLOCK" || !strings.HasSuffix(f[5], ":"+strconv.FormatUint(st.Ino, 10)) {
			continue
		}
		name, err := os.ReadFile(filepath.Join("/proc", f[4], "comm"))
		if err != nil {
			continue // it is in another container, or gone
		}
		return fmt.Sprintf("process %s (%s)", f[4], strings.TrimSpace(string(name)))
	}
	return "another process"
}

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
