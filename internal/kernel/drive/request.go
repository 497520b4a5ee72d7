package drive

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/memo"
	"github.com/inspan/inspan/internal/kernel/fault"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/kernel/redact"
	"github.com/inspan/inspan/internal/kernel/request"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// requests asks the model.
type requests struct {
	cfg     *Config
	journal *journal
	model   llm.Model // with its wrappers
	cache   request.CacheWatch
	images  request.Images
	memo    memo.Memo // caches the encoding of earlier requests
}

// load returns a request with the content of its blobs.
func (r *requests) load(ctx context.Context, req llm.Request) (llm.Request, error) {
	req, err := r.images.Load(ctx, r.cfg.Env.Blobs, req)
	req.Memo = &r.memo
	return req, err
}

// ask sends the next request and stores the outcome, Replied or Failed. It shows deltas as they arrive. An interrupt
// ends the request early and keeps the text so far. If a wait, a hook or a new tool comes first, ask does only that,
// and the loop asks again.
func (d *Driver) ask(ctx context.Context, n loop.Ask) error {
	state := d.journal.state
	if wait := d.cfg.Retry.Remaining(n); wait > 0 {
		return d.requests.waitOut(ctx, wait)
	}
	if state.Run.UnseenText != "" && len(d.cfg.Hooks) > 0 {
		_, err := d.hooks.decide(ctx, tool.Point{Moment: tool.PromptSaid, Text: state.Run.UnseenText}) // before a model sees it
		return err
	}
	if added, err := d.tools.addNew(ctx); added || err != nil {
		return err
	}
	d.cfg.Secrets.Learn()
	stored, err := d.journal.decide(ctx, event.Asked{Turn: n.Turn, Route: state.Route})
	if err != nil || !stored || state.Run.Cancelled {
		return err
	}
	x, err := d.requests.exchange(ctx)
	if err != nil {
		return err
	}
	for _, spec := range x.req.Tools { // tools prepare while the model is working
		if t := d.tools.byName[spec.Name]; t.Ready != nil {
			t.Ready(d.judging.call(llm.Call{Name: spec.Name}, nil))
		}
	}
	watched, done := d.journal.interruptible(ctx)
	for chunk, err := range x.model.Stream(watched, x.req) {
		if err != nil {
			err = x.streamBroke(ctx, watched, err)
		} else {
			err = x.handleChunk(ctx, chunk)
		}
		if err != nil {
			done()
			return err
		}
		if x.answer != nil {
			break
		}
	}
	done()
	return x.store(ctx)
}

// waitOut completes a wait that an earlier driver began. An interrupt ends it.
func (r *requests) waitOut(ctx context.Context, wait time.Duration) error {
	if err := r.journal.show(event.Progress{Text: "waiting before the next request to the model", Wait: wait.Seconds()}); err != nil {
		return err
	}
	watched, done := r.journal.interruptible(ctx)
	_ = keep.Sleep(watched, wait) // the caller checks for an interrupt
	done()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return r.journal.catchUp(ctx)
}

// exchange is a request in progress.
type exchange struct {
	*requests
	stateRequest llm.Request     // as the state has it
	req          llm.Request     // with the content of its blobs
	by           llm.Info        // the model that answers
	sent         time.Time       // when it was or will be sent
	first        time.Time       // when the reply began; zero if it has not
	said         strings.Builder // the text so far
	veil         *redact.Veil    // holds back text that may be part of a secret
	answer       event.Body      // the outcome to store; nil until it is known
}

// exchange begins a request with the state as of the last Asked event. Later messages wait for the next request.
func (r *requests) exchange(ctx context.Context) (*exchange, error) {
	x := &exchange{requests: r, stateRequest: r.journal.state.Request(), by: r.model.Info(), veil: r.cfg.Secrets.NewVeil()}
	var err error
	x.req, err = r.load(ctx, x.stateRequest)
	x.sent = time.Now()
	return x, err
}

// handleChunk processes one chunk of the stream.
func (x *exchange) handleChunk(ctx context.Context, chunk llm.Chunk) error {
	switch {
	case chunk.Reply != nil:
		x.answer = request.Replied(x.journal.state, x.req, chunk.Reply, x.by)
		return x.show(x.veil.End())
	case chunk.Retry != nil:
		why := request.Failed(chunk.Retry.Cause, max(chunk.Retry.Wait, 0.001))
		if why.Millis = x.elapsedMillis(); chunk.Retry.Attempt == 1 {
			why.Millis = 0 // a limiter delays it, and it was not sent
		}
		x.sent = time.Now().Add(time.Duration(chunk.Retry.Wait * float64(time.Second)))
		return x.discardReply(ctx, why)
	case chunk.Routed != nil:
		why := request.Routed(chunk.Routed, x.by.Route())
		if why.From != "" {
			why.Millis = x.elapsedMillis()
		}
		err := x.discardReply(ctx, why)
		x.by, x.sent = chunk.Routed.Info, time.Now()
		return err
	}
	if x.first.IsZero() {
		x.first = time.Now()
	}
	x.said.WriteString(chunk.Text)
	return x.show(x.veil.Pass(event.Delta{Text: chunk.Text, Reasoning: chunk.Reasoning, Call: chunk.Call}))
}

// streamBroke determines the outcome of a stream that ended with an error.
func (x *exchange) streamBroke(ctx, watched context.Context, err error) error {
	unsent := llm.AsError(err).Kind == llm.KindBudget
	switch {
	case errors.Is(context.Cause(watched), fault.ErrInterrupted) && !unsent:
		x.answer = x.partialReply()
		return x.show(x.veil.End())
	case ctx.Err() != nil:
		return ctx.Err()
	}
	why := request.Failed(llm.AsError(err), 0)
	why.Millis = x.elapsedMillis()
	x.answer = why
	return nil
}

// elapsedMillis returns the milliseconds since the request was sent; 0 if it was not sent.
func (x *exchange) elapsedMillis() int64 { return max(0, time.Since(x.sent).Milliseconds()) }

// store stores the outcome of the request.
func (x *exchange) store(ctx context.Context) error {
	r, replied := x.answer.(event.Replied)
	switch {
	case x.answer == nil:
		why := request.Failed(&llm.Error{Kind: llm.KindStreamCut, Message: "the stream ended without a reply"}, 0)
		why.Millis = x.elapsedMillis()
		return x.journal.record(ctx, why)
	case !replied:
		return x.journal.record(ctx, x.answer)
	}
	if r.Millis = x.elapsedMillis(); !x.first.IsZero() {
		r.First = max(0, x.first.Sub(x.sent).Milliseconds())
	}
	if note, lost := x.cache.Look(x.stateRequest, r, x.sent); lost {
		return x.journal.record(ctx, r, note)
	}
	return x.journal.record(ctx, r)
}

// discardReply retracts the part of the reply that was shown, and stores why.
func (x *exchange) discardReply(ctx context.Context, why event.Body) error {
	x.said.Reset()
	x.first = time.Time{}
	x.veil = x.cfg.Secrets.NewVeil()
	if err := x.journal.show(event.Delta{Void: true}); err != nil {
		return err
	}
	return x.journal.record(ctx, why)
}

// show yields deltas to the consumer.
func (x *exchange) show(list []event.Delta) error {
	for _, delta := range list {
		if err := x.journal.show(delta); err != nil {
			return err
		}
	}
	return nil
}

// partialReply returns the outcome of an interrupted request: a reply with the text so far, or a failure if it was not
// sent yet. The usage is estimated, because the provider charges for the text but does not say how much.
func (x *exchange) partialReply() event.Body {
	if time.Now().Before(x.sent) {
		return request.Failed(&llm.Error{Kind: llm.KindCancelled, Message: "interrupted before it was sent"}, 0)
	}
	r := event.Replied{Stop: llm.StopCut, Route: x.by.Route(), Parts: llm.Parts{}}
	if text := x.said.String(); text != "" {
		r.Parts = llm.Say(text)
	}
	r.Usage = (&llm.Reply{Parts: r.Parts}).Used(x.req)
	return request.Priced(r, x.by)
}
