package running

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/llm"
)

// Order is the work of a detached process.
type Order struct {
	ID   string `json:"id"` // session to continue; empty means a new one
	Text string `json:"text"`
	// Typed means that a person typed the text, so files that it names as @FILE come with it.
	Typed bool `json:"typed,omitempty"`
	// Flow is the name of a workflow for the new session, and its inputs as typed. If empty, a model answers, or
	// the session knows its program.
	Flow []string `json:"flow,omitempty"`
	// Key is the key of the first message to the session in ID, which may be empty, see [loop.Key]: so the
	// message counts once, however often the order is given. If empty, the order is an ordinary one.
	Key string `json:"key,omitempty"`
	// News is text by others that the run begins for; empty if none.
	News       string `json:"news,omitempty"`
	Unattended bool   `json:"unattended"`
	Log        string `json:"log"` // where its output goes, until the session has a folder
	// Foreign are folders of others, see app.Options.
	Foreign []string `json:"apart,omitempty"`
	// Unapproved means that only settings allow, see app.Options.
	Unapproved bool `json:"unapproved,omitempty"`
	// Vars are additional environment variables of the process, as NAME=VALUE.
	Vars []string `json:"-"`
}

// begun is the report of a detached process when its run has begun.
type begun struct {
	Session string `json:"session"`
	Warned  int64  `json:"warned"` // bytes that it had printed before
}

// Start is the outcome of starting a detached process.
type Start struct {
	Session string // the session whose run has begun; empty if the process has ended
	Printed []byte // output of the process until then
	Code    int    // its exit code; Busy means that another process drove the session
	// Ended waits for the end of the process whose run has begun, and returns its exit code.
	Ended func() (code int, err error)
}

// Err returns why the run has not begun: what the process printed, in one line, or else its exit code. It is nil if the
// run has begun.
func (s Start) Err() error {
	if s.Session != "" {
		return nil
	}
	return errors.New(cmp.Or(words.OneLine(strings.TrimSpace(string(s.Printed)), 500),
		fmt.Sprintf("the process ended with code %d before the run began", s.Code)))
}

// Busy is the exit code of a process when another drives the session.
const Busy = 4

// Detach starts a program with arguments to carry out an order, see [Table.Ordered], and waits until its run
// has begun or the process has ended.
func (t *Table) Detach(ctx context.Context, program string, args []string, o Order) (Start, error) {
	log, err := t.NewRunLog()
	if err != nil {
		return Start{}, err
	}
	defer log.Close()
	o.Log = log.Name()
	defer os.Remove(o.Log) // it has moved, unless the run never began
	raw, err := json.Marshal(o)
	if err != nil {
		return Start{}, err
	}
	p, err := sandbox.Detach(program, args, log, raw, o.Vars...)
	if err != nil {
		return Start{}, err
	}
	defer p.Close()
	told, err := p.Report(ctx)
	var b begun
	if err == nil && json.Unmarshal(told, &b) == nil {
		printed, err := io.ReadAll(io.NewSectionReader(log, 0, b.Warned))
		return Start{Session: b.Session, Printed: printed, Ended: p.Wait}, err
	}
	code, waitErr := p.Wait()
	if err = errors.Join(err, waitErr); err != nil {
		return Start{}, err
	}
	printed, err := io.ReadAll(io.NewSectionReader(log, 0, 1<<20))
	return Start{Printed: printed, Code: code}, err
}

// Background is the run that this process was detached for.
type Background struct {
	Order
	Out *Printed // what the process prints to

	report io.WriteCloser
	once   sync.Once // for closing report
	joined chan struct{}
}

// Ordered returns the order that this process was detached for; an error means that it was not detached. The
// caller must close it.
func (t *Table) Ordered() (*Background, error) {
	raw, report, err := sandbox.Ordered()
	if err != nil {
		return nil, err
	}
	b := &Background{Out: &Printed{File: os.Stdout}, report: report, joined: make(chan struct{})}
	if err := json.Unmarshal(raw, &b.Order); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// Close tells the waiting process that no more reports will come.
func (b *Background) Close() { b.once.Do(func() { b.report.Close() }) }

// Open opens the session of the order in a host, and returns the inputs that its run begins with. A new session
// works in the folder root.
func (b *Background) Open(ctx context.Context, host *inspan.Host, root string) (*inspan.Session, []event.Body, error) {
	b.hear(host)
	if b.Key != "" {
		return b.openOnce(ctx, host, root)
	}
	if b.ID == "" {
		s, err := host.New(ctx, root)
		return s, []event.Body{event.Say(b.Text)}, err
	}
	s, err := host.Open(ctx, b.ID)
	if err != nil {
		return nil, nil, err
	}
	inputs, err := b.Next(s.Status(), "resume --detach")
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return s, inputs, nil
}

// openOnce is Open for an order with a key.
func (b *Background) openOnce(ctx context.Context, host *inspan.Host, root string) (*inspan.Session, []event.Body, error) {
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil, nil, err
	}
	s, err := host.NewWithID(ctx, b.ID, root)
	if errors.Is(err, fs.ErrExist) { // the process that began it may have died
		s, err = host.Open(ctx, b.ID)
	}
	if err != nil {
		return nil, nil, err
	}
	said := event.Say(b.Text)
	said.Message = b.Key
	if b.News == "" {
		return s, []event.Body{said}, nil
	}
	taint := event.Taint{Untrusted: true}
	if len(b.Flow) > 0 { // the workflow has the news in its inputs
		said.Taint = taint
		return s, []event.Body{said}, nil
	}
	news := event.Steered{Parts: llm.Say(b.News), By: "inspan schedule", Origin: event.OriginHook, Message: b.Key + "/news", Taint: taint}
	return s, []event.Body{news, said}, nil
}

// hear closes joined when a session of the host is being driven.
func (b *Background) hear(host *inspan.Host) {
	made := host.Agent
	host.Agent = func(ctx context.Context, at inspan.SessionSpec) (*inspan.Agent, error) {
		agent, err := made(ctx, at)
		if err != nil {
			return nil, err
		}
		before := agent.Lifecycle.Started
		agent.Lifecycle.Started = func(s *inspan.Session) {
			if before != nil {
				before(s)
			}
			close(b.joined)
		}
		return agent, nil
	}
}

// Announce tells the starting process when the run of a session has begun: when this process drives the session
// and the first inputs are in the log. Call stop when the run has ended.
func (b *Background) Announce(ctx context.Context, t *Table, s *inspan.Session) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	told, warned, after := make(chan struct{}), b.Out.Size(), s.Status().Seq // the run may be faster than the goroutine
	go func() {
		defer close(told)
		b.announce(ctx, t, s, after, warned)
	}()
	return func() {
		cancel()
		<-told
	}
}

func (b *Background) announce(ctx context.Context, t *Table, s *inspan.Session, after uint64, warned int64) {
	select {
	case <-b.joined:
	case <-ctx.Done():
	}
	for _, err := range s.Events(ctx, after) {
		if err == nil {
			break
		}
	}
	if ctx.Err() != nil && s.Status().Seq == after {
		return // it ended without beginning
	}
	_ = t.KeepRunLog(b.Log, s.ID()) // otherwise the output is lost, but the log has all that matters
	raw, err := json.Marshal(begun{s.ID(), warned})
	if err == nil {
		_, _ = b.report.Write(raw) // if no one listens any more, the run continues
	}
	b.Close()
}

// Next returns the inputs to continue a session with; how is the command that was given. The error is a
// [words.Misuse]: there is nothing to do.
func (o Order) Next(st inspan.Status, how string) ([]event.Body, error) {
	switch {
	case o.Text != "":
		return []event.Body{event.Say(o.Text)}, nil
	case st.Workflow != "" && st.Stopped == nil && !st.Active: // it was opened, and nothing more
		return []event.Body{event.Say("/workflow " + st.Workflow)}, nil
	case st.WorkflowEnded():
		return nil, words.Misuse{Err: fmt.Errorf("the workflow %s of session %s has ended as %s; start a new run",
			st.Workflow, st.Session, st.Stopped.Reason)}
	case st.Stopped != nil && st.Stopped.Reason == event.ReasonDone:
		return nil, words.Misuse{Err: fmt.Errorf("session %s is done; give it a new task: inspan %s %s \"...\"", st.Session, how, st.Session)}
	case st.Stopped != nil:
		return []event.Body{event.Said{}}, nil
	}
	return nil, nil
}
