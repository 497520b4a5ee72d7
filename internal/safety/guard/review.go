package guard

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

//go:embed reviewer.md
var reviewerPrompt string

// PurposeReview is the [llm.Request.Purpose] of a review.
const PurposeReview = "review"

const (
	defaultTimeout = 30 * time.Second
	maxAnswer      = 1024     // tokens of one reply, reasoning included
	maxAnswerBytes = 16 << 10 // of text that is read
	maxCached      = 256      // remembered reviews
)

// Reviewer is a judge that asks a second, cheap model about calls of Medium and High risk; see [Risk]. It
// abstains on all others without asking.
//
// It can only tighten, unless Allows is set. If its model denies or asks, so does it. If its model allows, that
// is a recorded opinion without effect on other verdicts. If the reply is unclear, because the model fails,
// rambles, takes too long or has cost too much, a call of High risk asks (it fails closed), and one of Medium
// risk is left to the other judges; both say why.
//
// The model reads the call, which may have been written to mislead it, so a review is not a security boundary; see
// the package.
//
// The same question (the call with its effects, mode, task and folder) is asked once, even if it comes from
// several goroutines at once. The last 256 clear replies are remembered. It is safe for concurrent use; do not
// copy it.
type Reviewer struct {
	// Model reviews. Nil counts as always failing. It should be wrapped for retries, within Timeout.
	Model llm.Model
	// MaxCost bounds the total cost of reviews, in US dollars; 0 means no limit. Once it is reached nothing more is
	// sent; requests in progress may exceed it. A model without a known price costs nothing.
	MaxCost float64
	// Timeout bounds one review; 0 means 30 seconds.
	Timeout time.Duration
	// Allows is the mode in which it answers the mode's questions in place of an absent person: see
	// [tool.Verdict.Grant]. Empty means none.
	Allows tool.Mode

	scale  Scale
	mu     sync.Mutex
	spent  float64
	cached map[string]*review
	order  []string // keys of cached, oldest first
}

var _ tool.Judge = (*Reviewer)(nil)

// Grants reports whether it may answer the mode's questions. One that may not need not be asked about a call
// that can't run without such an answer.
func (r *Reviewer) Grants() bool { return r.Allows != "" }

// review is one question, answered or in progress.
type review struct {
	done    chan struct{} // closed once the other fields are set
	verdict tool.Verdict
	asked   bool // there is a verdict; otherwise the caller that asked was interrupted
}

// Judge implements [tool.Judge]. The error is that of ctx.
func (r *Reviewer) Judge(ctx context.Context, c *tool.Call, effects []tool.Effect) (tool.Verdict, error) {
	level := r.scale.Risk(c.Env.Root, effects)
	if level < Medium {
		return tool.Verdict{}, nil
	}
	if err := ctx.Err(); err != nil {
		return tool.Verdict{}, fmt.Errorf("review call: %w", err)
	}
	text, err := question(c, effects, level)
	if err != nil {
		return r.unclear(level, answer{}, err), nil
	}
	for key := tool.Digest([]byte(text)); ; {
		rv, mine := r.enter(key)
		if mine {
			v, err := r.lead(ctx, key, rv, text, level)
			return r.granting(c, v), err
		}
		select {
		case <-rv.done:
		case <-ctx.Done():
			return tool.Verdict{}, fmt.Errorf("review call: %w", ctx.Err())
		}
		if rv.asked {
			v := r.granting(c, rv.verdict)
			v.Cost, v.Consulted = 0, nil
			return v, nil
		}
	}
}

// granting returns a verdict that speaks for the person, if allowed.
func (r *Reviewer) granting(c *tool.Call, v tool.Verdict) tool.Verdict {
	v.Grant = r.Allows != "" && r.Allows == c.Mode && v.Action == tool.Allow
	return v
}

// enter returns the review of a question, and whether the caller must ask it.
func (r *Reviewer) enter(key string) (rv *review, mine bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if rv, ok := r.cached[key]; ok {
		return rv, false
	}
	if r.cached == nil {
		r.cached = map[string]*review{}
	}
	if len(r.order) >= maxCached {
		delete(r.cached, r.order[0])
		r.order = r.order[1:]
	}
	rv = &review{done: make(chan struct{})}
	r.cached[key] = rv
	r.order = append(r.order, key)
	return rv, true
}

// lead asks the question and notifies the waiting callers.
func (r *Reviewer) lead(ctx context.Context, key string, rv *review, text string, level Level) (tool.Verdict, error) {
	clear := false
	defer func() {
		if !clear {
			r.forget(key, rv)
		}
		close(rv.done)
	}()
	a, err := r.ask(ctx, text)
	if ctx.Err() != nil {
		return tool.Verdict{}, fmt.Errorf("review call: %w", ctx.Err())
	}
	rv.asked, clear = true, err == nil
	if err != nil {
		rv.verdict = r.unclear(level, a, err)
	} else {
		rv.verdict = tool.Verdict{Action: a.action, By: r.by(a.route), Reason: a.reason, Cost: a.cost, Route: a.route, Consulted: a.took}
	}
	return rv.verdict, nil
}

// forget lets the question be asked again.
func (r *Reviewer) forget(key string, rv *review) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cached[key] != rv {
		return
	}
	delete(r.cached, key)
	for i, k := range r.order {
		if k == key {
			r.order = append(r.order[:i], r.order[i+1:]...)
			return
		}
	}
}

// unclear returns the verdict for an unclear reply.
func (r *Reviewer) unclear(level Level, a answer, why error) tool.Verdict {
	v := tool.Verdict{
		By: r.by(a.route), Cost: a.cost, Route: a.route, Consulted: a.took, Reason: "it could not be reviewed: " + plainLine(why.Error(), 300),
	}
	if level == High {
		v.Action = tool.Ask
	}
	return v
}

func (r *Reviewer) by(route string) string {
	if route == "" && r.Model != nil {
		route = r.Model.Info().Route()
	}
	return "reviewer " + cmp.Or(route, "without a model")
}

// answer is the model's reply, possibly incomplete.
type answer struct {
	action tool.Action
	reason string
	route  string
	cost   float64
	took   []llm.Consulted
}

// ask asks the model.
func (r *Reviewer) ask(ctx context.Context, text string) (answer, error) {
	if r.Model == nil {
		return answer{}, errors.New("there is no model to ask")
	}
	if err := r.affordable(); err != nil {
		return answer{}, err
	}
	timeout := cmp.Or(max(r.Timeout, 0), defaultTimeout)
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req := llm.Request{
		System:    []string{reviewerPrompt},
		Messages:  []llm.Message{{Role: llm.User, Parts: llm.Say(text)}},
		MaxOutput: maxAnswer,
		Purpose:   PurposeReview,
	}
	reply, a, err := r.stream(limited, req)
	r.mu.Lock()
	r.spent += a.cost
	r.mu.Unlock()
	switch {
	case limited.Err() != nil && ctx.Err() == nil && err != nil:
		return a, fmt.Errorf("no answer within %v", timeout)
	case err != nil:
		return a, err
	case reply.Stop != llm.StopEnd && reply.Stop != llm.StopOther:
		return a, fmt.Errorf("its answer did not come to an end (%s)", reply.Stop)
	}
	a.action, a.reason, err = parseAnswer(reply.Parts.Text())
	return a, err
}

func (r *Reviewer) affordable() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.MaxCost > 0 && r.spent >= r.MaxCost {
		return fmt.Errorf("reviews have cost $%.4f of at most $%.4f", r.spent, r.MaxCost)
	}
	return nil
}

// stream sends the request. The cost of a failed stream is estimated, because it will be charged.
func (r *Reviewer) stream(ctx context.Context, req llm.Request) (reply *llm.Reply, a answer, err error) {
	info, got, began := r.Model.Info(), 0, time.Now()
	spend := func(route string, u llm.Usage, cause llm.Kind) {
		dollars, known := info.Prices.Bill(time.Now(), u)
		a.route, a.cost = route, dollars
		a.took = []llm.Consulted{{
			Purpose: req.Purpose, Route: route, Usage: u, Cost: a.cost, Unpriced: !known, Millis: time.Since(began).Milliseconds(), Cause: cause,
		}}
	}
	for chunk, err := range r.Model.Stream(ctx, req) {
		if chunk.Routed != nil {
			info = chunk.Routed.Info
		}
		got += len(chunk.Text) + len(chunk.Reasoning)
		switch {
		case err == nil && chunk.Reply != nil:
			spend(cmp.Or(chunk.Reply.Route, info.Route()), chunk.Reply.Used(req), "")
			return chunk.Reply, a, nil
		case err == nil && got > maxAnswerBytes:
			err = errors.New("its answer is far too long")
		}
		if err != nil {
			var used llm.Usage
			if got > 0 {
				used = llm.Usage{Input: req.Bytes() / 4, Output: got / 4, Estimated: true}
			}
			spend(info.Route(), used, llm.AsError(err).Kind)
			return nil, a, err
		}
	}
	return nil, a, errors.New("it gave no answer")
}
