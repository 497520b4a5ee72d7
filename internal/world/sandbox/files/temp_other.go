//go:build !linux

package files

import "github.com/inspan/inspan/internal/world/sandbox/paths"

// Temp is a session's own folder for temporary files. This platform has none.
type Temp struct{}

func (*Temp) onMachine(path string) (string, error) { return path, nil }
func (*Temp) inSession(path string) string          { return path }
func (*Temp) resolve(path string) (string, error)   { return paths.Resolve(path) }
func (*Temp) NoteWritten(string)                    {}
func (*Temp) Temporary(string, bool) bool           { return false }
