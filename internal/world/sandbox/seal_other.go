//go:build !linux

package sandbox

import "github.com/inspan/inspan/tool"

// Sealing is nil here: a program that calls [Seal] has to be started in a box.
func Sealing() tool.Procs { return nil }
