package processes

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// BootID tells this start of the machine from others, empty if it can't.
func BootID() string {
	data, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.ReplaceAll(strings.TrimSpace(string(data)), "-", "")
}

func Namespace() string {
	var st unix.Stat_t
	if unix.Stat("/proc/self/ns/pid", &st) != nil {
		return ""
	}
	return strconv.FormatUint(st.Ino, 10)
}

// Started returns when a process started, in ticks since the boot; empty if
// there is none.
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

// Identity tells a process from all others that had or will have its number, on this
// machine and on others; empty if there is none.
func Identity(pid int) string {
	start := Started(pid)
	if start == "" {
		return ""
	}
	return strings.Join([]string{BootID(), Namespace(), start}, "-")
}

// Ended reports whether a process has ended, and its parent has not heard of it yet.
func Ended(pid int) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, rest, ok := strings.Cut(string(data), ") ")
	return err != nil || !ok || strings.HasPrefix(rest, "Z") || strings.HasPrefix(rest, "X")
}
