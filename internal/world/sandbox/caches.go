package sandbox

// CacheRoot is the file that says of which workspace a folder of caches is. It lies beside that,
// as commands write in the folder.
func CacheRoot(dir string) string { return dir + ".root" }
