package keeper

import "testing"

// BenchmarkConditions measures how long it takes to see what others can change of a keeper.
func BenchmarkConditions(b *testing.B) {
	for b.Loop() {
		currentConditions()
	}
}
