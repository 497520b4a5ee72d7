// Package console is the plain front end: it runs a session, prints its events as text or JSON, and asks a
// person at the terminal when a call waits.
//
// The model's words go to standard output, everything else to standard error, so that the answer can be piped.
// If the transcript is the product, all of it goes to standard output. In the JSON forms, standard output only
// has JSON and ends with exactly one result object, however the run ends.
package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/safety/policy"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Output forms.
const (
	Text       = "text"        // for people
	JSON       = "json"        // one result object at the end
	StreamJSON = "stream-json" // every event as a line, then the result object
)

// ClaudeStreamJSON is the form that wrappers of Claude Code read.
const ClaudeStreamJSON = "claude-stream-json"

// Forms lists the output forms.
func Forms() []string { return []string{Text, JSON, StreamJSON, ClaudeStreamJSON} }

// Console runs sessions for one command.
type Console struct {
	Form  string // one of Forms; empty means Text
	Out   io.Writer
	Err   io.Writer
	Color bool
	Live  bool // Err is a terminal, where a line can be overwritten

	// Width returns how many cells a line of Out or Err has now; 0 if that is not a terminal. If nil, neither
	// is.
	Width func(w io.Writer) int

	Person *Person // answers questions; nil if no one does
	// Unattended means that calls that ask are denied; a run begins with a warning about it.
	Unattended bool

	// Answer returns the answer that a session has given in the form of a JSON Schema; nothing if it has given
	// none. The answer is printed in place of the model's words, which go to Err. Nil means the words are the
	// answer.
	Answer func(ctx context.Context, s *inspan.Session) (json.RawMessage, error)

	patience time.Duration // with readers, see queue; 0 means patience

	writing sync.Mutex // for whole lines of JSON
	claude  *claude    // for the run in progress
}

// Result is the final object of the JSON forms. While Version stays the same, fields are only added.
type Result struct {
	Type    string   `json:"type"`    // always "result"
	Version int      `json:"version"` // always 1
	Session string   `json:"session,omitempty"`
	Reason  string   `json:"reason"`           // an event.Reason, or "denied", "waiting" or "error"
	Cause   llm.Kind `json:"cause,omitempty"`  // how the request to the model failed, if that ended the run
	Detail  string   `json:"detail,omitempty"` // more about the reason, for people
	Text    string   `json:"text"`             // the model's last words
	// Structured is the answer in the form of a JSON Schema.
	Structured json.RawMessage `json:"structured_output,omitempty"`
	Model      string          `json:"model,omitempty"`
	Turns      int             `json:"turns"`
	Calls      int             `json:"calls"`
	Denied     int             `json:"denied"`            // number of calls that were not made for lack of permission
	Denials    []Denial        `json:"denials,omitempty"` // those calls
	Allow      []string        `json:"allow,omitempty"`   // flags that would allow just those calls, and open what the sandbox closed to others
	// Fetched counts the requests of commands to package registries, by host.
	Fetched   map[string]int `json:"fetched,omitempty"`
	Sensitive []Touched      `json:"sensitive,omitempty"` // sensitive places that calls were allowed to reach
	Usage     llm.Usage      `json:"usage"`
	Cost      float64        `json:"cost"`               // US dollars of the session
	Unpriced  bool           `json:"unpriced,omitempty"` // cost lacks replies of unknown price
	ExitCode  int            `json:"exit_code"`
	// Open questions, if the run waits for a person.
	Open []running.Open `json:"open,omitempty"`
	// Processes that the session had left running: those that continue, and those that were ended with it.
	Kept  []tool.Leftover `json:"kept,omitempty"`
	Ended []tool.Leftover `json:"ended,omitempty"`
	// Instruction files that changed during the session without a person's approval.
	Instructions []string `json:"instructions,omitempty"`
	// Unmerged are the sessions of agents whose copies hold changes that were never merged.
	Unmerged []string `json:"unmerged,omitempty"`

	over bool // it can't continue
}

// Run drives the session until it stops, and returns the exit code.
func (c *Console) Run(ctx context.Context, s *inspan.Session, inputs ...event.Body) int {
	run := c.conductor(s)
	printed := c.throughQueue()
	ctx, stop := c.catchInterrupt(ctx, run)
	v := c.showNextRun(run)
	for _, p := range s.Status().OpenCalls {
		v.open(p)
	}
	err := c.writeOpening(ctx, s, v)
	if err == nil {
		err = run.Run(ctx, inputs...)
	}
	v.endWait()
	r := v.result(s.Status(), err)
	if c.Answer != nil {
		c.addAnswer(ctx, s, &r)
	}
	if r.ExitCode != ExitWaiting { // otherwise it may continue here
		left := s.Shutdown()
		r.Kept, r.Ended, r.Instructions, r.Unmerged = left.Kept, left.Ended, left.Instructions, left.Unmerged
	}
	r.ExitCode = c.Finish(r)
	stop() // from here on a signal ends the process
	return printed(r, time.Duration(s.Status().Limits.Seconds*float64(time.Second)))
}

// addAnswer puts the answer of a session into its result. Without one a run that is done has failed.
func (c *Console) addAnswer(ctx context.Context, s *inspan.Session, r *Result) {
	var err error
	r.Structured, err = c.Answer(ctx, s)
	switch {
	case err != nil && r.ExitCode == ExitDone:
		r.Reason, r.Detail, r.ExitCode = "error", err.Error(), ExitError
	case r.Structured == nil && r.ExitCode == ExitDone:
		r.Reason, r.Detail = string(event.ReasonFailed), "the model gave no answer that fits the JSON Schema"
		r.ExitCode = ExitFailed
	}
}

// writeOpening writes the events of a new session before its first run, so that a stream begins with its first
// event.
func (c *Console) writeOpening(ctx context.Context, s *inspan.Session, v *view) error {
	st := s.Status()
	if c.Form != StreamJSON || st.Seq == 0 || st.Stopped != nil || st.Turns > 0 || st.Active {
		return nil
	}
	for e, err := range s.Events(ctx, 0) {
		if err == nil {
			err = v.event(e)
		}
		if err != nil || e.Seq >= st.Seq {
			return err
		}
	}
	return nil
}

// Told ends a command that needed no session with a text, in the chosen form.
func (c *Console) Told(text string) int {
	return c.Finish(Result{Reason: string(event.ReasonDone), Text: text, ExitCode: ExitDone})
}

// Fail ends a command without a session with an error, in the chosen form.
func (c *Console) Fail(code int, err error) int {
	return c.Finish(Result{Reason: "error", Detail: words.Hidden(err.Error()), ExitCode: code})
}

// Warn prints a warning.
func (c *Console) Warn(text string) { c.Say(words.Hidden(text)) }

// conductor returns a conductor of the session for this command. The person answers its questions, and may
// raise a limit that was reached.
func (c *Console) conductor(s *inspan.Session) *inspan.Conductor {
	run := &inspan.Conductor{Session: s}
	if c.Person != nil {
		run.Ask = func(ctx context.Context, p inspan.Pending) (event.Body, error) {
			return c.Person.decide(ctx, p, func(note string) error {
				_, err := run.Send(ctx, event.Steered{Origin: event.OriginPerson, Parts: llm.Say(note)})
				return err
			})
		}
		run.AfterRun = c.Person.raise
	}
	return run
}

// showNextRun shows the next run.
func (c *Console) showNextRun(run *inspan.Conductor) *view {
	v := newView(c)
	c.prepareOutput(run.Session.Status)
	run.OnEvent = func(e event.Event) error {
		// Before the model is first asked, the person learns what will be denied.
		if _, asked := e.Body.(event.Asked); asked && !v.warned && c.Unattended {
			v.warned = true
			if text := policy.Unanswered(run.Session.Status().Mode); text != "" {
				fmt.Fprintln(c.Err, "inspan: "+text)
			}
		}
		return v.event(e)
	}
	return v
}

// catchInterrupt turns the first signal into an interrupt of the run, which keeps the model's partial reply, and
// the second into the end of the command. A run that only waits for questions that no one here answers ends by
// itself, and they stay open.
func (c *Console) catchInterrupt(ctx context.Context, run *inspan.Conductor) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; ; n++ {
			select {
			case sig := <-signals:
				if n == 0 && c.Person == nil && len(run.Session.Status().Waiting) > 0 {
					continue
				}
				if n > 0 {
					cancel()
					return
				}
				run.Interrupt(event.Cancelled{By: sig.String(), All: true})
				if c.Person != nil {
					c.Person.interrupt()
				}
				fmt.Fprintln(c.Err, "\ninterrupting; press again to quit at once")
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() { signal.Stop(signals); cancel(); <-done }
}

// prepareOutput prepares the output in the form of other agents.
func (c *Console) prepareOutput(status func() inspan.Status) {
	if c.Form == ClaudeStreamJSON {
		opened := c.claude != nil && c.claude.opened
		c.claude = &claude{status: status, write: c.PrintJSON, began: time.Now(), opened: opened}
	}
}

// PrintJSON writes a value as one line of JSON.
func (c *Console) PrintJSON(value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err = fmt.Fprintf(c.Out, "%s\n", raw)
	return err
}

// Finish prints the end of the command, and returns its exit code. A result that can't be written is an error.
func (c *Console) Finish(r Result) int {
	r.Type, r.Version = "result", 1
	if err := c.printEnd(r); err != nil {
		fmt.Fprintf(c.Err, "inspan: the result was not written: %v\n", err)
		if r.ExitCode == ExitDone {
			return ExitError
		}
	}
	return r.ExitCode
}

// printEnd prints the end of the command in the chosen form.
func (c *Console) printEnd(r Result) error {
	switch c.Form {
	case ClaudeStreamJSON:
		if c.claude == nil {
			c.claude = &claude{write: c.PrintJSON, began: time.Now()}
		}
		return c.claude.result(r)
	case JSON, StreamJSON:
		return c.PrintJSON(r)
	}
	c.summary(r)
	if r.Structured == nil {
		return nil
	}
	return c.PrintJSON(r.Structured)
}

// result sums up a run that has ended; err is an error of the harness, or nil.
func (v *view) result(st inspan.Status, err error) Result {
	r := Result{
		Session: st.Session, Text: v.fold.Last, Model: st.Route, Turns: st.Turns, Calls: st.Calls,
		Denied: len(v.denials), Denials: v.denials, Allow: v.ways, Fetched: v.fetched, Sensitive: v.touched,
		Usage: st.Usage, Cost: st.Cost, Unpriced: st.Unpriced, over: st.WorkflowEnded(),
	}
	if r.over && st.Stopped.Reason == event.ReasonFailed {
		err = nil // the log has it too, for those who only read that
	}
	switch {
	case errors.Is(err, context.Canceled):
		r.Reason = string(event.ReasonCancelled)
	case err != nil:
		r.Reason, r.Detail = "error", err.Error()
	case st.Stopped != nil:
		r.Reason, r.Cause, r.Detail = string(st.Stopped.Reason), st.Stopped.Cause, st.Stopped.Detail
	case len(st.Questions()) > 0:
		r.Open = running.Questions(st)
		r.Reason, r.Detail = "waiting", text.Count(len(r.Open), "open question")
	default:
		r.Reason, r.Detail = "error", "there is nothing to do"
	}
	if r.Reason == string(event.ReasonDone) && v.deniedEverything() {
		r.Reason, r.Detail = "denied", "every call that would have changed something was denied"
	}
	r.ExitCode = ExitCode(r.Reason, r.Cause, err)
	return r
}
