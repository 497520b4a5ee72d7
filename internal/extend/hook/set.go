package hook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Func is a hook in form of a Go function.
type Func struct {
	On    []tool.Moment // empty means all
	Match string        // as in [Config]
	// Run has the contract of [tool.Hook.At]. A panic counts as an error.
	Run func(ctx context.Context, p tool.Point) (tool.Outcome, error)
}

// Set is the configured hooks. Don't copy or change it after its first use. It is safe for concurrent use. The zero value
// has no hooks.
type Set struct {
	Hooks []Config // run in this order
	Funcs []Func   // run after them
	// Env has processes, HTTP and the folder in which commands run. Hooks that need HTTP or processes fail without
	// them. Requests go only to the addresses of the hooks; a guard of the network must allow loopback addresses for
	// hooks there.
	Env   tool.Env
	Walls Walls // around commands
	// Getenv returns the variables that [Config.HeaderEnv] names. If nil, they are empty.
	Getenv func(name string) string
	// Log returns the path of a session's log for hooks of Claude Code. If nil, the path is empty.
	Log func(session string) string
	// Warn passes messages on to people: failures of hooks that stop nothing, and hooks' own messages. It must be safe
	// for concurrent use. If nil, failures are errors of At, except before a call, where an error would deny.
	Warn func(session, text string)

	once       sync.Once
	steps      []step
	background sync.WaitGroup
	ended      context.Context // of hooks in the background
	end        context.CancelFunc
}

var _ tool.Hook = (*Set)(nil)

// step is one hook of a set, ready to run.
type step struct {
	config  Config // zero for a function
	isFunc  bool
	moments []tool.Moment
	match   matcher
	run     func(ctx context.Context, p tool.Point) (tool.Outcome, error)
	by      string
	broken  error // why it can't run; nil if it can
}

func (s *Set) prepare() {
	s.ended, s.end = context.WithCancel(context.Background())
	for _, c := range s.Hooks {
		st := step{config: c, moments: []tool.Moment{c.On}, by: c.by()}
		st.match, st.broken = c.compile()
		st.run = func(ctx context.Context, p tool.Point) (tool.Outcome, error) { return s.ask(ctx, c, p) }
		s.steps = append(s.steps, st)
	}
	for _, f := range s.Funcs {
		st := step{isFunc: true, moments: f.On, by: "hook", run: f.call}
		st.match, st.broken = newMatcher(f.Match, false)
		s.steps = append(s.steps, st)
	}
}

// call runs the function.
func (f Func) call(ctx context.Context, p tool.Point) (out tool.Outcome, err error) {
	defer func() {
		if r := recover(); r != nil {
			out, err = tool.Outcome{}, fmt.Errorf("it panicked: %v", r)
		}
	}()
	return f.Run(ctx, p)
}

// At implements [tool.Hook]. The hooks run one after another, each on the call or result as changed by earlier ones. A
// denial ends the sequence. The strictest action counts, the last arguments and results, and all texts.
//
// It returns errors of ctx and of functions, and without Warn those of all failed hooks.
func (s *Set) At(ctx context.Context, p tool.Point) (tool.Outcome, error) {
	s.once.Do(s.prepare)
	m := merging{point: p}
	var errs []error
	for i, st := range s.steps {
		if !st.concerns(m.point) || s.repeated(i, m.point) {
			continue
		}
		if st.config.Background {
			s.detach(st, m.point)
			continue
		}
		out, err := st.try(ctx, m.point)
		if ctx.Err() != nil {
			return tool.Outcome{}, ctx.Err()
		}
		if err != nil {
			out, err = s.failed(st, p, err)
			errs = append(errs, err)
		}
		if out.By == "" {
			out.By = st.by
		}
		m.add(out)
		if out.Action == tool.Deny || err != nil && p.Moment == tool.BeforeCall {
			break
		}
	}
	return m.result(p), errors.Join(errs...)
}

func (st step) concerns(p tool.Point) bool {
	if len(st.moments) > 0 && !slices.Contains(st.moments, p.Moment) {
		return false
	}
	return st.match.matches(p) && st.config.speaksOf(p)
}

// repeated reports whether an earlier hook would do the same here.
func (s *Set) repeated(i int, p tool.Point) bool {
	return slices.ContainsFunc(s.steps[:i], func(o step) bool {
		return o.config.same(s.steps[i].config) && o.config.Event == s.steps[i].config.Event && o.concerns(p)
	})
}

func (st step) try(ctx context.Context, p tool.Point) (tool.Outcome, error) {
	if st.broken != nil {
		return tool.Outcome{}, st.broken
	}
	return st.run(ctx, p)
}

// failed returns the outcome of a failed hook.
func (s *Set) failed(st step, p tool.Point, err error) (tool.Outcome, error) {
	switch {
	case st.config.OnFailure == Deny && deniable(p.Moment):
		return tool.Outcome{Action: tool.Deny, By: st.by, Reason: "it failed, and nothing passes without it: " + err.Error()}, nil
	case st.isFunc:
		return tool.Outcome{}, fmt.Errorf("%s: %w", st.by, err)
	}
	err = fmt.Errorf("%s failed at %s: %w", st.by, p.Moment, err)
	if s.Warn == nil && p.Moment != tool.BeforeCall {
		return tool.Outcome{}, err
	}
	s.warn(p, err.Error())
	return tool.Outcome{}, nil
}

func (s *Set) warn(p tool.Point, text string) {
	if s.Warn != nil && text != "" {
		s.Warn(p.Session, text)
	}
}

// detach runs a hook in the background, on a copy of the values that the caller may change.
func (s *Set) detach(st step, p tool.Point) {
	if p.Call != nil {
		call := *p.Call
		p.Call = &call
	}
	if p.Result != nil {
		res := *p.Result
		res.Parts = slices.Clone(res.Parts)
		p.Result = &res
	}
	s.background.Go(func() {
		if _, err := st.try(s.ended, p); err != nil && s.ended.Err() == nil {
			s.warn(p, fmt.Sprintf("%s failed at %s: %v", st.by, p.Moment, err))
		}
	})
}

// Close waits for background hooks until ctx is done, and then ends them. No hook may run during or after it.
func (s *Set) Close(ctx context.Context) {
	s.once.Do(s.prepare)
	defer s.end()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.background.Wait()
	}()
	select {
	case <-done:
	case <-ctx.Done():
		s.end()
		<-done
	}
}

// merging combines several outcomes into one.
type merging struct {
	point tool.Point // as the next hook sees it
	out   tool.Outcome
	texts []string
	by    []string // hooks that have answered
}

func (m *merging) add(out tool.Outcome) {
	if strength(out.Action) > strength(m.out.Action) {
		m.out.Action, m.out.By, m.out.Reason = out.Action, out.By, out.Reason
	}
	if out.Args != nil && m.point.Call != nil {
		m.out.Args = out.Args
		call := *m.point.Call
		call.Args = out.Args
		m.point.Call = &call
		// The judges determine the effects of the changed call.
		m.point.Effects = []tool.Effect{{Kind: tool.External, Text: "arguments that " + out.By + " has changed"}}
	}
	if out.Result != nil {
		m.out.Result, m.point.Result = out.Result, out.Result
	}
	if text := strings.TrimSpace(out.Text); text != "" {
		m.texts = append(m.texts, text)
	}
	if (out.Text != "" || out.Args != nil || out.Result != nil) && !slices.Contains(m.by, out.By) {
		m.by = append(m.by, out.By)
	}
}

func strength(a tool.Action) int {
	return slices.Index([]tool.Action{tool.Abstain, tool.Allow, tool.Ask, tool.Deny}, a)
}

// result returns the combined outcome. It drops arguments that equal those of the call, so that a hook that rewrites
// its input does not do so endlessly.
func (m *merging) result(p tool.Point) tool.Outcome {
	m.out.Text = strings.Join(m.texts, "\n\n")
	if m.out.Args != nil && sameJSON(m.out.Args, p.Call.Args) {
		m.out.Args = nil
	}
	if m.out.By == "" {
		m.out.By = strings.Join(m.by, ", ")
	}
	return m.out
}

func sameJSON(a, b json.RawMessage) bool {
	x, errX := decode[any](a)
	y, errY := decode[any](b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

// replaced returns a result with another text. The record of the call's work stays.
func replaced(old *tool.Result, text string) *tool.Result {
	var out tool.Result
	if old != nil {
		out = *old
	}
	out.Parts = llm.Say(text)
	return &out
}
