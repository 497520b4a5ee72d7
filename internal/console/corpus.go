package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/corpus"
	"github.com/inspan/inspan/internal/equipment"
	"github.com/inspan/inspan/internal/text"
	"github.com/inspan/inspan/internal/words"
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
	if q.JSON {
		err = c.json(answered{"answer", 1, s.ID(), *found, s.Status().Cost, ExitDone})
	} else {
		err = written(c.Out, found)
	}
	if err != nil {
		return c.Fail(ExitError, err)
	}
	return ExitDone
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

// written prints an answer for people: what it says, and each passage with its place.
func written(out io.Writer, a *corpus.Answer) error {
	if _, err := fmt.Fprintf(out, "%s\n", words.Hidden(a.Answer)); err != nil {
		return err
	}
	for _, e := range a.Evidence {
		at := fmt.Sprintf("%s:%d (bytes %d-%d)", e.Source, e.Line, e.From, e.To)
		if e.Event > 0 {
			at = fmt.Sprintf("%s event %d (bytes %d-%d)", e.Source, e.Event, e.From, e.To)
		}
		if _, err := fmt.Fprintf(out, "\n%s\n  %s\n", words.Hidden(at), text.Short(words.Hidden(e.Quote), 400)); err != nil {
			return err
		}
	}
	return nil
}
