package mcp_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"github.com/inspan/inspan/internal/extend/mcp"
)

// tasker is a hand-written server that answers calls with tasks. The tool that is called
// decides how the task goes.
type tasker struct {
	old  bool   // it only knows initialize
	list string // the answer to tools/list, instead of its tools
	path string // where it writes what it has seen; empty means nowhere

	mu   sync.Mutex
	gets map[string]int    // of each task
	said map[string]string // what it was answered, by task
	seen []string
}

// request is a client's request.
type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name         string          `json:"name"`
		Task         string          `json:"taskId"`
		Answers      json.RawMessage `json:"inputResponses"`
		Capabilities json.RawMessage `json:"capabilities"`
		Meta         struct {
			Version      string `json:"io.modelcontextprotocol/protocolVersion"`
			Capabilities struct {
				Extensions map[string]json.RawMessage `json:"extensions"`
			} `json:"io.modelcontextprotocol/clientCapabilities"`
		} `json:"_meta"`
	} `json:"params"`
}

// dies is an answer after which the server is gone.
const dies = "dies"

// reply answers one message; empty if the message is not a request or gets no answer.
func (s *tasker) reply(line []byte) string {
	var r request
	if err := json.Unmarshal(line, &r); err != nil || r.ID == nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gets == nil {
		s.gets, s.said = map[string]int{}, map[string]string{}
	}
	s.note(strings.TrimSpace(r.Method + " " + r.Params.Name + r.Params.Task + string(r.Params.Answers)))
	result := s.result(r)
	if result == "" || result == dies {
		return result
	}
	if !strings.HasPrefix(result, `"error"`) {
		result = `"result":` + result
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, r.ID, result)
}

func (s *tasker) note(what string) {
	s.seen = append(s.seen, what)
	if s.path != "" {
		_ = os.WriteFile(s.path, []byte(strings.Join(s.seen, "\n")), 0o600) // the test sees what is missing
	}
}

// saw counts requests.
func (s *tasker) saw(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, one := range s.seen {
		if one == what {
			n++
		}
	}
	return n
}

func (s *tasker) result(r request) string {
	_, declared := r.Params.Meta.Capabilities.Extensions["io.modelcontextprotocol/tasks"]
	switch {
	case s.old && r.Method == "server/discover":
		return `"error":{"code":-32601,"message":"no such method"}`
	case r.Method == "initialize":
		if strings.Contains(string(r.Params.Capabilities), "extensions") {
			return `"error":{"code":-32602,"message":"a handshake knows no extensions"}`
		}
		return `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"tasker","version":"1"}}`
	case !s.old && (!declared || r.Params.Meta.Version != "2026-07-28"):
		return `"error":{"code":-32021,"message":"you know no tasks"}`
	case r.Method == "server/discover":
		return `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"prompts":{}},"ttlMs":0,` +
			`"cacheScope":"private"}`
	case r.Method == "tools/list" && s.list != "":
		return s.list
	case r.Method == "tools/list":
		var tools []string
		for _, name := range slices.Concat(everywhere(), hostile()) {
			tools = append(tools, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, name))
		}
		return `{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[` + strings.Join(tools, ",") + `]}`
	case r.Method == "prompts/list":
		return `{"resultType":"task","taskId":"x","status":"working","prompts":[{"name":"a"}]}`
	case r.Method == "tools/call":
		return s.begin(r.Params.Name)
	case r.Method == "tasks/get":
		s.gets[r.Params.Task]++
		return s.get(r.Params.Task, s.gets[r.Params.Task])
	case r.Method == "tasks/update":
		if s.said[r.Params.Task] != "" {
			return `"error":{"code":-32600,"message":"that was answered"}`
		}
		if r.Params.Task == "busy" && s.saw0("tasks/update busy") < 2 {
			return `"error":{"code":-32603,"message":"not now"}`
		}
		s.said[r.Params.Task] = string(r.Params.Answers)
		return `{"resultType":"complete"}`
	case r.Method == "tasks/cancel" && r.Params.Task == "deaf":
		return ""
	case r.Method == "tasks/cancel":
		return `{"resultType":"complete"}`
	}
	return `"error":{"code":-32601,"message":"no such method"}`
}

// saw0 counts the requests that begin with what, for a caller that holds the lock.
func (s *tasker) saw0(what string) int {
	n := 0
	for _, one := range s.seen {
		if strings.HasPrefix(one, what) {
			n++
		}
	}
	return n
}

// everywhere are the tasks that each transport is tried with.
func everywhere() []string {
	return []string{"plain", "later", "asks", "model", "failed", "wrong", "forgotten", "ends", "waits", "odd", "dies"}
}

// hostile are the tools of malicious or broken servers.
func hostile() []string {
	return []string{
		"already", "hiccup", "another", "roots", "empty", "brief", "long", "hasty", "slow", "nameless", "numbered", "much", "huge", "endless",
		"lively", "still", "busy",
		"unread", "refuses", "big", "silent", "twice", "known", "unmodelled", "bare", "deaf", "null",
	}
}

// begin answers a call.
func (s *tasker) begin(name string) string {
	const seed = `{"resultType":"task","taskId":%s,"status":%s,"createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z",` +
		`"ttlMs":%s,"pollIntervalMs":%s}`
	state, keep, poll := "working", "null", "100"
	switch name {
	case "plain":
		return `{"resultType":"complete","content":[{"type":"text","text":"no \"task\" at all"}]}`
	case "already":
		state, poll = "completed", "30000"
	case "brief":
		keep = "1500"
	case "long":
		keep = "1e300"
	case "hasty":
		poll = "-5"
	case "slow":
		poll = "1e300"
	case "nameless":
		return `{"resultType":"task","status":"working"}`
	case "numbered":
		return `{"resultType":"task","taskId":7,"status":"working"}`
	case "big":
		return `{"resultType":"task","taskId":"` + strings.Repeat("x", 5000) + `","status":"working"}`
	case "odd":
		name = "odd \u00e9\n"
	case "bare":
		return `{"resultType":"task","taskId":"bare","status":"working"}`
	}
	return fmt.Sprintf(seed, quoted(name), quoted(state), keep, poll)
}

// get answers the nth question for a task.
func (s *tasker) get(id string, n int) string {
	keep, poll := "null", "100"
	switch {
	case id == "brief":
		keep = "1500"
	case id == "asks" && s.said[id] == "": // it is kept longer once there is an answer
		keep = "100000"
	case id == "hasty":
		poll = "-5"
	case id == "long":
		keep, poll = "1e300", "1e300"
	case id == "slow", id == "still":
		poll = "1e300"
	}
	at := func(state, more string) string {
		return fmt.Sprintf(`{"resultType":"complete","taskId":%s,"status":%s,"createdAt":"2026-01-01T00:00:00Z",`+
			`"lastUpdatedAt":"2026-01-01T00:00:00Z","ttlMs":%s,"pollIntervalMs":%s%s}`,
			quoted(id), quoted(state), keep, poll, more)
	}
	done := func(text string) string {
		return at("completed", fmt.Sprintf(`,"result":{"resultType":"complete","content":[{"type":"text","text":%s}]}`, quoted(text)))
	}
	ask := func(method, params string) string {
		return at("input_required", fmt.Sprintf(`,"inputRequests":{"k1":{"method":%s,"params":%s}}`, quoted(method), params))
	}
	const city = `{"mode":"form","message":"which?","requestedSchema":{"type":"object","properties":{"city":{"type":"string"}},` +
		`"required":["city"]}}`
	switch id {
	case "asks", "busy", "twice":
		switch {
		case s.said[id] == "" || id == "twice" && n < 5 || n < 3:
			return ask("elicitation/create", city)
		case id == "busy" && n < 5:
			return at("working", "")
		}
		return done("got " + s.said[id])
	case "model", "unmodelled":
		if s.said[id] == "" {
			return ask("sampling/createMessage", `{"maxTokens":5,"messages":[{"role":"user","content":{"type":"text","text":"how much?"}}]}`)
		}
		return done("got " + s.said[id])
	case "roots":
		return ask("roots/list\u0007", `{}`)
	case "unread":
		return ask("elicitation/create", `7`)
	case "refuses":
		return `"error":{"code":-32000,"message":"I will \u001b[31mnot"}`
	case "much":
		var list []string
		for i := range 101 {
			list = append(list, fmt.Sprintf(`"k%d":{"method":"elicitation/create","params":%s}`, i, strings.Replace(city, "city", "api_key", 1)))
		}
		return at("input_required", `,"inputRequests":{`+strings.Join(list, ",")+`}`)
	case "failed":
		return at("failed", `,"statusMessage":"bad","error":{"code":-32603,"message":"no \u001b[31mway"}`)
	case "wrong":
		return at("completed", `,"result":{"isError":true,"content":[{"type":"text","text":"wrong"}]}`)
	case "forgotten":
		return `"error":{"code":-32602,"message":"Task \u001b[31mnot found"}`
	case "hiccup":
		if n < 4 {
			return `"error":{"code":-32603,"message":"not now"}`
		}
	case "ends":
		return at("cancelled", `,"statusMessage":"too \u0007late"`)
	case "another":
		return strings.Replace(done("of another"), `"another"`, `"other"`, 1)
	case "odd \u00e9\n":
		return at("dreaming\u0007", "")
	case "null":
		return at("completed", `,"result":null`)
	case "empty":
		return at("completed", "")
	case "hasty":
		if n < 10 {
			return at("working", "")
		}
	case "endless":
		return at("working", `,"statusMessage":"on it"`)
	case "waits", "deaf", "brief", "slow":
		return at("working", "")
	case "silent":
		return ""
	case "dies":
		return dies
	case "known":
		return `{"resultType":"task","taskId":"known","status":"completed","result":{"content":[]}}`
	case "lively", "long":
		return at("working", fmt.Sprintf(`,"statusMessage":"step %d"`, n))
	case "huge":
		if n < 3 {
			return at("working", `,"statusMessage":"`+strings.Repeat("x", 1<<20)+fmt.Sprint(n)+`"`)
		}
	case "still":
		if n < 40 {
			return strings.Replace(at("working", ""), "00:00:00Z\",\"ttl", fmt.Sprintf("00:00:%02dZ\",\"ttl", n), 1)
		}
	case "later":
		if n == 1 {
			return at("working", `,"statusMessage":"half \u001b[31mway"`)
		}
	}
	return done("done")
}

func quoted(text string) string {
	out, _ := json.Marshal(text) // a string is always valid JSON
	return string(out)
}

// lines serves over a stream.
func (s *tasker) lines(stream io.ReadWriter) {
	in := bufio.NewReader(stream)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		if out := s.reply(line); out == dies {
			return
		} else if out != "" {
			if _, err := stream.Write([]byte(out + "\n")); err != nil {
				return
			}
		}
	}
}

// onStdio serves as a program.
func onStdio(path string) {
	s := &tasker{path: path}
	s.lines(struct {
		io.Reader
		io.Writer
	}{os.Stdin, os.Stdout})
}

// inside is the server in this process.
func (s *tasker) inside(t *testing.T) mcp.Server {
	t.Helper()
	var serving sync.WaitGroup
	t.Cleanup(serving.Wait)
	return mcp.Server{Name: "own", Source: mcp.User, Dial: func(context.Context) (io.ReadWriteCloser, error) {
		ours, theirs := net.Pipe()
		serving.Go(func() { s.lines(theirs); _ = theirs.Close() })
		return ours, nil
	}}
}

// socket serves over web sockets.
func (s *tasker) socket(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"mcp"}})
	if err != nil {
		return
	}
	s.lines(websocket.NetConn(r.Context(), conn, websocket.MessageText))
	_ = conn.CloseNow()
}

// http serves over HTTP; each answer is one JSON message or a stream of events.
func (s *tasker) http(sse bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		line, err := io.ReadAll(r.Body)
		var req request
		if err != nil || json.Unmarshal(line, &req) != nil || r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		want := req.Params.Name + req.Params.Task
		if strings.ContainsAny(want, "\n") {
			want = "=?base64?" + base64.StdEncoding.EncodeToString([]byte(want)) + "?="
		}
		if r.Header.Get("Mcp-Name") != want || r.Header.Get("Mcp-Method") != req.Method || r.Header.Get("Authorization") != "Bearer abc" ||
			r.Header.Get("Mcp-Protocol-Version") != "2026-07-28" {
			http.Error(w, fmt.Sprintf("%v for %s", r.Header, line), http.StatusBadRequest)
			return
		}
		out := s.reply(line)
		switch {
		case out == dies:
			w.WriteHeader(http.StatusNotFound)
		case out == "":
			w.WriteHeader(http.StatusAccepted)
		case sse:
			w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
			fmt.Fprint(w, ": a \"task\" comes\n\nevent: message\ndata: "+
				"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":\"task\"}}\n\n")
			before, after, _ := strings.Cut(out, ",") // a message may come in several lines
			fmt.Fprintf(w, "event: message\r\ndata: %s,\r\ndata:%s\r\n\r\n", before, after)
		default:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, out)
		}
	})
}
