package workflow

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
)

// leastDisk is the free disk space, in bytes, that a round requires to begin.
const leastDisk = 200 << 20

// mostHistory is how many rounds history describes: the last ones.
const mostHistory = 30

// usualPatience is how many rounds may pass without an improvement.
const usualPatience = 3

// loop performs a step of kind loop.
func (p piecework) loop(ctx context.Context) (any, end) {
	return p.record(ctx, map[string]any{"max": p.count(p.Max, 1)}, true, func(ctx context.Context) (event.StepEnded, error) {
		for _, v := range []any{p.Max, p.Patience} {
			if n, ok := asNumber(p.frame.filled(v)); ok && (n < 1 || n > mostRounds) {
				return ended(nil, fmt.Sprintf("%v is no number of rounds; use 1 to %d", n, mostRounds)), nil
			}
		}
		m, most := meter{patience: p.count(p.Patience, usualPatience)}, p.count(p.Max, 1)
		before, history, why := map[string]any{}, []string{}, ""
		passed, round := false, 0
		for round < most && !passed && why == "" {
			if why = p.noRoom(); why != "" {
				break
			}
			round++
			f := &frame{up: p.frame, values: map[string]any{
				"round": round, "before": before, "history": strings.Join(history, "\n"),
			}}
			ends := p.level(ctx, p.Steps, f, p.turn(round))
			if open := p.left(ends); open != nil {
				return event.StepEnded{}, open
			}
			passed, _ = f.holds(p.Until)
			before = brought(p.Steps, f)
			history = append(history[max(0, len(history)-mostHistory+1):], told(round, p.Steps, f, ends))
			why = m.stalled(p.Steps, f, ends)
		}
		switch {
		case passed:
			why = ""
		case why == "":
			why = fmt.Sprintf("not reached in %s", text.Count(round, "round"))
		}
		return ended(map[string]any{"passed": passed, "rounds": round, "why": why, "last": before}, why), nil
	})
}

// count returns a number of rounds.
func (p piecework) count(v any, usual int) int {
	n, ok := asNumber(p.frame.filled(v))
	if !ok {
		return usual
	}
	return min(max(1, int(n)), mostRounds)
}

// turn returns the scope of the steps in a round or an item.
func (p piecework) turn(n int) scopeOf {
	return scopeOf{w: p.at.w, path: fmt.Sprintf("%s/%d/", p.id, n), base: p.at.base + p.ID + "/", parent: p.id, last: p.at.last}
}

// noRoom gives the reason why no round can begin; empty means one can.
func (p piecework) noRoom() string {
	if free, err := keep.Free(p.o.Env.Root); err == nil && p.o.Env.Root != "" && free < leastDisk {
		return fmt.Sprintf("the disk has only %d MB left", free>>20)
	}
	return ""
}

// brought returns the values of a list's steps.
func brought(steps []Step, f *frame) map[string]any {
	out := map[string]any{}
	for _, s := range steps {
		if v := f.values[s.ID]; v != nil {
			out[s.ID] = v
		}
	}
	return out
}

// told describes a round in one line for the agents of the next: the attempt, from the fields approach or
// summary of their results, and the findings of checks.
func told(round int, steps []Step, f *frame, ends map[string]end) string {
	var parts []string
	for _, s := range steps {
		said := ""
		for _, field := range []string{"approach", "summary"} {
			said = cmp.Or(said, asText(f.value(s.ID+"."+field)))
		}
		switch e := ends[s.ID]; {
		case s.Kind == KindCheck && e.outcome != event.OutcomeSkipped:
			failed, _ := f.value(s.ID + ".failures").([]any)
			state := "passed"
			if f.value(s.ID+".passed") != true {
				state = "failed: " + cmp.Or(strings.Join(asTexts(failed), ", "), last(asText(f.value(s.ID+".output"))))
			}
			parts = append(parts, s.ID+" "+text.Short(state, 300))
		case e.bad():
			parts = append(parts, fmt.Sprintf("%s was %s (%s)", s.ID, e.outcome, text.Short(e.why, 200)))
		case said != "":
			parts = append(parts, s.ID+": "+text.Short(said, 300))
		}
	}
	return fmt.Sprintf("Round %d: %s", round, strings.Join(parts, "; "))
}

func asTexts(list []any) (out []string) {
	for _, v := range list {
		out = append(out, asText(v))
	}
	return out
}

// meter measures the progress of a loop by the findings of its checks, never by claims. A check that was not
// executed has no findings.
type meter struct {
	patience  int
	best      *score
	since     int // measured rounds since it was reached
	unchecked int // rounds in a row in which no check was executed
}

// score rates the checks of a round: fewer failures are better, and then more passing checks.
type score struct{ passed, failures int }

// stalled records a round, and gives the reason why another is not worthwhile; empty means it is.
func (m *meter) stalled(steps []Step, f *frame, ends map[string]end) string {
	now, checks, executed, why := score{}, 0, 0, ""
	for _, s := range steps {
		if s.Kind != KindCheck {
			continue
		}
		checks++
		found, _ := f.values[s.ID].(map[string]any)
		failed, _ := found["failures"].([]any)
		switch passed, ran := found["passed"].(bool); {
		case !ran:
			why = cmp.Or(why, s.ID+": "+ends[s.ID].why)
			continue
		case passed:
			now.passed++
		default:
			now.failures += max(1, len(failed))
		}
		executed++
	}
	switch {
	case checks == 0:
		return ""
	case executed == 0:
		if m.unchecked++; m.unchecked >= m.patience {
			return fmt.Sprintf("no check could be run in %s; %s", text.Count(m.unchecked, "round"), text.Short(why, 300))
		}
		return ""
	}
	m.unchecked = 0
	if m.best == nil || now.passed > m.best.passed || now.passed == m.best.passed && now.failures < m.best.failures {
		m.best, m.since = &now, 0
		return ""
	}
	if m.since++; m.since >= m.patience {
		return fmt.Sprintf("no check got better in %s", text.Count(m.since, "round"))
	}
	return ""
}

// each performs a step of kind each.
func (p piecework) each(ctx context.Context) (any, end) {
	over, _ := p.frame.filled(p.Over).([]any)
	return p.record(ctx, map[string]any{"items": len(over)}, true, func(ctx context.Context) (event.StepEnded, error) {
		items, fails, open := make([]any, len(over)), make([]string, len(over)), make([]error, len(over))
		room := make(chan struct{}, cmp.Or(p.Concurrency, cap(p.slots)))
		var all sync.WaitGroup
		for i, item := range over {
			room <- struct{}{}
			all.Go(func() {
				defer func() { <-room }()
				f := &frame{up: p.frame, values: map[string]any{"item": item}}
				ends := p.level(ctx, p.Steps, f, p.turn(i+1))
				items[i], fails[i], open[i] = f.values[p.Steps[len(p.Steps)-1].ID], failures(p.Steps, ends), p.left(ends)
			})
		}
		all.Wait()
		failed, why := 0, ""
		for i := range over {
			if open[i] != nil {
				return event.StepEnded{}, open[i]
			}
			if fails[i] != "" {
				failed++
				why = cmp.Or(why, fmt.Sprintf("item %d: %s", i+1, fails[i]))
			}
		}
		if failed > 0 {
			why = fmt.Sprintf("%d of %d items failed; %s", failed, len(over), why)
		}
		return ended(map[string]any{"items": items, "ok": len(over) - failed, "failed": failed}, why), nil
	})
}
