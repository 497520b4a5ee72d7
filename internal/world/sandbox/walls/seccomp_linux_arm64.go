package walls

import "golang.org/x/sys/unix"

func auditArch() uint32 { return unix.AUDIT_ARCH_AARCH64 }

// metadataCalls lists old forms of calls that make changes which Landlock doesn't cover. This architecture has
// none.
func metadataCalls() []uintptr { return nil }

func oldModeCalls() map[uintptr]int { return nil }

func oldOpenCalls() []uintptr { return nil }

func oldFolderCalls() []FolderCall { return nil }
