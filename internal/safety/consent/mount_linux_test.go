package consent_test

import "syscall"

// mountSmall mounts a disk of a few pages.
func mountSmall(dir string) error {
	return syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=128k")
}
