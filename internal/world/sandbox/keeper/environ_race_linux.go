//go:build race

package keeper

import "os"

// Environ is the environment of keepers and holders, with what tells the race detector how long to
// wait before it ends a program, a second if nothing does.
func Environ() []string { return []string{"GOMAXPROCS=1", "GORACE=" + os.Getenv("GORACE")} }
