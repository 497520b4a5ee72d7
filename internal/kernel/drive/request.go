package drive

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/kernel/fault"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/kernel/redact"
	"github.com/inspan/inspan/internal/kernel/request"
	"github.com/inspan/inspan/llm"
)

// requests asks the model.
type requests struct {
	cfg     *Config
	journal *journal
	model   llm.Model // with its wrappers
	cache   request.CacheWatch
	images  request.Images
	memo    llm.Memo // the encoding of earlier requests
}

func newRequests(cfg *Config, j *journal) *requests {
	return &requests{cfg: cfg, journal: j, model: cfg.model()}
}

// load returns a request with the content of its blobs.
func (r *requests) load(ctx context.Context, req llm.Request) (llm.Request, error) {
	req, err := r.images.Load(ctx, r.cfg.Env.Blobs, req)
	req.Memo = &r.memo
	return req, err
}

// ask sends the next request and stores the outcome, Replied or Failed. It shows deltas as they arrive. An
// interrupt from the log ends the request early and keeps the text so far. Before the request there may be a
// wait, hooks to inform, or new tools that follow from the log.
func (d *Driver) ask(ctx context.Context, n loop.Ask) error {
	state := d.journal.state
	if wait := d.cfg.Retry.Remaining(n); wait > 0 {
		return d.requests.pause(ctx, wait)
	}
	if state.Run.UnseenText != "" && len(d.cfg.Hooks) > 0 {
		return d.hooks.promptSaid(ctx)
	}
	if some, err := d.tools.grown(ctx); some || err != nil {
		return err
	}
	d.cfg.Secrets.Learn()
	stored, err := d.journal.decide(ctx, event.Asked{Turn: n.Turn, Route: state.Route})
	if err != nil || !stored || state.Run.Cancelled { // others have appended, or the run was cancelled
		return err
	}
	x, err := d.requests.exchange(ctx)
	if err != nil {
		return err
	}
	d.prepareTools(x.req.Tools)
	watched, done := d.journal.interruptible(ctx)
	for chunk, err := range x.model.Stream(watched, x.req) {
		if err != nil {
			err = x.broke(ctx, watched, err)
		} else {
			err = x.take(ctx, chunk)
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

// prepareTools lets tools prepare for calls while the model thinks.
func (d *Driver) prepareTools(specs []llm.ToolSpec) {
	for _, spec := range specs {
		if t := d.tools.byName[spec.Name]; t.Ready != nil {
			t.Ready(d.judging.call(llm.Call{Name: spec.Name}, nil))
		}
	}
}

// pause completes a wait that an earlier driver began, unless there is an interrupt.
func (r *requests) pause(ctx context.Context, wait time.Duration) error {
	if err := r.journal.show(event.Progress{Text: "the model can't be asked yet", Wait: wait.Seconds()}); err != nil {
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
	asked  llm.Request     // in the form of the state
	req    llm.Request     // with the content of its blobs
	by     llm.Info        // the model that answers
	sent   time.Time       // when it was or will be sent
	first  time.Time       // when the reply began; zero if it has not
	said   strings.Builder // the answer so far
	veil   *redact.Veil    // limits what of it can be shown
	answer event.Body      // the event to store; nil until it is known
}

// exchange begins a request. It is made from the state as of the last Asked: later messages wait for the next
// request.
func (r *requests) exchange(ctx context.Context) (*exchange, error) {
	x := &exchange{requests: r, asked: r.journal.state.Request(), by: r.model.Info(), veil: r.cfg.Secrets.NewVeil()}
	var err error
	x.req, err = r.load(ctx, x.asked)
	x.sent = time.Now()
	return x, err
}

// take processes a part of the reply.
func (x *exchange) take(ctx context.Context, chunk llm.Chunk) error {
	switch {
	case chunk.Reply != nil:
		x.answer = request.Replied(x.journal.state, x.req, chunk.Reply, x.by)
		return x.show(x.veil.End())
	case chunk.Retry != nil:
		why := request.Failed(chunk.Retry.Cause, max(chunk.Retry.Wait, 0.001))
		if why.Millis = x.took(); chunk.Retry.Attempt == 1 {
			why.Millis = 0 // a limiter holds it
		}
		x.sent = time.Now().Add(time.Duration(chunk.Retry.Wait * float64(time.Second)))
		return x.void(ctx, why)
	case chunk.Routed != nil:
		why := request.Routed(chunk.Routed, x.by.Route())
		if why.From != "" {
			why.Millis = x.took()
		}
		err := x.void(ctx, why)
		x.by, x.sent = chunk.Routed.Info, time.Now()
		return err
	}
	if x.first.IsZero() {
		x.first = time.Now()
	}
	x.said.WriteString(chunk.Text)
	return x.show(x.veil.Pass(event.Delta{Text: chunk.Text, Reasoning: chunk.Reasoning, Call: chunk.Call}))
}

// broke processes a stream that broke off.
func (x *exchange) broke(ctx, watched context.Context, err error) error {
	unsent := llm.AsError(err).Kind == llm.KindBudget
	switch {
	case errors.Is(context.Cause(watched), fault.ErrInterrupted) && !unsent:
		x.answer = x.interrupted()
		return x.show(x.veil.End())
	case ctx.Err() != nil:
		return ctx.Err()
	}
	why := request.Failed(llm.AsError(err), 0)
	why.Millis = x.took()
	x.answer = why
	return nil
}

// took returns the milliseconds since the request was sent; 0 if it was not.
func (x *exchange) took() int64 { return max(0, time.Since(x.sent).Milliseconds()) }

// store stores the outcome of the request.
func (x *exchange) store(ctx context.Context) error {
	r, replied := x.answer.(event.Replied)
	switch {
	case x.answer == nil:
		why := request.Failed(&llm.Error{Kind: llm.KindStreamCut, Message: "the stream ended without a reply"}, 0)
		why.Millis = x.took()
		return x.journal.record(ctx, why)
	case !replied:
		return x.journal.record(ctx, x.answer)
	}
	if r.Millis = x.took(); !x.first.IsZero() {
		r.First = max(0, x.first.Sub(x.sent).Milliseconds())
	}
	if note, lost := x.cache.Look(x.asked, r, x.sent); lost {
		return x.journal.record(ctx, r, note)
	}
	return x.journal.record(ctx, r)
}

// void takes back the reply as far as it was shown, and stores why.
func (x *exchange) void(ctx context.Context, why event.Body) error {
	x.said.Reset()
	x.first = time.Time{}
	x.veil = x.cfg.Secrets.NewVeil()
	if err := x.journal.show(event.Delta{Void: true}); err != nil {
		return err
	}
	return x.journal.record(ctx, why)
}

// show yields what can be shown of the reply.
func (x *exchange) show(list []event.Delta) error {
	for _, delta := range list {
		if err := x.journal.show(delta); err != nil {
			return err
		}
	}
	return nil
}

// interrupted returns what is left of an interrupted request: the text so far, or nothing if it was not sent
// yet. The vendor charges for the text and does not say how much.
func (x *exchange) interrupted() event.Body {
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
