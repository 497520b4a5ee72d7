package keep

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// FolderID identifies a folder within its file system, independent of its name: by its inode and creation time.
// Empty means unknown.
func FolderID(path string) string {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_STATX_DONT_SYNC, unix.STATX_INO|unix.STATX_BTIME, &st)
	if err != nil || st.Mask&unix.STATX_BTIME == 0 || st.Btime.Sec == 0 {
		return ""
	}
	return fmt.Sprintf("%d %d.%09d", st.Ino, st.Btime.Sec, st.Btime.Nsec)
}
