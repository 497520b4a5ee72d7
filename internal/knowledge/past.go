package knowledge

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/inspan/inspan/internal/cost"
	"github.com/inspan/inspan/internal/transcript"
	"github.com/inspan/inspan/store"
)

// Files lists the files of a workspace for completion, as [Files] does.
func (k *Base) Files(ctx context.Context, root string) []string { return Files(ctx, root) }

// Export writes a session to a new markdown file.
func (k *Base) Export(ctx context.Context, id, path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(transcript.Markdown(file, store.Events(ctx, k.Sessions, id)), file.Close())
}

// Blob is the beginning of a blob of a session, as text of at most so many bytes, and how many bytes
// follow.
func (k *Base) Blob(ctx context.Context, id, name string, most int64) (text string, more int64, err error) {
	log, err := k.Sessions.Open(ctx, id)
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

// Spent is what a session has cost, by model and in total.
func (k *Base) Spent(ctx context.Context, id string, warn func(string)) ([]cost.Row, error) {
	tallies, err := cost.Spent(ctx, k.Sessions, cost.Spending{Session: id}, warn)
	if err != nil {
		return nil, err
	}
	rows, err := cost.Group(tallies, "model")
	return append(rows, cost.Sum(tallies)), err
}
