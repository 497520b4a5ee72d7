//go:build !linux && !darwin

package keep

// FolderID identifies a folder within its file system. It returns "" on this platform, which has no such id.
func FolderID(string) string { return "" }
