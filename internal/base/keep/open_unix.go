//go:build unix

package keep

import (
	"errors"
	"os"
	"syscall"
)

// nonblock lets open return at once, also for a pipe that nobody writes to.
const nonblock = syscall.O_NONBLOCK

// Sync puts the names in a folder on the disk, where the file system can: the others say
// so with EINVAL, and keep names in their own way.
func Sync(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(SyncFile(dir), dir.Close())
}

// SyncFile is [Sync] for a folder that is open.
func SyncFile(dir *os.File) error {
	err := dir.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}
