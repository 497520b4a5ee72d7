// Package geminitest is a fake of the Gemini API that speaks the true streaming
// wire and refuses what the vendor refuses.
package geminitest

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

// Answer is the reaction of the server to one request. Type is the status of an error, such as
// "RESOURCE_EXHAUSTED", and Code the JSON of its details.
type Answer = fake.Answer

// Blocked returns the answer to a prompt that a filter rejects for reason.
func Blocked(reason string) Answer { return Answer{Type: "blocked", Code: reason} }

// Server is an [http.Handler] that answers POST
// /v1beta/models/ID:streamGenerateContent. A request the vendor would refuse
// is answered with status 400 and never reaches Answer; if that is for its tools, it
// fails the test of Start or Transport. From generation 3 on it
// signs its calls and, if it thought, its last text, and numbers its calls.
// Safe for concurrent use if Answer is.
type Server struct {
	// Answer decides what to do with a request; nil means an empty reply.
	Answer func(r *http.Request, body []byte) Answer
	// Key is the API key, or the bearer token, to insist on; empty means any or none will do.
	Key string
	// Models are the ids that GET /v1beta/models lists.
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

// NoTransport is a transport that never gets a connection, until the test ends.
func NoTransport(t testing.TB) *http.Transport { return fake.NoPipe(t) }

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
	model, e := s.refuse(r, body)
	a, ok := fake.Decide(w, r, body, e, s.Answer, fail)
	if !ok {
		return
	}
	sum := sha256.Sum256(body)
	n := renderer{
		a: a, id: hex.EncodeToString(sum[:8]), model: model, signs: modern(model), turn: turnOf(body),
		s: fake.NewStream(w, r, a, fmt.Appendf(nil, "data: %s\r\n\r\n", errorBody(a, 503))),
	}
	n.render()
}

// refuse returns the requested model, and the answer to a malformed request, nil if it is valid.
func (s *Server) refuse(r *http.Request, body []byte) (model string, a *Answer) {
	_, model, ok := strings.Cut(r.URL.Path, "/models/")
	model, method, _ := strings.Cut(model, ":")
	switch {
	case !ok || method != "streamGenerateContent" || r.Method != http.MethodPost:
		return "", &Answer{Status: 404, Type: "NOT_FOUND", Message: "Not found: " + r.URL.Path}
	case r.URL.RawQuery != "alt=sse":
		return "", &Answer{Status: 400, Type: "INVALID_ARGUMENT", Message: "want the query alt=sse and no other"}
	}
	if a := s.keyless(r); a != nil {
		return "", a
	}
	if err := Validate(model, body); err != nil {
		return "", &Answer{Status: 400, Type: "INVALID_ARGUMENT", Message: err.Error()}
	}
	return model, nil
}

func fail(w http.ResponseWriter, a Answer) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(a.Status)
	_, _ = w.Write(errorBody(a, a.Status))
}

func errorBody(a Answer, code int) []byte {
	if a.Body != "" {
		return []byte(a.Body)
	}
	details := a.Code
	if details == "" || details[0] != '[' {
		details = "[]"
	}
	return fmt.Appendf(nil, `{"error":{"code":%d,"message":%s,"status":%s,"details":%s}}`, code, fake.Quote(a.Message), fake.Quote(a.Type), details)
}

// modern reports whether a model signs and numbers its calls: from generation
// 3 on.
func modern(model string) bool {
	rest, ok := strings.CutPrefix(model, "gemini-")
	return ok && !strings.HasPrefix(rest, "1") && !strings.HasPrefix(rest, "2")
}

// renderer writes one reply.
type renderer struct {
	a      Answer
	s      *fake.Stream
	id     string
	model  string
	turn   int // entries of the conversation so far
	signs  bool
	called bool
}

func turnOf(body []byte) int {
	var v struct {
		Contents []json.RawMessage `json:"contents"`
	}
	_ = json.Unmarshal(body, &v) // validated before
	return len(v.Contents)
}

// render streams the reply as the vendor does: a chunk without parts, a chunk
// a piece, a whole chunk a call, and the finish reason with an empty text last.
func (n *renderer) render() {
	if n.a.Type == "blocked" {
		n.send(`"promptFeedback":{"blockReason":`+fake.Quote(n.a.Code)+`}`, false)
		return
	}
	n.send(`"candidates":[{"content":{"role":"model"},"index":0}]`, false)
	thought := false
	for i, p := range n.a.Parts {
		switch v := p.(type) {
		case llm.Text:
			n.pieces(v.Text, "")
			if thought && n.signs && i == len(n.a.Parts)-1 {
				n.part(`{"text":"","thoughtSignature":` + fake.Quote(Sign("text", "")) + `}`)
			}
		case llm.Reasoning:
			thought = true
			n.pieces(v.Text, `,"thought":true`)
		case llm.Call:
			n.call(i, v)
		}
	}
	n.send(`"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":`+fake.Quote(n.finish())+`,"index":0}]`, true)
}

func (n *renderer) pieces(text, fields string) {
	for _, piece := range n.a.Pieces(text) {
		n.part(`{"text":` + fake.Quote(piece) + fields + `}`)
	}
}

// call sends a call. Of parallel calls only the first is signed.
func (n *renderer) call(i int, c llm.Call) {
	id, signature := "", ""
	if n.signs {
		id = `"id":` + fake.Quote(n.callID(i, c.ID)) + `,`
		if !n.called {
			signature = `,"thoughtSignature":` + fake.Quote(Sign(c.Name, string(c.Args)))
		}
	}
	n.called = true
	args := ""
	if len(c.Args) > 2 {
		args = `,"args":` + string(c.Args)
	}
	n.part(`{"functionCall":{` + id + `"name":` + fake.Quote(c.Name) + args + `}` + signature + `}`)
}

// callID returns the id given to a call: the one wanted, made unique in the
// conversation.
func (n *renderer) callID(i int, want string) string {
	return fmt.Sprintf("%s_%d_%d", want, n.turn, i)
}

func (n *renderer) part(p string) {
	n.send(`"candidates":[{"content":{"parts":[`+p+`],"role":"model"},"index":0}]`, false)
}

func (n *renderer) send(fields string, last bool) {
	u := n.a.Usage
	prompt := u.Prompt()
	figures := `"promptTokenCount":` + strconv.Itoa(prompt)
	if u.CacheRead > 0 {
		figures += `,"cachedContentTokenCount":` + strconv.Itoa(u.CacheRead)
	}
	if last {
		figures += fmt.Sprintf(`,"candidatesTokenCount":%d,"totalTokenCount":%d`, u.Output-u.Reasoning, prompt+u.Output)
		if u.Reasoning > 0 {
			figures += `,"thoughtsTokenCount":` + strconv.Itoa(u.Reasoning)
		}
	}
	n.s.Send(fmt.Appendf(nil, "data: {%s,\"usageMetadata\":{%s},\"modelVersion\":%s,\"responseId\":%s}\r\n\r\n",
		fields, figures, fake.Quote(n.model), fake.Quote(n.id)))
}

func (n *renderer) finish() string {
	if n.a.StopReason != "" {
		return n.a.StopReason
	}
	switch n.a.Reason() {
	case llm.StopLength:
		return "MAX_TOKENS"
	case llm.StopRefusal:
		return "SAFETY"
	case llm.StopOther:
		return "SOMETHING_NEW"
	default:
		return "STOP"
	}
}

// Sign returns the signature the server gives to a part and requires on exactly that part: a call under its
// name, with its arguments, or a text under "text".
func Sign(kind, content string) string {
	if kind != "text" {
		args := map[string]any{}                   // none are the same as empty ones
		_ = json.Unmarshal([]byte(content), &args) // validated before
		canonical, _ := json.Marshal(args)         // what was JSON is again
		content = string(canonical)
	}
	sum := sha256.Sum256([]byte("geminitest:" + kind + ":" + content))
	return base64.StdEncoding.EncodeToString(sum[:])
}
