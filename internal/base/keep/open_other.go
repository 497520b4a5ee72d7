//go:build !unix

package keep

import "os"

// nonblock is nothing where no file of a folder makes open wait.
const nonblock = 0

// Sync does nothing where the system keeps the names in a folder by itself.
func Sync(string) error { return nil }

// SyncFile does nothing, as Sync.
func SyncFile(*os.File) error { return nil }
