package walls

import "golang.org/x/sys/unix"

func auditArch() uint32 { return unix.AUDIT_ARCH_AARCH64 }

// metadataCalls lists the old forms of calls that change what Landlock doesn't
// watch. This architecture has none.
func metadataCalls() []uintptr { return nil }

func oldModeCalls() map[uintptr]int { return nil }

func oldOpenCalls() []uintptr { return nil }

func oldFolderCalls() []FolderCall { return nil }
