// Package bench measures harnesses from outside: inspan, and other installed ones. Each is a program that is
// started with its own home and sends its requests to a scripted model at a loopback address, which speaks the
// harness's protocol.
package bench

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/lab/stats"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/internal/world/sandbox"
)

// Bench is a measurement. Each harness runs the commands that the model wants, and is killed and resumed. They
// take turns, so that other load of the machine affects all alike.
type Bench struct {
	Program    string   // this inspan
	Runs       int      // counted runs of each harness
	Only       []string // names; none: all
	OnProgress func(line string)
}

// Result has the measurements of a harness.
type Result struct {
	Name    string   `json:"name"`
	Command string   `json:"command,omitempty"` // empty: it is not installed
	Version string   `json:"version,omitempty"` // its own words
	Figures []Figure `json:"figures,omitempty"`
	Failed  []string `json:"failed,omitempty"` // failed measurements, and why
}

// Figure is one figure over all runs.
type Figure struct {
	Name   string    `json:"name"`
	Unit   string    `json:"unit"`
	Median float64   `json:"median"`
	Least  float64   `json:"least"`
	Most   float64   `json:"most"`
	Values []float64 `json:"values"` // in the order of the runs
}

// Figures returns the names of the figures with their meanings, in order.
func Figures() [][2]string {
	return [][2]string{
		{"start", "process start to its first request"},
		{"turn", "one turn with a shell command, less the model"},
		{"memory", "peak of all its processes, over " + text.Count(shortTurns, "turn")},
		{"resume", "after kill -9: process start to its next request"},
		{"lost", "results it had sent to the model, and lacks after kill -9"},
		{"twice", "commands that had their effect again after kill -9"},
		{"long", "a session of " + text.Count(longTurns, "turn") + ": process start to its next request"},
	}
}

func unitOf(figure string) string {
	switch figure {
	case "memory":
		return "MB"
	case "lost", "twice":
		return ""
	}
	return "ms"
}

// The numbers of commands that a model wants in a run.
const (
	shortTurns  = 10
	killedTurns = 4 // commands after which it is killed
	longTurns   = 200
)

// subject is a measured harness.
type subject struct {
	harness
	home   string
	vars   []string
	values map[string][]float64
	failed map[string]string // errors, by step
	long   *act              // run of its long session; nil means there is none yet
	works  int               // number of workspaces so far
}

// Run measures. It removes its folder before it returns. If a harness fails in a step, its other steps are
// still measured. When ctx ends, it returns the results so far.
func (b *Bench) Run(ctx context.Context) (out []Result, err error) {
	st := &stage{}
	if st.dir, err = os.MkdirTemp("", "inspan-bench-"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(st.dir)) }()
	if st.env, err = sandbox.Local(st.dir, nil, sandbox.Options{}); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.env.Close()) }()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: st, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	defer func() { _ = server.Close() }()
	subjects, out, err := b.subjects(ctx, st.dir, "http://"+l.Addr().String())
	if err != nil {
		return nil, err
	}
	b.rounds(ctx, st, subjects)
	for _, s := range subjects {
		i := slices.IndexFunc(out, func(o Result) bool { return o.Name == s.name })
		out[i].Figures, out[i].Failed = s.figures(), s.failures()
	}
	return out, ctx.Err()
}

// subjects returns the installed harnesses, with their homes.
func (b *Bench) subjects(ctx context.Context, dir, url string) (list []*subject, out []Result, err error) {
	var names []string
	for _, h := range harnesses(b.Program, url) {
		names = append(names, h.name)
		if len(b.Only) > 0 && !slices.Contains(b.Only, h.name) {
			continue
		}
		one := Result{Name: h.name, Command: h.program}
		if h.program != "" {
			s := &subject{harness: h, home: filepath.Join(dir, h.name), values: map[string][]float64{}, failed: map[string]string{}}
			if s.vars, err = s.settle(s.home); err != nil {
				return nil, nil, err
			}
			version, complaints, _, bad := sandbox.Capture(ctx, s.vars, h.program, "--version")
			one.Version = text.Visible(words.OneLine(strings.TrimSpace(string(version)+complaints), 60))
			if list = append(list, s); bad != nil {
				s.failed["warm"] = words.OneLine(bad.Error(), 200)
			}
			b.OnProgress(h.name + ": " + strings.Join(h.command("run", "'...'"), " "))
		}
		out = append(out, one)
	}
	for _, name := range b.Only {
		if !slices.Contains(names, name) {
			return nil, nil, words.Misuse{Err: fmt.Errorf("--only: there is no %q; use %s%s",
				name, strings.Join(names, ", "), words.DidYouMean(name, names))}
		}
	}
	return list, out, nil
}

// step is an action that each harness does once a round.
type step struct {
	name string
	do   func(ctx context.Context, s *subject, round int) error
}

// rounds makes all harnesses do all steps, one after another. The first round does not count: it includes
// one-time work in a new home.
func (b *Bench) rounds(ctx context.Context, st *stage, subjects []*subject) {
	steps := []step{{"run", st.short}, {"kill", st.killed}, {"long", st.longer}}
	for round := -1; round < b.Runs; round++ {
		b.OnProgress(cmp.Or(map[bool]string{true: "a round that does not count"}[round < 0], fmt.Sprintf("round %d of %d", round+1, b.Runs)))
		for _, step := range steps {
			for i := range subjects {
				s := subjects[(i+round+1)%len(subjects)]
				name := step.name
				if round < 0 {
					name = "warm"
				}
				if s.failed["warm"] != "" || s.failed[step.name] != "" || ctx.Err() != nil || round < 0 && step.name != "run" {
					continue
				}
				if err := step.do(ctx, s, round); err != nil && ctx.Err() == nil {
					s.failed[name] = text.Visible(words.OneLine(err.Error(), 300))
				}
			}
		}
		if round < 0 {
			for _, s := range subjects {
				clear(s.values)
			}
		}
	}
}

func (s *subject) add(figure string, value float64) {
	s.values[figure] = append(s.values[figure], value)
}

func (s *subject) figures() (list []Figure) {
	for _, f := range Figures() {
		values := s.values[f[0]]
		if len(values) == 0 {
			continue
		}
		list = append(list, Figure{
			Name: f[0], Unit: unitOf(f[0]), Median: stats.Median(values), Least: slices.Min(values), Most: slices.Max(values), Values: values,
		})
	}
	return list
}

func (s *subject) failures() (list []string) {
	for name, why := range s.failed {
		list = append(list, strings.TrimPrefix(name+": "+why, "warm: "))
	}
	slices.Sort(list)
	return list
}

// workspace makes a new workspace.
func (s *subject) workspace() (string, error) {
	s.works++
	dir := filepath.Join(s.home, "work", fmt.Sprint(s.works))
	return dir, os.MkdirAll(dir, 0o755)
}

const benchTask = "Do what the bench wants."

// newAct returns a run in a new workspace.
func (s *subject) newAct(turns int) (*act, error) {
	dir, err := s.workspace()
	return &act{dir: dir, nonce: "x" + strings.ToLower(rand.Text()[:8]), turns: turns, got: map[string]bool{}, ready: make(chan struct{})}, err
}

// next returns a run that continues in the same workspace.
func (a *act) next() *act {
	return &act{dir: a.dir, nonce: a.nonce, got: map[string]bool{}, ready: make(chan struct{})}
}

// short is a run to completion.
func (st *stage) short(ctx context.Context, s *subject, _ int) error {
	a, err := s.newAct(shortTurns)
	if err != nil {
		return err
	}
	if err := st.perform(ctx, s, a, "run"); err != nil {
		return err
	}
	s.add("start", millis(a.first.Sub(a.began)))
	s.add("turn", stats.Median(a.gaps))
	if a.peak > 0 {
		s.add("memory", a.peak)
	}
	return nil
}

// killed is a run that is killed, each time at another moment, and resumed.
func (st *stage) killed(ctx context.Context, s *subject, round int) error {
	a, err := s.newAct(killedTurns + 2)
	if err != nil {
		return err
	}
	a.kill = []moment{killAsked, killAnswered, killCalled}[round%3]
	if err := st.perform(ctx, s, a, "run"); err != nil {
		return err
	}
	on := a.next()
	if err := st.perform(ctx, s, on, "resume"); err != nil {
		return err
	}
	s.add("resume", millis(on.first.Sub(on.began)))
	s.add("lost", float64(on.lacks(a)))
	effects, err := a.effects()
	s.add("twice", float64(len(effects)-len(slices.Compact(slices.Sorted(slices.Values(effects))))))
	return err
}

// longer gives a long session a new task. It makes the session first, once.
func (st *stage) longer(ctx context.Context, s *subject, _ int) error {
	if s.long == nil {
		a, err := s.newAct(longTurns)
		if err != nil {
			return err
		}
		if err := st.perform(ctx, s, a, "run"); err != nil {
			return err
		}
		s.long = a
	}
	on := s.long.next()
	if err := st.perform(ctx, s, on, "again"); err != nil {
		return err
	}
	if n := on.lacks(s.long); n > 0 {
		return fmt.Errorf("%d of %d results are not in the next request", n, len(s.long.got))
	}
	s.add("long", millis(on.first.Sub(on.began)))
	return nil
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
