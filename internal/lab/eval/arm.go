package eval

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/install/knowledge"
	"github.com/inspan/inspan/store"
)

// DrawnFor reports whether each session can draw for the change separately. That works for instruction files,
// which a session reads at its start. All other files are shared by concurrent sessions.
func (c Change) DrawnFor() bool { return knowledge.IsInstructions(c.File) }

// arms returns the canaries that sessions of a workspace draw for.
func (b *Book) arms(root string) (out []*Proposal) {
	for _, p := range b.Proposals() {
		if p.Step == Canaried && p.Change.Root == root && p.Change.DrawnFor() {
			out = append(out, p)
		}
	}
	return out
}

// Arm draws for a session which canaries of its workspace it gets, see [app.Canaries]. If a change no longer fits
// its file, no session gets a label for it, because the sessions could not be compared.
func (l Ledger) Arm(root, session string) (labels map[string]string, instead func(path string, content []byte) []byte, err error) {
	book, err := l.Book()
	if err != nil {
		return nil, nil, err
	}
	changes := map[string]Change{}
	labels = map[string]string{}
	for _, p := range book.arms(root) {
		path := filepath.Join(root, filepath.FromSlash(p.Change.File))
		content, err := keep.Read(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, nil, err
		}
		if _, twice := changes[path]; twice || !p.Change.fits(string(content)) {
			continue
		}
		if labels[p.Label()] = WithoutChange; p.With(session) {
			labels[p.Label()], changes[path] = WithChange, p.Change
		}
	}
	if len(changes) == 0 {
		return labels, nil, nil
	}
	return labels, func(path string, content []byte) []byte {
		if c, some := changes[path]; some {
			if changed, err := c.On(string(content)); err == nil {
				return []byte(changed)
			}
		}
		return content
	}, nil
}

// Over compares the sessions of each canary of a workspace and rolls back harmful changes, see [app.Canaries].
func (l Ledger) Over(ctx context.Context, sessions store.Store, root string, now time.Time) (told []string, err error) {
	book, err := l.Book()
	if err != nil {
		return nil, err
	}
	for _, p := range book.arms(root) {
		signals, err := Signals(ctx, sessions, book.Since(p.ID, Canaried), p.Label())
		if err != nil {
			return told, err
		}
		if e, err := book.Watch(p.ID, signals); err != nil || e.Step != RolledBack {
			continue // 'learn watch' would find nothing new
		}
		_, e, err := l.Add(ctx, now, "inspan", func(b *Book) (Entry, error) { return b.Watch(p.ID, signals) })
		if errors.Is(err, ErrStep) {
			continue // another session was faster
		}
		if err != nil {
			return told, err
		}
		told = append(told, fmt.Sprintf("the change %s of %s is rolled back, and no session gets it any more: %s", p.ID, p.Change.File, e.Why))
	}
	return told, nil
}
