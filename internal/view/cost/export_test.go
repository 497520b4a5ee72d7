package cost

// Advice is all that could be advised.
func Advice() (out []string) {
	for _, a := range advices() {
		out = append(out, a.text)
	}
	return out
}
