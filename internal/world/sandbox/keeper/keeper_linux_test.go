package keeper

import "testing"

// BenchmarkConditions measures how long it takes to read what others can change about a keeper.
func BenchmarkConditions(b *testing.B) {
	for b.Loop() {
		currentConditions()
	}
}
