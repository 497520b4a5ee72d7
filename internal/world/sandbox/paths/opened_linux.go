package paths

import (
	"os"
	"path/filepath"
	"strconv"
)

// Location returns the current location of an open file.
func Location(file *os.File, path string) string {
	if real, err := os.Readlink(DescriptorPath(file)); err == nil && filepath.IsAbs(real) {
		return real
	}
	return path
}

// PathIn returns a path to a name in an open folder.
func PathIn(folder *os.File, name, _ string) string {
	return filepath.Join(DescriptorPath(folder), name)
}

// DescriptorPath returns a path to an open file. It reads the descriptor without setting the file to blocking
// mode.
func DescriptorPath(f *os.File) string {
	number := -1
	if raw, err := f.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { number = int(fd) })
	}
	return "/proc/self/fd/" + strconv.Itoa(number)
}
