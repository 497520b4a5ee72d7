// Package openaitest is a fake of OpenAI's Chat Completions and Responses APIs
// that speaks the true streaming wires, on request with the habits of
// imitators, and refuses what the vendor refuses.
package openaitest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/testkit/fake"
	"github.com/inspan/inspan/llm"
)

// Answer is the reaction of the server to one request.
type Answer = fake.Answer

// Server is an [http.Handler] that answers POST .../chat/completions, and GET
// requests for its models. A request the vendor would refuse is answered with
// status 400 and never reaches Answer; if that is for its tools or messages, it fails the test
// of Start or Transport. Safe for concurrent use if Answer is.
type Server struct {
	// Answer decides what to do with a request; nil means an empty reply.
	Answer func(r *http.Request, body []byte) Answer
	// Key is the API key to insist on; empty means any or none will do.
	Key string
	// Dialect names the server to imitate, as in openai.Dialects. It requires and refuses the same as that server.
	// Empty means OpenAI, with lenient checks of thoughts.
	Dialect string
	// Habits are those of an imitator; the zero value is those of Dialect.
	Habits Habits
	// Models are the models on offer. It reveals no more about them than Dialect does.
	Models []llm.Info

	active fake.Gauge
	judge  fake.Judge
}

// Habits are the differences of servers.
type Habits struct {
	// Reasoning is the field of thoughts: "reasoning_content" (the default),
	// "reasoning", "reasoning_details", "parts" of the content, or "none".
	Reasoning    string
	Comments     bool // ": OPENROUTER PROCESSING" before the first event
	NoUsage      bool // no usage at all
	ChoiceUsage  bool // usage within the last choice
	NoDone       bool // no "[DONE]"
	NoIDs        bool // calls have no ids
	SameIDs      bool // ids are numbered from the start in every reply
	NoIndex      bool // tool deltas have no index
	WholeCalls   bool // a call comes in one delta
	ObjectArgs   bool // arguments are an object; only with WholeCalls
	DoubleArgs   bool // arguments are a string of a string; only with WholeCalls
	GrammarCalls bool // the name is among the arguments, as old TGI has it; only with WholeCalls
	NotStreamed  bool // the reply is one JSON object
}

// Start serves s on a local port until the test ends and returns the base URL,
// which ends in "/v1".
func Start(t testing.TB, s *Server) string {
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.judge.Sit(t)
	return server.URL + "/v1"
}

// Transport serves s in memory until the test ends, also within a synctest
// bubble. The base URL may be any.
func Transport(t testing.TB, s *Server) *http.Transport {
	s.judge.Sit(t)
	return fake.Pipe(t, s)
}

// NoTransport is a transport that never gets a connection, until the test ends.
func NoTransport(t testing.TB) *http.Transport { return fake.NoPipe(t) }

// InFlight returns how many requests are being answered.
func (s *Server) InFlight() int { return s.active.Value() }

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer s.active.Enter()()
	rules := rulesOf(s.Dialect)
	if r.Method == http.MethodGet {
		s.serveModels(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	sum := sha256.Sum256(body)
	id := hex.EncodeToString(sum[:12])
	w.Header().Set("X-Request-Id", "req_"+id)
	var req request
	e := refused(r, "/chat/completions", rules.keyHeader, s.Key)
	if e == nil {
		e = objected(s.judge.Hear(rules.validate(body, &req)))
	}
	a, ok := fake.Decide(w, r, body, e, s.Answer, func(w http.ResponseWriter, a Answer) {
		a.Body = string(rules.errorBody(a))
		fail(w, a)
	})
	if !ok {
		return
	}
	rn := renderer{a: a, habits: s.Habits, id: id, model: req.Model, usage: req.StreamOptions.IncludeUsage || rules.usage}
	if rn.habits == (Habits{}) {
		rn.habits = rules.habits
	}
	if s.Habits.NotStreamed || !req.Stream {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(rn.whole())
		return
	}
	rn.s = fake.NewStream(w, r, a, fmt.Appendf(nil, "data: %s\n\n", rules.errorBody(a)))
	rn.stream()
}

// refused returns the answer to a request for another path or with a wrong
// key, nil if it may pass.
func refused(r *http.Request, path, keyHeader, key string) *Answer {
	sent := r.Header.Get(keyHeader)
	if keyHeader == "" {
		sent = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	}
	switch {
	case r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, path):
		return &Answer{Status: 404, Type: "invalid_request_error", Message: "Invalid URL (" + r.Method + " " + r.URL.Path + ")"}
	case key != "" && sent != key:
		return &Answer{Status: 401, Type: "invalid_request_error", Code: "invalid_api_key", Message: "Incorrect API key provided."}
	}
	return nil
}

// objected returns the answer to an invalid request.
func objected(err error) *Answer {
	if err == nil {
		return nil
	}
	a := &Answer{Status: 400, Type: "invalid_request_error", Message: err.Error()}
	if strings.HasPrefix(a.Message, "Invalid schema for function") {
		a.Code = "invalid_function_parameters"
	}
	return a
}

func fail(w http.ResponseWriter, a Answer) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.Status)
	_, _ = w.Write(errorBody(a))
}

func errorBody(a Answer) []byte {
	if a.Body != "" {
		return []byte(a.Body)
	}
	var code any
	if a.Code != "" {
		code = a.Code
	}
	b, err := json.Marshal(map[string]any{
		"error": map[string]any{"message": a.Message, "type": a.Type, "param": nil, "code": code},
	})
	if err != nil {
		panic(err) // strings always marshal
	}
	return b
}

// renderer writes one reply.
type renderer struct {
	a      Answer
	habits Habits
	s      *fake.Stream
	id     string
	model  string
	usage  bool
	calls  int
}

// stream renders the reply as the vendor does: a chunk with the role, deltas,
// a chunk with the finish reason, one with the usage and no choice, [DONE].
func (n *renderer) stream() {
	if n.habits.Comments {
		n.s.Send([]byte(": OPENROUTER PROCESSING\n\n"))
	}
	n.delta(`"role":"assistant","content":""`)
	for _, p := range n.a.Parts {
		n.part(p)
	}
	last := ""
	if n.habits.ChoiceUsage {
		last = `,"usage":` + n.figures()
	}
	n.chunk(`[{"index":0,"delta":{},"logprobs":null,"finish_reason":`+n.finish()+last+`}]`, "null")
	if n.usage && !n.habits.NoUsage && !n.habits.ChoiceUsage {
		n.chunk(`[]`, n.figures())
	}
	if !n.habits.NoDone {
		n.s.Send([]byte("data: [DONE]\n\n"))
	}
}

func (n *renderer) delta(fields string) {
	n.chunk(`[{"index":0,"delta":{`+fields+`},"logprobs":null,"finish_reason":null}]`, "null")
}

func (n *renderer) chunk(choices, usage string) {
	b := append(make([]byte, 0, 300+len(choices)), `data: {"id":"chatcmpl-`...)
	b = append(append(b, n.id...), `","object":"chat.completion.chunk","created":1795000000,"model":`...)
	b = append(append(b, fake.Quote(n.model)...), `,"system_fingerprint":"fp_fake","choices":`...)
	b = append(b, choices...)
	if n.usage {
		b = append(append(b, `,"usage":`...), usage...)
	}
	n.s.Send(append(b, "}\n\n"...))
}

func (n *renderer) part(p llm.Part) {
	switch v := p.(type) {
	case llm.Text:
		field := `"content":`
		if n.a.Reason() == llm.StopRefusal {
			field = `"refusal":`
		}
		for _, s := range n.a.Pieces(v.Text) {
			n.delta(field + fake.Quote(s))
		}
	case llm.Reasoning:
		n.reasoning(v)
	case llm.Call:
		n.call(v)
	}
}

func (n *renderer) reasoning(v llm.Reasoning) {
	for _, s := range n.a.Pieces(v.Text) {
		switch n.habits.Reasoning {
		case "none":
		case "parts":
			n.delta(`"content":[{"type":"thinking","thinking":[{"type":"text","text":` + fake.Quote(s) + `}]}]`)
		case "reasoning_details":
			n.delta(`"reasoning":` + fake.Quote(s) + `,"reasoning_details":[{"type":"reasoning.text","text":` + fake.Quote(s) + `,"format":"fake","index":0}]`)
		case "reasoning":
			n.delta(`"reasoning":` + fake.Quote(s))
		default:
			n.delta(`"reasoning_content":` + fake.Quote(s))
		}
	}
	if n.habits.Reasoning == "reasoning_details" {
		n.delta(`"reasoning_details":[{"type":"reasoning.text","signature":` + fake.Quote(Sign(v.Text)) + `,"index":0}]`)
	}
}

// Sign returns the signature of reasoning_details, which must come back unmodified.
func Sign(text string) string {
	sum := sha256.Sum256([]byte("openaitest:" + text))
	return hex.EncodeToString(sum[:])
}

func (n *renderer) call(c llm.Call) {
	index := n.calls
	n.calls++
	position := fmt.Sprintf(`"index":%d,`, index)
	if n.habits.NoIndex {
		position = ""
	}
	args := fake.ArgText(c)
	if text, ok := grammar(c.Name, args); ok && n.habits.GrammarCalls {
		n.delta(`"tool_calls":{` + position + n.callID(c, index) + `"type":"function","function":{"name":null,"arguments":` + fake.Quote(text) + `}}`)
		return
	}
	open := position + n.callID(c, index) + `"type":"function","function":{"name":` + fake.Quote(c.Name) + `,"arguments":`
	if n.habits.WholeCalls {
		n.delta(`"tool_calls":[{` + open + n.wholeArgs(args) + `}}]`)
		return
	}
	n.delta(`"tool_calls":[{` + open + `""}}]`)
	for _, s := range n.a.Pieces(args) {
		n.delta(`"tool_calls":[{` + position + `"function":{"arguments":` + fake.Quote(s) + `}}]`)
	}
}

// grammar returns the output of a model that is bound to a grammar of its tools.
func grammar(name, args string) (string, bool) {
	var fields map[string]any
	if json.Unmarshal([]byte(args), &fields) != nil {
		return "", false
	}
	fields["_name"] = name
	return string(marshal(map[string]any{"function": fields})), true
}

func (n *renderer) callID(c llm.Call, index int) string {
	switch {
	case n.habits.NoIDs:
		return ""
	case n.habits.SameIDs:
		return fmt.Sprintf(`"id":"call_%d",`, index)
	}
	return `"id":` + fake.Quote(c.ID) + `,`
}

func (n *renderer) wholeArgs(args string) string {
	switch {
	case n.habits.ObjectArgs && json.Valid([]byte(args)):
		return args
	case n.habits.DoubleArgs:
		return fake.Quote(fake.Quote(args))
	}
	return fake.Quote(args)
}

func (n *renderer) finish() string {
	if n.a.StopReason == "null" {
		return "null"
	}
	if n.a.StopReason != "" {
		return fake.Quote(n.a.StopReason)
	}
	switch n.a.Reason() {
	case llm.StopCalls:
		return `"tool_calls"`
	case llm.StopLength:
		return `"length"`
	case llm.StopWindow:
		return `"model_context_window_exceeded"`
	case llm.StopOther:
		return `"something_new"`
	case llm.StopPause:
		return `"pause_turn"`
	default:
		return `"stop"`
	}
}

func (n *renderer) figures() string {
	u := n.a.Usage
	return fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d,`+
		`"cache_write_tokens":%d,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":%d}}`,
		u.Prompt(), u.Output, u.Prompt()+u.Output, u.CacheRead, u.CacheWrite, u.Reasoning)
}

// whole renders the reply as one object.
func (n *renderer) whole() []byte {
	message := `"role":"assistant","content":`
	if t := n.a.Parts.Text(); t != "" {
		message += fake.Quote(t)
	} else {
		message += "null"
	}
	for i, c := range n.a.Parts.Calls() {
		if i == 0 {
			message += `,"tool_calls":[`
		} else {
			message += `,`
		}
		message += `{` + n.callID(c, i) + `"type":"function","function":{"name":` +
			fake.Quote(c.Name) + `,"arguments":` + n.wholeArgs(fake.ArgText(c)) + `}}`
	}
	if len(n.a.Parts.Calls()) > 0 {
		message += `]`
	}
	return fmt.Appendf(nil, `{"id":"chatcmpl-%s","object":"chat.completion","created":1795000000,"model":%s,"choices":[{"index":0,`+
		`"message":{%s},"finish_reason":%s}],"usage":%s}`,
		n.id, fake.Quote(n.model), message, n.finish(), n.figures())
}
