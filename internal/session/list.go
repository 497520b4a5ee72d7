package session

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/text"
)

// Info is a session at a glance.
type Info struct {
	ID       string
	Title    string       // the last Titled; may be empty
	Root     string       // the workspace
	Parent   string       // the session that spawned it; empty: a person did
	Created  time.Time    // of the first event, or as the id says
	Modified time.Time    // of the last event
	Events   uint64       // that are good
	Size     int64        // of the log in bytes
	Preview  string       // beginning of what was said first, in one line
	Stop     event.Reason // how the last run ended; empty while one goes on or none was
	Empty    bool         // nobody has said anything in it yet, so there is nothing to resume
	Damage   error        // why the log can not be read to its end; nil: it can
}

// previewLen is how many bytes of text a preview or snippet has, about.
const previewLen = 200

// List returns all sessions, the one that changed last first. It reads the
// ends of the logs and a few single events, so damage further up goes
// unnoticed; a session that can not be read at all is listed with its Damage.
func (s *Store) List(ctx context.Context) ([]Info, error) {
	ids, err := s.ids()
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	infos := make([]Info, 0, len(ids))
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("list sessions: %w", err)
		}
		infos = append(infos, s.info(id))
	}
	slices.SortStableFunc(infos, func(a, b Info) int {
		if c := b.Modified.Compare(a.Modified); c != 0 {
			return c
		}
		return strings.Compare(b.ID, a.ID)
	})
	return infos, nil
}

// Parent is the session that one of this id works for; empty: none.
func Parent(id string) string {
	if i := strings.LastIndexByte(id, '.'); i > 0 {
		return id[:i]
	}
	return ""
}

func (s *Store) info(id string) Info {
	info := Info{ID: id}
	info.Created, _ = time.Parse("20060102-150405", id[:15])
	info.Modified = info.Created
	info.Parent = Parent(id) // which its first event says too, once it is there
	l, left, err := s.open(id)
	if err != nil {
		info.Damage = err
		return info
	}
	info.describe(l)
	if info.Damage == nil {
		info.Damage = l.suspect(left)
	}
	info.Damage = errors.Join(info.Damage, l.Close())
	return info
}

// describe fills in what single events tell.
func (i *Info) describe(l *Log) {
	i.Events, i.Size, i.Empty = l.tail.Seq, l.tail.Off, l.marks.Said == nil
	if i.Events == 0 {
		return
	}
	look := func(c *cursor) event.Event {
		if c == nil {
			return event.Event{}
		}
		e, err := l.at(*c)
		i.Damage = errors.Join(i.Damage, err)
		return e
	}
	first := look(&cursor{})
	if first.Body != nil {
		i.Created = first.Time
	}
	if o, ok := first.Body.(event.Opened); ok {
		i.Root = o.Root
		if o.Parent != "" && first.Session == i.ID { // a fork works for nobody
			i.Parent = o.Parent
		}
	}
	if last := look(&l.last); last.Body != nil {
		i.Modified = last.Time
	}
	if said, ok := look(l.marks.Said).Body.(event.Said); ok {
		i.Preview = preview(said.Parts.Text())
	}
	if titled, ok := look(l.marks.Titled).Body.(event.Titled); ok {
		i.Title = titled.Title
	}
	if stopped, ok := look(l.marks.Stopped).Body.(event.Stopped); ok {
		i.Stop = stopped.Reason
	}
}

// suspect returns the damage of a log whose last left bytes did not verify;
// nil if that is only a torn tail, or a line on its way.
func (l *Log) suspect(left int64) error {
	if left == 0 || l.broken != nil {
		return l.broken
	}
	torn, err := l.torn(left)
	if err != nil || torn {
		return err
	}
	return l.tail.damage("what follows does not verify")
}

// preview shortens text to its beginning, without line breaks.
func preview(s string) string {
	return text.Head(text.Flat(text.Head(s, 4*previewLen)), previewLen)
}

// Size is how long the log of a session is.
type Size struct {
	ID   string
	Size int64 // bytes
}

// Sizes returns how long the logs are, of the newest session first. It reads none.
func (s *Store) Sizes(ctx context.Context) ([]Size, error) {
	ids, err := s.ids()
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	slices.Reverse(ids)
	out := make([]Size, 0, len(ids))
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("list sessions: %w", err)
		}
		if size, err := s.size(id); err == nil { // else it goes, or is not whole
			out = append(out, Size{id, size})
		}
	}
	return out, nil
}

func (s *Store) size(id string) (int64, error) {
	f, err := s.fs().Open(filepath.Join(s.Dir, id, logName), os.O_RDONLY)
	if err != nil {
		return 0, err
	}
	n, err := f.Size()
	return n, errors.Join(err, f.Close())
}

// Hit is a place where a searched text was found.
type Hit struct {
	Session string
	Seq     uint64
	Time    time.Time
	Kind    string
	Text    string // the match with some text around it, in one line
}

// Events yields the events of the session with the id, also of one that is
// damaged further on; then the error comes last.
func (s *Store) Events(ctx context.Context, id string) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		l, err := s.Open(ctx, id)
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		defer l.Close()
		l.Read(ctx, 0)(yield)
	}
}

// Search yields the events in which people, models or tools said something
// that matches, newest session first, in order within a session. A session
// that can not be read to its end yields an error after its hits, with its id
// in the Hit, and the search goes on with the next.
func (s *Store) Search(ctx context.Context, match *regexp.Regexp) iter.Seq2[Hit, error] {
	return func(yield func(Hit, error) bool) {
		ids, err := s.ids()
		if err != nil {
			yield(Hit{}, fmt.Errorf("search sessions: %w", err))
			return
		}
		for _, id := range slices.Backward(ids) {
			more, err := s.searchOne(ctx, id, match, yield)
			if err != nil {
				more = yield(Hit{Session: id}, fmt.Errorf("search session %s: %w", id, err)) && ctx.Err() == nil
			}
			if !more {
				return
			}
		}
	}
}

func (s *Store) searchOne(ctx context.Context, id string, match *regexp.Regexp, yield func(Hit, error) bool) (more bool, err error) {
	l, left, err := s.open(id)
	if err != nil {
		return true, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	more, err = l.events(ctx, cursor{}, l.tail.Off, 0, func(e event.Event, _ error) bool {
		text := spoken(e.Body)
		at := match.FindStringIndex(text)
		return at == nil || yield(Hit{
			Session: id, Seq: e.Seq, Time: e.Time, Kind: e.Body.Kind(), Text: around(text, at[0]),
		}, nil)
	})
	if err == nil && more {
		err = l.suspect(left)
	}
	return more || err != nil, err
}

// spoken returns the text of a body that has text worth searching.
func spoken(b event.Body) string {
	switch b := b.(type) {
	case event.Said:
		return b.Parts.Text()
	case event.Steered:
		return b.Parts.Text()
	case event.Replied:
		return b.Parts.Text()
	case event.Ended:
		return b.Parts.Text()
	}
	return ""
}

// around returns the text about the place at.
func around(s string, at int) string {
	return preview(s[len(text.Head(s, at-previewLen/4)):])
}
