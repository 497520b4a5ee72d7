package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/llm"
)

// env returns a variable that says where something is, or skips the test.
func env(t *testing.T, name string) string {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		t.Skipf("%s is not set: run ./scripts/e2e-local", name)
	}
	return v
}

// patience is how long a small model on a slow machine may take for anything.
const patience = 3 * time.Minute

// outcome is all that came out of one stream.
type outcome struct {
	text   string
	deltas int
	reply  *llm.Reply
	err    *llm.Error
}

func ask(t *testing.T, m llm.Model, req llm.Request) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var o outcome
	for c, err := range m.Stream(ctx, req) {
		o.err = llm.AsError(err)
		if c.Text != "" || c.Reasoning != "" {
			o.deltas++
		}
		o.text += c.Text
		o.reply = c.Reply
	}
	return o
}

// must asks and wants a reply.
func must(t *testing.T, m llm.Model, req llm.Request) *llm.Reply {
	t.Helper()
	o := ask(t, m, req)
	if o.err != nil || o.reply == nil {
		t.Fatalf("no reply: %v", o.err)
	}
	return o.reply
}

func user(text string) []llm.Message { return []llm.Message{{Role: llm.User, Parts: llm.Say(text)}} }

// story is text of about so many tokens: every word of it is one or two.
func story(words int) string {
	var b strings.Builder
	for i := range words {
		fmt.Fprintf(&b, "word %d ", i%10)
	}
	return b.String()
}

// streams holds that a reply comes in pieces, whole and counted.
func streams(t *testing.T, m llm.Model) {
	o := ask(t, m, llm.Request{System: []string{"You are a poet."}, Messages: user("Tell me a story about the sea."), MaxOutput: 32})
	if o.err != nil {
		t.Fatal(o.err)
	}
	if o.deltas < 3 || o.reply.Parts.Text() != o.text {
		t.Errorf("%d pieces: %q, in the reply %q", o.deltas, o.text, o.reply.Parts.Text())
	}
	u := o.reply.Usage
	if u.Prompt() < 10 || u.Prompt() > 200 || u.Output < 3 || u.Output > 32 {
		t.Errorf("usage %+v", u)
	}
	if o.reply.Stop != llm.StopLength && o.reply.Stop != llm.StopEnd {
		t.Errorf("stop %q", o.reply.Stop)
	}
	if short := ask(t, m, llm.Request{Messages: user("Tell me a very long story."), MaxOutput: 3}); short.err != nil ||
		short.reply.Stop != llm.StopLength || short.reply.Usage.Output != 3 {
		t.Errorf("bounded by 3: %+v, %v", short.reply, short.err)
	}
}

// refusesTooLong holds that a prompt beyond the window is refused and not cut.
// The prompt just below it must pass, and the figures tell that it was read whole.
func refusesTooLong(t *testing.T, m llm.Model, window int) {
	size := func(words int) int {
		return must(t, m, llm.Request{Messages: user(story(words)), MaxOutput: 1}).Usage.Prompt()
	}
	perTwenty := size(40) - size(20)
	for share, fits := range map[int]bool{80: true, 130: false, 400: false} {
		words := 20 * window * share / 100 / perTwenty
		o := ask(t, m, llm.Request{Messages: user(story(words)), MaxOutput: 8})
		switch {
		case fits && o.err != nil:
			t.Errorf("%d%% of the window: %v", share, o.err)
		case fits:
			if n := o.reply.Usage.Prompt(); n < window*share*9/1000 || n > window {
				t.Errorf("%d%% of the window: only %d tokens were read", share, n)
			}
		case o.err == nil:
			t.Errorf("%d%% of a window of %d: answered, with %+v", share, window, o.reply.Usage)
		case o.err.Kind != llm.KindWindow || o.err.Limit != window:
			t.Errorf("%d%% of the window: %v, limit %d", share, o.err, o.err.Limit)
		}
	}
}

// frees holds that a cancelled reply ends soon and leaves the server free.
func frees(t *testing.T, m llm.Model) {
	must(t, m, llm.Request{Messages: user("Hi."), MaxOutput: 1})
	start := time.Now()
	must(t, m, llm.Request{Messages: user("Say hello."), MaxOutput: 4})
	usual := time.Since(start)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var kind llm.Kind
	for c, err := range m.Stream(ctx, llm.Request{Messages: user("Count from one to ten thousand, word by word."), MaxOutput: 1500}) {
		if c.Text != "" || c.Reasoning != "" {
			cancel()
			start = time.Now()
		}
		if err != nil {
			kind = llm.AsError(err).Kind
		}
	}
	if took := time.Since(start); kind != llm.KindCancelled || took > 2*time.Second {
		t.Errorf("ended with %q after %v", kind, took)
	}
	start = time.Now()
	must(t, m, llm.Request{Messages: user("Say hello."), MaxOutput: 4})
	if took := time.Since(start); took > 5*usual+20*time.Second {
		t.Errorf("the next reply took %v, before it was %v: the server is still at the cancelled one", took, usual)
	}
}

// grows holds that a second turn only adds to the prompt of the first.
func grows(t *testing.T, m llm.Model) (first, second llm.Usage) {
	req := llm.Request{System: []string{"You are a poet. " + story(60)}, Messages: user("Tell me of the sea."), MaxOutput: 12}
	a := must(t, m, req)
	req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Parts: a.Parts},
		llm.Message{Role: llm.User, Parts: llm.Say("And of the wind.")})
	b := must(t, m, req)
	if added := b.Usage.Prompt() - a.Usage.Prompt(); added <= 0 || added > 120 {
		t.Errorf("the prompt went from %d to %d tokens", a.Usage.Prompt(), b.Usage.Prompt())
	}
	return a.Usage, b.Usage
}

var read = llm.ToolSpec{
	Name: "read", Description: "Read a file.",
	Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string","enum":["a.txt","b.txt"]}},"required":["path"]}`),
}

// calls holds that a call comes out with its arguments, and that its result can
// be sent back.
func calls(t *testing.T, m llm.Model) {
	req := llm.Request{Tools: []llm.ToolSpec{read}, Messages: user("Read the file a.txt."), MaxOutput: 200}
	reply := must(t, m, req)
	list := reply.Calls()
	if len(list) != 1 || reply.Stop != llm.StopCalls {
		t.Fatalf("%d calls, stop %q: %q", len(list), reply.Stop, reply.Parts.Text())
	}
	var args struct{ Path string }
	if err := json.Unmarshal(list[0].Args, &args); err != nil ||
		list[0].Name != "read" || list[0].ID == "" || !strings.HasSuffix(args.Path, ".txt") {
		t.Errorf("%+v, %v", list[0], err)
	}
	t.Logf("called %s %s", list[0].Name, list[0].Args)
	req.Messages = append(
		req.Messages, llm.Message{Role: llm.Assistant, Parts: reply.Parts},
		llm.Message{Role: llm.User, Parts: llm.Parts{llm.Result{CallID: list[0].ID, Name: "read", Parts: llm.Say("hello " + story(40))}}},
	)
	if after := must(t, m, req); after.Usage.Prompt() < reply.Usage.Prompt()+60 {
		t.Errorf("the result was not read: %d tokens after %d", after.Usage.Prompt(), reply.Usage.Prompt())
	}
}

// forced adds fields to a request, once, that make even a model that talks nonsense call a tool.
type forced struct {
	fields map[string]any
	done   bool
}

func (f *forced) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPost || f.done {
		return http.DefaultTransport.RoundTrip(r)
	}
	f.done = true
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var body map[string]any
	if err := json.Unmarshal(raw, &body); err != nil {
		return nil, err
	}
	for name, v := range f.fields {
		body[name] = v
	}
	if raw, err = json.Marshal(body); err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
	return http.DefaultTransport.RoundTrip(r)
}
