package processes

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// BootID identifies this boot of the machine; empty if unknown.
func BootID() string {
	data, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.ReplaceAll(strings.TrimSpace(string(data)), "-", "")
}

// Namespace identifies the PID namespace of this process; empty if unknown.
func Namespace() string {
	var st unix.Stat_t
	if unix.Stat("/proc/self/ns/pid", &st) != nil {
		return ""
	}
	return strconv.FormatUint(st.Ino, 10)
}

// Started returns the start time of a process, in ticks since the boot; empty if it does not exist.
func Started(pid int) string {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	fields := statFields(data)
	if len(fields) < 22 {
		return ""
	}
	return string(fields[21])
}

// Identity identifies a process among all that had or will have its id, on this machine and on others; empty if
// it does not exist.
func Identity(pid int) string {
	start := Started(pid)
	if start == "" {
		return ""
	}
	return strings.Join([]string{BootID(), Namespace(), start}, "-")
}

// Ended reports whether a process has ended but was not reaped yet.
func Ended(pid int) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, rest, ok := strings.Cut(string(data), ") ")
	return err != nil || !ok || strings.HasPrefix(rest, "Z") || strings.HasPrefix(rest, "X")
}
