package subagent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

// mostCount is the largest number of agents that one call can spawn.
const mostCount = 8

// How the results of several agents become one.
const (
	reduceCollect = "collect" // all of them
	reduceVote    = "vote"    // the majority
	reduceBest    = "best"    // the work that does best in a check
)

// count returns the number of agents that a call asks for.
func (in spawnArgs) count() (int, error) {
	n := cmp.Or(in.Count, 1)
	switch in.Reduce {
	case "", reduceCollect:
	case reduceVote:
		if in.Result == nil {
			return 0, errors.New("reduce vote needs a result_schema, so that results can be compared")
		}
	case reduceBest:
		if strings.TrimSpace(in.Check) == "" {
			return 0, errors.New("reduce best needs a check: a command that each runs when its work is done")
		}
		if in.Isolation == "none" {
			return 0, errors.New("reduce best needs each to work apart; leave isolation out")
		}
	default:
		return 0, fmt.Errorf("there is no reduce %q; there are %s, %s, %s", in.Reduce, reduceCollect, reduceVote, reduceBest)
	}
	switch {
	case n < 1 || n > mostCount:
		return 0, fmt.Errorf("count is %d; it is 1 to %d", in.Count, mostCount)
	case in.choosesOne() && n == 1:
		return 0, fmt.Errorf("reduce %s needs a count of 2 or more", in.Reduce)
	case in.choosesOne() && in.Background:
		return 0, fmt.Errorf("reduce %s can't be in the background, as each there tells what it brings by itself", in.Reduce)
	case in.Check != "" && in.Reduce != reduceBest:
		return 0, errors.New("check is for reduce best")
	}
	return n, nil
}

// choosesOne reports whether one result is chosen from several agents, so that the call waits for all of them.
func (in spawnArgs) choosesOne() bool { return in.Reduce == reduceVote || in.Reduce == reduceBest }

// isolation returns the isolation that a call asks for.
func (in spawnArgs) isolation() string {
	if in.Reduce == reduceBest {
		return cmp.Or(in.Isolation, "worktree")
	}
	return in.Isolation
}

// spawnMany makes several agents do the same, and makes one result from theirs. Each begins at once: if one had
// to wait, it would wait for the others.
func (t *Team) spawnMany(ctx context.Context, c *tool.Call, in spawnArgs, n int) (tool.Result, error) {
	children, backs := make([]*child, 0, n), make([]event.Returned, n)
	var texts []string // of agents in the background
	var wg sync.WaitGroup
	for i := range n {
		call := fmt.Sprint(c.ID, "/", i+1)
		if who, yes := t.childOfCall(call); yes {
			texts = append(texts, backgroundText(who))
			continue
		}
		one := in
		one.Name = nameOfMany(in.Name, i)
		k, err := t.launch(ctx, call, one, c.Args)
		if err != nil {
			for _, k := range children {
				k.cancel(errors.New("another of the same call could not be spawned"))
			}
			wg.Wait()
			return tool.Text(strings.Join(texts, "\n")), err
		}
		if k.order.background {
			res, err := t.background(k, nil)
			if err != nil {
				return tool.Result{}, err
			}
			texts = append(texts, res.Parts.Text())
			continue
		}
		at := len(children)
		children = append(children, k)
		wg.Go(func() { backs[at] = t.waitFor(ctx, k, nil, c.Progress) })
	}
	if len(texts) > 0 {
		return tool.Text(strings.Join(texts, "\n")), nil
	}
	wg.Wait()
	switch in.Reduce {
	case reduceVote:
		return majority(children, backs)
	case reduceBest:
		return t.best(context.WithoutCancel(ctx), children, backs, in.Check)
	}
	return allResults(children, backs, "")
}

// allResults returns the results of all children, below a heading.
func allResults(children []*child, backs []event.Returned, heading string) (tool.Result, error) {
	var texts []string
	if heading != "" {
		texts = append(texts, heading)
	}
	done := 0
	for i, k := range children {
		texts = append(texts, k.outcomeText(backs[i]))
		if backs[i].Reason == event.ReasonDone {
			done++
		}
	}
	var err error
	if done == 0 {
		err = errors.New("no agent came to its end")
	}
	return tool.Text(strings.Join(texts, "\n\n")), err
}

// resultVotes is a result and the children that returned it.
type resultVotes struct {
	value    string
	children []string
}

// majority returns the result of more than half of the children that have one; if there is none, all results.
func majority(children []*child, backs []event.Returned) (tool.Result, error) {
	var ballots []resultVotes
	votes := 0
	for i, k := range children {
		value, ok := canonical(k.order.result.returned())
		if !ok || backs[i].Reason != event.ReasonDone {
			continue
		}
		votes++
		at := slices.IndexFunc(ballots, func(b resultVotes) bool { return b.value == value })
		if at < 0 {
			at, ballots = len(ballots), append(ballots, resultVotes{value: value})
		}
		ballots[at].children = append(ballots[at].children, short(k.id))
	}
	slices.SortStableFunc(ballots, func(a, b resultVotes) int { return cmp.Compare(len(b.children), len(a.children)) })
	if len(ballots) == 0 {
		return allResults(children, backs, "[vote: no agent brought a result]")
	}
	var tally strings.Builder
	for _, b := range ballots {
		fmt.Fprintf(&tally, "%d × %s (%s)\n", len(b.children), text.Short(b.value, 300), strings.Join(b.children, ", "))
	}
	none := ""
	if missing := len(children) - votes; missing > 0 {
		none = fmt.Sprintf("; %d brought none", missing)
	}
	if first := ballots[0]; 2*len(first.children) > votes {
		return tool.Text(fmt.Sprintf("[vote: %d of %d results agree%s]\n%s\n\n[tally]\n%s", len(first.children), votes, none, first.value,
			strings.TrimSuffix(tally.String(), "\n"))), nil
	}
	return allResults(children, backs, fmt.Sprintf("[vote: no majority among %d results%s]\n%s", votes, none, tally.String()))
}

// canonical returns JSON in a canonical form: equal values have equal texts.
func canonical(raw json.RawMessage) (string, bool) {
	var v any
	if raw == nil || json.Unmarshal(raw, &v) != nil {
		return "", false
	}
	out, err := json.Marshal(v)
	return string(out), err == nil
}

// best returns the work of the child that does best in its check. The copies of the others are removed; if none
// passes, all stay.
func (t *Team) best(ctx context.Context, children []*child, backs []event.Returned, command string) (tool.Result, error) {
	winner := -1
	var b strings.Builder
	for i, k := range children {
		s := k.order.check.verdict()
		fmt.Fprintf(&b, "\n- %s: %s", k.label(), s.describe())
		if s.passed && (winner < 0 || s.isBetterThan(children[winner].order.check.verdict())) {
			winner = i
		}
	}
	if winner < 0 {
		return allResults(children, backs, fmt.Sprintf("[best of %d by %s: none passed; all copies stay]%s",
			len(children), text.Short(command, 200), b.String()))
	}
	var errs []error
	for i, k := range children {
		if i != winner {
			st := t.session.Status()
			errs = append(errs, t.Trees.Remove(ctx, st.Root, copyName(st.Session, k.call)))
		}
	}
	won := children[winner]
	head := fmt.Sprintf("[best of %d by %s: %s; the copies of the others are removed]%s\n\n",
		len(children), text.Short(command, 200), won.label(), b.String())
	return tool.Text(head + won.outcomeText(backs[winner])), errors.Join(errs...)
}
