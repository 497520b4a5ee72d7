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
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return stamp{}, false
	}
	//nolint:unconvert // other architectures have other widths
	return stamp{
		uint64(st.Dev), st.Ino, st.Mtim.Nano(), st.Ctim.Nano(), st.Mode&unix.S_IFMT == unix.S_IFDIR,
		st.Mode&unix.S_IFMT == unix.S_IFLNK, int(st.Uid) == os.Geteuid(), os.Geteuid() == 0 || st.Mode&0o500 == 0o500,
	}, true
}

func (s stamp) changed() time.Time { return time.Unix(0, max(s.mtime, s.ctime)) }
