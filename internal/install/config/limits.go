package config

// Lesser is the lower one of two limits, of which 0 is none. A negative first one is none either, and says so.
func Lesser[N ~int | ~int64 | ~float64](a, b N) N {
	if b != 0 && (a <= 0 || b < a) {
		return b
	}
	return a
}
