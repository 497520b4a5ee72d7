package sandbox

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// stamp changes when what a folder holds does, or the folder itself.
type stamp struct {
	dev, ino     uint64
	mtime, ctime int64 // ns
	dir, link    bool
	own, open    bool // it belongs to this user, who may look into it
}

func stampOf(path string) (stamp, bool) {
	st, err := stampAt(path)
	return st, err == nil
}

// stampAt is stampOf with the error of the system.
func stampAt(path string) (stamp, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return stamp{}, err
	}
	//nolint:unconvert // other architectures have other widths
	return stamp{
		uint64(st.Dev), st.Ino, st.Mtim.Nano(), st.Ctim.Nano(), st.Mode&unix.S_IFMT == unix.S_IFDIR,
		st.Mode&unix.S_IFMT == unix.S_IFLNK, int(st.Uid) == os.Geteuid(), os.Geteuid() == 0 || st.Mode&0o500 == 0o500,
	}, nil
}

func (s stamp) changed() time.Time { return time.Unix(0, max(s.mtime, s.ctime)) }
