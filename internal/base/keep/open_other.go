//go:build !unix

package keep

import "os"

// nonblock is 0 on platforms where no file in a folder blocks open.
const nonblock = 0

// Sync does nothing where the system persists the names in a folder by itself.
func Sync(string) error { return nil }

// SyncFile does nothing, as Sync.
func SyncFile(*os.File) error { return nil }
