package cost_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/view/cost"
	"github.com/inspan/inspan/llm"
)

// billed is the cost according to the events of a session, each looked at by itself.
func billed(session string, events []event.Event) (used llm.Usage, dollars cost.Money) {
	for _, e := range events {
		if e.Session != session || e.Transient() {
			continue
		}
		var u llm.Usage
		var d float64
		switch b := e.Body.(type) {
		case event.Replied:
			u, d = b.Usage, b.Cost
		case event.Failed:
			u, d = b.Usage, b.Cost
		case event.Routed:
			u, d = b.Usage, b.Cost
		case event.Compacted:
			u, d = b.Usage, b.Cost
		case event.Kept:
			u, d = b.Usage, b.Cost
		case event.Ended:
			d = b.Cost
		case event.Judged:
			for _, c := range b.Consulted {
				u = u.Add(c.Usage)
			}
			d = b.Cost
		}
		used, dollars = used.Add(u), dollars+cost.Of(d)
	}
	used.Estimated = false
	return used, dollars
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// addsUp holds that the parts of a session are the sum of its bills: by cause, by tool and in all.
func addsUp(t failer, session string, events []event.Event) []cost.Tally {
	t.Helper()
	r := cost.NewRecorder(session)
	for i, e := range events {
		r.Apply(e)
		if i == len(events)/2 {
			r.Tallies() // looking at it changes nothing
		}
	}
	used, dollars := billed(session, events)
	all := r.Tallies()
	by := map[string]cost.Row{"all": cost.Sum(all)}
	for _, by1 := range []string{cost.Causes, "tool"} {
		rows, err := cost.Group(all, by1)
		if err != nil {
			t.Fatalf("%v", err)
		}
		sum := cost.Row{}
		for _, row := range rows {
			sum.Usage, sum.Dollars = sum.Usage.Add(row.Usage), sum.Dollars+row.Dollars
			if row.Dollars < 0 {
				t.Fatalf("%s by %s: %+v", session, by1, row)
			}
		}
		by[by1] = sum
	}
	for name, row := range by {
		row.Usage.Estimated = false
		if row.Usage != used || row.Dollars != dollars {
			t.Fatalf("%s %s: %+v, %v; billed %+v, %v", session, name, row.Usage, row.Dollars, used, dollars)
		}
	}
	return all
}

// TestEveryTokenOfTheCorpus checks the sums for each log that a version has written.
func TestEveryTokenOfTheCorpus(t *testing.T) {
	paths, err := filepath.Glob("../../../test/journeys/testdata/logs/*/*.jsonl")
	shown, err2 := filepath.Glob("../../front/tui/testdata/logs/*.jsonl")
	if err != nil || err2 != nil || len(paths) < 30 || len(shown) == 0 {
		t.Fatal(len(paths), err, err2)
	}
	for _, path := range append(paths, shown...) {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var events []event.Event
		sessions := map[string]bool{}
		for line := range bytes.Lines(raw) {
			e, err := event.Decode(bytes.TrimSpace(line))
			if err != nil {
				t.Fatal(path, err)
			}
			events = append(events, e)
			sessions[e.Session] = true
		}
		for session := range sessions {
			addsUp(t, session, events)
		}
	}
}

// chance makes a session step by step, mostly as a driver would, now and then as none would.
type chance struct {
	*rapid.T
	state  loop.State
	old    []*loop.State
	events []event.Event
	calls  int
	at     time.Time
}

func (c *chance) put(bodies ...event.Body) {
	for _, b := range bodies {
		c.at = c.at.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 400, 90_000}).Draw(c.T, "pause")) * time.Second)
		session := "s"
		if len(c.events) < 12 && len(c.old) > 3 {
			session = "origin"
		}
		e := event.Event{Seq: uint64(len(c.events) + 1), Time: c.at, Session: session, Body: b}
		c.events = append(c.events, e)
		if err := c.state.Apply(e); err != nil {
			c.Fatal(err)
		}
	}
}

func (c *chance) n(most int, name string) int { return rapid.IntRange(0, most).Draw(c.T, name) }

func (c *chance) usage() llm.Usage {
	switch c.n(6, "usage") {
	case 0:
		return llm.Usage{}
	case 1:
		return llm.Usage{Input: c.n(3000, "in"), Output: c.n(50, "out"), Estimated: true}
	}
	u := llm.Usage{Input: c.n(20_000, "in"), CacheRead: c.n(20_000, "read"), CacheWrite: c.n(5000, "write"), Output: c.n(900, "out")}
	u.Reasoning = c.n(u.Output, "thought")
	return u
}

func (c *chance) dollars() float64 {
	return rapid.SampledFrom([]float64{0, 0.0123, 1e-13, 0.1 + 0.2, 3.333333333, 1e9}).Draw(c.T, "dollars")
}

func (c *chance) text() string {
	return strings.Repeat(rapid.SampledFrom([]string{"", "a", "word "}).Draw(c.T, "text"), c.n(400, "times"))
}

func (c *chance) reply() event.Body {
	r := event.Replied{
		Parts: llm.Parts{llm.Reasoning{Text: "t", Opaque: []byte(`"x"`)}, llm.Text{Text: c.text()}}, Usage: c.usage(), Cost: c.dollars(),
		Route: rapid.SampledFrom([]string{"anthropic/claude-opus-5-5", "openai/gpt-6-sol", "home/m"}).Draw(c.T, "route"),
		Stop:  rapid.SampledFrom([]llm.Stop{llm.StopEnd, llm.StopCalls, llm.StopCut, llm.StopRefusal, llm.StopLength}).Draw(c.T, "stop"),
	}
	for range c.n(3, "calls") {
		c.calls++
		r.Parts = append(r.Parts, llm.Call{ID: fmt.Sprint("c", c.calls), Name: "bash", Args: json.RawMessage(`{"command":"ls"}`)})
	}
	return r
}

// snapshot is a body that replaces the conversation.
func (c *chance) snapshot() event.Body {
	if c.n(1, "rewind") == 0 && len(c.old) > 0 {
		body, err := c.state.Rewound(rapid.SampledFrom(c.old).Draw(c.T, "to"), false)
		if err != nil {
			c.Fatal(err)
		}
		return body
	}
	messages := slices.Clone(c.state.Messages[len(c.state.Messages)/2:])
	messages = append([]llm.Message{{Role: llm.User, Parts: llm.Say("[shortened] " + c.text())}}, messages...)
	body, err := c.state.Compacted(event.Compacted{Usage: c.usage(), Cost: c.dollars(), Route: "p/small"}, loop.Shortened{Messages: messages})
	if err != nil {
		c.Fatal(err)
	}
	return body
}

// step appends something.
func (c *chance) step() {
	image := llm.Image{MediaType: "image/png", Digest: "d"}
	child := fmt.Sprint("s.", c.n(2, "child"))
	call := fmt.Sprint("c", c.calls-c.n(2, "call"))
	switch c.n(14, "step") {
	case 0:
		c.put(event.Said{Parts: llm.Parts{llm.Text{Text: c.text()}, image}})
	case 1:
		c.put(event.Steered{Parts: llm.Say(c.text()), Origin: event.OriginHarness}, event.Hooked{By: "h", Text: c.text()})
	case 2:
		c.put(event.Switched{Tools: []llm.ToolSpec{{Name: "bash", Description: c.text()}, {Name: fmt.Sprint("t", c.calls)}}})
	case 3:
		c.put(c.snapshot())
	case 4:
		c.put(event.Pruned{Upto: len(c.state.Messages) / 2})
	case 5:
		c.put(event.Healed{Level: rapid.SampledFrom([]event.Healing{loop.HealCalls, loop.HealImages, loop.HealReasoning}).Draw(c.T, "level")})
	case 6:
		c.put(event.Failed{Cause: llm.KindRefused, Route: "p/m", Usage: c.usage(), Cost: c.dollars(), Retry: 1})
	case 7:
		c.put(event.Spawned{Child: child, Agent: "explore"}, event.Returned{Child: child, Parts: llm.Say(c.text()), Usage: c.usage(), Cost: 1})
	case 8:
		c.put(event.Routed{Route: "p/m", Judge: "p/j", Usage: c.usage(), Cost: c.dollars()}, event.Kept{Usage: c.usage(), Cost: c.dollars()})
	case 9:
		c.put(event.Judged{Call: call, Cost: c.dollars(), Consulted: []llm.Consulted{{Usage: c.usage()}, {Usage: c.usage()}}, Text: c.text()})
	default:
		c.put(event.Asked{}, c.reply())
		for _, open := range c.state.Run.Calls {
			c.put(event.Ended{Call: open.ID, Parts: llm.Parts{llm.Text{Text: c.text()}, image}, Cost: c.dollars(), Lasting: "skill deploy"})
		}
		old := c.state
		c.old = append(c.old, &old)
	}
}

// TestEveryTokenOfAnySession checks the sums for sessions of all that can happen in one.
func TestEveryTokenOfAnySession(t *testing.T) {
	sessions := 0
	for sessions < 1000 { // rapid makes 100 at a time
		rapid.Check(t, func(rt *rapid.T) {
			sessions++
			c := &chance{T: rt, at: noon}
			c.put(event.Opened{Format: event.Format}, event.Added{Where: event.PlaceSystem, Source: "inspan", Text: "be good"})
			for range c.n(25, "steps") {
				c.step()
			}
			addsUp(rt, "s", c.events)
			addsUp(rt, "origin", c.events)
		})
		if t.Failed() {
			return
		}
	}
}

// causes are the rows of a session by cause.
func causes(t *testing.T, bodies ...event.Body) map[string]cost.Row {
	t.Helper()
	var events []event.Event
	for e, err := range log("s", bodies...) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	rows, err := cost.Group(addsUp(t, "s", events), cost.Causes)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]cost.Row{}
	for _, r := range rows {
		out[r.Key] = r
	}
	return out
}

func inputs(rows map[string]cost.Row) map[string]int {
	out := map[string]int{}
	for key, r := range rows {
		if n := r.Usage.Prompt() + r.Usage.Output; n > 0 {
			out[key] = n
		}
	}
	return out
}

// by is a reply of 1,000 prompt tokens and more, with calls.
func by(route string, u llm.Usage, dollars float64, calls ...llm.Call) event.Replied {
	r := event.Replied{Parts: llm.Say("I look."), Stop: llm.StopEnd, Route: route, Usage: u, Cost: dollars}
	for _, c := range calls {
		r.Stop = llm.StopCalls
		r.Parts = append(r.Parts, c)
	}
	return r
}

func read(id, path string) llm.Call {
	return llm.Call{ID: id, Name: "read_file", Args: json.RawMessage(fmt.Sprintf(`{"path":%q}`, path))}
}

// opening is a prompt of 100 estimated tokens of each: system prompt, instructions, tool, message.
func opening() []event.Body {
	return []event.Body{
		event.Opened{Format: event.Format},
		event.Added{Where: event.PlaceSystem, Source: "inspan", Text: strings.Repeat("x", 350)},
		event.Added{Where: event.PlaceSystem, Source: "AGENTS.md", Text: strings.Repeat("x", 350)},
		event.Switched{Route: "home/m", Tools: []llm.ToolSpec{{Name: "read_file", Description: strings.Repeat("x", 341)}}},
		event.Say(strings.Repeat("x", 350)),
		event.Asked{Turn: 1},
	}
}

// TestPartsPayInTheirOrder checks how costs are divided: the vendor's count for the earlier request falls to its parts,
// the rest to the new part, and cached tokens to the first parts.
func TestPartsPayInTheirOrder(t *testing.T) {
	rows := causes(t, append(opening(),
		by("home/m", llm.Usage{CacheWrite: 800, Output: 10, Reasoning: 4}, 0, read("1", "big.json")),
		ended("1", strings.Repeat("x", 3500)), event.Asked{Turn: 2},
		by("home/m", llm.Usage{CacheRead: 800, CacheWrite: 1000, Output: 5}, 0, read("2", "b")), ended("2", "x"), event.Asked{Turn: 3},
		by("home/m", llm.Usage{CacheRead: 1800, Input: 20}, 0),
	)...)
	for cause, want := range map[string]llm.Usage{
		"system prompt":                   {CacheWrite: 200, CacheRead: 400},
		"instructions: AGENTS.md":         {CacheWrite: 200, CacheRead: 400},
		"tool spec: read_file":            {CacheWrite: 200, CacheRead: 400},
		"your message":                    {CacheWrite: 200, CacheRead: 400},
		"result of read_file":             {CacheWrite: 989, Input: 2},
		"result of read_file, sent again": {CacheRead: 989},
		"earlier replies":                 {CacheWrite: 11, CacheRead: 11, Input: 18},
		"reasoning":                       {Output: 4, Reasoning: 4},
		"reply":                           {Output: 11},
	} {
		got := rows[cause].Usage
		near := func(a, b int) bool { return a-b <= 2 && b-a <= 2 } // but for rounding
		if !near(got.Input, want.Input) || !near(got.CacheRead, want.CacheRead) || !near(got.CacheWrite, want.CacheWrite) ||
			!near(got.Output, want.Output) {
			t.Errorf("%s: %+v, want %+v", cause, got, want)
		}
	}
	if len(rows) != 9 {
		t.Errorf("%v", inputs(rows))
	}
}

// TestLostCaches checks that tokens paid in full although the earlier request had them in the cache are charged to the
// cause of the loss.
func TestLostCaches(t *testing.T) {
	warm, cold := llm.Usage{CacheWrite: 800}, llm.Usage{CacheRead: 100, CacheWrite: 900}
	first := append(opening(), by("home/m", warm, 1))
	say := []event.Body{event.Stopped{Reason: event.ReasonDone}, event.Say("go on"), event.Asked{}}
	mcp := []llm.ToolSpec{{Name: "read_file", Description: strings.Repeat("x", 341)}, {Name: "mcp__tracker__find"}}
	for cause, between := range map[string][]event.Body{
		"another model": {event.Note{}},
		"the tools were changed: mcp__tracker__find added": {event.Switched{Tools: mcp}},
		"another effort":                  {event.Switched{Effort: "high"}},
		"a pause":                         {event.Note{}, event.Note{}, event.Note{}, event.Note{}, event.Note{}},
		"old results were cut short":      {event.Pruned{Upto: 1}},
		"not known":                       nil,
		"the conversation was simplified": {event.Healed{Level: loop.HealImages}},
	} {
		route := "home/m"
		if cause == "another model" {
			route = "far/m"
		}
		rows := causes(t, slices.Concat(first, say[:1], between, say[1:], []event.Body{by(route, cold, 2)})...)
		got := rows["cache miss: "+cause]
		if d := got.Dollars.Dollars(); got.Usage != (llm.Usage{CacheWrite: 700}) || d < 1.5 || d > 1.6 {
			t.Errorf("%s: %+v", cause, rows)
		}
	}
	rows := causes(t, slices.Concat(first, say, []event.Body{by("home/m", llm.Usage{CacheRead: 800, Input: 200}, 2)})...)
	for cause := range rows {
		if strings.HasPrefix(cause, "cache miss") {
			t.Error("nothing was lost, but", cause)
		}
	}
}

// TestWhatElseIsPaid checks the causes of all bills that are not for a reply.
func TestWhatElseIsPaid(t *testing.T) {
	u := llm.Usage{Input: 7}
	rows := causes(t, append(opening(),
		event.Routed{Route: "home/m", Judge: "home/j", Usage: u, Cost: 1},
		event.Failed{Cause: llm.KindRefused, Route: "home/m", Usage: u, Cost: 2, Retry: 1},
		by("home/m", llm.Usage{}, 0, read("1", "a"), llm.Call{ID: "2", Name: "web_search"}),
		event.Judged{Call: "1", Route: "home/r", Cost: 4, Consulted: []llm.Consulted{{Usage: u}}}, event.Judged{Call: "2"},
		ended("1", "x"), event.Ended{Call: "2", Outcome: event.OutcomeOK, Cost: 8},
		event.Kept{Usage: u, Cost: 16}, event.Compacted{Why: loop.CompactAsked, Usage: u, Cost: 32},
		event.Replied{Stop: llm.StopRefusal, Usage: u, Cost: 64}, event.Replied{Stop: llm.StopCut, Usage: u, Cost: 128},
		event.Replied{Usage: llm.Usage{Input: -3}, Cost: 256},
	)...)
	want := map[string]float64{
		"router's judge": 1, "failed request: content_refused": 2, "reviewer": 4, "spent by tool: web_search": 8, "compaction: not done": 16,
		"compaction: asked": 32, "failed request: refused": 64, "failed request: broke off": 128, "not known": 256,
	}
	for cause, dollars := range want {
		if got := rows[cause].Dollars.Dollars(); got != dollars {
			t.Errorf("%s: $%v, want $%v", cause, got, dollars)
		}
	}
}

// TestMoneyIsExact checks the rule of rounding: prices with six decimals lose nothing, and the parts of a bill are the
// bill.
func TestMoneyIsExact(t *testing.T) {
	for dollars, want := range map[float64]string{
		0.1 + 0.2: "0.3", 3 * 0.0000001: "0.0000003", 1e-12: "0.000000000001", 12: "12", 0: "0", -1: "0",
	} {
		if got := cost.Of(dollars).String(); got != want {
			t.Errorf("%v: %s, want %s", dollars, got, want)
		}
	}
	price := llm.Price{Input: 2, CacheRead: 0.1, CacheWrite: 2.5, Output: 10}
	rows := causes(t, append(opening(), by("anthropic/claude-sonnet-5-5", llm.Usage{CacheWrite: 400, Output: 100},
		price.Cost(llm.Usage{CacheWrite: 400, Output: 100})))...)
	if got := rows["reply"].Dollars; got != cost.Of(0.001) {
		t.Errorf("100 tokens of a reply at $10 a million: %v", got)
	}
	if got := rows["system prompt"].Dollars; got != cost.Of(0.00025) {
		t.Errorf("100 tokens written at $2.5 a million: %v", got)
	}
	raw, err := json.Marshal(rows["reply"])
	var row cost.Row
	if err != nil || json.Unmarshal(raw, &row) != nil || row != rows["reply"] {
		t.Errorf("%s: %+v, %v", raw, row, err)
	}
}

// FuzzNoTokenIsLost feeds events of any kind in any order, as no driver writes them.
func FuzzNoTokenIsLost(f *testing.F) {
	paths, _ := filepath.Glob("../../../test/journeys/testdata/logs/*/*.jsonl")
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw, uint64(3))
	}
	const odd = `{"seq":1,"kind":"replied","body":{"usage":{"input":-5,"cache_read":9223372036854775807,"reasoning":4},"cost":1e300}}`
	f.Add([]byte(odd+"\n"), uint64(0))
	f.Fuzz(func(t *testing.T, raw []byte, turn uint64) {
		var events []event.Event
		for line := range bytes.Lines(raw) {
			if e, err := event.Decode(bytes.TrimSpace(line)); err == nil {
				events = append(events, e)
			}
		}
		if n := uint64(len(events)); n > 0 { // in another order
			events = append(events[turn%n:], events[:turn%n]...)
		}
		for _, e := range events {
			addsUp(t, e.Session, events)
			break
		}
	})
}

// TestPartsOfAPrompt checks the cause of all that can stand in one.
func TestPartsOfAPrompt(t *testing.T) {
	text := strings.Repeat("x", 400)
	image := llm.Image{MediaType: "image/png", Digest: "d"}
	rows := causes(t,
		event.Opened{Format: event.Format}, event.Added{Where: event.PlaceSystem, Source: "inspan", Text: text},
		event.Added{Where: event.PlaceSystem, Source: "environment", Text: text}, event.Added{Where: event.PlaceSystem, Source: "/w/AGENTS.md", Text: text},
		event.Added{Where: event.PlaceSystem, Source: "skills", Text: text}, event.Added{Where: event.PlaceSystem, Source: "memory", Text: text},
		event.Switched{Tools: []llm.ToolSpec{{Name: "bash", Description: text}}},
		event.Said{Parts: llm.Parts{llm.Text{Text: text + "person"}, image}}, event.Hooked{By: "lint", Text: text + "hook"}, event.Asked{},
		by("home/m", llm.Usage{}, 0, llm.Call{ID: "1", Name: "skill"}, read("2", "a")),
		event.Spawned{Child: "s.a", Agent: "explore", Background: true},
		event.Ended{Call: "1", Outcome: event.OutcomeOK, Parts: llm.Say(text), Lasting: "skill deploy"},
		event.Ended{Call: "2", Outcome: event.OutcomeOK, Parts: llm.Parts{llm.Text{Text: text}, image}},
		event.Returned{Child: "s.a", Parts: llm.Say(text + "child")}, event.Added{Where: event.PlaceTail, Source: "/w/sub/AGENTS.md", Text: text + "sub"},
		event.Added{Where: event.PlaceTail, Source: "mode", Text: text + "mode"}, event.Steered{Origin: event.OriginPerson, Parts: llm.Say(text + "steered")}, event.Asked{},
		by("home/m", llm.Usage{Input: 10_000}, 0),
	)
	for _, cause := range []string{
		"system prompt", "system prompt: environment", "instructions: /w/AGENTS.md", "skill: list", "memory", "tool spec: bash", "your message",
		"image", "hook: lint", "earlier replies", "skill: deploy", "result of read_file", "subagent: explore", "instructions: /w/sub/AGENTS.md",
		"inspan's notes",
	} {
		if rows[cause].Usage.Input == 0 {
			t.Errorf("nothing falls to %s", cause)
		}
		delete(rows, cause)
	}
	if len(inputs(rows)) > 0 {
		t.Errorf("and %v", inputs(rows))
	}
}

// TestPromptsThatChange checks that a replacement takes the place of its conversation, and that another model counts
// from the beginning.
func TestPromptsThatChange(t *testing.T) {
	before := append(opening(), by("home/m", llm.Usage{Input: 400, Output: 1}, 0), event.Stopped{Reason: event.ReasonDone})
	var st loop.State
	for e, err := range log("s", before...) {
		if err = errors.Join(err, st.Apply(e)); err != nil {
			t.Fatal(err)
		}
	}
	compacted, err := st.Compacted(event.Compacted{}, loop.Shortened{Messages: []llm.Message{{Role: llm.User, Parts: llm.Say(strings.Repeat("y", 3500))}}})
	if err != nil {
		t.Fatal(err)
	}
	after := []event.Body{event.Say(strings.Repeat("z", 350)), event.Asked{}}
	rows := causes(t, slices.Concat(before, []event.Body{compacted}, after, []event.Body{by("home/m", llm.Usage{Input: 1400}, 0)})...)
	if got := rows["summary"].Usage.Input; got < 990 || got > 1010 || rows["your message"].Usage.Input > 210 || rows["earlier replies"].Usage.Input > 0 {
		t.Errorf("after a compaction: %v", inputs(rows))
	}
	rows = causes(t, slices.Concat(before, after, []event.Body{by("far/m", llm.Usage{Input: 1000}, 0)})...)
	if got := rows["system prompt"].Usage.Input; got < 290 || got > 310 {
		t.Errorf("with another model: %v", inputs(rows))
	}
}
