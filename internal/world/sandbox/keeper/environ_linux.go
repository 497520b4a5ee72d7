//go:build !race

package keeper

// Environ is the environment of keepers and holders. They do one thing after another, and threads
// that look for more to do take time from commands.
func Environ() []string { return []string{"GOMAXPROCS=1"} }
