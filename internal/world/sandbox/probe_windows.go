package sandbox

import "context"

// Check is what trying one wall has shown. See the one for other systems.
type Check struct {
	Name string
	OK   bool
	Text string
}

// Probe has nothing to try here.
func Probe(context.Context, Options) []Check {
	return []Check{{Name: "processes", Text: errUnsupported.Error()}}
}

// Children has none to start in boxes here.
func Children(context.Context, Options) []Check {
	return []Check{{Name: "children", Text: errUnsupported.Error()}}
}
