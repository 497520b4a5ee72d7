//go:build unix

package knowledge

import (
	"io/fs"
	"os"
	"syscall"
)

// ours reports whether a file belongs to this user or to root.
func ours(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(st.Uid) == os.Getuid() || st.Uid == 0
}
