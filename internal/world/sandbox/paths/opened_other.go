//go:build !linux

package paths

import "os"

// Location returns the given path of an open file: this platform can't determine it.
func Location(_ *os.File, path string) string { return path }

// PathIn returns the path unchanged.
func PathIn(_ *os.File, _, path string) string { return path }
