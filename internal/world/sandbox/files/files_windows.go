package files

import (
	"io/fs"
	"os"
)

const openNonblock = 0

// hardLinks counts one name for every file, so linked files are replaced.
func hardLinks(fs.FileInfo) uint64 { return 1 }

func keepOwner(*os.File, fs.FileInfo) {}

// syncDir does nothing: directories cannot be synced here.
func syncDir(string) error { return nil }
