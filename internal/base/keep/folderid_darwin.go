package keep

import (
	"fmt"
	"syscall"
)

// FolderID identifies a folder within its file system, independent of its name: by its inode and creation time.
// Empty means unknown.
func FolderID(path string) string {
	var st syscall.Stat_t
	if syscall.Stat(path, &st) != nil || st.Birthtimespec.Sec == 0 {
		return ""
	}
	return fmt.Sprintf("%d %d.%09d", st.Ino, st.Birthtimespec.Sec, st.Birthtimespec.Nsec)
}
