package session

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Stats looks files up from their common folder, which takes half the time of full paths.
func (osDisk) Stats(dir string) (stats, error) {
	f, err := os.Open(dir)
	if err != nil {
		return stats{}, err
	}
	fd := int(f.Fd())
	return stats{
		of: func(path string) (stamp, error) {
			var st unix.Stat_t
			err := error(unix.EINTR)
			for errors.Is(err, unix.EINTR) {
				err = unix.Fstatat(fd, path, &st, 0)
			}
			if err != nil {
				return stamp{}, &fs.PathError{Op: "stat", Path: path, Err: err}
			}
			return stamp{st.Size, time.Unix(st.Mtim.Unix())}, nil
		},
		done: f.Close,
	}, nil
}
