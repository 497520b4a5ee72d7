package wire

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"time"

	"github.com/inspan/inspan/internal/models/reaction"
	"github.com/inspan/inspan/llm"
)

// A Post is one request. It does not follow redirects: they would send the key to another host.
type Post struct {
	Method    string // empty means POST
	Provider  string
	URL       string
	Header    http.Header // the vendor's headers, in addition to those of every request
	Extra     http.Header // configured headers; they override all others
	KeyHeader string      // header for the key; in "Authorization" it is a bearer token
	Key       func(ctx context.Context) (string, error)
	Body      []byte
	HTTP      http.RoundTripper // nil means http.DefaultTransport, so that connections are shared and kept alive
	Deadlines llm.Deadlines     // zero fields take the defaults documented there
	MaxOutput int               // most tokens of the reply, which bound its size; 0 if unknown
}

// A Reply is the server's answer, whose body is read within the deadlines. Errors of Read other than io.EOF are
// [*llm.Error]. Not safe for concurrent use. Close it.
type Reply struct {
	Status int
	Header http.Header

	provider string
	server   string   // as [llm.Reply] has it
	secrets  []string // removed from every error
	body     io.ReadCloser
	in       *bufio.Reader // the body, unpacked and limited
	most     replySize
	parent   context.Context
	ctx      context.Context
	watch    *watchdog
}

// Send sends the request and returns the stream of an answer with status 200. classify turns any other answer into
// an error. The error is an [*llm.Error].
func (p Post) Send(ctx context.Context, classify func(status int, body []byte) *llm.Error) (*Reply, error) {
	header, err := p.header(ctx)
	if err != nil && ctx.Err() != nil {
		return nil, &llm.Error{Kind: llm.KindCancelled, Provider: p.Provider, Err: context.Cause(ctx)}
	}
	if err != nil {
		return nil, &llm.Error{Kind: llm.KindAuth, Provider: p.Provider, Message: "no API key: " + err.Error(), Err: err}
	}
	r, err := p.do(ctx, header)
	if err != nil {
		return nil, err
	}
	page := r.Status == http.StatusOK && (r.first() == "<" || header.Get("Accept") == streams && r.prose())
	if r.Status == http.StatusOK && !page {
		return r, nil
	}
	defer r.Close()
	body := r.ErrorBody()
	e := p.elsewhere(r, body, page)
	if e == nil {
		e = classify(r.Status, body)
	}
	if e.RetryAfter == 0 {
		e.RetryAfter = retryInfo(body)
	}
	return nil, r.Complete(e)
}

// Ask sends a request with one short answer, and returns its body of at most limit bytes. The error is an
// [*llm.Error].
func (p Post) Ask(ctx context.Context, limit int64, classify func(status int, body []byte) *llm.Error) (json.RawMessage, error) {
	header := http.Header{}
	maps.Copy(header, p.Header)
	header.Set("Accept", "application/json")
	p.Header = header
	reply, err := p.Send(ctx, classify)
	if err != nil {
		return nil, err
	}
	defer reply.Close()
	body, err := io.ReadAll(io.LimitReader(reply, limit))
	if err != nil {
		return nil, reply.Complete(err)
	}
	return body, nil
}

// Within bounds all the requests of one task: by the total deadline of the endpoint, or by the usual one for the
// task.
func Within(ctx context.Context, at llm.Endpoint, provider string, usual time.Duration) (context.Context, context.CancelFunc) {
	total := at.Deadlines.Or(llm.Deadlines{Total: usual}).Total
	if total <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, total, &llm.Error{Kind: llm.KindTimeout, Provider: provider, Phase: "total"})
}

// streams is the media type of server-sent events.
const streams = "text/event-stream"

func (p Post) header(ctx context.Context) (http.Header, error) {
	h := http.Header{
		"Content-Type":    {"application/json"},
		"Accept":          {streams},
		"Accept-Encoding": {"identity"}, // compression would delay the events
		"User-Agent":      {"inspan"},
		// It is not sent, but it lets the transport retry on a new connection if the server has just closed the old
		// one, as llama.cpp does.
		"Idempotency-Key": {},
	}
	maps.Copy(h, p.Header)
	if p.Key != nil {
		key, err := p.Key(ctx)
		if err != nil {
			return nil, err
		}
		if p.KeyHeader == "Authorization" {
			key = "Bearer " + key
		}
		h.Set(p.KeyHeader, key)
	}
	for name, values := range p.Extra {
		h[http.CanonicalHeaderKey(name)] = values
	}
	return h, nil
}

// do returns when the header of the answer has arrived, whatever its status.
func (p Post) do(parent context.Context, header http.Header) (*Reply, error) {
	ctx, cancel := context.WithCancelCause(parent)
	d := p.Deadlines.Or(llm.Deadlines{
		Connect: 15 * time.Second, FirstByte: 120 * time.Second,
		Idle: 120 * time.Second, Total: 30 * time.Minute,
	})
	w := newWatchdog(cancel, p.Provider, d)
	r := &Reply{provider: p.Provider, secrets: Secrets(header, p.KeyHeader), most: sizeOf(p.MaxOutput), parent: parent, ctx: ctx, watch: w}
	req, err := http.NewRequestWithContext(w.trace(ctx), cmp.Or(p.Method, http.MethodPost), p.URL, bytes.NewReader(p.Body))
	if err != nil {
		w.stop()
		return nil, &llm.Error{Kind: llm.KindInvalid, Provider: p.Provider, Message: "bad base URL"}
	}
	req.Header = header
	r.server = net.JoinHostPort(req.URL.Hostname(), cmp.Or(req.URL.Port(), map[string]string{"http": "80"}[req.URL.Scheme], "443"))
	tripper := p.HTTP
	if tripper == nil {
		tripper = http.DefaultTransport
	}
	resp, err := tripper.RoundTrip(req) //nolint:bodyclose // Reply.Close closes it
	if err != nil {
		defer w.stop()
		return nil, r.failure(err, llm.KindTransient)
	}
	r.Status, r.Header, r.body = resp.StatusCode, resp.Header, resp.Body
	sent := &sized{src: arriving{r}, left: r.most.body}
	r.in = bufio.NewReader(&sized{src: unpacked(resp.Header, sent), left: r.most.body})
	return r, nil
}

// Exchange sends the request and yields what read makes of the answer: its chunks, and at the end the complete reply.
// Read returns nil without an error if the consumer stopped.
func (p Post) Exchange(
	ctx context.Context, classify func(int, []byte) *llm.Error, yield func(llm.Chunk, error) bool,
	read func(r *Reply, emit func(llm.Chunk) bool) (*llm.Reply, error),
) {
	r, err := p.Send(ctx, classify)
	if err != nil {
		yield(llm.Chunk{}, err)
		return
	}
	defer r.Close()
	emit, over := r.Bounded(func(c llm.Chunk) bool { return yield(c, nil) })
	reply, err := read(r, emit)
	if err == nil {
		err = over()
	}
	switch {
	case err != nil:
		yield(llm.Chunk{}, r.Complete(err))
	case reply != nil:
		r.Name(reply)
		yield(llm.Chunk{Reply: reply}, nil)
		r.Finish()
	}
}

// Cut returns the error for a stream that ended with err before the reply was complete.
func Cut(err error) *llm.Error {
	var e *llm.Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, io.EOF):
		return &llm.Error{Kind: llm.KindStreamCut, Message: "the stream ended before the reply was complete"}
	}
	return &llm.Error{Kind: llm.KindStreamCut, Err: err}
}

// List asks for a list of at most 4 MiB, and decodes it. Deadlines.Total of at bounds the whole; 0 means 30 s.
func (p Post) List(ctx context.Context, at llm.Endpoint, classify func(int, []byte) *llm.Error, into any) error {
	ctx, cancel := Within(ctx, at, p.Provider, 30*time.Second)
	defer cancel()
	p.Method = http.MethodGet
	body, err := p.Ask(ctx, 4<<20, classify)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return &llm.Error{Kind: llm.KindInvalid, Provider: p.Provider, Message: "the list of models is not one", Err: err}
	}
	return nil
}

// Complete adds the facts of the exchange to a classified error, and limits the wait that it asks for. A vendor
// that asks for payment and names a time means an allowance that comes back, as OpenRouter does while other
// requests hold the budget.
func (r *Reply) Complete(err error) error {
	e := llm.AsError(err)
	e.Provider = r.provider
	if e.RequestID == "" {
		e.RequestID = r.RequestID()
	}
	if p := reaction.To(e.Kind); e.RetryAfter == 0 && (p == reaction.Retry || p == reaction.Await || e.Kind == llm.KindBilling) {
		e.RetryAfter = RetryAfter(r.Header, e.Message, time.Now())
	}
	e.RetryAfter = bounded(e.RetryAfter)
	if e.Kind == llm.KindBilling && e.RetryAfter > 0 {
		e.Kind = llm.KindQuota
	}
	e.Message = Redact(e.Message, r.secrets...)
	return e
}

// Name records the exchange in a reply.
func (r *Reply) Name(reply *llm.Reply) {
	reply.Server = r.server
	if reply.RequestID == "" {
		reply.RequestID = r.RequestID()
	}
}

// RequestID returns the vendor's id of the exchange, or that of the gateway in front of it; "" if there is none.
func (r *Reply) RequestID() string {
	for _, name := range []string{"X-Request-Id", "Request-Id", "X-Generation-Id", "X-Amzn-Requestid", "Cf-Ray"} {
		if id := r.Header.Get(name); id != "" {
			return id
		}
	}
	return ""
}

// failure returns the reason why the exchange broke: the caller, one of our deadlines, a transport that knows the
// reason, such as one that found no credentials to sign with, or the other side, which gives kind.
func (r *Reply) failure(err error, kind llm.Kind) error {
	var timeout, known *llm.Error
	if errors.As(context.Cause(r.ctx), &timeout) {
		return timeout // ours, or the caller's
	}
	if e := context.Cause(r.parent); e != nil {
		return &llm.Error{Kind: llm.KindCancelled, Provider: r.provider, Err: e}
	}
	if errors.As(err, &known) {
		own := *known
		own.Provider = r.provider
		return &own
	}
	var untrusted *tls.CertificateVerificationError
	var unsealed tls.RecordHeaderError
	if errors.As(err, &untrusted) || errors.As(err, &unsealed) {
		kind = llm.KindNoReply // a retry would reach the same server
	}
	return &llm.Error{Kind: kind, Provider: r.provider, Err: err}
}

// Read implements [io.Reader].
func (r *Reply) Read(b []byte) (int, error) {
	n, err := r.in.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = r.failure(err, llm.KindStreamCut)
	}
	return n, err
}

// arriving tells the watchdog that bytes have arrived.
type arriving struct{ r *Reply }

func (a arriving) Read(b []byte) (int, error) {
	n, err := a.r.body.Read(b)
	if n > 0 {
		a.r.watch.touch()
	}
	return n, err
}

// sized limits the bytes of a body.
type sized struct {
	src  io.Reader
	left int64
}

func (s *sized) Read(b []byte) (int, error) {
	n, err := s.src.Read(b)
	if s.left -= int64(n); s.left < 0 {
		return 0, Endless()
	}
	return n, err
}

// Endless returns the error for a reply that is longer than any model's.
func Endless() *llm.Error {
	return &llm.Error{Kind: llm.KindNoReply, Message: "the reply has no end: it was given up because it is longer than any model writes"}
}

// Finish reads the few bytes that may follow the last event, so that the connection can be reused, and closes. It
// waits at most 50 ms.
func (r *Reply) Finish() {
	r.watch.enter("drain", 50*time.Millisecond)
	_, _ = io.CopyN(io.Discard, r.in, 16<<10)
	r.Close()
}

// Close ends the exchange and frees its connection.
func (r *Reply) Close() {
	r.watch.stop()
	_ = r.body.Close()
}

// ErrorBody returns at most the first 64 KiB of the body of an error answer. If the body breaks off, it returns the
// part that arrived.
func (r *Reply) ErrorBody() []byte {
	b, _ := io.ReadAll(io.LimitReader(r, 64<<10))
	return b
}

// Redact replaces every secret in s, because servers may repeat the key in their texts.
func Redact(s string, secrets ...string) string {
	for _, secret := range secrets {
		if len(secret) >= 6 {
			s = strings.ReplaceAll(s, secret, "[key]")
		}
	}
	return s
}

// watchdog cancels an exchange when a deadline passes. It keeps one timer for the current phase, which is reset
// only when it fires: a read costs one look at the clock.
type watchdog struct {
	cancel   context.CancelCauseFunc
	provider string
	limits   llm.Deadlines

	mu       sync.Mutex
	phase    string
	limit    time.Duration // of the phase; 0 means none
	deadline time.Time
	timer    *time.Timer
	total    *time.Timer
	stopped  bool
}

func newWatchdog(cancel context.CancelCauseFunc, provider string, d llm.Deadlines) *watchdog {
	w := &watchdog{cancel: cancel, provider: provider, limits: d}
	if d.Total > 0 {
		w.total = time.AfterFunc(d.Total, func() { w.expire("total") })
	}
	w.enter("first byte", d.FirstByte)
	return w
}

// trace separates the phase of connecting from that of waiting. A transport that reports no connections has no
// connect phase.
func (w *watchdog) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { w.enter("connect", w.limits.Connect) },
		GotConn: func(httptrace.GotConnInfo) { w.enter("first byte", w.limits.FirstByte) },
	})
}

// enter begins a phase that may last d; 0 or less means forever.
func (w *watchdog) enter(phase string, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	w.phase, w.limit = phase, max(d, 0)
	if w.limit == 0 {
		return
	}
	w.deadline = time.Now().Add(w.limit)
	if w.timer == nil {
		w.timer = time.AfterFunc(w.limit, w.fire)
		return
	}
	w.timer.Reset(w.limit)
}

// touch records that bytes arrived.
func (w *watchdog) touch() {
	w.mu.Lock()
	phase := w.phase
	if phase == "idle" {
		w.deadline = time.Now().Add(w.limit)
	}
	w.mu.Unlock()
	if phase == "first byte" {
		w.enter("idle", w.limits.Idle)
	}
}

func (w *watchdog) fire() {
	w.mu.Lock()
	if w.stopped || w.limit == 0 {
		w.mu.Unlock()
		return
	}
	if left := time.Until(w.deadline); left > 0 {
		w.timer.Reset(left)
		w.mu.Unlock()
		return
	}
	phase := w.phase
	w.mu.Unlock()
	w.expire(phase)
}

func (w *watchdog) expire(phase string) {
	w.cancel(&llm.Error{Kind: llm.KindTimeout, Provider: w.provider, Phase: phase})
}

func (w *watchdog) stop() {
	w.mu.Lock()
	w.stopped = true
	if w.timer != nil {
		w.timer.Stop()
	}
	if w.total != nil {
		w.total.Stop()
	}
	w.mu.Unlock()
	w.cancel(nil)
}
