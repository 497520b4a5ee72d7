package app

import (
	"context"
	"maps"
	"time"

	"github.com/inspan/inspan/store"
)

// Canaries has a share of the sessions of a workspace try a change, see 'inspan eval learn canary'.
type Canaries struct {
	// Arm draws for a session what it gets of the changes that its workspace tries: labels that say so, and what it reads in
	// the place of instruction files, which is nil if it gets none. A session that is asked about again has the same.
	Arm func(root, session string) (labels map[string]string, instead func(path string, content []byte) []byte, err error)
	// Over looks how the sessions of a workspace fare after one of them has ended, and takes back changes that do harm. It
	// returns what it has done, for people.
	Over func(ctx context.Context, root string) (told []string, err error)
}

// arm draws what the session tries. Those that work for it try the same.
func (b *build) arm(context.Context) error {
	base := *b.App.Knowledge
	b.knowledge = &base
	if b.Canaries == nil || b.o.Elsewhere {
		return nil
	}
	labels, instead, err := b.Canaries.Arm(b.at.Root, store.Lead(b.at.ID))
	if err != nil { // the session is worth more
		b.warn("changes that are tried here are left out: " + err.Error())
		return nil
	}
	base.Instead = instead
	if b.at.Parent == "" && len(labels) > 0 {
		maps.Copy(labels, b.agent.Opening.Labels) // those that somebody has given say what is so
		b.agent.Opening.Labels = labels
	}
	return nil
}

// mostFaring is how long a session that ends looks how those with a change fare.
const mostFaring = 10 * time.Second

// fares looks how the sessions with a change fare, now that one more has ended.
func (b *build) fares(ctx context.Context) {
	if b.Canaries == nil {
		return
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), mostFaring)
	defer done()
	told, err := b.Canaries.Over(ctx, b.at.Root)
	if err != nil {
		b.warn("whether changes that are tried here do harm is not known: " + err.Error())
	}
	for _, text := range told {
		b.warn(text)
	}
}
