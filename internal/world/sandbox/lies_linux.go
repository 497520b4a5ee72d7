package sandbox

import (
	"os"
	"path/filepath"
	"strconv"
)

// lies returns where an open file lies now.
func lies(file *os.File, path string) string {
	if real, err := os.Readlink(fdPath(file)); err == nil && filepath.IsAbs(real) {
		return real
	}
	return path
}

// through returns a path to a name in an open folder.
func through(folder *os.File, name, _ string) string {
	return filepath.Join(fdPath(folder), name)
}

// fdPath asks for the number without making the file a blocking one.
func fdPath(f *os.File) string {
	number := -1
	if raw, err := f.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { number = int(fd) })
	}
	return "/proc/self/fd/" + strconv.Itoa(number)
}
