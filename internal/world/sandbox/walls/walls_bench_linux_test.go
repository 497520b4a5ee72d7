package walls

import (
	"errors"
	"runtime"
	"testing"

	"github.com/inspan/inspan/tool"

	"golang.org/x/sys/unix"
)

// BenchmarkStages measures a keeper's work for a command before the fork, each stage on a thread of its own that ends
// with it, as in a keeper. BenchmarkStart measures the whole.
func BenchmarkStages(b *testing.B) {
	abi := landlockABI()
	for name, do := range map[string]func() error{
		"thread":       func() error { return nil },
		"privileges":   DropPrivileges,
		"rules":        func() error { rules, err := systemRules(abi); rules.Close(); return err },
		"landlock":     func() error { return behindRules(abi) },
		"seccomp/read": func() error { return errors.Join(noNewPrivileges(), Filter(tool.BoxRead)) },
		"seccomp":      func() error { return errors.Join(noNewPrivileges(), Filter(tool.BoxWorkspace)) },
		"ipc":          func() error { return unix.Unshare(unix.CLONE_NEWIPC) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				failed := make(chan error)
				go func() {
					runtime.LockOSThread() // never unlocked: the thread is spent
					failed <- do()
				}()
				if err := <-failed; err != nil {
					b.Skip("CAN'T BE MEASURED HERE: ", err)
				}
			}
		})
	}
}

func noNewPrivileges() error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }

// systemRules are rules of about the size of those of a box.
func systemRules(abi int) (*Ruleset, error) {
	rules, err := newRuleset(abi, true)
	if err != nil {
		return nil, err
	}
	for _, path := range []string{"/usr", "/etc", "/opt", "/bin", "/lib", "/tmp", "/var/tmp", "/dev/shm"} {
		err = errors.Join(err, rules.allowPath(path, rules.files))
	}
	return rules, errors.Join(err, rules.allowDevices())
}

func behindRules(abi int) error {
	rules, err := systemRules(abi)
	if err != nil {
		return err
	}
	defer rules.Close()
	return errors.Join(noNewPrivileges(), rules.Enforce())
}
