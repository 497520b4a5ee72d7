//go:build race

package testkit

// Race is whether the race detector is on. Code that computes in one goroutine takes ten times as long with it
// and gains nothing, so tests of such code do less then.
const Race = true
