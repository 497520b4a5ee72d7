package walls

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Expected is the state of a place that the keeper in a container verifies before it starts anything: exactly
// the intended file or folder, and closed if required.
type Expected struct {
	Path     string
	Dev, Ino uint64
	Write    bool `json:",omitempty"`
}

// Check checks a place from inside.
func (w Expected) Check() error {
	var st unix.Stat_t
	if err := unix.Lstat(w.Path, &st); err != nil {
		return err
	}
	if uint64(st.Dev) != w.Dev || st.Ino != w.Ino { //nolint:unconvert // other architectures have other widths
		return fmt.Errorf("%s is not the intended path: it changed, or the engine runs on another machine", w.Path)
	}
	if w.Write {
		return nil
	}
	return CheckReadOnly(w.Path)
}

// CheckReadOnly checks that a place is read-only.
func CheckReadOnly(path string) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return err
	}
	if fs.Flags&unix.ST_RDONLY == 0 {
		return fmt.Errorf("%s can be written", path)
	}
	return nil
}
