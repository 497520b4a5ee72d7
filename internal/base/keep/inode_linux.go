package keep

import (
	"io/fs"
	"syscall"
)

// Inode returns the inode number of a file and the time of its last change, of content or attributes, in ns
// since 1970. Programs can't set that time. 0 is unknown.
func Inode(info fs.FileInfo) (ino uint64, ctime int64) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0
	}
	return st.Ino, st.Ctim.Nano()
}
