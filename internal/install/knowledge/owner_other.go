//go:build !unix

package knowledge

import "io/fs"

// ours reports whether a file can be trusted for its owner, which is not told
// apart here.
func ours(fs.FileInfo) bool { return true }
