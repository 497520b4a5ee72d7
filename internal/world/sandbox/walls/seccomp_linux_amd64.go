package walls

import "golang.org/x/sys/unix"

func auditArch() uint32 { return unix.AUDIT_ARCH_X86_64 }

// metadataCalls lists old forms of calls that make changes which Landlock doesn't cover.
func metadataCalls() []uintptr {
	return []uintptr{
		unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT, unix.SYS_MKNOD,
		unix.SYS_IOPERM, unix.SYS_IOPL, unix.SYS_MODIFY_LDT, unix.SYS_USELIB, unix.SYS_USTAT, unix.SYS__SYSCTL,
	}
}

// oldModeCalls lists old forms of calls that set modes, with the argument that is the mode.
func oldModeCalls() map[uintptr]int {
	return map[uintptr]int{unix.SYS_CHMOD: 1, unix.SYS_CREAT: 1, unix.SYS_MKDIR: 1, unix.SYS_MKNOD: 1}
}

// oldOpenCalls lists old forms of openat.
func oldOpenCalls() []uintptr { return []uintptr{unix.SYS_OPEN} }

// oldFolderCalls lists old forms of calls about folders.
func oldFolderCalls() []FolderCall {
	return []FolderCall{
		{NR: unix.SYS_MKDIR, Names: [][2]int{{-1, 0}}, Mode: 1},
		{NR: unix.SYS_RMDIR, Names: [][2]int{{-1, 0}}, Removes: true},
		{NR: unix.SYS_RENAME, Names: [][2]int{{-1, 0}, {-1, 1}}},
	}
}
