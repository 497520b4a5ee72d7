package subagent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/tool"
)

// Limits of children.

// limited reports whether this session or one above has a limit on money.
func (t *Team) limited() bool {
	for at := t; at != nil; at = at.up {
		if limits, _ := at.limits(); limits.Cost > 0 {
			return true
		}
	}
	return false
}

// limit gives a child its share of the parent's remaining limits.
func (t *Team) limit(o *Order, in spawnArgs, st inspan.Status) {
	if in.Budget > 0 && st.Limits.Cost > 0 {
		cost, _ := t.spent()
		o.Limits.Cost = max((st.Limits.Cost-cost)*in.Budget, leastCost)
	}
	o.Limits.Turns = smallestLimit(cmp.Or(in.Turns, o.Role.MaxTurns, usualTurns), o.Role.MaxTurns, st.Limits.Turns)
	o.Limits.Time = cmp.Or(time.Duration(in.Deadline)*time.Second, usualTime)
	if st.Limits.Seconds > 0 {
		left := time.Duration((st.Limits.Seconds - st.Seconds) * float64(time.Second))
		o.Limits.Time = min(o.Limits.Time, max(left, time.Second))
	}
}

// smallestLimit returns the smallest number other than zero, which means no limit.
func smallestLimit(numbers ...int) int {
	out := 0
	for _, n := range numbers {
		if n > 0 && (out == 0 || n < out) {
			out = n
		}
	}
	return out
}

// narrowestMode returns the narrowest of permission modes; the first is the parent's. If the model asks for a wider
// one, that is an error; a wider one in a kind of agent is narrowed.
func narrowestMode(mine, asked, kind tool.Mode) (tool.Mode, error) {
	rank := func(mode tool.Mode) int { return slices.Index(tool.Modes(), mode) }
	if err := asked.Check(); err != nil {
		return "", fmt.Errorf("mode: %w", err)
	}
	if rank(asked) > rank(mine) {
		return "", fmt.Errorf("mode %s is wider than yours, which is %s", asked, mine)
	}
	mode := cmp.Or(asked, mine)
	if r := rank(kind); r >= 0 && r < rank(mode) {
		mode = kind
	}
	return mode, nil
}

// restrictTools removes from an agent all tools except those that were ordered and that its parent session has. It
// returns the names of its tools.
func (t *Team) restrictTools(a *inspan.Agent, ordered []string) func(context.Context) []string {
	some := func(ctx context.Context, list []tool.Tool) []tool.Tool {
		var mine []string
		if t.mayGive != nil {
			mine = t.mayGive(ctx)
		}
		return slices.DeleteFunc(slices.Clone(list), func(l tool.Tool) bool {
			return t.mayGive != nil && !slices.Contains(mine, l.Name) || ordered != nil && !slices.Contains(ordered, l.Name)
		})
	}
	a.Tools = some(context.Background(), a.Tools)
	extra := a.Dynamic.Tools
	if extra == nil {
		extra = func(context.Context) (shown, hidden []tool.Tool) { return nil, nil }
	}
	a.Dynamic.Tools = func(ctx context.Context) (shown, hidden []tool.Tool) {
		shown, hidden = extra(ctx)
		return some(ctx, shown), some(ctx, hidden)
	}
	tools, all := a.Tools, a.Dynamic.Tools
	return func(ctx context.Context) []string {
		var names []string
		shown, hidden := all(ctx)
		for _, l := range slices.Concat(tools, shown, hidden) {
			names = append(names, l.Name)
		}
		return names
	}
}
