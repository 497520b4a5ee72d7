//go:build !race

package sandbox

// keeperVars is the environment of keepers and holders: none.
func keeperVars() []string { return []string{} }
