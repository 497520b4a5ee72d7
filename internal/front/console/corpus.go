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
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/delegate/corpus"
	"github.com/inspan/inspan/internal/install/equipment"
	"github.com/inspan/inspan/internal/view/words"
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

// Of takes what the command is given first, and returns the folder to work in. That is itself the
// source where no other is named; a page is one in any case.
func (q *Corpus) Of(first string, named bool) (folder string) {
	switch {
	case !corpus.IsPage(first):
		return first
	case !named:
		q.Sources = nil
	}
	q.Sources = append([]string{first}, q.Sources...)
	return "."
}

// Resume is Run for a session that is old, in the form that was asked for.
func Resume(ctx context.Context, c *Console, s *inspan.Session, inputs ...event.Body) (int, error) {
	if c.Form != Text && c.Form != JSON && c.Form != "" {
		return 0, words.Misuse{Err: errors.New("--output: a session of ask-corpus answers as text or json")}
	}
	q := Corpus{JSON: c.Form == JSON}
	return q.Run(ctx, c, s, inputs...), nil
}

// Run drives a session that answers questions to a corpus, as [Console.Run] does. Standard output gets
// the answer to what was asked last and nothing else; what the agent does goes to standard error. It
// returns the exit code.
func (q *Corpus) Run(ctx context.Context, c *Console, s *inspan.Session, inputs ...event.Body) int {
	work := &Console{
		Out: c.Err, Err: c.Err, Color: c.Color, Live: c.Live, Width: c.Width, Person: c.Person, Unattended: c.Unattended,
	}
	if q.JSON {
		c.Form, work.Out, work.Err, work.Live = JSON, io.Discard, io.Discard, false
	}
	if code := work.Run(ctx, s, inputs...); code != ExitDone {
		return q.failed(c, s, code, nil)
	}
	found, err := corpus.Answered(past(ctx, s))
	if err == nil && found == nil {
		err = errUnverified
	}
	if err != nil {
		return q.failed(c, s, ExitFailed, err)
	}
	code := ExitDone
	if !found.Verified {
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

// failed tells of a run that has not come to its end, where nothing of it was shown, or has brought no
// answer, which the error says.
func (q *Corpus) failed(c *Console, s *inspan.Session, code int, err error) int {
	switch {
	case !q.JSON && err != nil:
		return c.Fail(code, err)
	case !q.JSON:
		return code
	}
	st := s.Status()
	r := Result{
		Session: s.ID(), Reason: "error", Model: st.Route, Turns: st.Turns, Calls: st.Calls, Usage: st.Usage, Cost: st.Cost, ExitCode: code,
	}
	switch {
	case err != nil:
		r.Detail = words.Hidden(err.Error())
	case st.Stopped != nil:
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
	if len(a.Unsupported) > 0 {
		var list []string
		for _, one := range a.Unsupported {
			list = append(list, text.Visible(text.Short(words.Hidden(one), 80)))
		}
		fmt.Fprintf(&b, "\nNot verified: no passage below has %s.\n", strings.Join(list, ", "))
	}
	for n, e := range a.Evidence {
		at := fmt.Sprintf("line %d", e.Line)
		if e.Event > 0 {
			at = fmt.Sprintf("event %d", e.Event)
		}
		fmt.Fprintf(&b, "\n[%d] %s, %s (bytes %d-%d)\n  > %s\n", n+1, text.Visible(words.Hidden(e.Source)), at, e.From, e.To,
			text.Visible(text.Short(words.Hidden(e.Quote), 400)))
	}
	b.WriteString("\n" + read(a))
	_, err := io.WriteString(out, b.String())
	return err
}

// read says how much of the sources the answer rests on.
func read(a *corpus.Answer) string {
	c := a.Coverage
	said := fmt.Sprintf("Read: %s of %s in %s%s", percent(c.Read, c.Bytes), bytesOf(c.Bytes), text.Count(a.Sources, "source"), leftOut(a.Skipped))
	if c.Searches > 0 {
		said += "; searched for " + text.Count(c.Searches, "pattern")
	}
	said += ".\n"
	for i, u := range c.Unread {
		if i == 0 {
			said += "Not read:"
		} else {
			said += ","
		}
		said += fmt.Sprintf(" %s of %s", bytesOf(u.Bytes), text.Visible(words.Hidden(u.Source)))
	}
	switch {
	case c.More > 0:
		said += fmt.Sprintf(", and parts of %s more.\n", text.Count(c.More, "source"))
	case len(c.Unread) > 0:
		said += ".\n"
	}
	return said
}

func bytesOf(n int64) string { return text.Thousands(int(n)) + " bytes" }

// percent is a share that is 100 only if nothing is missing, and 0 only if there is nothing.
func percent(part, whole int64) string {
	switch p := float64(part) / float64(max(whole, 1)) * 100; {
	case part >= whole:
		return "100 %"
	case part > 0 && p < 1:
		return "less than 1 %"
	default:
		return fmt.Sprintf("%d %%", min(int(p), 99))
	}
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
