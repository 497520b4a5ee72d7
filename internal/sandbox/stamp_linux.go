package sandbox

import (
	"time"

	"golang.org/x/sys/unix"
)

// stamp changes when what a folder holds does, or the folder itself.
type stamp struct {
	dev, ino     uint64
	mtime, ctime int64 // ns
	dir          bool
}

func stampOf(path string) (stamp, bool) {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return stamp{}, false
	}
	return stamp{uint64(st.Dev), st.Ino, st.Mtim.Nano(), st.Ctim.Nano(), st.Mode&unix.S_IFMT == unix.S_IFDIR}, true //nolint:unconvert // other architectures have other widths
}

func (s stamp) changed() time.Time { return time.Unix(0, max(s.mtime, s.ctime)) }
