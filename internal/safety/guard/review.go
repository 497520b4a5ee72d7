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
	maxAnswer      = 1024     // tokens of one answer, reasoning included
	maxAnswerBytes = 16 << 10 // of text that is waited for
	maxCached      = 256      // reviews that are remembered
)

// Reviewer is a judge that has a second, cheap model look at calls of Medium
// and High risk; see [Risk]. It abstains on all others, without asking.
//
// It can only tighten, unless Allows is set. Where its model denies or asks, so does it.
// Where its model allows, that is a recorded opinion, which outvotes nobody. Where there
// is no clear answer, as the model fails, rambles, takes too long or has cost
// too much, a call of High risk asks (it fails closed), and one of Medium risk
// is left to the others; both say why.
//
// The model reads the call, which may have been written to mislead it. A review
// is therefore no wall; see the package.
//
// The same question (the call with its effects, mode, task and folder) is put
// once, also if it comes from several goroutines at once. Clear answers are
// remembered, the last 256 of them. Safe for concurrent use; do not copy.
type Reviewer struct {
	// Model answers. Nil counts as one that always fails. It is best wrapped
	// for retries, within Timeout.
	Model llm.Model
	// MaxCost is the most that all reviews may cost, in US dollars; 0: no limit.
	// Once it is reached nothing more is sent; what is under way may go beyond.
	// A model without a known price costs nothing.
	MaxCost float64
	// Timeout bounds one review; 0: 30 seconds.
	Timeout time.Duration
	// Allows is the mode in which it answers what the mode would ask, as a person would who
	// is not there: see [tool.Verdict.Grant]. Empty: none.
	Allows tool.Mode

	scale  Scale
	mu     sync.Mutex
	spent  float64
	cached map[string]*review
	order  []string // keys of cached, oldest first
}

var _ tool.Judge = (*Reviewer)(nil)

// Grants reports whether it may answer what the mode asks. One that may not need not be
// asked of a call that will not run without such an answer.
func (r *Reviewer) Grants() bool { return r.Allows != "" }

// review is one question that was put, or is being put.
type review struct {
	done    chan struct{} // closed once the rest is set
	verdict tool.Verdict
	asked   bool // there is a verdict; else whoever put the question was interrupted
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

// granting is a verdict that speaks for the person where it may.
func (r *Reviewer) granting(c *tool.Call, v tool.Verdict) tool.Verdict {
	v.Grant = r.Allows != "" && r.Allows == c.Mode && v.Action == tool.Allow
	return v
}

// enter returns the review of a question, and whether the caller is the one who
// has to put it.
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

// lead puts the question and lets those who wait for it know.
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

// forget makes room for the question to be put again.
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

// unclear is the verdict where the model gave none.
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

// answer is what the model said, or as far as it came.
type answer struct {
	action tool.Action
	reason string
	route  string
	cost   float64
	took   []llm.Consulted
}

// ask puts the question to the model.
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

// stream sends the request. What comes of a stream that fails is priced by an
// estimate, as it will be charged.
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
