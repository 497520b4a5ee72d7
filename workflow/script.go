package workflow

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/rawjson"
	"github.com/inspan/inspan/internal/delegate/script"
)

// A workflow can be a script: JavaScript whose functions perform steps, with the same events as steps of files.
// A process that continues the run executes the script again from its beginning; the log has the results of its
// steps and their order. See docs/WORKFLOWS.md.

//go:embed script.js
var scriptSetup string

// Limits of a script.
const (
	usualAgents = 1000 // of a run
	mostCalls   = 10_000
	usualAtOnce = 16 // steps that work at once
	mostBusy    = 2 * time.Minute
)

// Helper must be called first in main by programs whose path is given as [Options.Self]. In a process that was
// started to run a script it runs the script, and the caller must exit with the code. Otherwise it does
// nothing.
func Helper() (ran bool, code int) { return script.Child() }

// isScript reports whether a file with that name contains a script.
func isScript(file string) bool { return strings.HasSuffix(file, ".js") }

// readScript reads a script. A comment at its beginning has the fields that must be known before it runs, as in
// YAML:
//
//	/* workflow
//	name: fix
//	inputs: {task: {type: string}}
//	*/
func readScript(file string, data []byte) (*Workflow, Problems) {
	r := &reader{file: file, lines: map[string]int{}}
	problem := func(what string) (*Workflow, Problems) {
		r.problems.add(Problem{File: file, Line: 1, What: what, Remedy: "begin with /* workflow, then name: and what else there is, then */"})
		return nil, r.problems
	}
	data = bytes.ReplaceAll(bytes.TrimPrefix(data, []byte("\ufeff")), []byte("\r\n"), []byte("\n"))
	if r.hidden(data); len(r.problems) > 0 {
		return nil, r.problems
	}
	rest, begins := bytes.CutPrefix(data, []byte("/* workflow\n"))
	head, _, closed := bytes.Cut(rest, []byte("*/"))
	switch {
	case !begins:
		return problem("the script does not say what it is")
	case !closed:
		return problem("the comment at the beginning is not closed")
	}
	root := r.document(append([]byte("\n"), head...)) // its lines are those of the file
	if root == nil {
		return nil, r.problems
	}
	return r.workflow(root, scriptFields(), string(data))
}

// scriptFields are the fields of that comment.
func scriptFields() []field {
	known := slices.DeleteFunc(topFields(), func(f field) bool { return slices.Contains([]string{"steps", "finally", "returns"}, f.name) })
	for i := range known {
		if known[i].name == "limits" {
			known[i].of = append(known[i].of, field{name: "agents", shape: isInteger})
		}
	}
	return append(known, field{name: "uses", shape: isTexts})
}

// scripted performs a script. Its results are those of whole.
func (r *run) scripted(ctx context.Context, w *Workflow, inputs map[string]any, at scopeOf) (out map[string]any, failed string, err error) {
	at.w = w
	input, err := json.Marshal(inputs)
	if err != nil {
		return nil, "", err
	}
	s := &scripting{run: r, at: at, values: map[string]any{}, ids: map[string]int{}, places: map[string]int{}}
	began, err := r.steps.StartTime(at.parent)
	if err != nil {
		return nil, "", err
	}
	value, err := script.Engine{Self: r.o.Self, Env: r.o.Env, Open: r.o.Unboxed}.Run(ctx, script.Script{
		Code: w.Script, Setup: scriptSetup, Input: input, Finish: true, Seed: at.path + string(input), Now: began,
		Call: s.begin, Print: func(line string) { r.steps.Progress(line) },
		Limits: script.Limits{Calls: mostCalls, Busy: mostBusy},
	})
	var own *script.Error
	switch {
	case err == nil:
		if json.Unmarshal(value, &out) != nil {
			out = map[string]any{"value": value}
		}
		return out, "", nil
	case errors.As(err, &own):
		return nil, own.Text, nil
	case errors.Is(err, script.ErrHeld):
		r.mu.Lock()
		defer r.mu.Unlock()
		return nil, "", errors.Join(r.open, r.over)
	case ctx.Err() != nil:
		return nil, "", context.Cause(ctx)
	}
	return nil, err.Error(), nil
}

// scripting is a script in progress.
type scripting struct {
	*run
	at scopeOf

	mu     sync.Mutex
	values map[string]any // what steps brought, by id
	ids    map[string]int // how often each was given
	places map[string]int // of steps that have ended, by their ids in the log
	seen   int            // of the list of those: how many places know
	agents int
}

// begin begins a step that the script requests.
func (s *scripting) begin(ctx context.Context, kind string, raw json.RawMessage) func() script.Answer {
	step, err := s.step(Kind(kind), raw)
	if err != nil {
		return func() script.Answer { return script.Answer{Err: err} }
	}
	p := piecework{run: s.run, Step: step, frame: s.frame(), at: s.at, id: s.at.path + step.ID}
	if s.stopped() != nil {
		return func() script.Answer { return script.Answer{Never: true} }
	}
	return func() script.Answer {
		value, e := p.perform(ctx)
		if e.outcome == event.OutcomeOK {
			e = p.release(ctx, value, e)
		}
		return s.answer(p, value, e)
	}
}

// frame returns the values in which evidence is looked up.
func (s *scripting) frame() *frame {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &frame{values: cloned(s.values)}
}

// answer returns the result of a step for the script. A check that finds failures has succeeded, and so has an
// approval that was rejected.
func (s *scripting) answer(p piecework, value any, e end) script.Answer {
	if e.outcome == "" {
		return script.Answer{Never: true}
	}
	s.mu.Lock()
	s.values[p.ID] = value
	s.mu.Unlock()
	nth, err := s.nth(p.id)
	if err != nil {
		s.leave(err)
		return script.Answer{Never: true}
	}
	a := script.Answer{Value: value, Nth: nth}
	if p.Kind == KindApproval && value == nil && e.bad() {
		a.Value = map[string]any{"approved": false, "choice": "", "answer": e.why}
	}
	found, _ := value.(map[string]any)
	if e.bad() && p.Kind != KindApproval && (p.Kind != KindCheck || found["passed"] != false) {
		a.Err = &script.Thrown{Value: map[string]any{"step": p.ID, "outcome": e.outcome, "why": e.why, "value": value}}
	}
	return a
}

// nth returns the position of a step among the script's ended steps, by the log's order.
func (s *scripting) nth(id string) (int, error) {
	list, err := s.steps.EndedSteps(s.at.parent)
	s.mu.Lock()
	defer s.mu.Unlock()
	for ; s.seen < len(list); s.seen++ {
		if ended := list[s.seen]; !strings.ContainsAny(strings.TrimPrefix(ended, s.at.path), "/@!#+") { // else a part of a step
			s.places[ended] = len(s.places) + 1
		}
	}
	return s.places[id], err
}

// step returns the requested step, checked like a step of a file.
func (s *scripting) step(kind Kind, raw json.RawMessage) (Step, error) {
	step := Step{}
	if err := rawjson.Strict(raw, &step); err != nil {
		return step, fmt.Errorf("%s: the options are not those of such a step: %s", kind, strings.TrimPrefix(err.Error(), "json: "))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	step.Kind = kind
	switch {
	case step.ID != "":
	case kind == KindWorkflow: // the run itself has the name of the kind
		step.ID = step.Use
	default:
		step.ID = string(kind)
	}
	step.ID = numbered(s.ids, step.ID)
	step = plain(step)
	if err := s.fits(step); err != nil {
		return step, err
	}
	if kind == KindAgent {
		return step, s.hires()
	}
	return step, nil
}

// hires counts an agent for the script and for the run, which may include other scripts. s.mu is held.
func (s *scripting) hires() error {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	s.agents++
	s.hired++
	for _, c := range []struct {
		whose     string
		had, most int
	}{{"run", s.hired, cmp.Or(s.w.Limits.Agents, usualAgents)}, {"script", s.agents, s.at.w.Limits.Agents}} {
		if c.most > 0 && c.had > c.most {
			return fmt.Errorf("agent: the %s has had %d agents, and limits.agents allows no more", c.whose, c.most)
		}
	}
	return nil
}

// fits checks a step as if it were alone in a file. References to others are checked here. s.mu is held.
func (s *scripting) fits(step Step) error {
	if step.Gate != "" || step.Needs != nil || step.When != nil || step.Join != "" || step.OnFailure != "" {
		return fmt.Errorf("%s: gate, needs, when and on_failure are for files; a script decides itself", step.Kind)
	}
	for _, id := range step.Evidence {
		if _, there := s.values[id]; !there {
			return fmt.Errorf("%s: evidence names %q, which has not ended", step.Kind, id)
		}
	}
	if of, forks := strings.CutPrefix(step.Context, "fork("); forks {
		if _, there := s.values[strings.TrimSuffix(of, ")")]; !there {
			return fmt.Errorf("%s: %s names an agent that has not ended", step.Kind, step.Context)
		}
		step.Context = ""
	}
	for _, o := range step.SafeOutputs {
		if o.After != "" {
			return fmt.Errorf("%s: after is for files; await the approval before the agent", step.Kind)
		}
	}
	step.Evidence = nil
	w := &Workflow{Name: s.at.w.Name, Steps: []Step{step}, Included: s.at.w.Included}
	if err := w.Check(); err != nil {
		return fmt.Errorf("%s: %w", step.Kind, err)
	}
	return nil
}

// plain marks the step's texts as literal: in files ${ begins a reference.
func plain(s Step) Step {
	s.Prompt, s.Show = escaped(s.Prompt).(string), escaped(s.Show).(string)
	s.Env, _ = escaped(s.Env).(map[string]any)
	s.With, _ = escaped(s.With).(map[string]any)
	return s
}

func escaped(v any) any {
	switch v := v.(type) {
	case string:
		return strings.ReplaceAll(v, "${", "$${")
	case []any:
		out := make([]any, len(v))
		for i, one := range v {
			out[i] = escaped(one)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for name, one := range v {
			out[name] = escaped(one)
		}
		return out
	}
	return v
}
