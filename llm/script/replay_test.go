package script_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/script"
)

// tape is a model that streams its content, whatever the request.
type tape struct {
	chunks []llm.Chunk
	err    error
}

func (m *tape) Info() llm.Info {
	return llm.Info{Provider: "test", Model: "m", Window: 9, MaxOutput: 8, Prices: llm.Prices{{Input: 1, From: "2026-01-01"}}, Images: true}
}

func (m *tape) Stream(context.Context, llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		for _, c := range m.chunks {
			if !yield(c, nil) {
				return
			}
		}
		if m.err != nil {
			yield(llm.Chunk{}, m.err)
		}
	}
}

func replayed(text string) llm.Request {
	return llm.Request{
		System: []string{"the day is " + text}, Tools: []llm.ToolSpec{{Name: "t", Schema: json.RawMessage(`{"type":"object"}`)}},
		Messages: []llm.Message{{Role: llm.User, Parts: llm.Say(text)}}, Session: text,
	}
}

type step struct {
	Chunk llm.Chunk
	Err   error
}

func play(t *testing.T, m llm.Model, req llm.Request) []step {
	t.Helper()
	var steps []step
	for c, err := range m.Stream(t.Context(), req) {
		steps = append(steps, step{c, err})
	}
	return steps
}

var sameErrors = cmp.Comparer(func(a, b error) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.Error() == b.Error()
})

func TestPlaysWhatWasRecorded(t *testing.T) {
	cause := &llm.Error{
		Kind: llm.KindWindow, Provider: "p", Status: 400, Code: "c", Message: "m", RetryAfter: time.Second,
		Used: 2, Limit: 1, RequestID: "r", Err: errors.New("below"),
	}
	reply := &llm.Reply{
		Parts: llm.Parts{
			llm.Reasoning{Text: "hm", Opaque: json.RawMessage(`{"b":1,"a":"<&>"}`), Route: "test/m"},
			llm.Text{Text: "é <b> \u2028"},
			llm.Call{ID: "1", Name: "t", Args: json.RawMessage(`{"z":1,"a":2}`)},
			llm.Call{ID: "2", Name: "t", Args: json.RawMessage(`{}`), Invalid: "{"},
		},
		Stop: llm.StopCalls, Usage: llm.Usage{Input: 1, CacheRead: 2, CacheWrite: 3, Output: 4, Reasoning: 5, Estimated: true}, Route: "test/m",
		RequestID: "id",
	}
	whole := &tape{chunks: []llm.Chunk{
		{Retry: &llm.Retry{Attempt: 2, Wait: 1.5, Cause: cause}},
		{Routed: &llm.Routed{Info: llm.Info{Provider: "x"}, Rule: "r", Reason: "w", Cause: cause}},
		{Reasoning: "hm"},
		{Text: "é"},
		{Call: &llm.CallDelta{Name: "t", Args: `{"z`}},
		{Reply: reply},
	}}
	broken := &tape{chunks: []llm.Chunk{{Text: "I th"}}, err: cause}
	for _, m := range []*tape{whole, broken} {
		var one bytes.Buffer
		recorder := &script.Recorder{Model: m, To: &one}
		recorded := play(t, recorder, replayed("hi"))
		if diff := cmp.Diff(play(t, m, replayed("hi")), recorded, sameErrors); diff != "" {
			t.Fatalf("recording changes the answer: %s", diff)
		}
		player, err := script.Play(&one)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m.Info(), player.Info()); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(recorded, play(t, player, replayed("hi")), sameErrors); diff != "" {
			t.Errorf("played back it is another: %s", diff)
		}
	}
}

func record(t *testing.T, requests ...llm.Request) string {
	t.Helper()
	var cassette bytes.Buffer
	r := &script.Recorder{Model: &tape{chunks: []llm.Chunk{{Reply: &llm.Reply{Parts: llm.Say("Yes."), Stop: llm.StopEnd}}}}, To: &cassette}
	for _, req := range requests {
		play(t, r, req)
	}
	return cassette.String()
}

func TestOrderMayDiffer(t *testing.T) {
	p, err := script.Play(strings.NewReader(record(t, replayed("a"), replayed("b"), replayed("a"))))
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range []string{"b", "a", "a"} {
		if steps := play(t, p, replayed(text)); steps[0].Err != nil {
			t.Errorf("request %d: %v", i+1, steps[0].Err)
		}
	}
	steps := play(t, p, replayed("a"))
	if e := llm.AsError(steps[0].Err); e == nil || e.Kind != llm.KindInvalid || !strings.Contains(e.Message, "all 3 exchanges") {
		t.Errorf("after the end: %v", steps[0].Err)
	}
}

// A conversation that grows is written once, not once a turn.
func TestCassetteHoldsNoCopies(t *testing.T) {
	var requests []llm.Request
	req := replayed("begin")
	for range 50 {
		req.Messages = append(req.Messages[:len(req.Messages):len(req.Messages)],
			llm.Message{Role: llm.User, Parts: llm.Say(strings.Repeat("word ", 200))})
		requests = append(requests, req)
	}
	cassette := record(t, requests...)
	if most := 50 * 2000; len(cassette) > most {
		t.Errorf("the cassette has %d bytes, want at most %d", len(cassette), most)
	}
	p, err := script.Play(strings.NewReader(cassette))
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range requests {
		if steps := play(t, p, r); steps[0].Err != nil {
			t.Fatalf("request %d: %v", i+1, steps[0].Err)
		}
	}
}

func TestDifferencesAreNamed(t *testing.T) {
	for want, change := range map[string]func(*llm.Request){
		`message 1 is`:                 func(r *llm.Request) { r.Messages = replayed("other").Messages },
		`it has 2 messages, and had 1`: func(r *llm.Request) { r.Messages = append(r.Messages, r.Messages[0]) },
		`it has 0 messages, and had 1`: func(r *llm.Request) { r.Messages = nil },
		`the tools are others`:         func(r *llm.Request) { r.Tools = nil },
		`effort "high"`:                func(r *llm.Request) { r.Effort = "high" },
	} {
		p, err := script.Play(strings.NewReader(record(t, replayed("a"))))
		if err != nil {
			t.Fatal(err)
		}
		req := replayed("a")
		change(&req)
		steps := play(t, p, req)
		if steps[0].Err == nil || !strings.Contains(steps[0].Err.Error(), want) {
			t.Errorf("got %v, want %q", steps[0].Err, want)
		}
	}
}

func TestDamagedCassettes(t *testing.T) {
	good := record(t, replayed("a"), replayed("b"))
	for want, text := range map[string]string{
		"line 1":                     "",
		"is not that of a cassette":  "nonsense",
		"it is of version 7":         `{"cassette":7}`,
		"line 3: unexpected EOF":     good[:len(good)-20],
		"goes on behind message 9":   strings.Replace(good, `"same":0`, `"same":9`, 1),
		"goes on behind message -1 ": strings.Replace(good, `"same":0`, `"same":-1`, 1),
	} {
		if _, err := script.Play(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestACassetteThatCanNotBeWrittenFails(t *testing.T) {
	r := &script.Recorder{Model: &tape{chunks: []llm.Chunk{{Text: "Yes."}, {Reply: &llm.Reply{}}}}, To: full{}}
	for range 2 {
		steps := play(t, r, replayed("a"))
		if last := steps[len(steps)-1]; last.Err == nil || !strings.Contains(last.Err.Error(), "no space left") {
			t.Errorf("ended with %+v", last)
		}
	}
}

func TestPlayerHeedsItsContext(t *testing.T) {
	p, err := script.Play(strings.NewReader(record(t, replayed("a"))))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range p.Stream(ctx, replayed("a")) {
		if e := llm.AsError(err); e == nil || e.Kind != llm.KindCancelled {
			t.Errorf("got %v", err)
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(`{"cassette":1,"info":{}}` + "\n" +
		`{"same":0,"request":{"tools":null,"messages":[{"role":"user","parts":[{"type":"text","text":"a"}]}]},"chunks":[{"text":"b"}]}`)
	f.Fuzz(func(t *testing.T, cassette string) {
		p, err := script.Play(strings.NewReader(cassette))
		if err != nil {
			return
		}
		play(t, p, replayed("a"))
	})
}
