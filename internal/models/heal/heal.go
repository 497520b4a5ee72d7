// Package heal resends a request without the parts that a server has refused, and remembers them.
//
// A refusal that names a parameter, a tool, a role or a field becomes a [Fact] about that endpoint and model. It
// holds for all later requests for a month; then the server is asked again. The rule knows no vendor and no list of
// parameters: the named part must be in the refused request, and be optional. Any other refusal is final.
//
//	known := &heal.Facts{Path: path}
//	at.HTTP = &heal.Transport{Next: at.HTTP}
//	m := &heal.Model{Model: (*openai.Model)(&at), Facts: known}
package heal

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"

	"github.com/inspan/inspan/llm"
)

// Model resends refused requests. They must go through a [Transport]. Safe for concurrent use if the wrapped model
// is.
type Model struct {
	llm.Model
	Facts *Facts
}

var _ llm.Model = (*Model)(nil)

// mostFacts is the maximum number of refusals that one request recovers from.
const mostFacts = 6

// Stream implements [llm.Model]. Each resent request is announced by a Retry chunk whose cause names the part that
// is now left out.
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		var news []Fact // not yet proven to help
		for attempt := 2; ; attempt++ {
			x := &exchange{facts: slices.Concat(m.Facts.List(), news)}
			e, answered := m.attempt(context.WithValue(ctx, key{}, x), told(req, x.facts), yield)
			if answered {
				for _, f := range news {
					_ = m.Facts.Learn(ctx, f) // a fact that can't be stored is learned again
				}
			}
			if e == nil {
				return
			}
			fact, found := x.learn(e)
			if !found || attempt > mostFacts || ctx.Err() != nil {
				yield(llm.Chunk{}, named(e, x.refusal))
				return
			}
			news = append(news, fact)
			again := *e
			again.Message = strings.TrimRight(again.Message, ". \n") + "; it is sent again, and " + fact.Words()
			if !yield(llm.Chunk{Retry: &llm.Retry{Attempt: attempt, Cause: &again}}, nil) {
				return
			}
		}
	}
}

// attempt forwards one stream. It returns the refusal, nil if there was none, and whether the model has answered.
func (m *Model) attempt(ctx context.Context, req llm.Request, yield func(llm.Chunk, error) bool) (refused *llm.Error, answered bool) {
	for c, err := range m.Model.Stream(ctx, req) {
		if e := llm.AsError(err); e != nil && (e.Kind == llm.KindInvalid || e.Kind == llm.KindHistory) {
			return e, false
		}
		answered = answered || c.Reply != nil
		if !yield(c, err) || err != nil {
			return nil, answered
		}
	}
	return nil, answered
}

// told tells the model which of its tools can't be used, so that it does not look for them.
func told(req llm.Request, facts []Fact) llm.Request {
	var tools []string
	for _, f := range facts {
		if name, isTool := strings.CutPrefix(f.Field, "tool "); isTool &&
			slices.ContainsFunc(req.Tools, func(t llm.ToolSpec) bool { return t.Name == name }) {
			tools = append(tools, name)
		}
	}
	if len(tools) > 0 {
		req.System = append(slices.Clone(req.System), "These tools can't be called with this model, as its server refuses the description of their arguments: "+
			strings.Join(tools, ", ")+".")
	}
	return req
}

// named adds the field to a final refusal that names it only in its JSON.
func named(e *llm.Error, refusal []byte) *llm.Error {
	field := place(refusal)
	if field == "" || strings.Contains(e.Message, field) {
		return e
	}
	out := *e
	out.Message = strings.TrimRight(e.Message, ". \n") + " (in " + field + ")"
	return &out
}

type key struct{}

// exchange is one request.
type exchange struct {
	facts   []Fact
	sent    []byte // its body
	refusal []byte // the body of an error response
}

// learn returns the fact that a refusal states; false means it names nothing whose removal helps.
func (x *exchange) learn(e *llm.Error) (Fact, bool) {
	if len(x.sent) == 0 || len(x.refusal) == 0 {
		return Fact{}, false
	}
	f, found := read(x.sent, string(x.refusal), e.Kind == llm.KindHistory)
	if !found || slices.ContainsFunc(x.facts, func(old Fact) bool { return old.Field == f.Field && old.To == f.To }) {
		return Fact{}, false
	}
	f.Said = e.Message
	return f, true
}

// Transport applies facts to the requests of a [Model].
type Transport struct {
	Next http.RoundTripper // nil means http.DefaultTransport
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	next := t.Next
	if next == nil {
		next = http.DefaultTransport
	}
	x, ok := r.Context().Value(key{}).(*exchange)
	if !ok || r.Method != http.MethodPost || r.Body == nil {
		return next.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if err != nil {
		return nil, err
	}
	x.sent = apply(body, x.facts)
	again := r.Clone(r.Context())
	again.ContentLength = int64(len(x.sent))
	again.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(x.sent)), nil }
	again.Body, _ = again.GetBody()
	resp, err := next.RoundTrip(again)
	if err != nil || resp.StatusCode < 400 || resp.StatusCode > 500 {
		return resp, err
	}
	const most = 64 << 10 // bytes
	var seen bytes.Buffer
	_, _ = io.CopyN(&seen, resp.Body, most) // a body that breaks off is used as far as it was read
	x.refusal = seen.Bytes()
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(x.refusal), resp.Body), resp.Body}
	return resp, nil
}

// object is a JSON object with its members in order.
type object []member

type member struct {
	key   string
	value json.RawMessage
}

// members returns the members of an object, nil if raw is not one.
func members(raw []byte) object {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	o := object{}
	for d.More() {
		t, err := d.Token()
		name, isText := t.(string)
		var value json.RawMessage
		if err != nil || !isText || d.Decode(&value) != nil {
			return nil
		}
		o = append(o, member{name, value})
	}
	return o
}

func (o object) get(name string) json.RawMessage {
	for _, m := range o {
		if m.key == name {
			return m.value
		}
	}
	return nil
}

func (o object) encode() []byte {
	out := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			out = append(out, ',')
		}
		name, _ := json.Marshal(m.key) // a string always marshals
		out = append(append(append(out, name...), ':'), m.value...)
	}
	return append(out, '}')
}

// elements returns the elements of a list, nil if raw is not one.
func elements(raw []byte) []json.RawMessage {
	var list []json.RawMessage
	if len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return list
}

func list(of []json.RawMessage) json.RawMessage {
	out := []byte{'['}
	for i, e := range of {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, e...)
	}
	return append(out, ']')
}
