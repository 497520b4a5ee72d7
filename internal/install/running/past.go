package running

import (
	"context"
	"errors"
	"io"
	"iter"
	"os"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/view/cost"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/store"
)

// Past yields the past events of a session.
func (t *Table) Past(ctx context.Context, id string) iter.Seq2[event.Event, error] {
	return store.Events(ctx, t.Sessions, id)
}

// Said returns the messages of the person at the terminal in a session, as typed, the oldest first.
func (t *Table) Said(ctx context.Context, id string) (said []string, err error) {
	var fold transcript.Fold
	for e, err := range t.Past(ctx, id) {
		if err != nil {
			return said, err
		}
		for _, item := range fold.Apply(e) {
			if s, is := item.(*transcript.Said); is && s.Seq == e.Seq && s.Typed() != "" {
				said = append(said, s.Typed())
			}
		}
	}
	return said, nil
}

// Export writes a session to a new markdown file.
func (t *Table) Export(ctx context.Context, id, path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(transcript.Markdown(file, store.Events(ctx, t.Sessions, id)), file.Close())
}

// Blob returns the beginning of a blob of a session, as text of at most so many bytes, and how many bytes
// follow.
func (t *Table) Blob(ctx context.Context, id, name string, most int64) (text string, more int64, err error) {
	log, err := t.Sessions.Open(ctx, id)
	if err != nil {
		return "", 0, err
	}
	defer log.Close()
	r, err := log.Blobs().Get(ctx, name)
	if err != nil {
		return "", 0, err
	}
	defer r.Close()
	head, err := io.ReadAll(io.LimitReader(r, most))
	if err == nil {
		more, err = io.Copy(io.Discard, r)
	}
	return string(head), more, err
}

// Spent returns the cost of a session, by model and in total.
func (t *Table) Spent(ctx context.Context, id string, warn func(string)) ([]cost.Row, error) {
	tallies, err := cost.Spent(ctx, t.Sessions, cost.Spending{Session: id, Totals: true}, warn)
	if err != nil {
		return nil, err
	}
	rows, err := cost.Group(tallies, "model")
	return append(rows, cost.Sum(tallies)), err
}

// Costliest are the causes of the costs of a session and its subagents, the costliest first.
func (t *Table) Costliest(ctx context.Context, id string, warn func(string)) ([]cost.CostCause, error) {
	report, err := cost.Explain(ctx, t.Sessions, cost.Question{Session: id, By: cost.Causes}, warn)
	return report.Costliest, err
}
