package sandbox

import (
	"fmt"
	"os"
	"strings"
)

// where is whereabouts, plus the image and the engine if containers are used.
func (ps *procs) where() string {
	where := whereabouts(ps.boxes.o)
	if e := ps.boxes.engine; e != nil {
		image, err := e.image()
		if err != nil || where == "" {
			return ""
		}
		e.tidy()
		where += fmt.Sprint(" ", e.path, e.version, e.rootless, image)
	}
	return where
}

// whereabouts identifies the system as far as it affects which boxes work: boot, user, container and program. Empty
// means unknown.
func whereabouts(o Options) string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	info, err := os.Stat(o.Self)
	if err != nil {
		return ""
	}
	user, _ := os.Readlink("/proc/self/ns/user")
	mounts, _ := os.Readlink("/proc/self/ns/mnt")
	status, _ := os.ReadFile("/proc/self/status")
	var rights []string // capabilities and filters of this process
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "Cap") || strings.HasPrefix(line, "Seccomp") || strings.HasPrefix(line, "NoNewPrivs") {
			rights = append(rights, strings.Join(strings.Fields(line), ""))
		}
	}
	return fmt.Sprint(strings.TrimSpace(string(boot)), os.Geteuid(), user, mounts, info.Size(), info.ModTime().UnixNano(), rights, o.Landlock)
}
