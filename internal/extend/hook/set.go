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

// Func is a hook that is a Go function.
type Func struct {
	On    []tool.Moment // empty: all
	Match string        // as in [Config]
	// Run is what [tool.Hook] says of At. A panic is an error.
	Run func(ctx context.Context, p tool.Point) (tool.Outcome, error)
}

// Set is hooks that people have configured. It must not be copied or changed
// once it is used; it is safe for concurrent use. The zero value has no hooks.
type Set struct {
	Hooks []Config // run in this order
	Funcs []Func   // run after them
	// Env gives processes, HTTP and the folder that commands run in. One without
	// HTTP or processes makes the hooks fail that need them. Requests go to the
	// addresses of the hooks and nowhere else; a guard of the network must let
	// loopback addresses through if hooks are to be reached there.
	Env   tool.Env
	Walls Walls // around commands
	// Getenv gives the variables that [Config.HeaderEnv] names. Nil: they are empty.
	Getenv func(name string) string
	// Log gives the path of the log of a session, which hooks of Claude Code are
	// told. Nil: it is empty.
	Log func(session string) string
	// Warn is told, for people, of hooks that failed where that stops nothing,
	// and of what hooks have to say to people. It must be safe for concurrent
	// use. Nil: failures are errors of At, but before a call, where an error
	// would deny.
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
	broken  error // why it can't run
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

// At implements [tool.Hook]. The hooks run one after another, each on what the
// ones before made of the call or its result. A hook that denies is the last.
// Of actions the strictest counts, of arguments and results the last, of texts
// all.
//
// The error is that of ctx, of functions, and without Warn those of all hooks
// that failed.
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
	return st.broken != nil || st.match.matches(p) && st.config.speaksOf(p)
}

// repeated reports whether a hook before would do the same here.
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

// failed says what comes of a hook that failed.
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

// detach runs a hook in the background, on a copy of what the caller may change.
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

// Close waits for hooks in the background until ctx is done, and then ends them.
// No hook must run during or after it.
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

// merging makes one outcome of several.
type merging struct {
	point tool.Point // as the next hook sees it
	out   tool.Outcome
	texts []string
	by    []string // who had something to say
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
		// What it would do now is for the judges to find out.
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

// result is the outcome of all. Arguments that say the same as those of the call
// are none, so that a hook that rewrites what it is given comes to an end.
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

// replaced is a result with another text. What was done stays known.
func replaced(old *tool.Result, text string) *tool.Result {
	var out tool.Result
	if old != nil {
		out = *old
	}
	out.Parts = llm.Say(text)
	return &out
}
