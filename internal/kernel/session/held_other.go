//go:build !linux

package session

// locker names the process that has locked a file, as far as it can be told.
func locker(string) string { return "another process" }

// holds can't be told.
func holds(int, string) (holds, known bool) { return false, false }
