//go:build race

package compact_test

// The package starts no goroutines, so under the race detector, which makes it
// ten times slower, a part of the tests will do.
const raceEnabled = true
