package sandbox

import "context"

// Check is the result of testing one restriction. See the version for other systems.
type Check struct {
	Name string
	OK   bool
	Text string
}

// Probe tests nothing on Windows.
func Probe(context.Context, Options) []Check {
	return []Check{{Name: "processes", Text: errUnsupported.Error()}}
}

// Children starts nothing on Windows.
func Children(context.Context, Options) []Check {
	return []Check{{Name: "children", Text: errUnsupported.Error()}}
}
