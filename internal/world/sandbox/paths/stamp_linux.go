package paths

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Stamp changes when a folder, or its list of names, changes.
type Stamp struct {
	Dev, Ino     uint64
	Mtime, Ctime int64 // ns
	Dir, Link    bool
	Own, Open    bool // it belongs to this user, who may look into it
}

// StampOf returns the stamp of a path; false on an error.
func StampOf(path string) (Stamp, bool) {
	st, err := StampAt(path)
	return st, err == nil
}

// StampAt is StampOf with the system's error.
func StampAt(path string) (Stamp, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return Stamp{}, err
	}
	//nolint:unconvert // other architectures have other widths
	return Stamp{
		uint64(st.Dev), st.Ino, st.Mtim.Nano(), st.Ctim.Nano(), st.Mode&unix.S_IFMT == unix.S_IFDIR,
		st.Mode&unix.S_IFMT == unix.S_IFLNK, int(st.Uid) == os.Geteuid(), os.Geteuid() == 0 || st.Mode&0o500 == 0o500,
	}, nil
}

// Changed returns the time of the last change.
func (s Stamp) Changed() time.Time { return time.Unix(0, max(s.Mtime, s.Ctime)) }

// Identity returns the identity of the stamped path.
func (s Stamp) Identity(path string) Identity { return Identity{path, s.Dev, s.Ino, s.Link} }
