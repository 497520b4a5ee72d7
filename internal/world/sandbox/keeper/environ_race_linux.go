//go:build race

package keeper

import "os"

// Environ returns the environment of keepers and holders, with the race detector's settings: by default it
// delays the end of a program by a second.
func Environ() []string { return []string{"GOMAXPROCS=1", "GORACE=" + os.Getenv("GORACE")} }
