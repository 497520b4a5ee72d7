package journeys_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/testkit/anthropictest"
	"github.com/inspan/inspan/internal/testkit/openaitest"
	"github.com/inspan/inspan/internal/view/cost"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/anthropic"
	"github.com/inspan/inspan/llm/openai"
	"github.com/inspan/inspan/tool"
)

// TestPrefixGrows makes random sessions out of everything that can happen in
// one: any kind of reply, interrupts, steering, denials, waits, other models,
// conversations refused and healed, compactions, rewinds, crashes and resumes.
// Each request, those for summaries too, must be one that the vendors accept,
// and must begin with all of the request before it, on each wire; but for one
// that follows a refusal, a compaction or a rewind.
func TestPrefixGrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{
			t: t, route: "anthropic/m", refused: map[int]bool{}, anew: map[int]bool{},
			window: rapid.SampledFrom([]int{0, 8_000}).Draw(t, "window"),
		}
		log := event.NewMemory("m")
		w.log = log
		for range rapid.IntRange(1, 5).Draw(t, "runs") {
			w.live(log)
		}
		w.spent()
		for i := 1; i < len(w.sent); i++ {
			if w.refused[i-1] || w.anew[i] {
				continue
			}
			for wire := range w.sent[i] {
				if before, after := w.sent[i-1][wire], w.sent[i][wire]; !strings.HasPrefix(after, before) {
					t.Fatalf("wire %d: request %d does not continue the one before:\n%q\n%q", wire, i+1, before, after)
				}
			}
		}
	})
}

// world plays the model and the circumstances of a session at random, and keeps the requests on each wire.
type world struct {
	t       *rapid.T
	route   string
	calls   int
	sent    [][3]string
	refused map[int]bool // requests that were refused for what the conversation holds
	anew    map[int]bool // requests before which the conversation was made another
	window  int
	log     event.Log
	times   int // that it was made another when the last request was sent
}

// live opens the session, says something and drives it to its end, or to a
// crash.
func (w *world) live(log event.Log) {
	var l ledger
	mode := rapid.SampledFrom([]tool.Mode{"plan", "ask", "edit"}).Draw(w.t, "mode")
	a := inspan.Agent{
		Model: w, Tools: []tool.Tool{long(l.reader()), l.writer()}, Env: tool.Env{Root: "/w"}, Mode: mode, Limits: inspan.Limits{Retry: -1, Turns: 12},
		System: []event.Added{{Source: "t", Text: "be good"}},
	}
	s, err := a.Open(context.Background(), log)
	if err != nil {
		w.t.Fatal(err)
	}
	defer s.Close()
	input := rapid.SampledFrom([]event.Body{
		said("do it"), said("éä \u2028 <b>"),
		event.Said{},
		event.Steered{Origin: event.OriginPerson, Parts: llm.Say("hm")},
		event.Cancelled{},
		event.Compact{Focus: "tests"},
		said(strings.Repeat("long words. ", 700)),
	}).Draw(w.t, "input")
	if st := s.Status(); st.Turns > 3 && rapid.IntRange(0, 4).Draw(w.t, "rewind") == 0 {
		w.rewind(s, log)
	}
	inputs := []event.Body{input}
	for range 4 {
		if w.drive(s, inputs) {
			return
		}
		inputs = nil
		for _, p := range s.Status().Waiting {
			inputs = append(inputs, event.Decided{Call: p.Call.ID, Allow: rapid.Bool().Draw(w.t, "allow"), By: "chance"})
		}
	}
}

// long makes a tool return more than a prompt keeps.
func long(t tool.Tool) tool.Tool {
	run := t.Run
	t.Run = func(ctx context.Context, c *tool.Call) (tool.Result, error) {
		r, err := run(ctx, c)
		r.Parts = append(r.Parts, llm.Text{Text: strings.Repeat("much that was read, ", 120)})
		return r, err
	}
	return t
}

// rewind goes back to any place, unless a message would be dropped: then the log stays as it is.
func (w *world) rewind(s *inspan.Session, log event.Log) {
	last := func() (seq uint64) {
		for e, err := range log.Read(context.Background(), 0) {
			if seq = e.Seq; err != nil {
				w.t.Fatal(err)
			}
		}
		return seq
	}
	before := last()
	err := s.Rewind(context.Background(), rapid.Uint64Range(4, before).Draw(w.t, "to"), nil)
	if err != nil && (!errors.Is(err, inspan.ErrUnreadMessage) || last() != before) {
		w.t.Fatal(err)
	}
}

// spent checks that the causes of the session's costs add up to the session's own total, and that each cause is known.
func (w *world) spent() {
	var state loop.State
	for e, err := range w.log.Read(context.Background(), 0) {
		if err := errors.Join(err, state.Apply(e)); err != nil {
			w.t.Fatal(err)
		}
	}
	tallies, err := cost.Tallies(state.Session, w.log.Read(context.Background(), 0))
	if err != nil {
		w.t.Fatal(err)
	}
	var used llm.Usage
	var dollars cost.Money
	for _, t := range tallies {
		for _, p := range t.Parts {
			used, dollars = used.Add(p.Usage), dollars+p.Dollars
			if p.Cause.Kind == cost.Unread {
				w.t.Errorf("nothing is known of %+v", p)
			}
		}
	}
	total := state.Total.Usage
	total.Estimated, used.Estimated = false, false
	if off := dollars.Dollars() - state.Total.Cost; used != total || math.Abs(off) > 1e-9 {
		w.t.Fatalf("the causes add up to %+v and $%v, the session to %+v and $%v", used, dollars, total, state.Total.Cost)
	}
}

// made is how often the conversation was made another.
func (w *world) made() (n int) {
	for e, err := range w.log.Read(context.Background(), 0) {
		if err != nil {
			w.t.Fatal(err)
		}
		switch e.Body.(type) {
		case event.Compacted, event.Pruned, event.Rewound:
			n++
		}
	}
	return n
}

// drive runs once, with inputs that come in between. It reports whether the
// session crashed.
func (w *world) drive(s *inspan.Session, inputs []event.Body) (crashed bool) {
	crash := rapid.IntRange(0, 60).Draw(w.t, "crash")
	between := rapid.IntRange(0, 40).Draw(w.t, "between")
	n := 0
	for _, err := range s.Run(context.Background(), inputs...) {
		if err != nil {
			w.t.Fatal(err)
		}
		n++
		if n == between {
			in := rapid.SampledFrom([]event.Body{
				event.Steered{Origin: event.OriginPerson, Parts: llm.Say("mind this")},
				event.Cancelled{By: "ann"},
				said("and then that"),
				event.Compact{},
			}).Draw(w.t, "in")
			if err := s.Send(context.Background(), in); err != nil {
				w.t.Fatal(err)
			}
		}
		if n == crash {
			return true
		}
	}
	return false
}

// Info implements llm.Model.
func (w *world) Info() llm.Info {
	return llm.Info{Provider: "anthropic", Model: "m", Images: true, Window: w.window}
}

// Stream implements llm.Model with a reply that chance makes.
func (w *world) Stream(_ context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		w.send(req)
		if req.Purpose != "" {
			// It is not part of the conversation, although it begins like it.
			w.sent = w.sent[:len(w.sent)-1]
			yield(llm.Chunk{Reply: &llm.Reply{Stop: llm.StopEnd, Route: w.route, Parts: llm.Say("I can't.")}}, nil)
			return
		}
		if n := w.made(); n != w.times {
			w.anew[len(w.sent)-1], w.times = true, n
		}
		kind := rapid.SampledFrom([]string{
			"text", "calls", "calls", "calls", "empty", "thought",
			"length", "cut call", "pause", "refusal", "fail", "other",
		}).Draw(w.t, "reply")
		if kind == "fail" {
			why := rapid.SampledFrom([]llm.Kind{llm.KindOverloaded, llm.KindQuota, llm.KindHistory, llm.KindHistory, llm.KindTooLarge}).Draw(w.t,
				"why")
			w.refused[len(w.sent)-1] = why == llm.KindHistory || why == llm.KindTooLarge
			yield(llm.Chunk{}, &llm.Error{Kind: why})
			return
		}
		switch before := rapid.SampledFrom([]string{"", "", "wait", "other model"}).Draw(w.t, "before"); {
		case before == "wait" && !yield(llm.Chunk{Retry: &llm.Retry{Attempt: 2, Wait: 0.001, Cause: &llm.Error{Kind: llm.KindRateLimited}}}, nil),
			before == "other model" && !yield(llm.Chunk{Routed: &llm.Routed{Info: llm.Info{Provider: "near", Model: "m"}, Rule: "r"}}, nil):
			return
		}
		yield(llm.Chunk{Reply: w.reply(kind)}, nil)
	}
}

func (w *world) reply(kind string) *llm.Reply {
	r := &llm.Reply{Stop: llm.StopEnd, Route: w.route}
	text := rapid.SampledFrom([]string{"fine", " \n", "a <b> & \u2028", "x", strings.Repeat("many words, ", 900) + "all"}).Draw(w.t, "text")
	thought := llm.Reasoning{
		Text: "hm", Route: w.route,
		Opaque: json.RawMessage(fmt.Sprintf(`{"type":"thinking","thinking":"hm","signature":%q}`, anthropictest.Sign("hm"))),
	}
	switch kind {
	case "empty":
	case "thought":
		r.Parts = llm.Parts{thought}
	case "calls", "cut call":
		if rapid.Bool().Draw(w.t, "thinks") {
			r.Parts = append(r.Parts, thought)
		}
		r.Parts = append(r.Parts, llm.Text{Text: text})
		for range rapid.IntRange(1, 3).Draw(w.t, "n") {
			r.Parts = append(r.Parts, w.call())
		}
		r.Stop = map[string]llm.Stop{"calls": llm.StopCalls, "cut call": llm.StopLength}[kind]
	default:
		r.Parts = llm.Say(text)
		r.Stop = map[string]llm.Stop{
			"text": llm.StopEnd, "length": llm.StopLength,
			"pause": llm.StopPause, "refusal": llm.StopRefusal, "other": llm.StopOther,
		}[kind]
	}
	return r
}

func (w *world) call() llm.Call {
	w.calls++
	id := rapid.SampledFrom([]string{"", "same", fmt.Sprint("call", w.calls)}).Draw(w.t, "id")
	return rapid.SampledFrom([]llm.Call{
		{ID: id, Name: "look", Args: json.RawMessage(`{"word":"a"}`)},
		{ID: id, Name: "note", Args: json.RawMessage(`{"word":"b"}`)},
		{ID: id, Name: "none", Args: json.RawMessage(`{}`)},
		{ID: id, Name: "look", Args: json.RawMessage(`{"word":`)},
		{ID: id, Name: "look", Args: json.RawMessage(`{}`), Invalid: `nonsense`},
	}).Draw(w.t, "call")
}

// send encodes the request for every wire, as it would go out.
func (w *world) send(req llm.Request) {
	var bodies [3][]byte
	catch := func(i int) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			var err error
			bodies[i], err = io.ReadAll(r.Body)
			return nil, errors.Join(err, io.EOF)
		})
	}
	for i, m := range []llm.Model{
		&anthropic.Model{ID: "m", HTTP: catch(0)},
		&openai.Model{ID: "m", BaseURL: "http://x/v1", HTTP: catch(1)},
		&openai.Responses{ID: "gpt-5", BaseURL: "http://x/v1", HTTP: catch(2)},
	} {
		for _, err := range m.Stream(context.Background(), req) {
			if err == nil {
				w.t.Fatal("nobody answered, yet something came back")
			}
		}
		if bodies[i] == nil {
			w.t.Fatal("no request was sent")
		}
	}
	if err := anthropictest.Validate(bodies[0]); err != nil {
		w.t.Fatalf("%v\n%s", err, bodies[0])
	}
	if err := openaitest.Validate(bodies[1]); err != nil {
		w.t.Fatalf("%v\n%s", err, bodies[1])
	}
	if err := openaitest.ValidateResponses(bodies[2]); err != nil {
		w.t.Fatalf("%v\n%s", err, bodies[2])
	}
	w.sent = append(w.sent, [3]string{w.flat(bodies[0]), w.flat(bodies[1]), w.flat(bodies[2])})
}

// flat spells out a body as its tools, system prompt and every block of every message. It leaves out the cache markers,
// which are not part of the cached prompt, and the end of each message: the model reads on where the text continues.
func (w *world) flat(body []byte) string {
	var req struct {
		Tools, System, Instructions json.RawMessage
		Messages, Input             []map[string]json.RawMessage // the names differ from wire to wire
	}
	body = bytes.ReplaceAll(body, []byte(`,"cache_control":{"type":"ephemeral"}`), nil)
	if err := json.Unmarshal(body, &req); err != nil {
		w.t.Fatal(err)
	}
	out := string(req.Tools) + string(req.System) + string(req.Instructions)
	for _, m := range append(req.Messages, req.Input...) {
		var blocks []json.RawMessage
		if json.Unmarshal(m["content"], &blocks) != nil {
			blocks = []json.RawMessage{m["content"]}
		}
		calls := m["tool_calls"] // which come after the text
		delete(m, "content")
		delete(m, "tool_calls")
		head, err := json.Marshal(m)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, b := range blocks {
			var text string
			if json.Unmarshal(b, &text) != nil {
				text = string(b)
			}
			out += string(head) + text
		}
		out += string(calls)
	}
	return out
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
