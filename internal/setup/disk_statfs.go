//go:build linux || darwin

package setup

import "golang.org/x/sys/unix"

// freeSpace returns the bytes a user may still write below path.
func freeSpace(path string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, err
	}
	return st.Bavail * uint64(st.Bsize), nil
}
