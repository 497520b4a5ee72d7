package managed_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/service/managed"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

func TestMain(m *testing.M) {
	if ran, code := sandbox.Keeper(); ran {
		os.Exit(code)
	}
	testkit.Main(m)
}

var update = flag.Bool("update", false, "write the golden pairs anew")

// numbered are bodies as the events of a log.
func numbered(bodies []event.Body) (out []event.Event) {
	for i, b := range bodies {
		at := time.Date(2027, 1, 2, 3, 4, i, 0, time.UTC)
		out = append(out, event.Event{Seq: uint64(i) + 1, Time: at, Session: "s", Body: b})
	}
	return out
}

func text(s string) llm.Parts { return llm.Say(s) }

func call(id, name, args string) llm.Call {
	return llm.Call{ID: id, Name: name, Args: json.RawMessage(args)}
}

func recorded(of, id string, v any) event.Body {
	raw, _ := json.Marshal(v) // what the tests write can be written
	return event.Recorded{Of: of, ID: id, Value: raw, By: "ann"}
}

// pairs are logs; the golden files have the clients' view of them.
func pairs() map[string][]event.Body {
	usage := llm.Usage{Input: 10, CacheRead: 20, CacheWrite: 30, Output: 40}
	allowed := func(id string) event.Body { return event.Judged{Call: id, Action: tool.Allow, By: "mode"} }
	asks := func(id string) []event.Body {
		return []event.Body{event.Judged{Call: id, Action: tool.Ask, By: "mode"}, event.Waiting{Call: id}}
	}
	replied := func(parts ...llm.Part) event.Body { return event.Replied{Parts: parts, Usage: usage} }
	done := event.Stopped{Reason: event.ReasonDone}
	defined := func(most int) event.Body {
		graded := map[string]any{"type": "text", "content": "it is there"}
		return recorded("managed.outcome", "outc_1", map[string]any{"description": "make it", "rubric": graded, "max_iterations": most})
	}
	nested := func(id, name, args string, a tool.Action) event.Body {
		return event.Judged{Call: id, Parent: "a", Tool: name, Args: json.RawMessage(args), Action: a}
	}
	late := map[string]any{"tools": []any{map[string]any{"type": "custom", "name": "late"}}}
	return map[string][]event.Body{
		"turn": {
			event.Opened{Format: 1},
			event.Claimed{Epoch: 1},
			event.Steered{Origin: event.OriginPerson, Parts: text("hello"), By: "ann", Message: "k"},
			event.Asked{Turn: 1},
			replied(llm.Reasoning{Text: "hm"}, llm.Text{Text: "hi "}, llm.Text{Text: "there"}), done,
			event.Steered{Origin: event.OriginPerson, Parts: text("hello"), By: "ann", Message: "k"}, // it was sent twice
			event.Steered{Parts: text("mind"), Origin: event.OriginHook, Message: "managed.system/1"},
			event.Steered{Parts: text("not for clients"), Origin: event.OriginHook},
			event.Said{Parts: llm.Parts{llm.Text{Text: "see"}, llm.Image{MediaType: "image/png", Digest: "sha256-x"}}},
			event.Asked{Turn: 2},
			event.Failed{Cause: llm.KindOverloaded, Message: "busy", Retry: 2},
			event.Asked{Turn: 2},
			event.Failed{Cause: llm.KindAuth, Message: "no key"},
			event.Stopped{Reason: event.ReasonFailed, Cause: llm.KindAuth},
		},
		"calls": slices.Concat(
			[]event.Body{
				event.Said{Parts: text("go")},
				event.Asked{Turn: 1},
				replied(call("a", "read_file", `{"path":"x","limit":3}`),
					call("b", "edit_file", `{"path":"x","edits":[{"old_string":"o","new_string":"n"}]}`),
					call("c", "mcp__git__log", `{}`), call("d", "weather", `{"city":"Oslo"}`), call("e", "nothing", `{}`),
					call("f", "bash", `{"command":"rm x"}`)),
				allowed("a"),
				event.Started{Call: "a"},
				event.Judged{Call: "b", Action: tool.Deny, By: "rule"},
				event.Ended{Call: "b", Outcome: event.OutcomeDenied, Parts: text("denied")},
			}, asks("c"), asks("d"),
			[]event.Body{
				event.Ended{Call: "e", Outcome: event.OutcomeInvalid, Parts: text("no such tool")},
				event.Ended{Call: "a", Outcome: event.OutcomeOK, Parts: text("line")},
			}, asks("f"),
			[]event.Body{
				event.Decided{Call: "c", Allow: true, By: "ann"},
				event.Started{Call: "c"},
				event.Ended{Call: "c", Outcome: event.OutcomeOK, Parts: text("log")},
				event.Decided{Call: "d", Allow: true, By: "ann", Answer: "rain"},
				event.Ended{Call: "d", Outcome: event.OutcomeOK, Parts: text("rain")},
				event.Decided{Call: "f", By: "ann", Reason: "no"},
				event.Ended{Call: "f", Outcome: event.OutcomeDenied, Parts: text("denied: no")},
				event.Decided{Call: "f", Allow: true, By: "eve"}, // too late
				event.Asked{Turn: 2},
				event.Cancelled{By: "ann", All: true},
				event.Stopped{Reason: event.ReasonCancelled},
			},
		),
		"tool of the client that fails": slices.Concat(
			[]event.Body{event.Said{Parts: text("go")}, event.Asked{Turn: 1}, replied(call("d", "weather", `{}`))}, asks("d"),
			[]event.Body{
				event.Decided{Call: "d", Allow: true, Answer: "\x00failed: no network"},
				event.Ended{Call: "d", Outcome: event.OutcomeFailed, Parts: text("no network")},
			},
		),
		"subagent": {
			event.Said{Parts: text("go")},
			event.Asked{Turn: 1},
			replied(call("a", "spawn_agent", `{"task":"part"}`)), allowed("a"),
			event.Started{Call: "a"},
			event.Spawned{Child: "s.1", Call: "a@1", Agent: "explorer", Task: "part"},
			event.Raised{ID: "q", Child: "s.1", Of: 9, Tool: "bash", Args: json.RawMessage(`{"command":"make"}`)},
			event.Decided{Call: "q", Allow: true, By: "ann"},
			event.Raised{ID: "r", Child: "s.1", Of: 12, Tool: "bash", Args: json.RawMessage(`{"command":"make x"}`)},
			event.Returned{Child: "s.1", Reason: event.ReasonDone, Parts: text("found")},
			event.Spawned{Child: "s.1", Call: "b@1", Agent: "explorer", Task: "more"},
		},
		"calls within calls": {
			event.Said{Parts: text("go")},
			event.Asked{Turn: 1},
			replied(call("a", "program", `{}`)), allowed("a"),
			event.Started{Call: "a"},
			nested("a.1", "read_file", `{"path":"x"}`, tool.Allow),
			event.Started{Call: "a.1", Parent: "a"},
			event.Ended{Call: "a.1", Parent: "a", Outcome: event.OutcomeOK, Parts: text("x")},
			nested("a.2", "bash", `{"command":"y"}`, tool.Ask),
			event.Waiting{Call: "a.2"},
			event.Decided{Call: "a.2", Allow: true, Rule: "bash"},
			event.Ended{Call: "a.2", Parent: "a", Outcome: event.OutcomeOK, Parts: text("y")},
		},
		"calls asked together": {
			event.Said{Parts: text("go")},
			event.Asked{Turn: 1},
			replied(call("a", "program", `{}`)), allowed("a"),
			event.Started{Call: "a"},
			nested("a/1", "bash", `{"command":"x"}`, tool.Ask),
			event.Waiting{Call: "a/1"},
			nested("a/2", "bash", `{"command":"y"}`, tool.Ask),
			event.Waiting{Call: "a/2"},
			event.Decided{Call: "a/1", Question: 7, Also: []uint64{9, 6}, By: "ann", Reason: "no"},
			event.Ended{Call: "a/1", Parent: "a", Outcome: event.OutcomeDenied, Parts: text("no")},
			event.Ended{Call: "a/2", Parent: "a", Outcome: event.OutcomeDenied, Parts: text("no")},
		},
		"outcome": {
			defined(2),
			event.Steered{Origin: event.OriginPerson, Parts: text("make it"), Message: "managed.outcome/1"},
			event.Asked{Turn: 1},
			replied(llm.Text{Text: "made"}), done,
			recorded("managed.evaluation", "outc_1", map[string]any{"begins": true}),
			recorded("managed.evaluation", "outc_1", map[string]any{"begins": true}), // after a crash
			recorded("managed.evaluation", "outc_1", map[string]any{"result": "needs_revision", "explanation": "it is not"}),
			event.Steered{Origin: event.OriginPerson, Parts: text("go on"), Message: "managed.outcome/outc_1/1"},
			event.Asked{Turn: 2},
			replied(llm.Text{Text: "made"}), done,
			recorded("managed.evaluation", "outc_1", map[string]any{"begins": true}),
			recorded("managed.evaluation", "outc_1", map[string]any{"result": "needs_revision", "explanation": "still not"}),
			event.Steered{Origin: event.OriginPerson, Parts: text("say so"), Message: "managed.outcome/outc_1/2"},
			event.Asked{Turn: 3},
			replied(llm.Text{Text: "not made"}), done,
		},
		"outcome that is interrupted": {
			defined(3),
			event.Steered{Origin: event.OriginPerson, Parts: text("make it"), Message: "managed.outcome/1"},
			event.Asked{Turn: 1},
			replied(llm.Text{Text: "made"}), done,
			recorded("managed.evaluation", "outc_1", map[string]any{"begins": true}),
			event.Cancelled{By: "ann", All: true},
			recorded("managed.evaluation", "outc_1", map[string]any{"result": "satisfied", "explanation": "too late"}),
		},
		"ends": {
			event.Said{Parts: text("go")},
			event.Stopped{Reason: event.ReasonBudget},
			event.Said{Parts: text("go")},
			event.Stopped{Reason: event.ReasonRefused, Detail: "no"},
			event.Said{Parts: text("go")},
			event.Asked{Turn: 1},
			event.Stopped{Reason: event.ReasonStuck, Detail: "again and again"},
			event.Compacted{Snapshot: json.RawMessage(`{}`)},
			recorded("managed.update", "sesn_1", map[string]any{"title": "other", "agent": late}),
			event.Said{Parts: text("go")},
			event.Asked{Turn: 2},
			replied(call("z", "late", `{}`)),
			event.Judged{Call: "z", Action: tool.Ask},
			event.Waiting{Call: "z"},
		},
	}
}

func fold(thread string) *managed.Fold {
	return &managed.Fold{
		Custom:  []string{"weather"},
		Servers: []string{"git"},
		Thread:  thread,
		Agent:   map[bool]string{true: "explorer"}[thread != ""],
	}
}

// TestFold checks the clients' view of logs: each of our events, followed by its translation.
func TestFold(t *testing.T) {
	for name, bodies := range pairs() {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			f := fold("")
			for _, e := range numbered(bodies) {
				line, err := event.Encode(e)
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&out, "%s\n", line)
				for _, theirs := range f.Apply(e) {
					raw, err := json.Marshal(theirs)
					if err != nil {
						t.Fatal(err)
					}
					fmt.Fprintf(&out, "    %s\n", raw)
				}
			}
			path := filepath.Join("testdata", strings.ReplaceAll(name, " ", "-")+".golden")
			if *update {
				if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), out.String()); diff != "" {
				t.Errorf("%s (rewrite with -update):\n%s", path, diff)
			}
		})
	}
}

// lawful returns what is wrong with the fold of a log.
func lawful(events []event.Event, thread string) error {
	f, seen, last := fold(thread), map[string]string{}, ""
	for _, e := range events {
		for _, out := range f.Apply(e) {
			raw, err := json.Marshal(out)
			if err != nil {
				return err
			}
			var v struct {
				ID, Type string
				Of       string `json:"tool_use_id"`
				MCP      string `json:"mcp_tool_use_id"`
				Custom   string `json:"custom_tool_use_id"`
				Request  string `json:"model_request_start_id"`
				Graded   string `json:"outcome_evaluation_start_id"`
				Stop     struct {
					Events []string `json:"event_ids"`
				} `json:"stop_reason"`
			}
			if err := json.Unmarshal(raw, &v); err != nil {
				return err
			}
			if seen[v.ID] != "" || v.ID == "" {
				return fmt.Errorf("event %d: %s has an id that is taken or empty", e.Seq, raw)
			}
			seen[v.ID] = v.Type
			for _, ref := range append([]string{v.Of, v.MCP, v.Custom, v.Graded}, v.Stop.Events...) {
				if ref != "" && seen[ref] == "" {
					return fmt.Errorf("event %d: %s names an event that was never told", e.Seq, raw)
				}
			}
			switch is := strings.TrimPrefix(strings.TrimPrefix(v.Type, "session.thread_status_"), "session.status_"); is {
			case "running":
				if last == is && thread == "" && strings.HasPrefix(v.Type, "session.status_") {
					return fmt.Errorf("event %d: it runs twice", e.Seq)
				}
				fallthrough
			case "idle":
				if strings.HasPrefix(v.Type, "session.status_") {
					last = is
				}
			}
		}
	}
	return nil
}

// TestFoldCorpus checks that logs of all versions fold lawfully.
func TestFoldCorpus(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("..", "..", "..", "test", "journeys", "testdata", "logs", "*", "*.jsonl"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no logs: %v", err)
	}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var events []event.Event
		for line := range bytes.Lines(raw) {
			if e, err := event.Decode(bytes.TrimSpace(line)); err == nil {
				events = append(events, e)
			}
		}
		for _, thread := range []string{"", "sthr_s.1"} {
			if err := lawful(events, thread); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}

// FuzzFold checks that every log folds lawfully.
func FuzzFold(f *testing.F) {
	var all []event.Body
	made := pairs()
	for _, name := range slices.Sorted(maps.Keys(made)) {
		all = append(all, made[name]...)
	}
	for seed := range uint64(200) {
		f.Add(seed, 60)
	}
	f.Fuzz(func(t *testing.T, seed uint64, n int) {
		r := rand.New(rand.NewPCG(seed, 1))
		var bodies []event.Body
		for range min(max(n, 0), 300) {
			bodies = append(bodies, all[r.IntN(len(all))])
		}
		thread := ""
		if r.IntN(2) == 0 {
			thread = "sthr_s.1"
		}
		if err := lawful(numbered(bodies), thread); err != nil {
			t.Error(err)
		}
	})
}
