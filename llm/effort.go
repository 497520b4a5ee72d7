package llm

// Efforts returns the words for reasoning effort, the least first.
func Efforts() []string { return []string{"low", "medium", "high", "xhigh", "max"} }
