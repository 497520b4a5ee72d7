package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/corpus"
	"github.com/inspan/inspan/internal/equipment"
	"github.com/inspan/inspan/internal/text"
	"github.com/inspan/inspan/internal/words"
	"github.com/inspan/inspan/store"
)

// Corpus is a question to a corpus, and how its answer is printed.
type Corpus struct {
	equipment.AskCorpus
	JSON bool
}

// errUnverified says that a run has ended well, and brought no answer.
var errUnverified = errors.New("the agent gave no answer whose evidence was verified; its log has what it did")

// answered is the object that [Corpus.Run] prints.
type answered struct {
	Type    string `json:"type"`    // "answer"
	Version int    `json:"version"` // 1
	Session string `json:"session"`
	corpus.Answer
	Cost     float64 `json:"cost"` // US dollars
	ExitCode int     `json:"exit_code"`
}

// Run has the agent of a session answer the question. Standard output gets the answer and nothing
// else; what the agent does goes to standard error. It returns the exit code.
func (q *Corpus) Run(ctx context.Context, c *Console, s *inspan.Session) int {
	work := &Console{
		Out: c.Err, Err: c.Err, Color: c.Color, Live: c.Live, Width: c.Width, Person: c.Person, Unattended: c.Unattended,
		Onward: "ask again: answers about pieces are kept, so they cost nothing again",
	}
	if q.JSON {
		c.Form, work.Out, work.Err, work.Live = JSON, io.Discard, io.Discard, false
	}
	if code := work.Run(ctx, s, event.Say(q.Task())); code != ExitDone {
		return q.failed(c, s, code)
	}
	found, err := corpus.Answered(past(ctx, s))
	if err == nil && found == nil {
		err = errUnverified
	}
	if err != nil {
		return c.Fail(ExitFailed, err)
	}
	code := ExitDone
	if found.Nothing {
		code = ExitFailed
	}
	if q.JSON {
		err = c.json(answered{"answer", 1, s.ID(), *found, s.Status().Cost, code})
	} else {
		err = written(c.Out, found)
	}
	if err != nil {
		return c.Fail(ExitError, err)
	}
	return code
}

// Check returns an error if a source is not there, before a model costs anything.
func (q *Corpus) Check(ctx context.Context, sessions store.Store, root string) error {
	if err := corpus.Exist(ctx, sessions, root, q.Sources); err != nil {
		return words.Misuse{Err: err}
	}
	return nil
}

// past are the events that a session has now.
func past(ctx context.Context, s *inspan.Session) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		upto := s.Status().Seq
		for e, err := range s.Events(ctx, 0) {
			if !yield(e, err) || err != nil || e.Seq >= upto {
				return
			}
		}
	}
}

// failed tells of a run that has not come to its end, where nothing of it was shown.
func (q *Corpus) failed(c *Console, s *inspan.Session, code int) int {
	st := s.Status()
	if !q.JSON {
		return code
	}
	r := Result{
		Session: s.ID(), Reason: "error", Model: st.Route, Turns: st.Turns, Calls: st.Calls, Usage: st.Usage, Cost: st.Cost, ExitCode: code,
	}
	if st.Stopped != nil {
		r.Reason, r.Cause, r.Detail = string(st.Stopped.Reason), st.Stopped.Cause, st.Stopped.Detail
	}
	return c.finish(r)
}

// written prints an answer for people: what it says, and each passage with its place. Files and models
// have written all of it, so each line has a mark of its kind, and none can pass for another.
func written(out io.Writer, a *corpus.Answer) error {
	var b strings.Builder
	for line := range strings.SplitSeq(text.Clean(words.Hidden(a.Answer)), "\n") {
		b.WriteString("| " + line + "\n")
	}
	if a.Nothing {
		fmt.Fprintf(&b, "\nThe agent looked at %s%s.\n", text.Count(a.Sources, "source"), leftOut(a.Skipped))
	}
	for n, e := range a.Evidence {
		at := fmt.Sprintf("line %d", e.Line)
		if e.Event > 0 {
			at = fmt.Sprintf("event %d", e.Event)
		}
		fmt.Fprintf(&b, "\n[%d] %s, %s (bytes %d-%d)\n  > %s\n", n+1, text.Visible(words.Hidden(e.Source)), at, e.From, e.To,
			text.Visible(text.Short(words.Hidden(e.Quote), 400)))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func leftOut(skipped map[string]int) string {
	n := 0
	for _, files := range skipped {
		n += files
	}
	if n == 0 {
		return ""
	}
	return "; " + text.Count(n, "file") + " left out"
}
