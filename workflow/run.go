package workflow

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/tool"
)

// Options are the means of a run. The zero value suffices for workflows of approvals and waits.
type Options struct {
	// Agents performs steps of kind agent and tool. Nil means they fail.
	Agents Agents
	// Env is where commands run and files are. Zero means those steps fail.
	Env tool.Env
	// Unboxed runs commands without a sandbox if Env can't build one. Otherwise they fail.
	Unboxed bool
	// Self is the path of a program that calls [Helper] first in main, which runs scripts. Empty means scripts
	// fail.
	Self string
	// Outlets release safe outputs, by kind. If the program dies meanwhile, an outlet may be called again for
	// the same output. "file" has a default.
	Outlets map[string]Outlet
}

// Outlet releases a safe output, and returns the outcome, such as an address.
type Outlet func(ctx context.Context, r Release) (done string, err error)

// Release is a safe output to be released.
type Release struct {
	Step  string // unique in the session, and the same each time this output is released
	To    string // where it goes, as the file says
	Value any    // the field of the agent's result, as it is in JSON
}

// Agents lets agents work. Implementations are safe for concurrent use.
type Agents interface {
	// Work gives an agent a job, or continues the agent of the same step. An error that wraps
	// [inspan.ErrOpenStep] says that the job is unfinished and may be continued later.
	Work(ctx context.Context, job Job) (Report, error)
	// Clear waits while all work is paused for a vendor's quota. Errors are as for Work.
	Clear(ctx context.Context) error
}

// Job is the task of an agent.
type Job struct {
	Step   string // the same in every process; names the agent
	Prompt string
	Fork   string // step whose agent it is a copy of, because that is when it begins; empty means none
	Agent  string // kind of agent; empty means worker
	Model  string // "provider/model" or "small"; empty means that of the run
	Mode   tool.Mode
	Tools  []string        // the only ones it has; nil means those of its kind
	Output json.RawMessage // JSON schema of its result; nil means words
	Budget Budget
	// Call is a tool call made instead of asking a model; empty means none.
	Call string
	Args json.RawMessage // of Call
	// Untrusted says that Prompt may contain text from unverified sources.
	Untrusted bool
	Progress  func(line string)
}

// Report describes how an agent ended.
type Report struct {
	Session string
	Failed  string          // why it did not do its job; empty means it did
	Lost    bool            // it was cut off in the middle of a call, so what that did is not known
	Text    string          // its last words, or what the call brought
	Result  json.RawMessage // as Job.Output wants it; nil means it is words
	Cost    float64         // US dollars, already counted
}

// begun is the input of a run, as its first step keeps it.
type begun struct {
	Workflow *Workflow      `json:"workflow"`
	Inputs   map[string]any `json:"inputs"`
}

// Asks reports whether any step, including those of included workflows, is one of an agent. For a script, whose
// steps are not known in advance, it reports whether the script mentions agents.
func (w *Workflow) Asks() bool {
	for _, included := range w.Included {
		if included.Asks() {
			return true
		}
	}
	return asks(w.Steps) || asks(w.Finally) || strings.Contains(w.Script, "agent")
}

func asks(steps []Step) bool {
	return slices.ContainsFunc(steps, func(s Step) bool { return s.Kind == KindAgent || asks(s.Steps) })
}

// Run performs the workflow as steps of the session of ctx. If the session has run before, ended steps keep
// their results, and the workflow and the inputs are those of the first run. An error that wraps
// [inspan.ErrOpenStep] says that the run can be continued later; any other error is why it failed. Even then
// the returned values are those that exist.
func (w *Workflow) Run(ctx context.Context, steps *inspan.Steps, inputs map[string]any, o Options) (map[string]any, error) {
	first := steps.Step(event.Workflow)
	b := begun{w, inputs}
	if first.Step != "" {
		b = begun{}
		if err := json.Unmarshal(first.Input, &b); err != nil {
			return nil, fmt.Errorf("the session was not begun as a workflow: %w", err)
		}
		b.Workflow.file, b.Workflow.lines = w.fileOf()
	}
	if err := b.Workflow.Check(); err != nil { // of a log too, which others may have written
		return nil, err
	}
	full, err := b.Workflow.given(b.Inputs)
	if err != nil {
		return nil, err
	}
	root, err := b.Workflow.First(b.Inputs)
	if err != nil {
		return nil, err
	}
	r := newRun(b.Workflow, steps, o)
	var out map[string]any
	end, err := steps.Do(ctx, root, func(ctx context.Context) (event.StepEnded, error) {
		var failed string
		out, failed, err = r.whole(ctx, b.Workflow, full, scopeOf{})
		return ended(out, failed), err
	})
	if err != nil {
		return out, err
	}
	if end.Outcome != event.OutcomeOK {
		return resultOf(end), errors.New(cmp.Or(end.Error, string(end.Outcome)))
	}
	return resultOf(end), nil
}

// First returns the step that represents a whole run, for [inspan.Program.Step]. It holds everything that
// [Workflow.Run] needs to continue in another process.
func (w *Workflow) First(inputs map[string]any) (event.StepStarted, error) {
	raw, err := json.Marshal(begun{w, inputs})
	return event.StepStarted{Step: event.Workflow, Does: event.Workflow, Title: w.Name, Input: raw, Again: true}, err
}

// fileOf returns where the workflow was read from; w may be nil.
func (w *Workflow) fileOf() (file string, lines map[string]int) {
	if w == nil {
		return "", nil
	}
	return w.file, w.lines
}

// given returns the inputs of a run with their defaults.
func (w *Workflow) given(inputs map[string]any) (map[string]any, error) {
	full := map[string]any{}
	for _, name := range sortedKeys(inputs) {
		if w.Inputs[name] == nil {
			return nil, w.unknown(name)
		}
		full[name] = inputs[name]
	}
	for _, name := range sortedKeys(w.Inputs) {
		s := w.Inputs[name]
		if _, there := full[name]; !there && s.Default != nil {
			var v any
			if err := json.Unmarshal(s.Default, &v); err != nil {
				return nil, err
			}
			full[name] = v
		}
		raw, err := json.Marshal(full[name])
		switch {
		case full[name] == nil:
			err = errors.New("it is missing")
		case err == nil:
			err = valid(s, raw)
		}
		if err != nil {
			return nil, fmt.Errorf("input %s of %s: %w", name, w.Name, err)
		}
	}
	return full, nil
}

// ended returns the end of a step with a value or a failure.
func ended(value any, failed string) event.StepEnded {
	end := event.StepEnded{Error: failed}
	if failed != "" {
		end.Outcome = event.OutcomeFailed
	}
	raw, err := json.Marshal(value)
	if err == nil && value != nil && len(raw) <= mostResult {
		end.Result = raw
	} else if err == nil && len(raw) > mostResult {
		end.Outcome = event.OutcomeFailed
		end.Error = fmt.Sprintf("it brings %d bytes, more than %d; let it bring less, or keep it as an artefact", len(raw), mostResult)
	}
	return end
}

const mostResult = 256 << 10 // bytes of what a step brings

func resultOf(end event.StepEnded) map[string]any {
	var out map[string]any
	_ = json.Unmarshal(end.Result, &out)
	return out
}

// run is a run in progress.
type run struct {
	w     *Workflow
	steps *inspan.Steps
	o     Options
	slots chan struct{} // one for each step that works

	mu      sync.Mutex
	over    error          // why nothing more begins; nil means it does
	hired   int            // agents that its scripts have had
	open    error          // why a step stays open
	befores map[string]any // what checks brought before anything was changed, by where they stand
}

func newRun(w *Workflow, steps *inspan.Steps, o Options) *run {
	return &run{
		w: w, steps: steps, o: o, befores: map[string]any{},
		slots: make(chan struct{}, cmp.Or(w.Limits.Concurrency, w.usualConcurrency())),
	}
}

const usualConcurrency = 4

func (w *Workflow) usualConcurrency() int {
	if w.Script != "" {
		return usualAtOnce
	}
	return usualConcurrency
}

// stop prevents further steps from beginning.
func (r *run) stop(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = cmp.Or(r.over, why)
}

func (r *run) stopped() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.over
}

// leave records a step that stays open. Unless it only waits for an answer, nothing else begins.
func (r *run) leave(err error) {
	if !errors.Is(err, inspan.ErrUnanswered) {
		r.stop(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open = cmp.Or(r.open, err)
}

// scopeOf says where the steps of a list are.
type scopeOf struct {
	w      *Workflow // that they belong to
	path   string    // before their ids: "" or "fix/2/"
	base   string    // the same without rounds and items
	parent string    // step that they are a part of
	last   bool      // they begin also after a failure that stops the others
	steps  []Step
}

// whole performs all steps of a workflow, and returns its values and why it failed. The error says that it
// stays open.
func (r *run) whole(ctx context.Context, w *Workflow, inputs map[string]any, at scopeOf) (out map[string]any, failed string, err error) {
	at.w, at.parent = w, cmp.Or(at.parent, event.Workflow)
	if w.Script != "" {
		return r.scripted(ctx, w, inputs, at)
	}
	f := &frame{values: map[string]any{"inputs": inputs}}
	if at.parent == event.Workflow {
		r.look(ctx, w.Steps, f, at)
	}
	ends := r.level(ctx, w.Steps, f, at)
	failed, err = failures(w.Steps, ends), r.left(ends)
	if err == nil {
		at.last = true
		err = r.left(r.level(ctx, w.Finally, &frame{up: f, values: map[string]any{}}, at))
	}
	out = map[string]any{}
	for name, ret := range w.Returns {
		out[name] = f.value(ret.From)
	}
	return out, failed, err
}

// left gives the reason why steps of a list stay open; nil means all have ended.
func (r *run) left(ends map[string]end) error {
	for _, e := range ends {
		if e.outcome == "" {
			r.mu.Lock()
			defer r.mu.Unlock()
			return cmp.Or(r.open, r.over)
		}
	}
	return nil
}

// look runs the checks that compare with the state before the run, including those of included workflows.
func (r *run) look(ctx context.Context, steps []Step, f *frame, at scopeOf) {
	for _, s := range steps {
		if s.Gate != "" {
			p := piecework{run: r, Step: s, frame: f, at: at, id: at.path + "before/" + strings.TrimPrefix(at.base+s.ID, at.path)}
			p.Gate, p.Artefacts = "", nil
			v, _ := p.check(ctx)
			r.mu.Lock()
			r.befores[at.base+s.ID] = v
			r.mu.Unlock()
		}
		in := at
		in.base += s.ID + "/"
		r.look(ctx, s.Steps, f, in)
		if in.w = at.w.Included[s.Use]; s.Kind != KindWorkflow || in.w == nil {
			continue
		}
		with, _ := f.filled(s.With).(map[string]any)
		if inputs, err := in.w.given(filledIn(with)); err == nil { // else what it needs comes from steps
			r.look(ctx, in.w.Steps, &frame{values: map[string]any{"inputs": inputs}}, in)
		}
	}
}

// failures names the failed steps of a list that were required to succeed; empty means none.
func failures(steps []Step, ends map[string]end) string {
	var failed []string
	for _, s := range steps {
		if e := ends[s.ID]; e.bad() && s.OnFailure != "continue" && e.outcome != event.OutcomeSkipped {
			failed = append(failed, strings.TrimSuffix(s.ID+": "+e.why, ": "))
		}
	}
	return strings.Join(failed, "; ")
}

// end is how a step of a list ended.
type end struct {
	outcome event.Outcome // empty means it stays open
	passed  bool          // it was skipped as its own condition did not hold
	why     string
}

// bad reports whether the steps that need this one can't begin.
func (e end) bad() bool { return e.outcome != event.OutcomeOK && !e.passed }

// errStopped is the reason why nothing begins after the failure of a step with on_failure: stop.
var errStopped = errors.New("a step failed that stops the others")

// level performs the steps of one list, each as soon as it can begin, and adds their values to the frame. It
// returns when all have ended or stay open.
func (r *run) level(ctx context.Context, steps []Step, f *frame, at scopeOf) map[string]end {
	at.steps = steps
	var mu sync.Mutex // of the frame's values and of ends
	ends := map[string]end{}
	over := make([]chan struct{}, len(steps))
	for i := range steps {
		over[i] = make(chan struct{})
	}
	var all sync.WaitGroup
	for i, s := range steps {
		all.Go(func() {
			defer close(over[i])
			needs := needed(steps, i)
			for _, id := range needs {
				<-over[slices.IndexFunc(steps, func(s Step) bool { return s.ID == id })]
			}
			mu.Lock()
			mine := &frame{up: f.up, values: cloned(f.values)}
			begin := r.ready(s, needs, at, ends, mine)
			mu.Unlock()
			value, e := r.one(ctx, s, mine, at, begin)
			mu.Lock()
			defer mu.Unlock()
			ends[s.ID], f.values[s.ID] = e, value // nil too: it hides a step of the same id further out
		})
	}
	all.Wait()
	return ends
}

func cloned(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

// readiness says whether a step may begin.
type readiness struct {
	yes, held, passed bool // held: not now; passed: its own condition does not hold
	why               string
}

// halted gives the reason why no further step of the list begins; nil means one may.
func (r *run) halted(at scopeOf) error {
	if err := r.stopped(); err != nil && (!at.last || !errors.Is(err, errStopped)) {
		return err
	}
	return nil
}

// ready says whether a step may begin after the end of its needs.
func (r *run) ready(s Step, needs []string, at scopeOf, ends map[string]end, f *frame) readiness {
	if err := r.halted(at); err != nil {
		return readiness{held: !errors.Is(err, errStopped), why: "the run was stopped"}
	}
	bad := 0
	for _, id := range needs {
		switch e := ends[id]; {
		case e.outcome == "":
			return readiness{held: true}
		case e.bad():
			bad++
		}
	}
	switch {
	case s.Join == JoinFailed && bad == 0:
		return readiness{passed: true, why: "nothing that it needs has failed"}
	case s.Join == JoinOK && bad == len(needs):
		return readiness{why: "nothing that it needs has ended well"}
	case s.Join != "":
		return readiness{yes: true}
	}
	for _, id := range needs {
		if e := ends[id]; e.bad() && (stepOf(at.steps, id).OnFailure != "continue" || e.outcome == event.OutcomeSkipped) {
			return readiness{why: fmt.Sprintf("it needs %s, which is %s", id, e.outcome)}
		}
	}
	if yes, why := f.holds(s.When); !yes {
		return readiness{passed: true, why: why}
	}
	return readiness{yes: true}
}

// one performs a step, or logs that it is skipped.
func (r *run) one(ctx context.Context, s Step, f *frame, at scopeOf, ready readiness) (any, end) {
	p := piecework{run: r, Step: s, frame: f, at: at, id: at.path + s.ID}
	switch {
	case ready.held:
		return nil, end{}
	case !ready.yes:
		return p.skip(ctx, ready.why, ready.passed)
	}
	value, e := p.perform(ctx)
	if e.outcome == event.OutcomeOK {
		e = p.release(ctx, value, e)
	}
	if e.bad() && e.outcome != "" && s.OnFailure == "stop" {
		r.stop(errStopped)
	}
	return value, e
}
