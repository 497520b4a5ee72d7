package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/secret"
	"github.com/inspan/inspan/internal/view/words"
)

// Add stores an entry, and returns it as it was written. Entries that it supersedes in its own scope are
// replaced; in other scopes they are only left out of the index. If topicText is not empty, it is appended to
// the topic file of e.Topic.
//
// Add fails if the text is already in that scope, is empty or longer than [MaxText], or contains a secret, and
// with [ErrFull] if it would exceed the limits of the scope. Then nothing changes.
func (s *Store) Add(ctx context.Context, scope Scope, e Entry, topicText string) (Entry, error) {
	e, err := s.prepare(e, topicText)
	if err != nil {
		return Entry{}, fmt.Errorf("remember: %w", err)
	}
	topicText = strings.TrimSpace(text.Clean(topicText))
	err = s.change(ctx, scope, true, func(f home) error {
		index, err := f.load()
		if err != nil {
			return err
		}
		before := index.bytes()
		gone, err := index.accept(e, s.today())
		if err != nil {
			return err
		}
		if topicText != "" {
			if err := f.addTopic(e, topicText); err != nil {
				return err
			}
		}
		if err := f.replace(indexFile, before, index.bytes()); err != nil {
			return err
		}
		for _, it := range gone {
			if it.ID == e.ID && it.Topic == e.Topic {
				continue // its earlier part was replaced
			}
			if err := f.dropTopic(it.Entry); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return Entry{}, err
	}
	return e, nil
}

// change does something under the lock of a scope.
func (s *Store) change(ctx context.Context, scope Scope, create bool, do func(f home) error) error {
	f, err := s.folder(scope, create)
	if err != nil {
		return err
	}
	defer f.close()
	unlock, err := f.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	f.sweep()
	f.wrote = &[]written{}
	if err := do(f); err != nil || s.Vouch == nil {
		return err
	}
	return s.vouch(ctx, scope, *f.wrote)
}

// vouch reports changes of files that a person vouches for. It uses what was read and written here, regardless
// of later changes by others.
func (s *Store) vouch(ctx context.Context, scope Scope, files []written) error {
	var failed []error
	for _, w := range files {
		if s.vouched(scope, w.path, w.before) {
			failed = append(failed, s.Vouch(ctx, scope, w.path, w.after))
		}
	}
	if err := errors.Join(failed...); err != nil {
		return fmt.Errorf("it is written, and counts as unverified: %w", err)
	}
	return nil
}

// prepare completes an entry for storing, or returns the reason why it can't be stored.
func (s *Store) prepare(e Entry, topicText string) (Entry, error) {
	for _, said := range append([]string{e.Text, e.Source, e.ID, e.Topic, topicText}, e.Supersedes...) {
		if what := s.secret(said); what != "" {
			return e, fmt.Errorf("it holds %s; secrets are not kept in memory: say where it is kept instead", what)
		}
	}
	e.Text, e.Source = text.Flat(text.Clean(e.Text)), words.OneLine(cmp.Or(e.Source, "person"), sources)
	e.Kind = cmp.Or(e.Kind, Fact)
	if e.Date.IsZero() {
		e.Date = s.today()
	}
	if e.ID == "" {
		e.ID = idOf(e.Text)
	}
	e.Date = e.Date.UTC().Truncate(24 * time.Hour)
	if !e.Expires.IsZero() {
		e.Expires = e.Expires.UTC().Truncate(24 * time.Hour)
	}
	return e, e.check(topicText, s.today())
}

// secret says which secret a text contains, including known values and placeholders; empty if none.
func (s *Store) secret(said string) string {
	if found, ok := s.finder.First(said); ok {
		return found.What
	}
	if secret.Holds(said) || s.Redact != nil && s.Redact(said) != said {
		return "a secret"
	}
	return ""
}

// check returns an error if an entry is invalid.
func (e Entry) check(topicText string, today time.Time) error {
	switch {
	case e.Text == "":
		return errors.New("there is no text")
	case len(e.Text) > MaxText:
		return fmt.Errorf("the text has %d bytes; at most %d, in one sentence: put the rest into a topic", len(e.Text), MaxText)
	case strings.Contains(e.Text+e.Source, opens) || strings.Contains(e.Text+e.Source, closes):
		return fmt.Errorf("%s and %s can't be part of it, as they mark comments in the file", opens, closes)
	case !slices.Contains(Kinds(), e.Kind):
		return fmt.Errorf("there is no kind %q; the kinds are %s", e.Kind, listed(Kinds()))
	case !isName(e.ID):
		return fmt.Errorf("%q can't be an id", e.ID)
	case e.Topic != "" && !isName(e.Topic):
		return fmt.Errorf("%q can't be a topic: names have a to z, 0 to 9, - and _, because they are files", e.Topic)
	case topicText != "" && e.Topic == "":
		return errors.New("topic_text needs the name of a topic")
	case !e.holds(today):
		return fmt.Errorf("it would expire on %s, which is past", e.Expires.Format(day))
	}
	for _, id := range e.Supersedes {
		if !isName(id) {
			return fmt.Errorf("%q, in supersedes, is not an id", id)
		}
	}
	return nil
}

func listed[S ~string](list []S) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return strings.Join(out, ", ")
}

// accept puts an entry into the index, replacing those that it supersedes, which it returns.
func (f *file) accept(e Entry, today time.Time) (gone []item, err error) {
	for _, it := range f.items {
		same := likeness(it.Text) == likeness(e.Text)
		replaced := slices.Contains(e.Supersedes, it.ID) || same && !it.holds(today)
		switch {
		case replaced && e.Untrusted && !it.Untrusted:
			return nil, fmt.Errorf("remember: %s is not marked as unverified, and this would be: only the person can replace it", it.ID)
		case replaced:
			gone = append(gone, it)
		case same:
			return nil, fmt.Errorf("remember: that is remembered already, as %s", it.ID)
		case it.ID == e.ID:
			return nil, fmt.Errorf("remember: the id %s is taken, by: %s", it.ID, it.Text)
		}
	}
	f.insert(e.format())
	for _, it := range slices.Backward(gone) {
		f.lines = slices.Delete(f.lines, it.line, it.end)
	}
	if it, err := parse(f.path, f.bytes()).find("", e.ID); err != nil || it.Text != e.Text {
		return nil, fmt.Errorf("remember: %s ends within a comment or code that is not closed; mend that first", f.path)
	}
	if len(f.lines) <= MaxLines && f.size() <= MaxBytes {
		return gone, nil
	}
	stale := 0
	for _, it := range f.items {
		if !it.holds(today) {
			stale++
		}
	}
	return nil, fmt.Errorf("remember: %w: %s would have %d lines and %d bytes; at most %d lines and %d bytes, as all of it is in every "+
		"prompt. "+
		"Supersede what is out of date, move details to a topic, or forget something (%d of its entries have expired)",
		ErrFull, f.path, len(f.lines), f.size(), MaxLines, MaxBytes, stale)
}

// insert inserts a line after the last entry, or at the end.
func (f *file) insert(line string) {
	if len(f.lines) == 0 {
		f.lines = []string{"# Memory\n", "\n", line + "\n"}
		return
	}
	end := "\n"
	if strings.HasSuffix(f.lines[0], "\r\n") {
		end = "\r\n"
	}
	at := len(f.lines)
	if n := len(f.items); n > 0 {
		at = f.items[n-1].end
	}
	if !strings.HasSuffix(f.lines[at-1], "\n") {
		f.lines[at-1] += end
	}
	f.lines = slices.Insert(f.lines, at, line+end)
}

// Remove deletes an entry, and the text that was added to its topic file with it. Text by people stays there.
func (s *Store) Remove(ctx context.Context, scope Scope, id string) (Entry, error) {
	var e Entry
	err := s.change(ctx, scope, false, func(f home) error {
		index, err := f.load()
		if err != nil {
			return err
		}
		it, err := index.find(scope, id)
		if err != nil {
			return err
		}
		e = it.Entry
		if err := f.dropTopic(e); err != nil {
			return err
		}
		before := index.bytes()
		index.lines = slices.Delete(index.lines, it.line, it.end)
		return f.replace(indexFile, before, index.bytes())
	})
	if missing(err) {
		err = fmt.Errorf("%w: there is no %s memory yet", ErrUnknown, scope)
	}
	return e, err
}

// Entry returns an entry by its id, even if it has expired.
func (s *Store) Entry(scope Scope, id string) (Entry, error) {
	if _, err := s.dir(scope); err != nil {
		return Entry{}, err
	}
	f, err := s.load(scope)
	if err != nil {
		return Entry{}, err
	}
	it, err := f.find(scope, id)
	return it.Entry, err
}

func (f file) find(scope Scope, id string) (item, error) {
	i := slices.IndexFunc(f.items, func(it item) bool { return it.ID == id })
	if i < 0 {
		return item{}, fmt.Errorf("%w: %s memory has no %q", ErrUnknown, scope, id)
	}
	return f.items[i], nil
}
