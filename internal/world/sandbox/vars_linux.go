//go:build !race

package sandbox

// keeperVars is the environment of keepers and holders. They do one thing after another, and threads
// that look for more to do take time from commands.
func keeperVars() []string { return []string{"GOMAXPROCS=1"} }
