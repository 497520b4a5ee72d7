package journeys_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/internal/extend/tools"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// sound returns what is wrong with a request: each call must have its result in the next message, and each result its
// call.
func sound(req llm.Request) error {
	var open []string
	for i, m := range req.Messages {
		if i == 0 && m.Role != llm.User {
			return fmt.Errorf("the conversation begins with %s", m.Role)
		}
		for _, part := range m.Parts {
			if r, ok := part.(llm.Result); ok {
				at := slices.Index(open, r.CallID)
				if at < 0 {
					return fmt.Errorf("message %d: result of %s without its call", i, r.CallID)
				}
				open = slices.Delete(open, at, at+1)
			}
		}
		if len(open) > 0 {
			return fmt.Errorf("message %d: no result of %v", i, open)
		}
		if len(m.Parts) == 0 {
			return fmt.Errorf("message %d is empty", i)
		}
		for _, c := range m.Parts.Calls() {
			open = append(open, c.ID)
		}
	}
	return nil
}

// TestSummaryIsNotWaitedFor checks that a model that is overloaded when asked for a summary holds up the work for at
// most half a minute at a time, and that an extract of the log replaces the summary in the end.
func TestSummaryIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &longWork{t: t, window: 30_000, turns: 30, summary: func(llm.Request) (string, error) {
			return "", &llm.Error{Kind: llm.KindOverloaded, Message: "come back later"}
		}}
		a := longAgent(m)
		a.Unattended = true
		s, err := a.Open(t.Context(), event.NewMemory("s"))
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		events := drivenTo(t, s, event.Say(order))
		compacted, kept := bodiesOf[event.Compacted](events), bodiesOf[event.Kept](events)
		if len(compacted) == 0 || compacted[0].How != "extract" || s.Status().Stopped.Reason != event.ReasonDone {
			t.Fatalf("%d compactions, stopped %+v", len(compacted), s.Status().Stopped)
		}
		if took, most := time.Since(began), time.Duration(len(compacted)+len(kept))*30*time.Second; took > most {
			t.Errorf("%v for %d summaries", took, len(compacted)+len(kept))
		}
	})
}

func TestCompaction(t *testing.T) {
	down := &llm.Error{Kind: llm.KindInvalid, Message: "no summary today"}
	for _, tc := range []struct {
		name    string
		summary func(llm.Request) (string, error)
		how     string
		lacks   bool
		kept    bool
	}{
		{"honest", record, "model", false, false},
		{"lazy", func(llm.Request) (string, error) { return "All fine, go on.", nil }, "extract", true, false},
		{"lying", func(llm.Request) (string, error) {
			return "## Goal\nx\n## Constraints\nnone\n## Decisions\nnone\n## Files\ninvented.go\n## State of work\nall tests pass\n" +
				"## Open questions\nnone\n## Next\nnone", nil
		}, "extract", true, false},
		{"better at the second try", func(req llm.Request) (string, error) {
			if strings.Contains(req.Messages[len(req.Messages)-2].Parts.Text(), "sorry") {
				return record(llm.Request{Messages: req.Messages[:len(req.Messages)-2]})
			}
			return "sorry", nil
		}, "repaired", true, false},
		{"failing", func(llm.Request) (string, error) { return "", down }, "extract", true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := &longWork{t: t, window: 30_000, turns: 30, summary: tc.summary}
			log := event.NewMemory("s")
			s, err := longAgent(m).Open(t.Context(), log)
			if err != nil {
				t.Fatal(err)
			}
			events := drivenTo(t, s, event.Say(order))
			compacted, kept := bodiesOf[event.Compacted](events), bodiesOf[event.Kept](events)
			if st := s.Status(); st.Stopped == nil || st.Stopped.Reason != event.ReasonDone {
				t.Fatalf("stopped: %+v", st.Stopped)
			}
			if len(compacted) < 2 || (len(kept) > 0) != tc.kept {
				t.Fatalf("%d compactions, %d not done", len(compacted), len(kept))
			}
			cost := 0.0
			for _, c := range compacted {
				if c.How != tc.how || (len(c.Lacks) > 0) != tc.lacks || c.After*2 > c.Before {
					t.Errorf("how %q, lacks %q, from %d to %d tokens", c.How, c.Lacks, c.Before, c.After)
				}
				cost += c.Cost
			}
			for _, r := range bodiesOf[event.Replied](events) {
				cost += r.Cost
			}
			for _, k := range kept {
				cost += k.Cost
			}
			if got := s.Status().Cost; got < cost*0.999 || got > cost*1.001 {
				t.Errorf("cost %v, want %v", got, cost)
			}
			last := m.asked[len(m.asked)-1]
			if text := fmt.Sprint(last.Messages); !strings.Contains(text, order) || !strings.Contains(text, "w2.go") {
				t.Error("the last request lacks what the person said, or a file that was changed early")
			}
			sameAgain(t, m, log)
		})
	}
}

// sameAgain checks that a session opened from its log sends the same request, whether the whole log is folded or only
// the part after the compaction.
func sameAgain(t *testing.T, m *longWork, log *event.Memory) {
	t.Helper()
	var bodies []event.Body
	start := 0
	for e, err := range log.Read(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Body.Kind() == "compacted" {
			start = len(bodies)
		}
		bodies = append(bodies, e.Body)
	}
	next := func(from int) llm.Request {
		again := event.NewMemory("s")
		for _, b := range bodies[from:] {
			if _, err := harnesstest.Write(t.Context(), again, b); err != nil {
				t.Fatal(err)
			}
		}
		probe := *m
		probe.asked = nil
		s, err := longAgent(&probe).Open(t.Context(), again)
		if err != nil {
			t.Fatal(err)
		}
		drivenTo(t, s, event.Say("one more"))
		return probe.asked[0]
	}
	whole, tail := next(0), next(start)
	a, _ := json.Marshal(whole)
	b, _ := json.Marshal(tail)
	if string(a) != string(b) {
		t.Errorf("the request differs: %d bytes from the whole log, %d from its end", len(a), len(b))
	}
}

// TestRewindWaitsForNobody checks that nothing is restored while a run is in progress, and that the restored files are
// recorded before the conversation goes back.
func TestRewindWaitsForNobody(t *testing.T) {
	m := &longWork{t: t, window: 1_000_000, turns: 3}
	s, err := longAgent(m).Open(t.Context(), event.NewMemory("s"))
	if err != nil {
		t.Fatal(err)
	}
	put := 0
	restore := func(context.Context, *event.Restored) (*event.Restored, error) {
		put++
		return &event.Restored{To: "a", Before: "b", After: "c", Files: []string{"x"}}, nil
	}
	for e, err := range s.Run(t.Context(), event.Say(order)) {
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Rewind(t.Context(), 3, restore); e.Body.Kind() == "started" && !errors.Is(err, inspan.ErrBusy) {
			t.Errorf("a run that goes on was rewound: %v", err)
		}
	}
	if put != 0 {
		t.Errorf("files were put back %d times under a run", put)
	}
	failed := errors.New("disk full")
	fails := func(context.Context, *event.Restored) (*event.Restored, error) { return nil, failed }
	if err := s.Rewind(t.Context(), 3, fails); !errors.Is(err, failed) ||
		s.Status().Turns != 3 {
		t.Errorf("error %v", err)
	}
	if err := s.Rewind(t.Context(), 3, restore); err != nil || put != 1 {
		t.Fatalf("put back %d times, %v", put, err)
	}
	var last []string
	for e, err := range s.Events(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if last = append(last, e.Body.Kind()); e.Body.Kind() == "rewound" {
			break
		}
	}
	if want := []string{"claimed", "restored", "rewound"}; !slices.Equal(last[len(last)-3:], want) {
		t.Errorf("the log ends with %v", last[len(last)-3:])
	}
}

// TestRewindDropsNoMessage checks that a message that no run has begun with is not taken back, whether it came before
// the session was looked at, since, or while files are put back; and that the message of a run that was broken off is.
func TestRewindDropsNoMessage(t *testing.T) {
	log := event.NewMemory("s")
	s, err := longAgent(&longWork{t: t, window: 1_000_000, turns: 3}).Open(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	drivenTo(t, s, event.Say(order))
	say := func(bodies ...event.Body) {
		t.Helper()
		if _, err := log.Append(t.Context(), bodies...); err != nil {
			t.Fatal(err)
		}
	}
	put := 0
	restore := func(context.Context, *event.Restored) (*event.Restored, error) {
		put++
		return &event.Restored{To: "a", Before: "b", After: "c", Files: []string{"x"}}, nil
	}
	back := func(what string, want error, puts int) {
		t.Helper()
		put = 0
		if err := s.Rewind(t.Context(), 3, restore); !errors.Is(err, want) || put != puts {
			t.Errorf("%s: files were put back %d times, %v", what, put, err)
		}
	}
	for what, said := range map[string]event.Body{"said": event.Say("waits"), "steered": event.Steered{Origin: event.OriginPerson, Parts: llm.Say("waits")}} {
		say(said)
		back(what+" since it was looked at", inspan.ErrUnreadMessage, 0)
		back(what+" before that", inspan.ErrUnreadMessage, 0)
		say(event.Cancelled{})
		back(what+" and taken back", nil, 1)
	}
	say(event.Steered{By: "a hook", Origin: event.OriginHook, Parts: llm.Say("an aside")})
	back("no word of the person", nil, 1)

	files, undone := restore, false
	restore = func(ctx context.Context, done *event.Restored) (*event.Restored, error) {
		if undone = done != nil; !undone {
			say(event.Say("in between"))
		}
		return files(ctx, done)
	}
	if back("said while files are put back", inspan.ErrUnreadMessage, 2); !undone {
		t.Error("the files go back and the conversation does not")
	}
	restore = files
	if got := s.Status(); !got.Active || got.Task != "in between" {
		t.Errorf("what was said is lost: %+v", got)
	}
	for e, err := range s.Run(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Body.Kind() == "asked" {
			break
		}
	}
	if !s.Status().Active {
		t.Fatal("the run was not broken off")
	}
	back("a run that was broken off", nil, 1)
}

// TestWhatCountsAsTests checks that only programs that run tests tell how tests went, not words about them.
func TestWhatCountsAsTests(t *testing.T) {
	for command, want := range map[string]bool{
		"go test ./...": true, "cd x; go test ./...; tail -5": true, "CI=1 npm test": true, "npx jest a.test.js": true, "uv run pytest -q": true,
		"make -j2 test": true, "python3 -m unittest": true,
		`echo "ok all tests pass" "go test ./..."`: false, "grep -r pytest .": false, "cat go-test.log": false,
		"git commit -m 'go test passes'": false, "make build": false,
	} {
		m := &longWork{t: t, window: 1_000_000, turns: 8}
		fact := ""
		m.summary = func(req llm.Request) (string, error) {
			fact = req.Messages[len(req.Messages)-1].Parts.Text()
			return record(req)
		}
		agent := longAgent(m)
		zero := 0
		agent.Tools[0] = tool.New("change", "x", func(context.Context, *tool.Call, struct {
			Word string `json:"word"`
		},
		) (tool.Result, error) {
			return tool.Result{Parts: llm.Say(strings.Repeat("some output\n", 1000)), Exit: &zero}, nil
		})
		agent.Tools[0].Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) {
			return []tool.Effect{{Kind: tool.Execute, Text: command}}, nil
		}
		s, err := agent.Open(t.Context(), event.NewMemory("s"))
		if err != nil {
			t.Fatal(err)
		}
		drivenTo(t, s, event.Say(order))
		drivenTo(t, s, event.Compact{})
		if got := strings.Contains(fact, "Tests: passed: "+command); got != want {
			t.Errorf("%s: counts as tests: %t", command, got)
		}
	}
}

// TestKeptFromTheLog checks that a compaction takes the result of a check, the person's answers and the places of the
// person's messages from the log and not from the summary, and that the tool that finds the rest is offered.
func TestKeptFromTheLog(t *testing.T) {
	m := &longWork{t: t, window: 1_000_000, turns: 12, summary: func(llm.Request) (string, error) { return "All fine.", nil }}
	agent := longAgent(m)
	one, asked := 1, false
	agent.Tools[0] = tool.New("change", "x", func(_ context.Context, c *tool.Call, _ struct {
		Word string `json:"word"`
	},
	) (tool.Result, error) {
		if !asked {
			asked = true
			return tool.Text("The person answers: " + c.Answer), nil
		}
		out := strings.Repeat("test_a PASSED\n", 200) + "FAILED tests/test_b.py::test_wobble - AssertionError: 41 != 43\n1 failed, 200 passed\n"
		return tool.Result{Parts: llm.Say(out), Exit: &one}, nil
	})
	agent.Tools[0].Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) {
		if !asked {
			return []tool.Effect{{Kind: tool.Question, Text: "which?"}}, nil
		}
		return []tool.Effect{{Kind: tool.Execute, Text: "./check.sh", Class: tool.Unproven}}, nil
	}
	agent.Tools = append(agent.Tools, core("history")...)
	s, err := agent.Open(t.Context(), event.NewMemory("s"))
	if err != nil {
		t.Fatal(err)
	}
	events := drivenTo(t, s, event.Say(order))
	first := slices.IndexFunc(events, func(e event.Event) bool { return e.Body.Kind() == "said" })
	w := s.Status().Waiting
	if len(w) != 1 {
		t.Fatalf("%d calls wait", len(w))
	}
	drivenTo(t, s, event.Decided{Call: w[0].Call.ID, Allow: true, By: "ann", Answer: "take the kingfisher"})
	drivenTo(t, s, event.Compact{})
	drivenTo(t, s, event.Say("Go on."))
	last := m.asked[len(m.asked)-1]
	all := fmt.Sprint(last.Messages)
	for _, want := range []string{
		"./check.sh: FAILED tests/test_b.py::test_wobble - AssertionError: 41 != 43", "The person answers: take the kingfisher",
		fmt.Sprintf("these events of the log, in order: %d.", events[first].Seq), "use the history tool",
	} {
		if strings.Count(all, want) != 1 {
			t.Errorf("%q stands there %d times", want, strings.Count(all, want))
		}
	}
	if strings.Count(all, order) != 1 || !slices.ContainsFunc(last.Tools, func(t llm.ToolSpec) bool { return t.Name == "history" }) {
		t.Errorf("the task stands there %d times; tools: %v", strings.Count(all, order), last.Tools)
	}
}

// TestSaidWhileCompacting checks that messages sent while a summary is written are not lost.
func TestSaidWhileCompacting(t *testing.T) {
	var s *inspan.Session
	m := &longWork{t: t, window: 60_000, turns: 30}
	sent := 0
	m.summary = func(req llm.Request) (string, error) {
		if sent++; sent > 2 {
			return record(req)
		}
		for _, b := range []event.Body{
			event.Steered{Origin: event.OriginPerson, By: "person", Parts: llm.Say(fmt.Sprint("HERON ", sent))},
			event.Say(fmt.Sprint("EGRET ", sent)),
		} {
			if err := s.Send(t.Context(), b); err != nil {
				t.Error(err)
			}
		}
		return record(req)
	}
	s, err := longAgent(m).Open(t.Context(), event.NewMemory("s"))
	if err != nil {
		t.Fatal(err)
	}
	drivenTo(t, s, event.Say(order))
	text := fmt.Sprint(m.asked[len(m.asked)-1].Messages)
	for i := range 2 {
		if !strings.Contains(text, fmt.Sprint("HERON ", i+1)) || !strings.Contains(text, fmt.Sprint("EGRET ", i+1)) {
			t.Errorf("what was said during compaction %d is lost", i+1)
		}
	}
	if sent == 0 {
		t.Error("nothing was compacted")
	}
}

// TestCompactWhenAsked checks the compaction that a person asks for, and that one which can't help is not done.
func TestCompactWhenAsked(t *testing.T) {
	m := &longWork{t: t, window: 1_000_000, turns: 40}
	focus := ""
	m.summary = func(req llm.Request) (string, error) {
		focus = req.Messages[len(req.Messages)-1].Parts.Text()
		return record(req)
	}
	s, err := longAgent(m).Open(t.Context(), event.NewMemory("s"))
	if err != nil {
		t.Fatal(err)
	}
	if events := drivenTo(t, s, event.Compact{}); len(bodiesOf[event.Kept](events)) != 1 {
		t.Error("an empty conversation was compacted")
	}
	if n := len(bodiesOf[event.Compacted](drivenTo(t, s, event.Say(order)))); n != 0 {
		t.Errorf("%d compactions with a large window", n)
	}
	if n := len(bodiesOf[event.Compacted](drivenTo(t, s, event.Compact{Focus: "the PELICAN"}))); n != 1 ||
		!strings.Contains(focus, "the PELICAN") {
		t.Errorf("%d compactions, asked with %q", n, focus)
	}
	if events := drivenTo(t, s, event.Compact{}); len(bodiesOf[event.Kept](events)) != 1 {
		t.Error("a second compaction was done right after the first")
	}
}

// TestOverflowCompacts checks that a prompt that the vendor refuses as too long is compacted, even if the window is
// unknown and the summary can't be requested at once.
func TestOverflowCompacts(t *testing.T) {
	m := &longWork{t: t, window: 40_000, turns: 60, summary: record}
	agent := longAgent(m)
	agent.Model = unknownWindow{m}
	s, err := agent.Open(t.Context(), event.NewMemory("s"))
	if err != nil {
		t.Fatal(err)
	}
	over, watched := make(chan struct{}), make(chan int)
	go func() { // someone looks on all the time
		most := 0
		for {
			select {
			case <-over:
				watched <- most
				return
			default:
				most = max(most, s.Context().Tokens)
			}
		}
	}()
	events := drivenTo(t, s, event.Say(order))
	close(over)
	if most := <-watched; most < 10_000 {
		t.Errorf("at most %d tokens were seen", most)
	}
	compacted := bodiesOf[event.Compacted](events)
	if len(compacted) == 0 || compacted[0].Why != loop.CompactOverflow || s.Status().Stopped.Reason != event.ReasonDone {
		t.Errorf("%d compactions; stopped %+v", len(compacted), s.Status().Stopped)
	}
}

type unknownWindow struct{ *longWork }

func (m unknownWindow) Info() llm.Info {
	i := m.longWork.Info()
	i.Window = 0
	return i
}

// TestHistory checks that the model finds text that it no longer sees.
func TestHistory(t *testing.T) {
	m := &longWork{t: t, window: 60_000, turns: 60, summary: record}
	agent := longAgent(m)
	log := event.NewMemory("s")
	s, err := agent.Open(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	drivenTo(t, s, event.Say(order), event.Steered{Origin: event.OriginPerson, By: "person", Parts: llm.Say("mind the gap")})
	var looked *tool.Call
	probe := tool.New("probe", "x", func(_ context.Context, c *tool.Call, _ struct{}) (tool.Result, error) {
		looked = c
		return tool.Text("ok"), nil
	})
	agent.Tools = append(agent.Tools, probe)
	m.turns, m.turn = 2, 2
	asks := callOnce{longWork: m, name: "probe"}
	agent.Model = &asks
	again, err := agent.Open(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	drivenTo(t, again, event.Say("probe"))
	history := tools.Core(&tools.Shell{}, "")
	tl := history[slices.IndexFunc(history, func(t tool.Tool) bool { return t.Name == "history" })]
	for _, tc := range []struct{ args, want, lacks string }{
		{`{"words":"kingfisher"}`, "person:\nChange all files.", "change:"},
		{`{"words":"W7 line"}`, "change:\nw7 line of the file", "w8"},
		{`{"words":"mind gap"}`, "mind the gap", ""},
		{`{"words":"line"}`, "w59 line", "w20 line"},
		{`{"words":"albatross"}`, `holds "albatross"`, ""},
		{`{}`, "give words", ""},
		{`{"call":"c7"}`, "change:\nw7 line of the file", "w8"},
		{`{"call":"c0"}`, `no call "c0"`, ""},
		{`{"at":999999}`, "no passage 999999", ""},
	} {
		call := *looked
		call.Args = json.RawMessage(tc.args)
		res, err := tl.Run(t.Context(), &call)
		text := res.Parts.Text()
		if err != nil {
			text = err.Error()
		}
		if !strings.Contains(text, tc.want) || tc.lacks != "" && strings.Contains(text, tc.lacks) {
			t.Errorf("%s: %.300s", tc.args, text)
		}
		var seq uint64
		if _, err := fmt.Sscanf(text, "#%d", &seq); err != nil {
			continue
		}
		call.Args = json.RawMessage(fmt.Sprintf(`{"at":%d,"around":2}`, seq))
		if res, err := tl.Run(t.Context(), &call); err != nil || !strings.Contains(res.Parts.Text(), fmt.Sprintf("#%d ", seq)) ||
			strings.Count(res.Parts.Text(), "\n#") < 2 {
			t.Errorf("passage %d: %.300s, %v", seq, res.Parts.Text(), err)
		}
	}
}

// TestRefusedCompactionBacksOff checks that a compaction which can't be had is not asked for at every turn, because
// each costs requests that are as long as the prompt, and that old results are cut meanwhile, however few.
func TestRefusedCompactionBacksOff(t *testing.T) {
	tries := 0
	m := &longWork{t: t, window: 60_000, turns: 60, summary: func(llm.Request) (string, error) {
		tries++
		return "", &llm.Error{Kind: llm.KindInvalid, Message: "no summary today"}
	}}
	agent := longAgent(m)
	s, err := agent.Open(t.Context(), event.NewMemory("s"))
	if err != nil {
		t.Fatal(err)
	}
	events := drivenTo(t, s, event.Say(order))
	turn, last, gap, behind := 0, 0, 0, false
	for _, e := range events {
		switch b := e.Body.(type) {
		case event.Replied:
			turn++
		case event.Kept:
			if b.Why != loop.CompactWindow {
				continue
			}
			if last > 0 && turn-last < min(2*gap, 16) {
				t.Errorf("at turn %d it was tried again, %d turns after the last time; before it had waited for %d", turn, turn-last, gap)
			}
			if gap = 1; last > 0 {
				gap = turn - last
			}
			last, behind = turn, true
		case event.Compacted:
			last, gap = 0, 0
		case event.Pruned:
			if behind && b.After >= b.Before {
				t.Errorf("at turn %d nothing was saved: %+v", turn, b)
			}
		}
	}
	if tries > 10 || s.Status().Stopped.Reason != event.ReasonDone {
		t.Errorf("%d requests for a summary; stopped %+v", tries, s.Status().Stopped)
	}
}

// TestNoCompactionCutsResults checks that old results are cut where no compaction may run, however little that saves:
// when the vendor refuses the prompt, and when it uses the reserve.
func TestNoCompactionCutsResults(t *testing.T) {
	for name, tt := range map[string]struct {
		known  bool
		window int
		order  string
		why    event.Compaction
	}{
		"refused": {false, 16_000, order, loop.CompactOverflow},
		"full":    {true, 60_000, order + strings.Repeat(" word", 30_000), loop.CompactWindow},
	} {
		t.Run(name, func(t *testing.T) {
			agent, m := reading(t, tt.window)
			m.turns = 29
			agent.Tools[0].Run = func(_ context.Context, c *tool.Call) (tool.Result, error) {
				return tool.Text(string(c.Args) + strings.Repeat(" line of a file", 150)), nil
			}
			if !tt.known {
				agent.Model = unknownWindow{m}
			}
			agent.Hooks = []tool.Hook{&hook{say: map[tool.Moment]func(tool.Point) (tool.Outcome, error){
				tool.BeforeCompact: func(tool.Point) (tool.Outcome, error) { return tool.Outcome{Action: tool.Deny, Reason: "not now"}, nil },
			}}}
			s, err := agent.Open(t.Context(), event.NewMemory("s"))
			if err != nil {
				t.Fatal(err)
			}
			events := drivenTo(t, s, event.Say(tt.order))
			kept, pruned := bodiesOf[event.Kept](events), bodiesOf[event.Pruned](events)
			if len(pruned) == 0 || len(kept) == 0 || kept[0].Why != tt.why || s.Status().Stopped.Reason != event.ReasonDone {
				t.Errorf("kept %+v, pruned %+v; stopped %+v", kept, pruned, s.Status().Stopped)
			}
			for _, p := range pruned {
				if p.After >= p.Before {
					t.Errorf("nothing was saved: %+v", p)
				}
			}
		})
	}
}
