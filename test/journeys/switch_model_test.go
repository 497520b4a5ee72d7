package journeys_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/internal/testkit/anthropictest"
	"github.com/inspan/inspan/internal/testkit/geminitest"
	"github.com/inspan/inspan/internal/testkit/ollamatest"
	"github.com/inspan/inspan/internal/testkit/openaitest"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/anthropic"
	"github.com/inspan/inspan/llm/gemini"
	"github.com/inspan/inspan/llm/ollama"
	"github.com/inspan/inspan/llm/openai"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/tool"
)

// wire makes a model that speaks one vendor's wire to a server that refuses what the vendor refuses, and answers from
// the queue.
type wire struct {
	name  string
	model func(t *testing.T, q *queue) llm.Model
}

// queue are the answers of a server, in order.
type queue struct {
	mu      sync.Mutex
	answers []anthropictest.Answer
}

func (q *queue) next(*http.Request, []byte) anthropictest.Answer {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.answers) == 0 {
		return anthropictest.Answer{Parts: llm.Say("Nothing more.")}
	}
	a := q.answers[0]
	q.answers = q.answers[1:]
	return a
}

func wires() []wire {
	chat := func(dialect, url, id string) wire {
		return wire{dialect, func(t *testing.T, q *queue) llm.Model {
			s := &openaitest.Server{Answer: q.next, Dialect: dialect}
			return &openai.Model{ID: id, Dialect: dialect, BaseURL: url, HTTP: openaitest.Transport(t, s), Images: true}
		}}
	}
	claude := func(dialect, url, id string) wire {
		return wire{dialect, func(t *testing.T, q *queue) llm.Model {
			s := &anthropictest.Server{Answer: q.next, Dialect: dialect}
			return &anthropic.Model{ID: id, Dialect: dialect, BaseURL: url, HTTP: anthropictest.Transport(t, s)}
		}}
	}
	return []wire{
		{"anthropic", func(t *testing.T, q *queue) llm.Model {
			return &anthropic.Model{
				ID: "claude-opus-5-5", BaseURL: "http://x",
				HTTP: anthropictest.Transport(t, &anthropictest.Server{Answer: q.next}),
			}
		}},
		claude("bedrock", "http://x", "us.anthropic.claude-opus-5-5-20260930-v1:0"),
		claude("vertex", "http://x/v1/projects/p/locations/global/publishers/anthropic", "claude-opus-5-5"),
		{"responses", func(t *testing.T, q *queue) llm.Model {
			return &openai.Responses{
				ID: "gpt-6-sol", BaseURL: "http://x/v1",
				HTTP: openaitest.ResponsesTransport(t, &openaitest.Responses{Answer: q.next}),
			}
		}},
		chat("openai", "http://x/v1", "gpt-6-sol"),
		chat("mistral", "http://x/v1", "mistral-large"),
		chat("deepseek", "http://x/v1", "deepseek-reasoner"),
		{"gemini", func(t *testing.T, q *queue) llm.Model {
			return &gemini.Model{ID: "gemini-3.8-flash", BaseURL: "http://x", HTTP: geminitest.Transport(t, &geminitest.Server{Answer: q.next})}
		}},
		{"ollama", func(t *testing.T, q *queue) llm.Model {
			return &ollama.Model{
				ID: "qwen3-coder", BaseURL: "http://x",
				HTTP: ollamatest.Transport(t, &ollamatest.Server{Answer: q.next}), Window: 32_768,
			}
		}},
	}
}

const foreignName = "files.read/all the files of a far too long name, which no vendor would take as it is"

// history are the answers of a first model, which leave all kinds of things in
// the log: thoughts, calls at once, calls that can't be read, calls of no tool, a
// picture, a cut reply.
func history() []anthropictest.Answer {
	call := func(name, args string) llm.Part { return llm.Call{Name: name, Args: json.RawMessage(args)} }
	think := llm.Reasoning{Text: "hm"}
	return []anthropictest.Answer{
		{Parts: llm.Parts{think, llm.Text{Text: "Both."}, call("look", `{"word":"a"}`), call("picture", `{"word":"b"}`)}},
		{Parts: llm.Parts{think, call("look", `{"word":"c"}`), llm.Call{Name: "note", Args: json.RawMessage("{}"), Invalid: `{"word":`}}},
		{Parts: llm.Parts{call("nothing_like_it", `{}`), call(foreignName, `{"word":"\u00e9 <b> \ud83d\ude00"}`)}},
		{Parts: llm.Parts{think, llm.Text{Text: "That was a lot and "}}, Stop: llm.StopLength},
		{Parts: llm.Parts{think, llm.Text{Text: "that is all."}}},
	}
}

func switchAgent(m llm.Model) *inspan.Agent {
	var l ledger
	tools := []tool.Tool{l.reader(), l.writer(), pictureTool(), l.tool(foreignName, tool.Effect{Kind: tool.Read, Path: "/w/b"})}
	return &inspan.Agent{
		Model: m, Tools: tools, Mode: "auto", Limits: inspan.Limits{Retry: -1},
		Env: tool.Env{Root: "/w", Blobs: &memoryBlobs{}}, System: []event.Added{{Source: "t", Text: "be good"}},
	}
}

// goOn says something to the session and holds that the model answers in the
// end. blobs go from agent to agent with the session.
func goOn(t *testing.T, a *inspan.Agent, blobs tool.Blobs, log event.Log, text string) {
	t.Helper()
	a.Env.Blobs = blobs
	s := open(t, a, log)
	var stopped event.Stopped
	for e, err := range s.Run(t.Context(), said(text)) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := e.Body.(type) {
		case event.Stopped:
			stopped = b
		case event.Healed:
			t.Errorf("it went only in the form %q", b.Level)
		}
	}
	if stopped.Reason != event.ReasonDone {
		t.Fatalf("stopped as %s: %s", stopped.Reason, stopped.Detail)
	}
}

// TestSwitch starts a session with each wire, continues with each other one, and returns: no vendor may refuse the
// history of another.
func TestSwitch(t *testing.T) {
	for _, first := range wires() {
		for _, second := range wires() {
			t.Run(first.name+"/"+second.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					log, blobs := event.NewMemory("s"), &memoryBlobs{}
					a, b := &queue{answers: history()}, &queue{answers: history()}
					one, two := first.model(t, a), second.model(t, b)
					goOn(t, switchAgent(one), blobs, log, "begin")
					goOn(t, switchAgent(two), blobs, log, "go on")
					a.answers = history()[1:]
					goOn(t, switchAgent(one), blobs, log, "and on")
				})
			})
		}
	}
}

// TestSwitchAnywhere cuts the log of one session after every event, like a crash, and continues with each wire. The
// sessions of all wires have the same events, so each is cut after every third event, and together after all.
func TestSwitchAnywhere(t *testing.T) {
	for i, first := range wires() {
		t.Run(first.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log, blobs := event.NewMemory("s"), &memoryBlobs{}
				goOn(t, switchAgent(first.model(t, &queue{answers: history()})), blobs, log, "begin")
				var bodies []event.Body
				for e, err := range log.Read(t.Context(), 0) {
					if err != nil {
						t.Fatal(err)
					}
					bodies = append(bodies, e.Body)
				}
				var agents []*inspan.Agent
				for _, second := range wires() {
					agents = append(agents, switchAgent(second.model(t, &queue{})))
				}
				for cut := 3 + i%3; cut <= len(bodies); cut += 3 {
					for _, agent := range agents {
						short := event.NewMemory("s")
						if _, err := harnesstest.Write(t.Context(), short, slices.Clone(bodies[:cut])...); err != nil {
							t.Fatal(err)
						}
						goOn(t, agent, blobs, short, fmt.Sprintf("go on after event %d", cut))
					}
				}
			})
		})
	}
}

// TestModeIsTold checks that the model hears of a mode that changes while it works, and of none that it began with.
func TestModeIsTold(t *testing.T) {
	model := &script.Model{}
	s, err := (&inspan.Agent{Model: model, Mode: "plan", Env: tool.Env{Root: t.TempDir()}}).Open(t.Context(), event.NewMemory("m"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	told := func(inputs ...event.Body) (out []string) {
		for e, err := range s.Run(t.Context(), inputs...) {
			if err != nil {
				t.Fatal(err)
			}
			if b, ok := e.Body.(event.Added); ok {
				out = append(out, b.Text)
			}
		}
		return out
	}
	if got := told(event.Say("say: a")); len(got) != 0 {
		t.Errorf("told at the beginning: %q", got)
	}
	if got := told(event.Switched{Mode: "yolo"}, event.Say("say: b")); len(got) != 1 || !strings.Contains(got[0], "mode yolo: everything runs") {
		t.Errorf("told of the switch: %q", got)
	}
	if got := told(event.Switched{Mode: "yolo"}, event.Say("say: c")); len(got) != 0 {
		t.Errorf("told of no switch: %q", got)
	}
}
