package keep

import (
	"fmt"
	"syscall"
)

// FolderID tells a folder from all others of its file system, whatever it is called: its inode, and when
// that was made. Empty: the system does not tell.
func FolderID(path string) string {
	var st syscall.Stat_t
	if syscall.Stat(path, &st) != nil || st.Birthtimespec.Sec == 0 {
		return ""
	}
	return fmt.Sprintf("%d %d.%09d", st.Ino, st.Birthtimespec.Sec, st.Birthtimespec.Nsec)
}
