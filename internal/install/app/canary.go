package app

import (
	"context"
	"maps"
	"time"

	"github.com/inspan/inspan/internal/base/kin"
)

// Canaries gives changes to a share of the sessions of a workspace, see 'inspan eval learn canary'.
type Canaries struct {
	// Arm draws which changes a session gets. It returns labels that record the draw, and a function that returns the
	// content to use for an instruction file; the function is nil if no file changes. The draw of a session never changes.
	Arm func(root, session string) (labels map[string]string, instead func(path string, content []byte) []byte, err error)
	// Over is called when a session of a workspace has ended. It rolls back changes that do harm, and returns messages
	// about that for people.
	Over func(ctx context.Context, root string) (told []string, err error)
}

// arm draws the changes for the session. Its subagents get the same ones.
func (b *build) arm(context.Context) error {
	base := *b.Knowledge
	b.knowledge = &base
	if b.Canaries == nil || b.o.Elsewhere {
		return nil
	}
	labels, instead, err := b.Canaries.Arm(b.at.Root, kin.Lead(b.at.ID))
	if err != nil { // the session continues without them
		b.warn("changes on trial in this workspace are not used: " + err.Error())
		return nil //nolint:nilerr // the person is warned, and a trial keeps no one from working
	}
	base.Instead = instead
	if b.at.Parent == "" && len(labels) > 0 {
		maps.Copy(labels, b.agent.Opening.Labels) // labels set by the caller take precedence
		b.agent.Opening.Labels = labels
	}
	return nil
}

// mostFaring bounds the time that the end of a session spends on comparing sessions.
const mostFaring = 10 * time.Second

// fares compares the sessions with and without each change after one more has ended.
func (b *build) fares(ctx context.Context) {
	if b.Canaries == nil {
		return
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), mostFaring)
	defer done()
	told, err := b.Canaries.Over(ctx, b.at.Root)
	if err != nil {
		b.warn("can't check the changes on trial in this workspace for harm: " + err.Error())
	}
	for _, text := range told {
		b.warn(text)
	}
}
