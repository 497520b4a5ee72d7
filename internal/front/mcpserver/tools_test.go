package mcpserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/front/mcpserver"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/tool"
)

func TestListsTools(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		c := newHouse(t, "ask").connect(revision, nil)
		res, err := c.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tl := range res.Tools {
			names = append(names, tl.Name)
			if schema, _ := tl.InputSchema.(map[string]any); schema["type"] != "object" || tl.Description == "" {
				t.Errorf("%s: %v", tl.Name, tl.InputSchema)
			}
			if reads := tl.Annotations != nil && tl.Annotations.ReadOnlyHint; reads != slices.Contains([]string{
				"read_file", "list_files",
				"find_files", "search_files", "view_image", "lsp",
			}, tl.Name) {
				t.Errorf("%s says that it only reads: %v", tl.Name, reads)
			}
		}
		for _, want := range []string{"read_file", "edit_file", "bash", "git", "run_agent"} {
			if !slices.Contains(names, want) {
				t.Errorf("no %s among %v", want, names)
			}
		}
		for _, not := range []string{"todo", "ask_user", "spawn_agent", "history", "skill"} {
			if slices.Contains(names, not) {
				t.Errorf("%s is offered", not)
			}
		}
		if v := c.InitializeResult(); v == nil || v.ProtocolVersion != revision || v.ServerInfo.Name != "inspan" {
			t.Errorf("%+v", v)
		}
	})
}

func TestChosenTools(t *testing.T) {
	h := newHouse(t, "ask")
	h.Names, h.Host = []string{"todo", "read_file"}, nil
	res, err := h.connect(older, nil).ListTools(t.Context(), nil)
	if err != nil || len(res.Tools) != 2 {
		t.Errorf("%v, %v", res, err)
	}
	h = newHouse(t, "ask")
	h.Names = []string{"read_fil"}
	if err := h.ServeStdio(t.Context(), os.Stdin, os.Stdout); err == nil || !strings.Contains(err.Error(), `did you mean "read_file"?`) {
		t.Errorf("%v", err)
	}
}

// TestCallsAreJudged checks that clients' calls are treated like those of a session: forbidden ones do not run, a file
// changed since it was read is not replaced, and secrets stay out.
func TestCallsAreJudged(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		h := newHouse(t, "edit")
		h.write("a.txt", "one\ntwo\n")
		h.write("key.txt", "token = ghp_"+strings.Repeat("a1B2", 9)+"\n")
		c := h.connect(revision, nil)
		change := map[string]any{"path": "a.txt", "content": "one\nthree\n"}
		read := func() {
			if text, failed := c.call("read_file", map[string]any{"path": "a.txt"}); failed || !strings.Contains(text, "two") {
				t.Errorf("read: %s", text)
			}
		}
		read()
		h.write("a.txt", "two of a person\n")
		if text, failed := c.call("write_file", change); !failed || h.read("a.txt") != "two of a person\n" {
			t.Errorf("replaced what has changed: %s", text)
		}
		read()
		if text, failed := c.call("write_file", change); failed || h.read("a.txt") != "one\nthree\n" {
			t.Errorf("write: %s", text)
		}
		if text, _ := c.call("read_file", map[string]any{"path": "key.txt"}); strings.Contains(text, "ghp_a1B2") {
			t.Errorf("a secret: %s", text)
		}
		out := filepath.Join(filepath.Dir(h.Root), "out.txt")
		text, failed := c.call("write_file", map[string]any{"path": out, "content": "x"})
		if _, err := os.Stat(out); !failed || err == nil || !strings.Contains(text, "this client can't ask") {
			t.Errorf("beyond the workspace: %s", text)
		}
		if text, failed := c.call("bash", map[string]any{"command": "sh ./made.sh"}); !failed || strings.Contains(text, "exit code") {
			t.Errorf("a command that asks: %s", text)
		}
		if text, failed := c.call("read_file", map[string]any{"path": 7, "no": "such"}); !failed || text == "" {
			t.Errorf("bad arguments: %s", text)
		}
	})
}

// TestTheSameCallAgain checks that a client gets the whole result each time, however often it makes the same call.
func TestTheSameCallAgain(t *testing.T) {
	h := newHouse(t, "ask")
	h.write("long.txt", strings.Repeat("a line of some length\n", 200))
	c := h.connect(older, nil)
	first, _ := c.call("read_file", map[string]any{"path": "long.txt"})
	if len(first) < 4000 {
		t.Fatal(first)
	}
	for i := range 8 {
		if again, failed := c.call("read_file", map[string]any{"path": "long.txt"}); again != first || failed {
			t.Fatalf("time %d: %s", i+2, again)
		}
	}
}

// TestApproval checks that a question is shown to the person in full, and that every answer does what it says.
func TestApproval(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		for _, tc := range []struct {
			name   string
			answer func(*sdk.ElicitParams) *sdk.ElicitResult
			made   bool
			asks   int // for two of the same calls
		}{
			{"once", says("allow once"), true, 2},
			{"for the session", says("allow for this session"), true, 1},
			{"no", says("deny"), false, 2},
			{"declined", func(*sdk.ElicitParams) *sdk.ElicitResult { return &sdk.ElicitResult{Action: "decline"} }, false, 2},
			{"cancelled", func(*sdk.ElicitParams) *sdk.ElicitResult { return &sdk.ElicitResult{Action: "cancel"} }, false, 2},
		} {
			t.Run(tc.name, func(t *testing.T) {
				h := newHouse(t, "ask")
				c := h.connect(revision, tc.answer)
				for range 2 {
					text, failed := c.call("write_file", map[string]any{"path": "new.txt", "content": "made\n"})
					if failed == tc.made {
						t.Errorf("%s", text)
					}
				}
				if made := h.read("new.txt") == "made\n"; made != tc.made {
					t.Errorf("made: %v", made)
				}
				if n := len(c.questions()); n != tc.asks {
					t.Errorf("asked %d times, want %d", n, tc.asks)
				}
				q := c.questions()[0]
				if !strings.Contains(q.Message, "inspan asks whether write_file may run") || !strings.Contains(q.Message, "+made") ||
					!strings.Contains(q.Message, "write(new.txt)") {
					t.Errorf("the question: %s", q.Message)
				}
			})
		}
	})
}

// TestWhileACallAsks checks that others can be made meanwhile.
func TestWhileACallAsks(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		h := newHouse(t, "ask")
		h.write("a.txt", "one\n")
		asked, release := make(chan struct{}), make(chan struct{})
		first := sync.OnceFunc(func() { close(asked) })
		c := h.connect(revision, func(*sdk.ElicitParams) *sdk.ElicitResult {
			first()
			<-release
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"decision": "allow once"}}
		})
		h.write("b.txt", "one\n")
		if text, failed := c.call("read_file", map[string]any{"path": "b.txt"}); failed {
			t.Error(text)
		}
		done := make(chan string)
		go func() {
			res, err := c.CallTool(t.Context(), &sdk.CallToolParams{
				Name:      "write_file",
				Arguments: map[string]any{"path": "new.txt", "content": "x"},
			})
			if err != nil {
				done <- err.Error()
				return
			}
			done <- textOf(res)
		}()
		<-asked
		if text, failed := c.call("read_file", map[string]any{"path": "a.txt"}); failed || !strings.Contains(text, "one") {
			t.Errorf("%s", text)
		}
		close(release)
		if text := <-done; h.read("new.txt") != "x" {
			t.Errorf("%s", text)
		}
		edit := map[string]any{"path": "b.txt", "old_string": "one", "new_string": "two"}
		if text, failed := c.call("edit_file", edit); failed {
			t.Errorf("what was read before is forgotten: %s", text)
		}
	})
}

// TestSideBySide checks that a slow call holds up no other one, that parallel calls know the files read before and the
// shell's directory, and that jobs are found.
func TestSideBySide(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		h := newHouse(t, "auto")
		if err := os.Mkdir(filepath.Join(h.Root, "it's"), 0o700); err != nil {
			t.Fatal(err)
		}
		h.write("it's/a.txt", "one\n")
		c := h.connect(revision, nil)
		for _, in := range []map[string]any{{"command": `cd "it's"`}, {"command": "mkfifo ../gate"}} {
			if text, failed := c.call("bash", in); failed {
				t.Fatal(text)
			}
		}
		if text, failed := c.call("read_file", map[string]any{"path": "a.txt"}); failed {
			t.Fatal(text)
		}
		slow := make(chan string, 3)
		later := func(name string, args map[string]any) {
			go func() {
				res, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
				if err != nil {
					slow <- err.Error()
					return
				}
				slow <- textOf(res)
			}()
		}
		later("bash", map[string]any{"command": "touch ../waits; cat ../gate"})
		later("run_agent", map[string]any{"task": "bash: touch agent; until [ -e over ]; do sleep 0.05; done\nsay: the agent is done"})
		testkit.WaitFor(t, "two slow calls", func() bool { return h.has("waits") && h.has("agent") })
		if err := c.Ping(t.Context(), nil); err != nil && revision == older {
			t.Error(err)
		}
		edit := map[string]any{"path": "a.txt", "old_string": "one", "new_string": "two"}
		if text, failed := c.call("edit_file", edit); failed || h.read("it's/a.txt") != "two\n" {
			t.Errorf("beside a slow call: %s", text)
		}
		if text, failed := c.call("bash", map[string]any{"command": "sleep 0; pwd; cat", "background": true}); failed {
			t.Error(text)
		}
		if text, failed := c.call("bash", map[string]any{"command": "pwd"}); failed || !strings.Contains(text, "it's") {
			t.Errorf("in %s", text)
		}
		later("bash", map[string]any{"command": "echo opened > ../gate && touch ../over"})
		said := <-slow + <-slow + <-slow
		if !strings.Contains(said, "opened") || !strings.Contains(said, "the agent is done") {
			t.Errorf("the slow calls: %s", said)
		}
		// The job belongs to the other session, although the first one is free again.
		if text, failed := c.call("jobs", map[string]any{"action": "kill"}); failed || !strings.Contains(text, "job 1 ended") {
			t.Errorf("%s", text)
		}
	})
}

// TestTaintIsShared checks that outside text in the result of one call counts for parallel calls.
func TestTaintIsShared(t *testing.T) {
	h := newHouse(t, "yolo")
	c := h.connect(older, nil)
	if text, failed := c.call("web_fetch", map[string]any{"url": "http://127.0.0.1:1/"}); !failed {
		t.Fatal(text)
	}
	if text, failed := c.call("bash", map[string]any{"command": "mkfifo gate"}); failed {
		t.Fatal(text)
	}
	slow := make(chan struct{})
	go func() {
		defer close(slow)
		_, _ = c.CallTool(t.Context(), &sdk.CallToolParams{Name: "bash", Arguments: map[string]any{"command": "touch waits; cat gate"}})
	}()
	testkit.WaitFor(t, "a slow call", func() bool { return h.has("waits") })
	c.call("bash", map[string]any{"command": "echo > gate"})
	<-slow
	var first []string
	for info, err := range h.Host.List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(h.log(info.ID)) {
			if strings.Contains(line, `"kind":"said"`) {
				first = append(first, line)
				break
			}
		}
	}
	slices.Sort(first)
	if len(first) != 2 || !strings.Contains(strings.Join(first, ""), `"untrusted":true`) {
		t.Errorf("%s", first)
	}
}

// TestArguments checks that arguments that are not an object get an error, and that missing ones mean an empty object.
func TestArguments(t *testing.T) {
	h := newHouse(t, "ask")
	h.write("a.txt", "one\n")
	c := h.connect(older, nil)
	for raw, want := range map[string]string{
		"": "a.txt", "null": "a.txt", "{}": "a.txt", "[]": "not a JSON object",
		`"x"`: "not a JSON object", "7": "not a JSON object",
	} {
		p := &sdk.CallToolParams{Name: "list_files"}
		if raw != "" {
			p.Arguments = json.RawMessage(raw)
		}
		res, err := c.CallTool(t.Context(), p)
		if err != nil || !strings.Contains(textOf(res), want) || res.IsError != (want != "a.txt") {
			t.Errorf("%s: %v %+v", raw, err, res)
		}
	}
}

func TestImages(t *testing.T) {
	h := newHouse(t, "ask")
	png := "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x02\x00\x00\x00\x90wS\xde\x00\x00\x00\x0cIDATx\x9cc\xf8\xcf\xc0\x00\x00\x03\x01\x01\x00\xc9\xfe\x92\xef\x00\x00\x00\x00IEND\xaeB`\x82"
	h.write("dot.png", png)
	res, err := h.connect(older, nil).CallTool(t.Context(), &sdk.CallToolParams{Name: "view_image", Arguments: map[string]any{"path": "dot.png"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range res.Content {
		if img, ok := part.(*sdk.ImageContent); ok && img.MIMEType == "image/png" && len(img.Data) > 0 {
			return
		}
	}
	t.Errorf("no image: %s %d parts", textOf(res), len(res.Content))
}

func TestUsualToolsAreThere(t *testing.T) {
	if names := mcpserver.Usual(); slices.Contains(names, "run_agent") || !slices.Contains(names, "bash") {
		t.Errorf("%v", names)
	}
}

// BenchmarkCall is one call of a tool that reads a small file, at a pipe, with all that
// is written down of it.
func BenchmarkCall(b *testing.B) {
	h := newHouse(b, "ask")
	h.write("a.txt", "one\n")
	c := h.connect(older, nil)
	for b.Loop() {
		if text, failed := c.call("read_file", map[string]any{"path": "a.txt"}); failed {
			b.Fatal(text)
		}
	}
}

// TestLongConnection checks that a session's knowledge outlasts its conversation, which is cut short again and again.
func TestLongConnection(t *testing.T) {
	h := newHouse(t, "edit")
	h.write("a.txt", "one\n")
	h.write("long.txt", strings.Repeat("a line of some length\n", 500))
	c := h.connect(older, nil)
	if text, failed := c.call("read_file", map[string]any{"path": "a.txt"}); failed {
		t.Fatal(text)
	}
	for i := range 45 {
		text, failed := c.call("read_file", map[string]any{"path": "long.txt", "offset": i + 1})
		if failed || !strings.Contains(text, "a line of some length") || len(text) < 8000 {
			t.Fatalf("call %d: %d bytes: %.300s", i, len(text), text)
		}
	}
	if text, failed := c.call("edit_file", map[string]any{"path": "a.txt", "old_string": "one", "new_string": "two"}); failed {
		t.Errorf("what was read is forgotten: %s", text)
	}
	for info, err := range h.Tools.List(t.Context()) {
		if err != nil || !strings.Contains(h.log(info.ID), `"kind":"compacted`) { // with its specs or without
			t.Errorf("nothing was cut short: %v", err)
		}
		w, err := h.Tools.Watch(t.Context(), info.ID)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Send(t.Context(), event.Compact{}), w.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if text, failed := c.call("read_file", map[string]any{"path": "a.txt"}); failed || !strings.Contains(text, "two") {
		t.Errorf("after somebody had it compacted: %s", text)
	}
}

// TestOnlyTools checks that tools for an agent's model and its person are not for calls of clients.
func TestOnlyTools(t *testing.T) {
	h := newHouse(t, "ask")
	from := h.Tools
	h.Tools = &inspan.Host{Dir: from.Dir, Agent: func(ctx context.Context, at inspan.SessionSpec) (*inspan.Agent, error) {
		a, err := from.Agent(ctx, at)
		if err == nil {
			a.Limits.Turns, a.Limits.Tokens, a.Limits.Time, a.Unattended = 1, 1, time.Nanosecond, true
			a.System = []event.Added{{Text: "words for a model"}}
			a.Dynamic.Tools = func(context.Context) (shown, hidden []tool.Tool) {
				return []tool.Tool{{Name: "extra_tool", Schema: json.RawMessage(`{"type":"object"}`)}}, nil
			}
		}
		return a, err
	}}
	h.write("a.txt", "one\n")
	c := h.connect(older, says("allow once"))
	for range 3 {
		if text, failed := c.call("read_file", map[string]any{"path": "a.txt"}); failed {
			t.Error(text)
		}
	}
	if text, failed := c.call("write_file", map[string]any{"path": "new.txt", "content": "x"}); failed || len(c.questions()) != 1 {
		t.Error(text)
	}
	for info, err := range h.Tools.List(t.Context()) {
		if log := h.log(info.ID); err != nil || strings.Contains(log, "extra_tool") || strings.Contains(log, "words for a model") {
			t.Errorf("%v", err)
		}
	}
}
