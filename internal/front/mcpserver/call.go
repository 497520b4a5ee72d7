package mcpserver

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/tool"
)

const (
	maxWorks  = 32 // calls in progress of one principal
	maxParked = 16 // its questions that a client was told about
)

// clientCall is a call by a client in progress. It runs in its own goroutine and may outlive the request: a
// client that accepts no requests answers a question with its next call. Its questions and its progress go to
// the request that attends it.
type clientCall struct {
	key    string // of the call: who answers must have made the same
	client string // for the log
	wait   time.Duration

	ctx    context.Context // ends when the client cancels the call
	cancel context.CancelFunc
	asks   chan question // no one waits on it for longer than a request attends the call
	tells  chan string
	done   chan struct{} // closed when result is set
	result *sdk.CallToolResult
}

// question is a question that a call waits for.
type question struct {
	inspan.Pending
	open   context.Context    // ends when it is withdrawn because someone else has answered
	answer chan event.Decided // holds one
}

// parked is a call whose question a client was told about.
type parked struct {
	work     *clientCall
	question question
	late     *time.Timer
}

// handle executes a request, or continues a call that the request answers. An error is one of the protocol.
func (r *tenant) handle(ctx context.Context, req *sdk.CallToolRequest,
	do func(*clientCall, *connection) *sdk.CallToolResult,
) (*sdk.CallToolResult, error) {
	if state := req.Params.RequestState; state != "" {
		return r.resume(ctx, req, state)
	}
	w, err := r.start(req, do)
	if err != nil {
		return failed(err), nil
	}
	return r.attendCall(ctx, req, w)
}

// start starts a call.
func (r *tenant) start(req *sdk.CallToolRequest, do func(*clientCall, *connection) *sdk.CallToolResult) (*clientCall, error) {
	d, err := r.connection(req.Session)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed || d.ctx.Err() != nil:
		return nil, ErrClosed
	case r.works >= maxWorks:
		return nil, errors.New("too many runs at once; wait for one to end")
	}
	r.works++
	w := &clientCall{
		key: keyOf(req), client: clientOf(req), wait: cmp.Or(r.server.Patience, patience),
		asks: make(chan question), tells: make(chan string, 64), done: make(chan struct{}),
	}
	w.ctx, w.cancel = context.WithCancel(d.ctx)
	r.wg.Go(func() {
		defer w.cancel()
		defer close(w.done)
		w.result = do(w, d)
		r.mu.Lock()
		r.works--
		r.mu.Unlock()
	})
	return w, nil
}

// keyOf returns a key for the content of a request.
func keyOf(req *sdk.CallToolRequest) string {
	return req.Params.Name + " " + tool.Digest(req.Params.Arguments)
}

// clientOf returns the client's own name, which proves nothing.
func clientOf(req *sdk.CallToolRequest) string {
	if info := req.ClientInfo(); info != nil && info.Name != "" {
		return words.OneLine(info.Name, 60) + " over MCP"
	}
	return "a client over MCP"
}

// attendCall makes a request wait for a call, and answers the call's questions. If the request is cancelled, so is
// the call.
func (r *tenant) attendCall(ctx context.Context, req *sdk.CallToolRequest, w *clientCall) (*sdk.CallToolResult, error) {
	steps := progress{request: req}
	for {
		select {
		case <-ctx.Done():
			w.cancel()
			<-w.done
			return nil, ctx.Err()
		case text := <-w.tells:
			steps.tell(ctx, text)
		case q := <-w.asks:
			if asked := r.askClient(ctx, req, w, q); asked != nil {
				return asked, nil
			}
		case <-w.done:
			for len(w.tells) > 0 {
				steps.tell(ctx, <-w.tells)
			}
			return w.result, nil
		}
	}
}

// askClient asks the person at the client a question. A result asks for another request with the answer; nil means
// that the question is answered.
func (r *tenant) askClient(ctx context.Context, req *sdk.CallToolRequest, w *clientCall, q question) *sdk.CallToolResult {
	if !hasForms(req) {
		d := event.Decided{Call: q.Call.ID, By: "nobody", Reason: "it needs approval, and this client can't ask anybody for it"}
		if q.IsQuestion {
			d.Reason = "nobody is here to answer; decide yourself, and say what you decided"
		}
		q.answer <- d
		return nil
	}
	if req.ProtocolVersion() >= sessionless {
		return r.parkCall(w, q)
	}
	patient, stop := context.WithTimeout(ctx, q.waitTime(w))
	defer stop()
	defer context.AfterFunc(q.open, stop)()
	res, err := req.Session.Elicit(patient, form(q.Pending))
	switch {
	case ctx.Err() != nil, q.open.Err() != nil: // the call is about to be cancelled, or continues
	case patient.Err() != nil:
		q.answer <- words.TooLate(q.Call.ID)
	case err != nil:
		q.answer <- event.Decided{Call: q.Call.ID, By: w.client, Reason: "the client could not ask: " + words.OneLine(err.Error(), 200)}
	default:
		d, problem := decision(q.Pending, res, w.client)
		d.Reason = cmp.Or(problem, d.Reason)
		q.answer <- d
	}
	return nil
}

// waitTime returns how long a question waits.
func (q question) waitTime(w *clientCall) time.Duration {
	if q.Until.IsZero() {
		return w.wait
	}
	return min(w.wait, max(0, time.Until(q.Until)))
}

func hasForms(req *sdk.CallToolRequest) bool {
	c := req.ClientCapabilities()
	return c != nil && c.Elicitation != nil && (c.Elicitation.Form != nil || c.Elicitation.URL == nil)
}

// answerName is the name of the only input that is ever requested.
const answerName = "decision"

// parkCall leaves a call waiting for the request that answers its question.
func (r *tenant) parkCall(w *clientCall, q question) *sdk.CallToolResult {
	key := rand.Text()
	p := &parked{work: w, question: q}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.parked) >= maxParked {
		q.answer <- event.Decided{Call: q.Call.ID, By: w.client, Reason: "too many questions wait for an answer"}
		return nil
	}
	r.parked[key] = p
	p.late = time.AfterFunc(q.waitTime(w), func() {
		if r.takeParked(key, w.key) != nil {
			q.answer <- words.TooLate(q.Call.ID)
		}
	})
	return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{answerName: form(q.Pending)}, RequestState: key}
}

// takeParked takes a parked call, if key and call match.
func (r *tenant) takeParked(key, call string) *parked {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.parked[key]
	if p == nil || p.work.key != call {
		return nil
	}
	p.late.Stop()
	delete(r.parked, key)
	return p
}

// resume continues a call whose question a request answers.
func (r *tenant) resume(ctx context.Context, req *sdk.CallToolRequest, key string) (*sdk.CallToolResult, error) {
	p := r.takeParked(key, keyOf(req))
	if p == nil {
		return nil, &jsonrpc.Error{
			Code:    jsonrpc.CodeInvalidParams,
			Message: "no question of this call is open under this requestState; call the tool again",
		}
	}
	res, ok := req.Params.InputResponses[answerName].(*sdk.ElicitResult)
	problem := "no answer"
	var d event.Decided
	if ok {
		d, problem = decision(p.question.Pending, res, p.work.client)
	}
	if problem != "" {
		if again := r.parkCall(p.work, p.question); again != nil {
			return again, nil
		}
		return r.attendCall(ctx, req, p.work)
	}
	p.question.answer <- d
	return r.attendCall(ctx, req, p.work)
}

// ask asks the client that attends the call, and waits for the answer until the question is withdrawn.
func (w *clientCall) ask(ctx context.Context, p inspan.Pending) (event.Body, error) {
	q := question{p, ctx, make(chan event.Decided, 1)}
	select {
	case w.asks <- q:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case d := <-q.answer:
		return d, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// reportProgress reports progress to the client that attends the call, without waiting.
func (w *clientCall) reportProgress(text string) {
	select {
	case w.tells <- text:
	default:
	}
}

// grace is how long a run may take to stop after it is cancelled.
const grace = 10 * time.Second

// drive drives a session until it stops, and asks its questions. If the call is cancelled, the session is
// interrupted, and its processes have ended when drive returns.
func (w *clientCall) drive(s *inspan.Session, see func(event.Event), inputs ...event.Body) error {
	c := inspan.Conductor{
		Session: s, AskConcurrently: true, Grace: grace,
		OnEvent: func(e event.Event) error { see(e); return nil },
		Ask:     w.ask,
	}
	defer context.AfterFunc(w.ctx, func() { c.Interrupt(event.Cancelled{By: w.client}) })()
	return c.Run(context.WithoutCancel(w.ctx), inputs...)
}

// progress reports progress to a client that wants it.
type progress struct {
	request *sdk.CallToolRequest
	n       float64
}

func (p *progress) tell(ctx context.Context, text string) {
	token := p.request.Params.GetProgressToken()
	if token == nil {
		return
	}
	p.n++
	// A client that is gone is noticed elsewhere.
	_ = p.request.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: p.n, Message: text})
}

// failed returns the result of a call that could not be made.
func failed(err error) *sdk.CallToolResult {
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: err.Error()}}}
}

// unmarshal decodes the arguments of a call; without any, it decodes an empty object.
func unmarshal(raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		return nil
	}
	return json.Unmarshal(raw, into)
}
