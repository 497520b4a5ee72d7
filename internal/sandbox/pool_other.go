//go:build !linux

package sandbox

// spares are of no use without keepers.
type spares struct{}

// where can't be told here, so boxes are tried by each program.
func (ps *procs) where() string { return "" }
