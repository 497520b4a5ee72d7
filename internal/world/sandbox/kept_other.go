//go:build !linux

package sandbox

import (
	"context"

	"github.com/inspan/inspan/internal/world/ability"
)

// KeptRuns reports false: no processes are kept on this platform. See the version for Linux.
func KeptRuns(ability.Kept) (runs, known bool) { return false, true }

// EndKept does nothing: no processes are kept on this platform.
func EndKept(context.Context, ability.Kept) error { return nil }
