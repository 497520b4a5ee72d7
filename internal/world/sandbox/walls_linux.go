package sandbox

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/inspan/inspan/tool"
)

// walls finds out which boxes can be built, by building each around a program
// that does nothing.
func (ps *procs) walls() tool.Walls {
	if ps.boxes.o.Self == "" {
		return tool.Walls{Why: "this program starts processes without keepers"}
	}
	if ps.boxes.engine != nil {
		return ps.boxes.containerWalls()
	}
	var w tool.Walls
	var why []string
	try := func(level tool.Level) bool {
		err := ps.boxes.try(tool.Box{Level: level})
		if err != nil {
			why = append(why, fmt.Sprintf("%s box: %v", level, err))
		}
		return err == nil
	}
	w.Read = try(tool.BoxRead)
	w.Workspace = try(tool.BoxWorkspace)
	w.Hosts = w.Workspace
	if w.Workspace {
		err := ps.boxes.try(tool.Box{Level: tool.BoxWorkspace, Throwaway: true})
		if w.Throwaway = err == nil; err != nil {
			w.NoThrowaway = err.Error()
		}
	}
	if !w.Read {
		why = append(why, landlockHint())
	}
	if !w.Workspace {
		why = append(why, namespaceHint())
	}
	w.Why = strings.Join(why, "; ")
	return w
}

// try builds a box around nothing. It looks at no workspace: one that is too
// big for boxes makes Start fail, not the walls.
func (b *boxes) try(box tool.Box) error {
	o := b.o
	o.Map.Also = nil // looked at as little as the workspace
	empty := &boxes{o: o, root: "/usr", engine: b.engine, temp: &temp{}}
	program := truth()
	if _, err := os.Stat("/usr"); err != nil || b.engine != nil {
		empty.root = b.root
	}
	if b.engine != nil {
		program = "true"
	}
	defer func() { _ = empty.close() }()
	k := &kept{boxes: empty, bare: true}
	k.command.Box = box
	k.command.Env = []string{}
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	done := make(chan error, 1)
	err := k.launchPath(program, func(code int, err error) {
		if err == nil && code != 0 {
			err = fmt.Errorf("%s ended with code %d", program, code)
		}
		done <- err
	})
	if err != nil {
		return err
	}
	select {
	case err := <-done:
		k.await(patience)
		return err
	case <-ctx.Done():
		k.kill()
		return ctx.Err()
	}
}

func truth() string {
	for _, path := range []string{"/usr/bin/true", "/bin/true"} {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return "/bin/sh" // with nothing to read it does nothing
}

func landlockHint() string {
	switch abi := landlockABI(); {
	case auditArch() == 0:
		return "there are no rules for this kind of processor"
	case abi == 0:
		return "the kernel has no Landlock (it needs Linux 6.2 or later, with landlock among the modules in /sys/kernel/security/lsm), or a " +
			"container hides it"
	case abi < leastSignals:
		return fmt.Sprintf("the kernel's Landlock is version %d and must be %d (Linux 6.12) or later where namespaces are forbidden",
			abi, leastSignals)
	}
	return ""
}

// namespaceHint names the setting that forbids namespaces, as far as it can be
// told.
func namespaceHint() string {
	for _, s := range [][3]string{
		{"/proc/sys/kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1 allows them"},
		{
			"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1",
			"sysctl kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for inspan, allows them",
		},
		{"/proc/sys/user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=10000 allows them"},
	} {
		if data, err := os.ReadFile(s[0]); err == nil && strings.TrimSpace(string(data)) == s[1] {
			return "user namespaces are switched off: " + s[2]
		}
	}
	return "the box needs user namespaces and Linux 5.12; containers often forbid them (Docker: --security-opt seccomp=unconfined " +
		"--security-opt systempaths=unconfined)"
}
