package walls

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/tool"
)

// ReadRules creates the rules of a read box.
func ReadRules(p Plan) (*Ruleset, error) {
	abi := UsableABI(p.ABI)
	if abi < leastSignals {
		return nil, During("keep signals inside", fmt.Errorf("the kernel's Landlock is version %d, which can't", abi))
	}
	rules, err := newRuleset(abi, false)
	if err != nil {
		return nil, During("restrict files", err)
	}
	for _, g := range p.Read {
		if err := rules.allowGrant(g); err != nil {
			return rules, During("open "+g.Path+" for reading", err)
		}
	}
	if err := rules.allowDevices(); err != nil {
		return rules, During("open devices", err)
	}
	if p.Temp != "" {
		if err := rules.allowPath(p.Temp, rules.files); err != nil {
			return rules, During("open the temporary folder", err)
		}
	}
	return rules, nil
}

// UsableABI returns the kernel's version of Landlock, at most most; 0 means any, below 0 none.
func UsableABI(most int) int {
	switch abi := landlockABI(); {
	case most < 0:
		return 0
	case most > 0:
		return min(most, abi)
	default:
		return abi
	}
}

// KeepsSignals reports whether Landlock, of this version at most, confines signals.
func KeepsSignals(most int) bool { return UsableABI(most) >= leastSignals }

// allowDevices opens the devices without content.
func (r *Ruleset) allowDevices() error {
	for _, path := range []string{"/dev/null", "/dev/zero", "/dev/full"} {
		if err := r.allowPath(path, mayUse); err != nil {
			return err
		}
	}
	for _, path := range []string{"/dev/random", "/dev/urandom"} {
		if err := r.allowPath(path, unix.LANDLOCK_ACCESS_FS_READ_FILE); err != nil {
			return err
		}
	}
	return r.allowPath("/dev", unix.LANDLOCK_ACCESS_FS_READ_DIR)
}

// WorkspaceRules creates the Landlock rules of a box with its own file system; nil if the kernel has no
// Landlock.
func WorkspaceRules(p Plan) (*Ruleset, error) {
	abi := UsableABI(p.ABI)
	if abi < leastABI {
		return nil, nil
	}
	rules, err := newRuleset(abi, true)
	if err != nil {
		return nil, err
	}
	if err := rules.allowPath("/", mayRead); err != nil {
		return nil, err
	}
	writable := append([]string{"/tmp", "/var/tmp", "/dev/shm", "/dev/pts", "/dev/tty", CacheDir}, p.Write...)
	for _, c := range p.Copies {
		writable = append(writable, c.Path)
	}
	if p.Level == tool.BoxRead {
		writable = []string{OwnTemp, "/dev/pts", "/dev/tty"}
	}
	for _, path := range writable {
		if err := rules.allowPath(path, rules.files); err != nil {
			return nil, err
		}
	}
	return rules, rules.allowDevices()
}
