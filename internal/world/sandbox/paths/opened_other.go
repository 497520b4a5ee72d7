//go:build !linux

package paths

import "os"

// Location returns where an open file was said to lie: the system can't tell
// more.
func Location(_ *os.File, path string) string { return path }

// PathIn returns the path as it is.
func PathIn(_ *os.File, _, path string) string { return path }
