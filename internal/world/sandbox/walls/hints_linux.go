package walls

import (
	"fmt"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
)

// LandlockHint gives the reason why Landlock can't be used here; empty if it can.
func LandlockHint() string {
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

// NamespaceHint names the setting that forbids namespaces, if it can be determined.
func NamespaceHint() string {
	for _, s := range [][3]string{
		{"/proc/sys/kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1 allows them"},
		{
			"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1",
			"sysctl kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for inspan, allows them",
		},
		{"/proc/sys/user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=10000 allows them"},
	} {
		if data, err := keep.Read(s[0]); err == nil && strings.TrimSpace(string(data)) == s[1] {
			return "user namespaces are switched off: " + s[2]
		}
	}
	return "the box needs user namespaces and Linux 5.12; containers often forbid them (Docker: --security-opt seccomp=unconfined " +
		"--security-opt systempaths=unconfined)"
}
