//go:build unix

package keep

import (
	"errors"
	"os"
	"syscall"
)

// nonblock makes open return at once, even for a pipe without a writer.
const nonblock = syscall.O_NONBLOCK

// Sync syncs the names in a folder, if the file system supports it: others return EINVAL, and persist names in
// their own way.
func Sync(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(SyncFile(dir), dir.Close())
}

// SyncFile is [Sync] for an open folder.
func SyncFile(dir *os.File) error {
	err := dir.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}
