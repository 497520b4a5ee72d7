package corpus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/kin"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

var errNoSessions = errors.New("no session can be read from here")

// mostBody is how many bytes of a non-text event are shown.
const mostBody = 4000

// asking returns the session that a call works for: that of the call, or the one above it.
func asking(c *tool.Call) string {
	if up := kin.Parent(c.Session); up != "" {
		return up
	}
	return c.Session
}

// mayRead returns an error if a call may not read the log of a session: it is neither its own session nor one of
// the same workspace.
func (s *Set) mayRead(ctx context.Context, c *tool.Call, id string) error {
	if s.Sessions == nil {
		return errNoSessions
	}
	if id == c.Session || id == asking(c) {
		return nil
	}
	if s.Alone {
		return errNoSessions
	}
	opened, err := store.Opening(ctx, s.Sessions, id)
	switch {
	case err != nil:
		return err
	case opened == nil:
		return errors.New("the session is empty")
	case opened.Root != c.Env.Root:
		return errors.New("it is a session of another workspace")
	}
	return nil
}

// past lists the sessions of the workspace of a call, newest first, without the sessions of the call itself.
func (s *Set) past(ctx context.Context, c *tool.Call) (ids []string, err error) {
	if s.Sessions == nil || s.Alone {
		return nil, errNoSessions
	}
	list, err := s.Sessions.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, info := range list {
		if info.Root == c.Env.Root && info.Parent == "" && info.ID != c.Session && info.ID != asking(c) && !info.Empty {
			ids = append(ids, info.ID)
		}
	}
	return ids, nil
}

// log returns the log of a session as text, up to an event; 0 means all of it.
func (s *Set) log(ctx context.Context, id string, upto uint64) *logReader {
	next, stop := iter.Pull2(store.Events(ctx, s.Sessions, id))
	return &logReader{next: next, stop: stop, upto: upto}
}

// logReader reads events as lines of text. Each line begins with the number of its event.
type logReader struct {
	next func() (event.Event, error, bool)
	stop func()
	upto uint64
	last uint64 // number of the last event read
	rest string
	over bool
}

// Read implements [io.Reader].
func (l *logReader) Read(p []byte) (int, error) {
	for l.rest == "" {
		if l.over {
			return 0, io.EOF
		}
		e, err, ok := l.next()
		if err != nil {
			return 0, err
		}
		if !ok || l.upto > 0 && e.Seq > l.upto {
			l.over = true
			continue
		}
		l.last, l.rest = e.Seq, numbered(e)
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// Close implements [io.Closer].
func (l *logReader) Close() error {
	l.stop()
	return nil
}

// numbered returns an event as lines, each with its number.
func numbered(e event.Event) string {
	var b strings.Builder
	for i, line := range strings.Split(strings.TrimRight(valid(told(e)), "\n"), "\n") {
		head := e.Body.Kind()
		if i > 0 {
			head = "|"
		}
		fmt.Fprintf(&b, "#%d %s %s\n", e.Seq, head, line)
	}
	return b.String()
}

// told returns the content of an event: its text if it was written by a person or a model or returned by a
// tool, else its fields.
func told(e event.Event) string {
	switch b := e.Body.(type) {
	case event.Said:
		return b.Parts.Text()
	case event.Steered:
		return b.Parts.Text()
	case event.Replied:
		lines := b.Parts.Text()
		for _, c := range b.Parts.Calls() {
			lines += fmt.Sprintf("\ncall %s: %s %s", c.ID, c.Name, c.Args)
		}
		return strings.TrimPrefix(lines, "\n")
	case event.Ended:
		return fmt.Sprintf("call %s: %s\n%s", b.Call, b.Outcome, b.Parts.Text())
	}
	raw, err := json.Marshal(e.Body)
	if err != nil {
		return err.Error()
	}
	return text.Cut(string(raw), mostBody)
}
