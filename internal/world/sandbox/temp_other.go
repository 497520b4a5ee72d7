//go:build !linux

package sandbox

import "github.com/inspan/inspan/internal/world/sandbox/paths"

// temp is the folder for temporary files that a session has to itself. There is
// none here.
type temp struct{}

func (*temp) at(path string) (string, error)      { return path, nil }
func (*temp) seen(path string) string             { return path }
func (*temp) resolve(path string) (string, error) { return paths.Resolve(path) }
func (*temp) wrote(string)                        {}
func (*temp) temporary(string, bool) bool         { return false }
