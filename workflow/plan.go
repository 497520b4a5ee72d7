package workflow

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/delegate/script"
)

//go:embed plan.js
var planSetup string

// mostPlanned is how many steps a plan shows. The script is executed once for each of them.
const mostPlanned = 100

// Plan returns the workflow as a list of steps, for Tree and Mermaid. For a script, these are the steps that it
// would take if every result were good, with each loop executed once. Nothing is performed. Inputs may be missing.
// Of o it uses Self, Env and Unboxed. The error describes the fault of the script.
func (w *Workflow) Plan(ctx context.Context, inputs map[string]any, o Options) (*Workflow, error) {
	if w.Script == "" {
		return w, nil
	}
	values := map[string]any{}
	for name, s := range w.Inputs {
		var v any
		if given, there := inputs[name]; there {
			values[name] = given
		} else if s.Default != nil && json.Unmarshal(s.Default, &v) == nil {
			values[name] = v
		}
	}
	input, err := json.Marshal(map[string]any{"names": append([]string{}, sortedKeys(w.Inputs)...), "values": values})
	if err != nil {
		return nil, err
	}
	p := &planning{engine: script.Engine{Self: o.Self, Env: o.Env, Open: o.Unboxed}, code: w.Script, input: input}
	steps, err := p.steps(ctx)
	return &Workflow{Name: w.Name, Description: w.Description, Steps: steps, Included: w.Included}, err
}

// planning finds out which steps a script takes, and their dependencies: it executes the script once for each
// step, with that step never ending. Steps that are then not requested depend on it.
type planning struct {
	engine script.Engine
	code   string
	input  json.RawMessage
}

// planned is a step in a script's course. The same step has the same key in each execution.
type planned struct {
	Step
	key string
}

func (p *planning) steps(ctx context.Context) ([]Step, error) {
	all, err := p.through(ctx, "")
	var own *script.Error
	etc := errors.As(err, &own) && len(all) > 0
	switch {
	case etc:
	case own != nil:
		return nil, errors.New(text.Clean(own.Text))
	case err != nil:
		return nil, err
	}
	needs := make([]map[int]bool, len(all))
	for i := range all {
		needs[i] = map[int]bool{}
	}
	for i, s := range all {
		some, err := p.through(ctx, s.key)
		if err != nil && !errors.Is(err, script.ErrHeld) && !errors.As(err, &own) {
			return nil, err
		}
		for j, other := range all {
			if j != i && !slices.ContainsFunc(some, func(s planned) bool { return s.key == other.key }) {
				needs[j][i] = true
			}
		}
	}
	var out []Step
	for i, s := range all {
		s.Needs = []string{}
		for _, n := range slices.Sorted(maps.Keys(needs[i])) {
			if !p.between(needs, i, n) {
				s.Needs = append(s.Needs, all[n].ID)
			}
		}
		out = append(out, s.Step)
	}
	if etc {
		out = append(out, Step{ID: "etc", Title: "what follows depends on results: " + text.Short(text.Clean(own.Text), 100)})
	}
	return out, nil
}

// between reports whether the direct needs of a step include one that needs other.
func (p *planning) between(needs []map[int]bool, step, other int) bool {
	for m := range needs[step] {
		if needs[m][other] {
			return true
		}
	}
	return false
}

// through executes the script. The step with the key, if any, never ends.
func (p *planning) through(ctx context.Context, without string) (all []planned, err error) {
	ids, keys := map[string]int{}, map[string]int{}
	_, err = p.engine.Run(ctx, script.Script{
		Code: p.code, Setup: planSetup, Input: p.input, Seed: "plan", Finish: true,
		Limits: script.Limits{Calls: mostPlanned, Busy: 5 * time.Second},
		Call: func(_ context.Context, kind string, raw json.RawMessage) func() script.Answer {
			var s planned
			_ = json.Unmarshal(raw, &s.Step) // what it can't be shows when it is performed
			s.Kind = Kind(kind)
			about := s.Prompt + s.Run + s.Tool + s.Webhook + s.File
			s.Title = text.Short(text.Clean(strings.TrimSpace(s.Title+" "+about)), 100)
			s.ID = numbered(ids, text.Clean(cmp.Or(s.ID, kind)))
			s.key = numbered(keys, kind+" "+s.Title)
			all = append(all, s)
			return func() script.Answer { return script.Answer{Value: s.ID, Never: s.key == without} }
		},
	})
	return all, err
}

// numbered adds a number to a name from its second use on.
func numbered(given map[string]int, name string) string {
	if given[name]++; given[name] == 1 {
		return name
	}
	return fmt.Sprintf("%s-%d", name, given[name])
}
