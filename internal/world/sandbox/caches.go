package sandbox

// CacheRoot returns the file that records the workspace of a cache folder. It is next to the folder, since
// commands write inside.
func CacheRoot(dir string) string { return dir + ".root" }
