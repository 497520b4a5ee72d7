//go:build !race

package keeper

// Environ returns the environment of keepers and holders. They work sequentially, and further threads would
// take time from commands.
func Environ() []string { return []string{"GOMAXPROCS=1"} }
