// Package script runs JavaScript from models and workflows.
//
// Each script has its own process, which is this program started again, in a sandbox. It is cut off from files,
// processes and the network before it reads the script. In it an engine interprets the script
// (modernc.org/quickjs, ES2023) with a limit on memory and on computing time. A script that fails, in whatever
// way, costs that process and nothing else.
//
// A script reaches the world only by calls, which its owner makes for it. Its clock does not advance and its random
// numbers follow from a seed, so a script that gets the same results does the same again. That is how it survives a
// crash: it runs again from its beginning, and its owner has the results of its earlier calls.
package script

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/kernel/hold"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

// Limits are the limits of one script. Zero means the value in brackets.
type Limits struct {
	Memory int           // bytes of its values (64 MB)
	Busy   time.Duration // computing time, without waits for calls (20 s)
	Calls  int           // calls in total (1,000)
}

// Script is a script to run.
type Script struct {
	// Code is the body of an async function. Its return value is the result.
	Code string
	// Programs, if any, run one after the other instead of Code, all with the same global names: the names that
	// one declares at its top level are there for the next. A program ends when the calls that it made have
	// ended too. The result is null.
	Programs []string
	// Setup is a JavaScript function of host and Input that runs before Code and defines its environment:
	// host.call(name, args, shape, blame) makes a call and returns a promise, host.print(text) prints. If it
	// returns a function, that is called whenever one of Programs has ended.
	Setup string
	Input json.RawMessage
	// Finish makes a failed script wait for open calls, and for code that follows them. Otherwise they are
	// abandoned.
	Finish bool
	// Seed determines random numbers, Now is the time of the clock.
	Seed string
	Now  time.Time
	// Call makes a call and returns at once; wait waits for its result. Call is called in the script's order,
	// by one goroutine; waits run concurrently. Their context ends with the script.
	Call func(ctx context.Context, name string, args json.RawMessage) (wait func() Answer)
	// Rests, if not nil, is called when the script makes no more calls until it gets a result that it waits for.
	Rests func()
	// Print gets the printed text, in order. Nil means it is dropped.
	Print func(text string)
	// Tell gets the messages that Setup sends with host.tell(kind, text), in order. An error ends the script. Nil
	// means they are dropped.
	Tell   func(kind, text string) error
	Limits Limits
}

// Answer is the result of a call.
type Answer struct {
	Value any   // as JSON
	Err   error // is thrown instead; see Thrown
	// End ends the script, with the error.
	End error
	// Held says that the call waits for a person. The script continues as far as it does not use the result,
	// and then ends with [ErrHeld].
	Held bool
	// Never says that the call does not end for now. Code that waits for it stops there, and once nothing else
	// runs the script ends with [ErrHeld].
	Never bool
	// Nth says that this is the nth answer of all. The script gets answers in this order, even if they come in
	// another. Zero means any order.
	Nth int
}

// Thrown is an error whose value the script gets, to make its own error from it.
type Thrown struct{ Value any }

func (t *Thrown) Error() string { return fmt.Sprint(t.Value) }

// ErrHeld says that a script has gone as far as it could without a person's decision. It must be run again once
// there is one.
var ErrHeld = errors.New("the script waits for a decision")

// Error is a failure of the script itself: a thrown error, or a limit.
type Error struct{ Text string }

func (e *Error) Error() string { return e.Text }

// Engine runs scripts. It is safe for concurrent use.
type Engine struct {
	// Self is the path of a program that calls [Child] first of all.
	Self string
	// Env starts it where it can't cut itself off, which is everywhere except on Linux.
	Env tool.Env
	// Open lets scripts run there even if no sandbox is available.
	Open bool
}

// Run runs a script to its end. The error is an [*Error] if the script has failed, [ErrHeld], or an error of
// the engine; if ctx has ended, it is that of ctx.
func (e Engine) Run(ctx context.Context, s Script) (value json.RawMessage, err error) {
	s.Limits.Memory = cmp.Or(s.Limits.Memory, 64<<20)
	s.Limits.Busy = cmp.Or(s.Limits.Busy, 20*time.Second)
	s.Limits.Calls = cmp.Or(s.Limits.Calls, 1000)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &run{Script: s, ctx: ctx, sent: make(chan []byte, s.Limits.Calls+1), lines: make(chan []byte), answers: make(chan settled), early: map[int]settled{}, next: 1, rests: -1}
	in, feed := io.Pipe()
	defer func() { _ = feed.Close() }()
	p, err := e.start(ctx, in, r)
	if err != nil {
		return nil, err
	}
	exited, fed := make(chan struct{}), make(chan struct{})
	go func() { defer close(exited); r.code, r.lost = p.Wait() }()
	go func() { defer close(fed); r.write(feed) }()
	defer func() {
		cancel()
		_ = feed.Close()
		p.Kill()
		<-exited
		<-fed
	}()
	return r.follow(exited)
}

// write writes to the process what it is sent. It is apart from reading: a process that is busy, or has ended,
// reads nothing, and its earlier output must be read.
func (r *run) write(to io.Writer) {
	for {
		select {
		case raw := <-r.sent:
			if _, err := to.Write(raw); err != nil {
				return // the process has ended, which follow notices
			}
		case <-r.ctx.Done():
			return
		}
	}
}

func (e Engine) start(ctx context.Context, in io.Reader, r *run) (tool.Process, error) {
	if e.Self == "" {
		return nil, errors.New("scripts can't run in this program: it names none that runs them")
	}
	procs, c := sandbox.Sealing(), tool.Command{
		Args: []string{e.Self, program}, Dir: "/", Env: []string{"TZ=UTC", "GOMAXPROCS=1", "GOTRACEBACK=single"},
		Stdin: in, Output: &r.errs, Report: r,
	}
	if procs == nil {
		procs, c.Dir, c.Box.Level = e.Env.Procs, e.Env.Root, tool.BoxNone
		switch {
		case procs == nil:
			return nil, errors.New("no process can be started here, and a script needs one")
		case e.Env.Walls.Read:
			c.Box = tool.Box{Level: tool.BoxRead, Program: filepath.Dir(e.Self)}
		case !e.Open:
			return nil, fmt.Errorf("the script was not run: %w", tool.ErrNoBox)
		}
	}
	p, err := procs.Start(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("the script was not run: %w", err)
	}
	return p, nil
}

// run is a running script.
type run struct {
	Script
	ctx     context.Context
	sent    chan []byte // to the process; it has room for the order and for a reply to each call
	lines   chan []byte // from the process
	answers chan settled
	code    int // of the process, and why it is unknown
	lost    error
	errs    keep.Tail

	open, made int             // unanswered calls, and all calls
	never      int             // open calls without an end for now
	rests      int             // calls for which the process waited when it last rested; below 0: it is working
	partial    []byte          // of a line; for the writing goroutine
	early      map[int]settled // answers that came before their turn
	next       int             // number of the next answer in order
}

type settled struct {
	id int
	Answer
}

// mostLine is the longest line from the process: JSON can write a byte in six.
const mostLine = 7 * mostText

// Write handles output of the process, from one goroutine.
func (r *run) Write(p []byte) (int, error) {
	r.partial = append(r.partial, p...)
	for {
		end := bytes.IndexByte(r.partial, '\n')
		if end < 0 {
			if len(r.partial) > mostLine {
				return 0, errors.New("the line is too long")
			}
			return len(p), nil
		}
		line := bytes.Clone(r.partial[:end])
		r.partial = r.partial[end+1:]
		select {
		case r.lines <- line:
		case <-r.ctx.Done():
			return 0, context.Cause(r.ctx)
		}
	}
}

// slack is how much longer than its computing time a script may be silent while no call is open.
const slack = 15 * time.Second

// follow handles the messages of the process until the script has ended.
func (r *run) follow(exited <-chan struct{}) (json.RawMessage, error) {
	if err := r.send(r.order()); err != nil {
		return nil, err
	}
	silent := time.NewTimer(r.Limits.Busy + slack)
	defer silent.Stop()
	for {
		select {
		case line := <-r.lines:
			end, err := r.heard(line)
			if err != nil || end != nil {
				return end.result(err)
			}
		case a := <-r.answers:
			if err := r.settle(a); err != nil {
				return nil, err
			}
			if err := r.idle(); err != nil {
				return nil, err
			}
		case <-exited:
			select { // its last message may have come first
			case line := <-r.lines:
				if end, err := r.heard(line); err != nil || end != nil {
					return end.result(err)
				}
			default:
			}
			return nil, r.died()
		case <-silent.C:
			if r.open == 0 {
				return nil, &Error{errBusy.Error() + ", or its process was stopped"}
			}
		case <-r.ctx.Done():
			return nil, context.Cause(r.ctx)
		}
		silent.Reset(r.Limits.Busy + slack)
	}
}

// result returns the result of a script.
func (e *ending) result(err error) (json.RawMessage, error) {
	switch {
	case err != nil:
		return nil, err
	case e.Held:
		return nil, ErrHeld
	case e.Error != "":
		return nil, &Error{e.Error}
	case !json.Valid(e.Value):
		return nil, errors.New("the engine of scripts says what is not JSON")
	}
	return e.Value, nil
}

func (r *run) order() order {
	o := order{
		Code: r.Code, Setup: r.Setup, Input: r.Input, Now: r.Now.UnixMilli(), Memory: r.Limits.Memory, Busy: r.Limits.Busy.Milliseconds(),
		Finish: r.Finish, Programs: r.Programs,
	}
	if o.Input == nil {
		o.Input = json.RawMessage("null")
	}
	sum := sha256.Sum256([]byte(r.Seed))
	for i := range o.Seed {
		o.Seed[i] = binary.BigEndian.Uint32(sum[4*i:])
	}
	return o
}

func (r *run) send(v any) error {
	raw, err := line(v)
	if err == nil {
		r.sent <- raw
	}
	return err
}

// heard handles a line of the process.
func (r *run) heard(line []byte) (*ending, error) {
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		return nil, fmt.Errorf("the engine of scripts says what can't be read: %w", err)
	}
	switch {
	case m.End != nil:
		return m.End, nil
	case m.Print != nil && r.Print != nil:
		r.Print(*m.Print)
	case m.Rest != nil:
		if r.rests = *m.Rest; r.Rests != nil && r.rests == r.open {
			r.Rests()
		}
		return nil, r.idle()
	case m.Tell != nil && r.Tell != nil:
		return nil, r.Tell(m.Tell.Kind, m.Tell.Text)
	case m.Call != nil:
		return nil, r.ask(*m.Call)
	}
	return nil, nil
}

// ask makes a call.
func (r *run) ask(c asked) error {
	r.open++
	r.rests = -1 // the process rested before this call
	if r.made++; r.made > r.Limits.Calls {
		return &Error{fmt.Sprintf("the script makes more than %d calls", r.Limits.Calls)}
	}
	wait := r.Call(r.ctx, c.Name, c.Args)
	go func() {
		select {
		case r.answers <- settled{c.ID, wait()}:
		case <-r.ctx.Done():
		}
	}()
	return nil
}

// idle returns the reason why nothing runs while the process waits; nil means something does. The process's last
// state may be older than the last answer: then it waits for more calls than are open.
func (r *run) idle() error {
	early := len(r.early)
	switch {
	case r.rests != r.open || r.open > early+r.never:
		return nil
	case early > 0: // calls that must come before it were not made
		return fmt.Errorf("%w: it has left out what it did as number %d", hold.ErrDiverged, r.next)
	case r.never > 0:
		return ErrHeld
	}
	return nil
}

// settle passes an answer on once its turn has come.
func (r *run) settle(a settled) error {
	switch {
	case a.End != nil:
		return a.End
	case a.Never:
		r.never++
		return nil
	case a.Nth == 0:
		return r.reply(a)
	}
	r.early[a.Nth] = a
	for {
		a, there := r.early[r.next]
		if !there {
			return nil
		}
		delete(r.early, r.next)
		r.next++
		if err := r.reply(a); err != nil {
			return err
		}
	}
}

func (r *run) reply(a settled) error {
	r.open--
	r.rests = -1
	out, value := reply{ID: a.id}, a.Value
	var t *Thrown
	switch {
	case a.Held:
		out.How = held
	case errors.As(a.Err, &t):
		out.How, value = thrown, t.Value
	case a.Err != nil:
		out.How, value = thrown, a.Err.Error()
	}
	raw, err := json.Marshal(value)
	if err != nil {
		out.How = thrown
		raw, _ = json.Marshal("what the call brings is not JSON: " + err.Error())
	}
	out.Value = raw
	return r.send(out)
}

// died describes how a process ended without a message.
func (r *run) died() error {
	switch {
	case r.ctx.Err() != nil:
		return context.Cause(r.ctx)
	case r.lost != nil:
		return fmt.Errorf("what became of the script is not known: %w", r.lost)
	}
	if said := strings.TrimSpace(r.errs.Text()); said != "" {
		return fmt.Errorf("the engine of scripts has ended with exit code %d: %s", r.code, said)
	}
	return fmt.Errorf("the engine of scripts was killed (exit code %d)", r.code)
}
