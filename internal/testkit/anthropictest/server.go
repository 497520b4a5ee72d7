// Package anthropictest is a fake of the Anthropic Messages API that speaks
// the true streaming wire and refuses what the vendor refuses.
package anthropictest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/testkit/fake"
	"github.com/inspan/inspan/llm"
)

// Answer is the server's response to one request.
type Answer = fake.Answer

// Server is an [http.Handler] that answers POST /v1/messages, or the equivalent of a cloud. A request that the
// vendor would refuse is answered with status 400 and never reaches Answer; if the reason is its tools, it
// fails the test of Start or Transport. Safe for concurrent use if Answer is.
type Server struct {
	// Answer decides the response to a request; nil means an empty reply.
	Answer func(r *http.Request, body []byte) Answer
	// Key is the required API key, or the bearer token of a cloud; empty means any or none.
	Key string
	// Dialect is "bedrock" or "vertex" to play one of them; empty means the vendor's own API. Errors are those of
	// the cloud: an Answer's Type is the exception at Bedrock, and Google's status at Vertex AI if it is in
	// capitals.
	Dialect string
	// Secret is the secret key that Bedrock's requests must be signed with, for the access key "AKID", within five
	// minutes; empty means Key decides.
	Secret string
	// Models are the ids that GET /v1/models lists.
	Models []string

	active fake.Gauge
	judge  fake.Judge
}

// Start serves s on a local port until the test ends and returns its base URL.
func Start(t testing.TB, s *Server) string {
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.judge.Sit(t)
	return server.URL
}

// Transport serves s in memory until the test ends, also within a synctest
// bubble. The base URL may be any.
func Transport(t testing.TB, s *Server) *http.Transport {
	s.judge.Sit(t)
	return fake.Pipe(t, s)
}

// InFlight returns how many requests are being answered.
func (s *Server) InFlight() int { return s.active.Value() }

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer s.active.Enter()()
	if s.list(w, r) {
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	sum := sha256.Sum256(body)
	id := hex.EncodeToString(sum[:10])
	w.Header().Set(s.requestID(), "req_"+id)
	a, ok := fake.Decide(w, r, body, s.refuse(r, body), s.Answer, s.fail)
	if !ok {
		return
	}
	n := renderer{Server: s, a: a, id: id, model: s.model(r, body)}
	n.out = fake.NewStream(w, r, a, n.failure())
	if s.Dialect == "bedrock" {
		w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
	}
	n.render()
}

func (s *Server) requestID() string {
	if s.Dialect == "bedrock" {
		return "X-Amzn-Requestid"
	}
	return "Request-Id"
}

// refuse returns the answer to a malformed request, nil if it is valid.
func (s *Server) refuse(r *http.Request, body []byte) *Answer {
	switch s.Dialect {
	case "bedrock":
		return s.refuseBedrock(r, body)
	case "vertex":
		return s.refuseVertex(r, body)
	}
	switch {
	case r.Method != http.MethodPost || r.URL.Path != "/v1/messages":
		return &Answer{Status: 404, Type: "not_found_error", Message: "Not found"}
	case s.Key != "" && r.Header.Get("X-Api-Key") != s.Key:
		return &Answer{Status: 401, Type: "authentication_error", Message: "invalid x-api-key"}
	case r.Header.Get("Anthropic-Version") == "":
		return &Answer{Status: 400, Type: "invalid_request_error", Message: "anthropic-version: header is required"}
	}
	if err := s.judge.Hear(Validate(body)); err != nil {
		return &Answer{Status: 400, Type: "invalid_request_error", Message: err.Error()}
	}
	return nil
}

func (s *Server) fail(w http.ResponseWriter, a Answer) {
	w.Header().Set("Content-Type", "application/json")
	if s.Dialect == "bedrock" {
		w.Header().Set("X-Amzn-Errortype", a.Type+":http://internal.amazon.com/coral/com.amazon.bedrock/")
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write(s.errorBody(a))
}

func (s *Server) errorBody(a Answer) []byte {
	if a.Body != "" {
		return []byte(a.Body)
	}
	var v any = map[string]any{"type": "error", "error": map[string]string{"type": a.Type, "message": a.Message}}
	switch {
	case s.Dialect == "bedrock":
		v = map[string]string{"message": a.Message}
	case s.Dialect == "vertex" && strings.ToUpper(a.Type) == a.Type:
		details := []map[string]string{}
		if a.Code != "" {
			details = append(details, map[string]string{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": a.Code})
		}
		v = []any{map[string]any{"error": map[string]any{"code": a.Status, "message": a.Message, "status": a.Type, "details": details}}}
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings always marshal
	}
	return b
}

// renderer writes one reply.
type renderer struct {
	*Server
	a         Answer
	out       *fake.Stream
	id, model string
}

// event sends one event, as server-sent or in a frame.
func (n *renderer) event(name string, data []byte) {
	if n.Dialect != "bedrock" {
		n.out.Send(fmt.Appendf(nil, "event: %s\ndata: %s\n\n", name, data))
		return
	}
	n.out.Send(Frame(data))
}

// failure returns the whole event that reports an error within a reply.
func (n *renderer) failure() []byte {
	if n.Dialect != "bedrock" {
		return fmt.Appendf(nil, "event: error\ndata: %s\n\n", n.errorBody(n.a))
	}
	return Exception(n.a.Type, n.a.Message)
}

// render streams the reply: the prompt's usage at the start, a ping after the first block's beginning, the reply's
// usage at the end, as the vendor does.
func (n *renderer) render() {
	u := n.a.Usage
	model, _ := json.Marshal(n.model)
	n.event("message_start", fmt.Appendf(nil, `{"type":"message_start","message":{"id":"msg_%s","type":"message",`+
		`"role":"assistant","model":%s,"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":%d,`+
		`"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d,"output_tokens":1,"service_tier":"standard",`+
		`"cache_creation":{"ephemeral_5m_input_tokens":%d,"ephemeral_1h_input_tokens":0}}}}`,
		n.id, model, u.Input, u.CacheWrite, u.CacheRead, u.CacheWrite))
	for i, p := range n.a.Parts {
		n.block(i, p)
	}
	reason := n.a.StopReason
	if reason == "" {
		reason = stopReason(n.a.Reason())
	}
	n.event("message_delta", fmt.Appendf(nil, `{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},`+
		`"usage":{"input_tokens":%d,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d,"output_tokens":%d,`+
		`"output_tokens_details":{"thinking_tokens":%d}}}`,
		reason, u.Input, u.CacheWrite, u.CacheRead, u.Output, u.Reasoning))
	n.event("message_stop", []byte(`{"type":"message_stop"}`))
}

func (n *renderer) block(i int, p llm.Part) {
	start, kind, field, text := "", "", "", ""
	switch v := p.(type) {
	case llm.Text:
		start, kind, field, text = `{"type":"text","text":""}`, "text_delta", "text", v.Text
	case llm.Reasoning:
		if string(v.Opaque) == `"redacted"` {
			start = fmt.Sprintf(`{"type":"redacted_thinking","data":%q}`, Sign("redacted:"+v.Text))
			break
		}
		start, kind, field, text = `{"type":"thinking","thinking":"","signature":""}`, "thinking_delta", "thinking", v.Text
	case llm.Call:
		start = fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":{}}`, v.ID, v.Name)
		kind, field, text = "input_json_delta", "partial_json", fake.ArgText(v)
		if text == "{}" {
			text = ""
		}
	}
	n.event("content_block_start", fmt.Appendf(nil, `{"type":"content_block_start","index":%d,"content_block":%s}`, i, start))
	if i == 0 {
		n.event("ping", []byte(`{"type":"ping"}`))
	}
	if kind == "input_json_delta" {
		n.delta(i, kind, field, "")
	}
	for _, piece := range n.a.Pieces(text) {
		n.delta(i, kind, field, piece)
	}
	if kind == "thinking_delta" {
		n.delta(i, "signature_delta", "signature", Sign(text))
	}
	n.event("content_block_stop", fmt.Appendf(nil, `{"type":"content_block_stop","index":%d}`, i))
}

func (n *renderer) delta(i int, kind, field, piece string) {
	b := append(make([]byte, 0, 128+len(piece)), `{"type":"content_block_delta","index":`...)
	b = strconv.AppendInt(b, int64(i), 10)
	b = append(append(b, `,"delta":{"type":"`...), kind...)
	b = append(append(append(b, `","`...), field...), `":`...)
	n.event("content_block_delta", append(append(b, fake.Quote(piece)...), "}}"...))
}

// Sign returns the signature the server gives to thinking, which must come back unmodified.
func Sign(text string) string {
	sum := sha256.Sum256([]byte("anthropictest:" + text))
	return base64.StdEncoding.EncodeToString(sum[:])
}

func stopReason(s llm.Stop) string {
	switch s {
	case llm.StopCalls:
		return "tool_use"
	case llm.StopLength:
		return "max_tokens"
	case llm.StopPause:
		return "pause_turn"
	case llm.StopRefusal:
		return "refusal"
	case llm.StopWindow:
		return "model_context_window_exceeded"
	case llm.StopOther:
		return "something_new"
	default:
		return "end_turn"
	}
}

// NoTransport is a transport that never gets a connection, until the test ends.
func NoTransport(t testing.TB) *http.Transport { return fake.NoPipe(t) }
