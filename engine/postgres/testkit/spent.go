package testkit

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Spent returns the processor time so far of all processes of the cluster; 0 means it is down.
func (c *Cluster) Spent() time.Duration {
	var pid int
	data, _ := os.ReadFile(filepath.Join(c.data(), "postmaster.pid"))
	if _, err := fmt.Sscan(string(data), &pid); err != nil {
		return 0
	}
	return Spent(pid, true)
}

// Spent returns the processor time so far of a process and optionally of its children, including finished ones; 0
// means there is no such process, or no /proc.
func Spent(pid int, children bool) time.Duration {
	const hertz = 100 // of the counters in /proc, see proc_pid_stat(5)
	var ticks int64
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // it is gone
		}
		_, rest, _ := strings.Cut(string(data), ") ")
		fields := strings.Fields(rest)
		own := filepath.Base(filepath.Dir(path)) == fmt.Sprint(pid)
		if len(fields) < 15 || !own && (!children || fields[1] != fmt.Sprint(pid)) {
			continue
		}
		upTo := 13
		if own && children {
			upTo = 15 // and finished children
		}
		for _, field := range fields[11:upTo] {
			n, _ := strconv.ParseInt(field, 10, 64) // the kernel writes numbers
			ticks += n
		}
	}
	return time.Duration(ticks) * time.Second / hertz
}
