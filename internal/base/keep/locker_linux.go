package keep

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Locker names the process that has locked a file, by proc_locks(5), which has the number of its inode.
func Locker(path string) string {
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
