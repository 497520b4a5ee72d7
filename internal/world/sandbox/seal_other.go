//go:build !linux

package sandbox

import "github.com/inspan/inspan/tool"

// Sealing returns nil on this platform: a program that calls [Seal] must be started in a box.
func Sealing() tool.Procs { return nil }
