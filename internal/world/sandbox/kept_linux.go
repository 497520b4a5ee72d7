package sandbox

import (
	"context"
	"errors"
	"strings"

	"github.com/inspan/inspan/internal/world/ability"
	"github.com/inspan/inspan/internal/world/sandbox/processes"
)

// A keeper can continue after the program that started it has ended. Then it ends its family on SIGTERM.

// KeptRuns reports whether a kept process still runs. For one from another container, or another machine with
// the same files, that is unknown.
func KeptRuns(k ability.Kept) (runs, known bool) {
	boot, rest, _ := strings.Cut(k.Mark, "-")
	namespace, _, _ := strings.Cut(rest, "-")
	if boot == processes.BootID() && namespace != processes.Namespace() {
		return false, false
	}
	return processes.Identity(k.PID) == k.Mark && !processes.Ended(k.PID), true
}

// keptGrace is longer than the grace period of a keeper for its family.
const keptGrace = processes.TermGrace + patience

// EndKept ends a kept process with all its descendants.
func EndKept(ctx context.Context, k ability.Kept) error {
	if _, known := KeptRuns(k); !known {
		return errors.New("it runs in another container; end it there")
	}
	_, err := End(ctx, k.PID, keptGrace, func() bool { runs, _ := KeptRuns(k); return runs })
	return err
}
