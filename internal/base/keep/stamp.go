package keep

import "io/fs"

// Stamp is the file system's metadata of a file. If its content changes, so does its stamp, unless both changes come
// within one tick of the file system's clock.
type Stamp struct {
	Size, Mtime, Ctime int64  // times in ns since 1970; Ctime is that of [Inode]
	Ino                uint64 // 0 is unknown
}

// StampOf returns the stamp of a file.
func StampOf(info fs.FileInfo) Stamp {
	ino, ctime := Inode(info)
	return Stamp{info.Size(), info.ModTime().UnixNano(), ctime, ino}
}
