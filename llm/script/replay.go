package script

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"

	"github.com/inspan/inspan/llm"
)

// A cassette is a text file with one JSON object per line: the model's Info, then one exchange per line. An
// exchange holds the request, without the messages that it shares with the start of the previous request, and every
// chunk of the answer. Keys and headers belong to the layer below and are never on a cassette; the conversation is,
// in full.

// version is the version of the format.
const version = 1

// header is the first line of a cassette.
type header struct {
	Cassette int      `json:"cassette"` // version
	Info     llm.Info `json:"info"`
}

// exchange is every other line.
type exchange struct {
	Same    int     `json:"same"` // number of leading messages shared with the previous exchange
	Request request `json:"request"`
	Chunks  []chunk `json:"chunks"`
	Error   *fault  `json:"error,omitempty"` // how the answer ended, if without a reply
}

// request holds the parts of a request that must be the same in playback. The system prompt is not among them: it
// names the day and the folder.
type request struct {
	Tools     []llm.ToolSpec `json:"tools"`
	Messages  []llm.Message  `json:"messages"` // after the Same shared ones
	MaxOutput int            `json:"max_output,omitempty"`
	Effort    string         `json:"effort,omitempty"`
	Purpose   string         `json:"purpose,omitempty"`
}

type chunk struct {
	Text      string         `json:"text,omitempty"`
	Reasoning string         `json:"reasoning,omitempty"`
	Call      *llm.CallDelta `json:"call,omitempty"`
	Retry     *retry         `json:"retry,omitempty"`
	Routed    *routed        `json:"routed,omitempty"`
	Reply     *llm.Reply     `json:"reply,omitempty"`
}

type retry struct {
	Attempt int     `json:"attempt"`
	Wait    float64 `json:"wait"`
	Cause   *fault  `json:"cause"`
}

type routed struct {
	Info   llm.Info `json:"info"`
	Rule   string   `json:"rule"`
	Reason string   `json:"reason"`
	Cause  *fault   `json:"cause,omitempty"`
}

// fault is an [llm.Error].
type fault struct {
	Kind       llm.Kind      `json:"kind"`
	Provider   string        `json:"provider,omitempty"`
	Status     int           `json:"status,omitempty"`
	Code       string        `json:"code,omitempty"`
	Message    string        `json:"message,omitempty"`
	Phase      string        `json:"phase,omitempty"`
	RetryAfter time.Duration `json:"retry_after,omitempty"` // nanoseconds
	Used       int           `json:"used,omitempty"`
	Limit      int           `json:"limit,omitempty"`
	RequestID  string        `json:"request_id,omitempty"`
	Err        string        `json:"err,omitempty"`
}

func faultOf(e *llm.Error) *fault {
	if e == nil {
		return nil
	}
	f := &fault{
		Kind: e.Kind, Provider: e.Provider, Status: e.Status, Code: e.Code, Message: e.Message, Phase: e.Phase,
		RetryAfter: e.RetryAfter, Used: e.Used, Limit: e.Limit, RequestID: e.RequestID,
	}
	if e.Err != nil {
		f.Err = e.Err.Error()
	}
	return f
}

func (f *fault) asError() *llm.Error {
	if f == nil {
		return nil
	}
	e := &llm.Error{
		Kind: f.Kind, Provider: f.Provider, Status: f.Status, Code: f.Code, Message: f.Message, Phase: f.Phase,
		RetryAfter: f.RetryAfter, Used: f.Used, Limit: f.Limit, RequestID: f.RequestID,
	}
	if f.Err != "" {
		e.Err = errors.New(f.Err)
	}
	return e
}

func chunkOf(c llm.Chunk) chunk {
	out := chunk{Text: c.Text, Reasoning: c.Reasoning, Call: c.Call, Reply: c.Reply}
	if c.Retry != nil {
		out.Retry = &retry{c.Retry.Attempt, c.Retry.Wait, faultOf(c.Retry.Cause)}
	}
	if c.Routed != nil {
		out.Routed = &routed{c.Routed.Info, c.Routed.Rule, c.Routed.Reason, faultOf(c.Routed.Cause)}
	}
	return out
}

func (c chunk) chunk() llm.Chunk {
	out := llm.Chunk{Text: c.Text, Reasoning: c.Reasoning, Call: c.Call, Reply: c.Reply}
	if c.Retry != nil {
		out.Retry = &llm.Retry{Attempt: c.Retry.Attempt, Wait: c.Retry.Wait, Cause: c.Retry.Cause.asError()}
	}
	if c.Routed != nil {
		out.Routed = &llm.Routed{Info: c.Routed.Info, Rule: c.Routed.Rule, Reason: c.Routed.Reason, Cause: c.Routed.Cause.asError()}
	}
	return out
}

func requestOf(req llm.Request) request {
	return request{Tools: req.Tools, Messages: req.Messages, MaxOutput: req.MaxOutput, Effort: req.Effort, Purpose: req.Purpose}
}

// Recorder is a model that records every exchange of another. An exchange is written when it is over, in one write.
// An answer that was not read to its end is written as far as it was read, and fails in playback. Safe for
// concurrent use; do not copy.
type Recorder struct {
	Model llm.Model
	To    io.Writer

	mu   sync.Mutex
	any  bool
	last [][sha256.Size]byte // digests of the previous exchange's messages
	err  error
}

var _ llm.Model = (*Recorder)(nil)

// Info implements [llm.Model].
func (r *Recorder) Info() llm.Info { return r.Model.Info() }

// Stream implements [llm.Model]. If the cassette can't be written it fails with KindInvalid, so that a missing
// record is noticed.
func (r *Recorder) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		var x exchange
		var end llm.Chunk
		var failed error
		for c, err := range r.Model.Stream(ctx, req) {
			if err != nil {
				x.Error, failed = faultOf(llm.AsError(err)), err
				break
			}
			x.Chunks = append(x.Chunks, chunkOf(c))
			if end = c; c.Reply != nil {
				break
			}
			if !yield(c, nil) {
				x.Error = faultOf(&llm.Error{Kind: llm.KindStreamCut, Message: "nobody read on when this was recorded"})
				_ = r.write(req, x) // the caller has stopped reading
				return
			}
		}
		if err := r.write(req, x); err != nil {
			failed = &llm.Error{Kind: llm.KindInvalid, Message: "write the cassette: " + err.Error(), Err: err}
		}
		switch {
		case failed != nil:
			yield(llm.Chunk{}, failed)
		case end.Reply != nil:
			yield(end, nil)
		}
	}
}

func (r *Recorder) write(req llm.Request, x exchange) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return r.err
	}
	now := make([][sha256.Size]byte, len(req.Messages))
	for i, m := range req.Messages {
		now[i] = sha256.Sum256(inJSON(m))
	}
	x.Request = requestOf(req)
	for x.Same < min(len(now), len(r.last)) && now[x.Same] == r.last[x.Same] {
		x.Same++
	}
	x.Request.Messages = req.Messages[x.Same:]
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if !r.any {
		r.err = enc.Encode(header{version, r.Model.Info()})
	}
	r.err = errors.Join(r.err, enc.Encode(x))
	if r.err == nil {
		_, r.err = r.To.Write(buf.Bytes())
	}
	r.any, r.last = true, now
	return r.err
}

// common counts the leading messages that two lists share.
func common(a, b []llm.Message) int {
	n := 0
	for n < min(len(a), len(b)) && sameJSON(a[n], b[n]) {
		n++
	}
	return n
}

func sameJSON(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// Player plays a cassette. Each request gets the answer to the first equal exchange that was not played yet, so
// that sessions which were recorded concurrently may come in another order. Safe for concurrent use.
type Player struct {
	info llm.Info

	mu        sync.Mutex
	exchanges []exchange // with all messages
	played    []bool
}

var _ llm.Model = (*Player)(nil)

// Play reads a cassette to its end. The error names the line.
func Play(cassette io.Reader) (*Player, error) {
	dec := json.NewDecoder(cassette)
	var h header
	if err := dec.Decode(&h); err != nil {
		return nil, fmt.Errorf("read cassette: line 1 is not that of a cassette: %w", err)
	}
	if h.Cassette != version {
		return nil, fmt.Errorf("read cassette: it is of version %d; this program reads version %d", h.Cassette, version)
	}
	p := &Player{info: h.Info}
	var last []llm.Message
	for line := 2; ; line++ {
		var x exchange
		err := dec.Decode(&x)
		if errors.Is(err, io.EOF) {
			p.played = make([]bool, len(p.exchanges))
			return p, nil
		}
		if err == nil && (x.Same < 0 || x.Same > len(last)) {
			err = fmt.Errorf("it goes on behind message %d of %d", x.Same, len(last))
		}
		if err != nil {
			return nil, fmt.Errorf("read cassette: line %d: %w", line, err)
		}
		last = append(last[:x.Same:x.Same], x.Request.Messages...)
		x.Request.Messages = last
		p.exchanges = append(p.exchanges, x)
	}
}

// Info implements [llm.Model]. It returns the Info of the recorded model.
func (p *Player) Info() llm.Info { return p.info }

// Stream implements [llm.Model]. A request that was not recorded fails with KindInvalid and names the difference
// from the expected one.
func (p *Player) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		if ctx.Err() != nil {
			yield(llm.Chunk{}, llm.AsError(ctx.Err()))
			return
		}
		x, err := p.find(requestOf(req))
		if err != nil {
			yield(llm.Chunk{}, &llm.Error{Kind: llm.KindInvalid, Provider: p.info.Provider, Message: err.Error()})
			return
		}
		for _, c := range x.Chunks {
			if ctx.Err() != nil {
				yield(llm.Chunk{}, llm.AsError(ctx.Err()))
				return
			}
			if !yield(c.chunk(), nil) {
				return
			}
		}
		if x.Error != nil {
			yield(llm.Chunk{}, x.Error.asError())
		}
	}
}

// find returns the exchange to play.
func (p *Player) find(req request) (exchange, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := -1
	for i, x := range p.exchanges {
		if p.played[i] {
			continue
		}
		if next < 0 {
			next = i
		}
		if sameJSON(x.Request, req) {
			p.played[i] = true
			return x, nil
		}
	}
	if next < 0 {
		return exchange{}, fmt.Errorf("the cassette is over: all %d exchanges were played", len(p.exchanges))
	}
	return exchange{}, fmt.Errorf("exchange %d was recorded with another request: %s", next+1, difference(p.exchanges[next].Request, req))
}

// difference describes where a request differs from the recorded one.
func difference(recorded, now request) string {
	n := common(recorded.Messages, now.Messages)
	switch {
	case n < len(recorded.Messages) && n < len(now.Messages):
		return fmt.Sprintf("message %d is %.200q, and was %.200q", n+1, inJSON(now.Messages[n]), inJSON(recorded.Messages[n]))
	case n < len(recorded.Messages):
		return fmt.Sprintf("it has %d messages, and had %d", n, len(recorded.Messages))
	case n < len(now.Messages):
		return fmt.Sprintf("it has %d messages, and had %d", len(now.Messages), n)
	}
	if !sameJSON(recorded.Tools, now.Tools) {
		return "the tools are others"
	}
	return fmt.Sprintf("its settings are %s, and were %s", now.settings(), recorded.settings())
}

func (r request) settings() string {
	return fmt.Sprintf("effort %q, max output %d, purpose %q", r.Effort, r.MaxOutput, r.Purpose)
}

func inJSON(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		return []byte(err.Error())
	}
	return raw
}
