//go:build !linux && !darwin

package snapshot

import "os"

// openFlags are added when a file of the workspace is opened.
const openFlags = 0

// syncEach says that syncAll is not enough.
const syncEach = true

// clone lets to share the content of from, if the file system can.
func clone(_, _ *os.File) bool { return false }

// syncAll flushes all writes to the file system of f.
func syncAll(*os.File) error { return nil }
