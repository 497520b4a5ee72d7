//go:build race

package sandbox

import "os"

// keeperVars is the environment of keepers and holders: what tells the race detector how long to
// wait before it ends a program, a second if nothing does.
func keeperVars() []string { return []string{"GORACE=" + os.Getenv("GORACE")} }
