package sandbox

import (
	"fmt"
	"os"
	"strings"
)

// where is whereabouts, for containers with what the image and the engine are.
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

// whereabouts tells apart systems on which other boxes may work: another boot,
// user, container or program. Empty: it can't be told.
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
	var rights []string // capabilities and filters that were put on this process
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "Cap") || strings.HasPrefix(line, "Seccomp") || strings.HasPrefix(line, "NoNewPrivs") {
			rights = append(rights, strings.Join(strings.Fields(line), ""))
		}
	}
	return fmt.Sprint(strings.TrimSpace(string(boot)), os.Geteuid(), user, mounts, info.Size(), info.ModTime().UnixNano(), rights, o.Landlock)
}
