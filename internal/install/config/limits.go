package config

// Lesser returns the lower of two limits; 0 means no limit. A negative first one explicitly means no limit.
func Lesser[N ~int | ~int64 | ~float64](a, b N) N {
	if b != 0 && (a <= 0 || b < a) {
		return b
	}
	return a
}
