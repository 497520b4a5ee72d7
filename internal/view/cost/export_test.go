package cost

// Advice is all that could be advised.
func Advice() (out []string) {
	for _, a := range advices() {
		out = append(out, a.text)
	}
	return out
}

// WithoutParts returns the line of an event without the parts in its body.
func WithoutParts(line []byte) []byte { return withoutParts(line) }
