//go:build !linux

package files

import "github.com/inspan/inspan/internal/world/sandbox/paths"

// Temp is the folder for temporary files that a session has to itself. There is
// none here.
type Temp struct{}

func (*Temp) onMachine(path string) (string, error) { return path, nil }
func (*Temp) inSession(path string) string          { return path }
func (*Temp) resolve(path string) (string, error)   { return paths.Resolve(path) }
func (*Temp) NoteWritten(string)                    {}
func (*Temp) Temporary(string, bool) bool           { return false }
