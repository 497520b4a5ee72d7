package openaitest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/inspan/inspan/internal/testkit/fake"
	"github.com/inspan/inspan/llm"
)

// Responses is an [http.Handler] that answers POST .../responses as OpenAI
// does for a model that reasons and names phases. A request the vendor would
// refuse is answered with status 400 and never reaches Answer; if that is for its tools, it fails
// the test of StartResponses or ResponsesTransport. Safe for concurrent use if Answer is.
type Responses struct {
	// Answer decides what to do with a request; nil means an empty reply. An answer whose ErrorAt is set ends in an
	// "error" event.
	Answer func(r *http.Request, body []byte) Answer
	// Key is the API key to insist on; empty means any or none will do.
	Key string
	// Phases says that messages have a phase.
	Phases bool
	// Failed reports errors in the middle of a reply by "response.failed"
	// instead of an "error" event.
	Failed bool
	// NotStreamed sends the reply as one JSON object.
	NotStreamed bool

	active fake.Gauge
	judge  fake.Judge
}

// StartResponses serves s on a local port until the test ends and returns the
// base URL, which ends in "/v1".
func StartResponses(t testing.TB, s *Responses) string {
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.judge.Sit(t)
	return server.URL + "/v1"
}

// ResponsesTransport serves s in memory until the test ends, also within a
// synctest bubble. The base URL may be any.
func ResponsesTransport(t testing.TB, s *Responses) *http.Transport {
	s.judge.Sit(t)
	return fake.Pipe(t, s)
}

// InFlight returns how many requests are being answered.
func (s *Responses) InFlight() int { return s.active.Value() }

// ServeHTTP implements [http.Handler].
func (s *Responses) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer s.active.Enter()()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	sum := sha256.Sum256(body)
	id := hex.EncodeToString(sum[:12])
	w.Header().Set("X-Request-Id", "req_"+id)
	var req responseRequest
	e := refused(r, "/responses", "", s.Key)
	if e == nil {
		e = objected(s.judge.Hear(checkResponses(body, &req)))
	}
	a, ok := fake.Decide(w, r, body, e, s.Answer, fail)
	if !ok {
		return
	}
	n := responseRenderer{
		a: a, id: id, model: req.Model, phases: s.Phases,
		encrypted: slices.Contains(req.Include, "reasoning.encrypted_content"),
	}
	if s.NotStreamed || !req.Stream {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(n.whole())
		return
	}
	n.s = fake.NewStream(w, r, a, n.failure(s.Failed))
	n.stream()
}

// responseRenderer writes one reply.
type responseRenderer struct {
	a         Answer
	s         *fake.Stream // nil means only the output is wanted
	id, model string
	phases    bool
	encrypted bool
	sequence  int
	output    []string // done items
	thought   int      // index of the last reasoning item; -1: none
}

// event sends one event, whose further fields begin with a comma.
func (n *responseRenderer) event(kind, fields string) {
	if n.s == nil {
		return
	}
	n.s.Send(fmt.Appendf(nil, "event: %s\ndata: {\"type\":%q,\"sequence_number\":%d%s}\n\n", kind, kind, n.sequence, fields))
	n.sequence++
}

// stream renders the reply as the vendor does: the response as it begins, each
// item from added to done, the response as it ended.
func (n *responseRenderer) stream() {
	n.event("response.created", `,"response":`+n.response("in_progress", "null", "null"))
	n.event("response.in_progress", `,"response":`+n.response("in_progress", "null", "null"))
	n.items()
	status, reason := n.status()
	n.event("response."+status, `,"response":`+n.response(status, reason, n.figures()))
}

func (n *responseRenderer) whole() []byte {
	n.items()
	status, reason := n.status()
	return []byte(n.response(status, reason, n.figures()))
}

func (n *responseRenderer) items() {
	n.thought = -1
	for i, p := range n.a.Parts {
		switch v := p.(type) {
		case llm.Text:
			n.message(i, v.Text)
		case llm.Reasoning:
			n.reasoning(i, v)
		case llm.Call:
			n.call(i, v)
		}
	}
}

func (n *responseRenderer) status() (status, reason string) {
	word := n.a.StopReason
	if word == "" {
		switch n.a.Reason() {
		case llm.StopLength:
			word = "max_output_tokens"
		case llm.StopOther:
			word = "something_new"
		default:
			return "completed", "null"
		}
	}
	return "incomplete", `{"reason":` + fake.Quote(word) + `}`
}

func (n *responseRenderer) response(status, reason, usage string) string {
	output := "["
	for i, item := range n.output {
		if i > 0 {
			output += ","
		}
		output += item
	}
	return fmt.Sprintf(`{"id":"resp_%s","object":"response","created_at":1795000000,"status":%q,"error":null,"incomplete_details":%s,`+
		`"instructions":null,"model":%s,"output":%s],"parallel_tool_calls":true,"store":false,"tools":[],"usage":%s}`,
		n.id, status, reason, fake.Quote(n.model), output, usage)
}

func (n *responseRenderer) figures() string {
	u := n.a.Usage
	return fmt.Sprintf(`{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d,"cache_write_tokens":%d},"output_tokens":%d,`+
		`"output_tokens_details":{"reasoning_tokens":%d},"total_tokens":%d}`,
		u.Prompt(), u.CacheRead, u.CacheWrite, u.Output, u.Reasoning, u.Prompt()+u.Output)
}

// itemID returns the id of an item. It tells the validator which reasoning item of the reply it belongs to.
func (n *responseRenderer) itemID(prefix string, index int) string {
	with := "xx"
	if n.thought >= 0 {
		with = fmt.Sprintf("%02d", n.thought)
	}
	return fmt.Sprintf("%s_%s%02d%s", prefix, n.id, index, with)
}

// item sends an item: its beginning, what inner sends, and its end.
func (n *responseRenderer) item(index int, begin, end string, inner func(at string)) {
	at := fmt.Sprintf(`,"output_index":%d`, index)
	n.event("response.output_item.added", at+`,"item":`+begin)
	var id struct{ ID string }
	if err := json.Unmarshal([]byte(end), &id); err != nil {
		panic(err) // written here
	}
	inner(at + `,"item_id":` + fake.Quote(id.ID))
	n.output = append(n.output, end)
	n.event("response.output_item.done", at+`,"item":`+end)
}

func (n *responseRenderer) message(index int, text string) {
	kind, field, delta := "output_text", "text", "response.output_text"
	if n.a.Reason() == llm.StopRefusal {
		kind, field, delta = "refusal", "refusal", "response.refusal"
	}
	head := `{"id":` + fake.Quote(n.itemID("msg", index)) + `,"type":"message","role":"assistant","phase":` + n.phase(index)
	part := func(s string) string {
		return `{"type":` + fake.Quote(kind) + `,"annotations":[],` + fake.Quote(field) + `:` + fake.Quote(s) + `}`
	}
	n.item(index, head+`,"status":"in_progress","content":[]}`, head+`,"status":"completed","content":[`+part(text)+`]}`, func(at string) {
		at += `,"content_index":0`
		n.event("response.content_part.added", at+`,"part":`+part(""))
		for _, s := range n.a.Pieces(text) {
			n.event(delta+".delta", at+`,"delta":`+fake.Quote(s))
		}
		n.event(delta+".done", at+`,`+fake.Quote(field)+`:`+fake.Quote(text))
		n.event("response.content_part.done", at+`,"part":`+part(text))
	})
}

// phase returns the phase of a message: one before a call is not an answer.
func (n *responseRenderer) phase(index int) string {
	if !n.phases {
		return "null"
	}
	if len(n.a.Parts[index:].Calls()) > 0 {
		return `"commentary"`
	}
	return `"final_answer"`
}

func (n *responseRenderer) reasoning(index int, v llm.Reasoning) {
	n.thought = -1
	id := n.itemID("rs", index)
	n.thought = index
	summary, sealed := `[]`, `null`
	if string(v.Opaque) != `"redacted"` {
		summary = `[{"type":"summary_text","text":` + fake.Quote(v.Text) + `}]`
	}
	if n.encrypted {
		sealed = fake.Quote(seal(id, summary))
	}
	head := `{"id":` + fake.Quote(id) + `,"type":"reasoning","encrypted_content":`
	// The vendor warns that data in added may be incomplete.
	n.item(index, head+`"begun","summary":[]}`, head+sealed+`,"summary":`+summary+`}`, func(at string) {
		if summary == `[]` {
			return
		}
		at += `,"summary_index":0`
		n.event("response.reasoning_summary_part.added", at+`,"part":{"type":"summary_text","text":""}`)
		for _, s := range n.a.Pieces(v.Text) {
			n.event("response.reasoning_summary_text.delta", at+`,"delta":`+fake.Quote(s))
		}
		n.event("response.reasoning_summary_text.done", at+`,"text":`+fake.Quote(v.Text))
		n.event("response.reasoning_summary_part.done", at+`,"part":{"type":"summary_text","text":`+fake.Quote(v.Text)+`}`)
	})
}

// seal stands for the encryption of a thought: it holds its id and summary.
func seal(id, summary string) string {
	sum := sha256.Sum256([]byte("openaitest:" + id + summary))
	return hex.EncodeToString(sum[:])
}

func (n *responseRenderer) call(index int, c llm.Call) {
	args := fake.ArgText(c)
	head := `{"id":` + fake.Quote(n.itemID("fc", index)) + `,"type":"function_call","call_id":` + fake.Quote(c.ID) + `,"name":` + fake.Quote(c.Name)
	n.item(index, head+`,"status":"in_progress","arguments":""}`, head+`,"status":"completed","arguments":`+fake.Quote(args)+`}`, func(at string) {
		for _, s := range n.a.Pieces(args) {
			n.event("response.function_call_arguments.delta", at+`,"delta":`+fake.Quote(s))
		}
		n.event("response.function_call_arguments.done", at+`,"arguments":`+fake.Quote(args))
	})
}

// failure returns the event that reports the error of the answer.
func (n *responseRenderer) failure(failed bool) []byte {
	code, message := "null", fake.Quote(n.a.Message)
	if n.a.Code != "" {
		code = fake.Quote(n.a.Code)
	}
	if failed {
		return fmt.Appendf(nil, "event: response.failed\ndata: "+
			"{\"type\":\"response.failed\",\"sequence_number\":0,\"response\":{\"id\":\"resp_%s\","+
			"\"object\":\"response\",\"status\":\"failed\",\"error\":{\"code\":%s,\"message\":%s},\"incomplete_details\":null,\"output\":[],\"usage\":null}}\n\n", n.id, code, message)
	}
	return fmt.Appendf(nil, "event: error\ndata: {\"type\":\"error\",\"sequence_number\":0,\"code\":%s,\"message\":%s,\"param\":null}\n\n",
		code, message)
}
