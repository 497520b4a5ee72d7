// Package ollamatest is a fake of an Ollama server that speaks its true
// streaming wire and refuses what it refuses.
package ollamatest

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/inspan/inspan/internal/testkit/fake"
	"github.com/inspan/inspan/llm"
)

// Answer is the reaction of the server to one request.
type Answer = fake.Answer

// Server is an [http.Handler] that answers POST /api/chat and /api/show, and GET
// /api/tags and /api/ps. A chat that a server refuses fails the test of Start or
// Transport. Safe for concurrent use if Answer is.
type Server struct {
	// Answer decides what to do with a chat; nil means an empty reply.
	Answer func(r *http.Request, body []byte) Answer
	// Key is the bearer token to insist on; empty means any or none will do.
	Key string
	// Models that the server has; it uses Model, Window, Images and NoTools. A chat with any other is answered
	// anyway.
	Models []llm.Info
	// Facts are further facts about models, by name.
	Facts map[string]Facts
	// Largest is the largest window a model is loaded with; 0 means any.
	Largest int
	// Old makes it a server from before /api/ps and capabilities, which ignores the truncation setting.
	Old bool

	active fake.Gauge
	judge  fake.Judge
	mu     sync.Mutex
	loaded map[string]int // windows by full name
}

// Facts are a server's facts about a model. In Info the names lack the architecture; a list of more than five
// is sent only if everything is requested.
type Facts struct {
	Info  map[string]any
	Size  int64 // bytes on disk, and in memory once it is loaded
	OnCPU int64 // bytes of those that no GPU has taken
	Embed bool  // it makes embeddings and does not converse
}

// Sit makes a chat that a server refuses fail t, for callers that serve s in other ways than by Start or
// Transport.
func (s *Server) Sit(t testing.TB) { s.judge.Sit(t) }

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
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if s.Key != "" && r.Header.Get("Authorization") != "Bearer "+s.Key {
		fail(w, Answer{Status: http.StatusUnauthorized, Message: "unauthorized"})
		return
	}
	if s.Old && r.URL.Path == "/api/ps" {
		http.NotFound(w, r)
		return
	}
	switch r.Method + " " + r.URL.Path {
	case "POST /api/chat":
		s.chat(w, r, body)
	case "GET /api/tags":
		s.tags(w)
	case "POST /api/show":
		s.show(w, body)
	case "GET /api/ps":
		s.processes(w)
	default:
		http.NotFound(w, r)
	}
}

func (s *Server) chat(w http.ResponseWriter, r *http.Request, body []byte) {
	var e *Answer
	if err := s.judge.Hear(Validate(body)); err != nil {
		e = &Answer{Status: http.StatusBadRequest, Message: err.Error()}
	}
	a, ok := fake.Decide(w, r, body, e, s.Answer, fail)
	if !ok {
		return
	}
	var v request
	_ = json.Unmarshal(body, &v) // validated before
	s.load(v)
	n := renderer{a: a, s: fake.NewStream(w, r, a, append(errorBody(a), '\n')), model: v.Model}
	w.Header().Set("Content-Type", "application/x-ndjson")
	n.render()
}

// load gives the model the requested window, within the limits of the model and the server.
func (s *Server) load(r request) {
	window := cmp.Or(r.Options.NumCtx, 4096)
	if m, ok := s.model(r.Model); ok && m.Window > 0 {
		window = min(window, m.Window)
	}
	if s.Largest > 0 {
		window = min(window, s.Largest)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loaded == nil {
		s.loaded = map[string]int{}
	}
	s.loaded[full(r.Model)] = window
}

// full returns a name with the tag that the server adds.
func full(name string) string {
	if !strings.Contains(name, ":") {
		name += ":latest"
	}
	return name
}

func (s *Server) model(name string) (llm.Info, bool) {
	for _, m := range s.Models {
		if full(m.Model) == full(name) {
			return m, true
		}
	}
	return llm.Info{}, false
}

func (s *Server) processes(w http.ResponseWriter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []map[string]any{}
	for name, window := range s.loaded {
		facts := s.Facts[name]
		list = append(list, map[string]any{
			"name": name, "model": name, "size": facts.Size, "size_vram": facts.Size - facts.OnCPU, "context_length": window,
		})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"models": list})
}

func (s *Server) tags(w http.ResponseWriter) {
	list := []map[string]any{}
	for _, m := range s.Models {
		list = append(list, map[string]any{"name": m.Model, "model": m.Model, "size": s.Facts[m.Model].Size})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"models": list})
}

func (s *Server) show(w http.ResponseWriter, body []byte) {
	var v struct {
		Model   string
		Verbose bool
	}
	if err := json.Unmarshal(body, &v); err != nil {
		fail(w, Answer{Status: http.StatusBadRequest, Message: err.Error()})
		return
	}
	m, ok := s.model(v.Model)
	if !ok {
		fail(w, Answer{Status: http.StatusNotFound, Message: fmt.Sprintf("model '%s' not found", v.Model)})
		return
	}
	answer := map[string]any{"model_info": s.facts(m, v.Verbose)}
	if !s.Old {
		answer["capabilities"] = s.capabilities(m)
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (s *Server) facts(m llm.Info, inFull bool) map[string]any {
	info := map[string]any{"general.architecture": "fake", "fake.context_length": m.Window}
	for name, value := range s.Facts[m.Model].Info {
		if list, ok := value.([]int); ok && len(list) > 5 && !inFull {
			value = nil
		}
		info["fake."+name] = value
	}
	return info
}

func (s *Server) capabilities(m llm.Info) []string {
	if s.Facts[m.Model].Embed {
		return []string{"embedding"}
	}
	list := []string{"completion"}
	if !m.NoTools {
		list = append(list, "tools")
	}
	if m.Images {
		list = append(list, "vision")
	}
	return list
}

func fail(w http.ResponseWriter, a Answer) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(a.Status)
	_, _ = w.Write(errorBody(a))
}

func errorBody(a Answer) []byte {
	if a.Body != "" {
		return []byte(a.Body)
	}
	return []byte(`{"error":` + fake.Quote(a.Message) + `}`)
}

// renderer writes one reply: a line a piece, a line a call, and a last one with
// the figures.
type renderer struct {
	a     Answer
	s     *fake.Stream
	model string
}

func (n *renderer) render() {
	for _, p := range n.a.Parts {
		switch v := p.(type) {
		case llm.Text:
			for _, piece := range n.a.Pieces(v.Text) {
				n.line(`"content":`+fake.Quote(piece), `"done":false`)
			}
		case llm.Reasoning:
			for _, piece := range n.a.Pieces(v.Text) {
				n.line(`"content":"","thinking":`+fake.Quote(piece), `"done":false`)
			}
		case llm.Call:
			n.line(`"content":"","tool_calls":[{"function":{"name":`+fake.Quote(v.Name)+`,"arguments":`+string(v.Args)+`}}]`, `"done":false`)
		}
	}
	u := n.a.Usage
	n.line(`"content":""`, fmt.Sprintf(`"done":true,"done_reason":%q,"total_duration":1,"prompt_eval_count":%d,`+
		`"prompt_eval_cached_count":%d,"eval_count":%d`,
		n.reason(), u.Prompt(), u.CacheRead, u.Output))
}

func (n *renderer) line(message, fields string) {
	n.s.Send(fmt.Appendf(nil, `{"model":%s,"created_at":"2026-11-21T10:00:00Z","message":{"role":"assistant",%s},%s}`+
		"\n", fake.Quote(n.model), message, fields))
}

func (n *renderer) reason() string {
	if n.a.StopReason != "" {
		return n.a.StopReason
	}
	switch n.a.Reason() {
	case llm.StopLength, llm.StopWindow:
		return "length"
	case llm.StopOther:
		return "something_new"
	default:
		return "stop"
	}
}

// request has the allowed fields of a request; the server would ignore any other field, the fake refuses it.
type request struct {
	Model    string          `json:"model"`
	Stream   bool            `json:"stream"`
	Truncate *bool           `json:"truncate"`
	Shift    *bool           `json:"shift"`
	Think    json.RawMessage `json:"think"`
	Options  struct {
		NumCtx     int `json:"num_ctx"`
		NumPredict int `json:"num_predict"`
	} `json:"options"`
	Tools    []tool `json:"tools"`
	Messages []struct {
		Role      string   `json:"role"`
		Content   *string  `json:"content"`
		Thinking  string   `json:"thinking"`
		Images    []string `json:"images"`
		ToolCalls []struct {
			ID       string `json:"id"`
			Function struct {
				Name      string         `json:"name"`
				Arguments map[string]any `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
		ToolName   string `json:"tool_name"`
		ToolCallID string `json:"tool_call_id"`
	} `json:"messages"`
}

// Validate returns the objection to a request, nil if there is none. It is stricter than the server, which ignores
// many unknown fields.
func Validate(body []byte) error {
	var r request
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		return err
	}
	if r.Model == "" || !r.Stream || len(r.Messages) == 0 {
		return fmt.Errorf("want a model, a stream and messages")
	}
	if err := checkTools(r.Tools); err != nil {
		return fake.Violation{Why: err}
	}
	if err := checkMessages(&r); err != nil {
		return fake.Violation{Why: err}
	}
	return nil
}

// checkMessages refuses what the server, or the templates of its models, do not take: a content that is not text
// (ollama/ollama#10255, by the types), arguments that are not an object (#12794, by the types), images of others
// than users, results without the name of their tool (docs/api.md), and what no template makes a turn of.
func checkMessages(r *request) error {
	open, seen, users := []string{}, map[string]bool{}, 0
	for i, m := range r.Messages {
		switch m.Role {
		case "system":
			if i > 0 {
				return fmt.Errorf("messages[%d]: a system message that is not the first", i)
			}
		case "user":
			if users++; strings.TrimSpace(*cmp.Or(m.Content, new(string))) == "" && len(m.Images) == 0 {
				return fmt.Errorf("messages[%d]: a user who says nothing", i)
			}
		case "assistant":
			if m.Content != nil && *m.Content == "" && m.Thinking == "" && len(m.ToolCalls) == 0 {
				return fmt.Errorf("messages[%d]: an assistant that says nothing", i)
			}
		case "tool":
		default:
			return fmt.Errorf("messages[%d]: invalid role %q", i, m.Role)
		}
		if m.Content == nil {
			return fmt.Errorf("messages[%d]: want content", i)
		}
		for _, image := range m.Images {
			if raw, err := base64.StdEncoding.DecodeString(image); err != nil || len(raw) == 0 || m.Role != "user" {
				return fmt.Errorf("messages[%d]: illegal base64 data, or an image of no user", i)
			}
		}
		if m.Role == "tool" {
			if len(open) == 0 || m.ToolCallID != open[0] || m.ToolName == "" {
				return fmt.Errorf("messages[%d]: result %q has no call before it", i, m.ToolCallID)
			}
			open = open[1:]
		}
		if m.Role != "tool" && len(open) > 0 {
			return fmt.Errorf("messages[%d]: call %q has no result", i, open[0])
		}
		for _, c := range m.ToolCalls {
			if m.Role != "assistant" || c.ID == "" || seen[c.ID] || c.Function.Name == "" || c.Function.Arguments == nil {
				return fmt.Errorf("messages[%d]: want calls of an assistant with an id of their own, a name and arguments", i)
			}
			seen[c.ID] = true
			open = append(open, c.ID)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("call %q has no result", open[0])
	}
	if users == 0 {
		return errors.New("nobody has asked")
	}
	return nil
}
