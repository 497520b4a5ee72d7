package transcript_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"weak"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

var _ = []transcript.Item{ // all that there are
	(*transcript.Said)(nil), (*transcript.Reply)(nil), (*transcript.Call)(nil), (*transcript.Note)(nil),
	(*transcript.Question)(nil), (*transcript.Wait)(nil), (*transcript.Child)(nil), (*transcript.Stop)(nil),
}

// session folds bodies, one a second, and notes the items of each.
type session struct {
	transcript.Fold
	seq  uint64
	last []transcript.Item
}

func (s *session) do(bodies ...event.Body) string {
	for _, b := range bodies {
		e := event.Event{Time: time.Unix(int64(s.seq), 0), Session: "s", Body: b}
		switch b.(type) {
		case event.Delta, event.Progress:
		default:
			s.seq++
			e.Seq, e.Time = s.seq, time.Unix(int64(s.seq), 0)
		}
		s.last = s.Apply(e)
	}
	var out []string
	for _, item := range s.last {
		out = append(out, shown(item))
	}
	return strings.Join(out, ", ")
}

// shown is the part of an item that a test reads.
func shown(item transcript.Item) string {
	switch i := item.(type) {
	case *transcript.Said:
		return fmt.Sprintf("said %q heard %v", i.Text, i.Heard)
	case *transcript.Reply:
		return fmt.Sprintf("reply %q %s", i.Text, [...]string{"written", "whole", "void"}[i.State])
	case *transcript.Call:
		return fmt.Sprintf("call %s %s", i.Call.Name, [...]string{"made", "judged", "waiting", "running", "over"}[i.State])
	case *transcript.Note:
		return fmt.Sprintf("note of %s %q", i.Of.Kind(), i.Text)
	case *transcript.Question:
		return fmt.Sprintf("question %s closed %v", i.ID, i.Closed)
	case *transcript.Wait:
		return fmt.Sprintf("wait %q %v", i.Why, i.Seconds)
	case *transcript.Child:
		return fmt.Sprintf("child %s back %v", i.Spawned.Child, i.Returned != nil)
	case *transcript.Stop:
		return fmt.Sprintf("stop %s turns %d cost %.2f took %v", i.Stopped.Reason, i.Turns, i.Cost, i.Took)
	}
	return "?"
}

// step is an event and its items.
type step struct {
	body event.Body
	want string
}

func (s *session) follow(t *testing.T, steps []step) {
	t.Helper()
	for i, step := range steps {
		if got := s.do(step.body); got != step.want {
			t.Errorf("step %d, %s: got  %s\nwant %s", i, step.body.Kind(), got, step.want)
		}
	}
}

func said(text string) event.Said { return event.Say(text) }

func calls(parts ...llm.Part) event.Replied { return event.Replied{Parts: parts, Cost: 1} }

func bash(id string) llm.Call {
	return llm.Call{ID: id, Name: "bash", Args: json.RawMessage(`{"command":"x"}`)}
}

func TestReplyGrowsAndIsCorrected(t *testing.T) {
	var s session
	s.follow(t, []step{
		{said("go"), `said "go" heard true`},
		{event.Asked{}, ``},
		{event.Delta{Reasoning: "first I"}, `reply "" written`},
		{event.Delta{Text: "One"}, `reply "One" written`},
		{event.Delta{Text: " two"}, `reply "One two" written`},
		{event.Delta{Void: true}, `reply "One two" void`},
		{event.Delta{Text: "Onl"}, `reply "Onl" written`},
		{event.Replied{Parts: llm.Say("Only this.")}, `reply "Only this." whole`},
		{event.Asked{}, ``},
		{event.Delta{Text: "lost"}, `reply "lost" written`},
		{event.Failed{Cause: llm.KindWindow, Message: "too long", Limit: 8192}, `reply "lost" void, note of failed "the model that is asked now takes 8,192 tokens; the conversation is kept within that"`},
		{event.Failed{Message: "busy", Retry: 2}, `wait "busy" 2`},
	})
	if s.Last != "Only this." || s.Now.Wait == nil || !s.Now.Wait.Until.Equal(time.Unix(int64(s.seq)+2, 0)) {
		t.Errorf("last %q, wait %+v", s.Last, s.Now.Wait)
	}
	if s.do(event.Asked{}); s.Now.Wait != nil {
		t.Error("the wait did not end with the next event")
	}
}

func TestThinkingIsBounded(t *testing.T) {
	var s session
	for range 500 {
		s.do(event.Delta{Reasoning: strings.Repeat("hm ", 10)})
	}
	if n := len(s.Now.Thinking); n == 0 || n > 2000 || len(s.Now.Reply.Thought) != 15000 {
		t.Errorf("%d bytes of thinking, %d of the thought", n, len(s.Now.Reply.Thought))
	}
	s.do(event.Delta{Call: &llm.CallDelta{Name: "bash", Args: `{"com`}}, event.Delta{Call: &llm.CallDelta{Args: `mand"`}})
	if diff := gocmp.Diff(transcript.Draft{Name: "bash", Bytes: 10}, s.Now.Draft); diff != "" {
		t.Error(diff)
	}
	if s.do(event.Delta{Text: "So."}); s.Now.Thinking != "" {
		t.Error("it thinks while it talks")
	}
}

func TestCallIsOneItem(t *testing.T) {
	var s session
	exit := 2
	s.do(said("go"), event.Asked{})
	s.follow(t, []step{
		{calls(llm.Text{Text: "I look."}, bash("1")), `reply "I look." whole, call bash made`},
		{event.Judged{Call: "1", Tool: "git", Args: json.RawMessage(`{"command":"git x"}`), Action: tool.Ask, By: "rules"}, `call git judged`},
		{event.Waiting{Call: "1", Preview: "+x", Rules: []string{"r"}}, `call git waiting, question 1 closed false`},
		{event.Decided{Call: "1", Question: 3, Allow: true, By: "else"}, ``}, // of another question
		{event.Decided{Call: "1", Question: 5, Allow: true, By: "me"}, `question 1 closed true`},
		{event.Decided{Call: "1", By: "late"}, ``},
		{event.Started{Call: "1"}, `call git running`},
		{event.Progress{Call: "1", Text: "a\n"}, `call git running`},
		{event.Progress{Call: "1", Text: "b"}, `call git running`},
		{event.Progress{Call: "other", Text: "b"}, ``},
	})
	c := s.last
	if s.do(event.Progress{Call: "1", Text: "c"}); len(c) != 0 || s.Now.Running[0].Printed() != "a\nbc" || s.Now.Running[0].Latest != "c" {
		t.Errorf("it shows %q, %q", s.Now.Running[0].Printed(), s.Now.Running[0].Latest)
	}
	call := s.Now.Running[0]
	s.do(event.Ended{
		Call: "1", Outcome: event.OutcomeFailed, Exit: &exit, Todo: []tool.Todo{{Text: "t"}},
		Files: []tool.File{{Path: "a", Written: true}, {Path: "b"}, {Path: "a", Written: true}},
	})
	if call.State != transcript.Over || call.Ended.Exit != &exit || call.Printed() != "" || call.Latest != "" ||
		call.Question.Preview != "+x" || call.Decided.By != "me" {
		t.Errorf("it ended as %+v", call)
	}
	if len(s.Now.Running) != 0 || !slices.Equal(s.Files, []string{"a"}) ||
		len(s.Todo) != 1 || s.Spent.Calls != 1 || len(s.Now.Questions) != 0 {
		t.Errorf("what is left: %+v %v %v", s.Now, s.Files, s.Todo)
	}
}

func TestOutputIsBounded(t *testing.T) {
	var s session
	s.do(said("go"), calls(bash("1")), event.Started{Call: "1"})
	for range 100 {
		s.do(event.Progress{Call: "1", Text: strings.Repeat("x", 10_000) + "\n"})
	}
	if n := len(s.Now.Running[0].Printed()); n != transcript.MaxPrinted {
		t.Errorf("%d bytes are kept", n)
	}
	if s.do(event.Started{Call: "1"}); s.Now.Running[0].Printed() != "" || len(s.Now.Running) != 1 {
		t.Error("what is run again shows what it showed before")
	}
}

func TestDeniedBy(t *testing.T) {
	var s session
	s.do(said("go"), calls(bash("1"), bash("2")), event.Judged{Call: "1", Action: tool.Deny, By: "a rule", Reason: "no"},
		event.Judged{Call: "2", By: "rules"}, event.Waiting{Call: "2"})
	s.do(event.Decided{Call: "2", By: "me", Reason: "never"})
	for id, want := range map[string]string{"1": "a rule no", "2": "me never", "unheard of": " "} {
		s.do(event.Ended{Call: id, Outcome: event.OutcomeDenied})
		by, reason := s.last[len(s.last)-1].(*transcript.Call).DeniedBy()
		if by+" "+reason != want {
			t.Errorf("%s was denied by %s: %s", id, by, reason)
		}
	}
	s.Open(&transcript.Call{
		Call: bash("3"), State: transcript.Waiting, Judged: &event.Judged{By: "earlier"},
		Question: &transcript.Question{Seq: 2, ID: "3"},
	})
	s.follow(t, []step{
		{event.Decided{Call: "3", Question: 2, Allow: true}, "question 3 closed true"},
		{event.Started{Call: "3"}, "call bash running"},
	})
}

func TestApproved(t *testing.T) {
	judged, waiting := event.Judged{Call: "1", Action: tool.Ask}, event.Waiting{Call: "1"}
	for name, c := range map[string]struct {
		bodies []event.Body
		want   bool
	}{
		"not asked":     {[]event.Body{event.Judged{Call: "1", Action: tool.Allow}}, false},
		"asked":         {[]event.Body{judged, waiting}, false},
		"allowed":       {[]event.Body{judged, waiting, event.Decided{Call: "1", Allow: true}}, true},
		"denied":        {[]event.Body{judged, waiting, event.Decided{Call: "1"}}, false},
		"by a rule":     {[]event.Body{judged, waiting, event.Decided{Call: "1", Allow: true, Rule: "bash"}}, false},
		"another call":  {[]event.Body{judged, waiting, event.Decided{Call: "2", Allow: true}}, false},
		"too late":      {[]event.Body{judged, waiting, event.Started{Call: "1"}, event.Decided{Call: "1", Allow: true}}, false},
		"asked again":   {[]event.Body{judged, waiting, event.Decided{Call: "1", Allow: true}, judged, waiting}, false},
		"allowed again": {[]event.Body{judged, waiting, event.Decided{Call: "1"}, waiting, event.Decided{Call: "1", Allow: true}}, true},
	} {
		var s session
		s.do(said("go"), calls(bash("1")))
		s.do(c.bodies...)
		s.do(event.Started{Call: "1"})
		if got := s.last[len(s.last)-1].(*transcript.Call).Approved(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestOneAnswerForASet checks that a decision closes each question that it names, with its answer, and only those of
// the same parent.
func TestOneAnswerForASet(t *testing.T) {
	nested := func(id, parent string) event.Body {
		return event.Judged{Call: id, Parent: parent, Tool: "bash", Args: []byte(`{"command":"x"}`), Action: tool.Ask}
	}
	var s session
	s.do(said("go"), calls(bash("1")), event.Judged{Call: "1", Action: tool.Allow, Caller: true}, event.Started{Call: "1"},
		nested("1/1", "1"), event.Waiting{Call: "1/1"}, nested("1/2", "1"), event.Waiting{Call: "1/2"},
		nested("1/3/1", "1/3"), event.Waiting{Call: "1/3/1"}, nested("1/4", "1"), event.Waiting{Call: "1/4"})
	s.follow(t, []step{
		{event.Decided{Call: "1/1", Question: 6, Also: []uint64{8, 10}, Allow: true}, "question 1/1 closed true, question 1/2 closed true"},
		{event.Wanted{Call: "1/2", Parent: "1"}, ""},
	})
	if open := s.Waiting(); len(open) != 2 || open[0].ID != "1/3/1" || open[1].ID != "1/4" {
		t.Errorf("%d wait", len(open))
	}
}

func TestWordsWaitForTheirPlace(t *testing.T) {
	var s session
	s.follow(t, []step{
		{event.Steered{Parts: llm.Say("news"), Origin: event.OriginAgent}, `said "news" heard true`},
		{event.Said{}, ``}, // goes on
		{event.Steered{Origin: event.OriginPerson, Parts: llm.Say("left")}, `said "left" heard false`},
		{said("then"), `said "then" heard false`},
		{event.Said{Parts: llm.Say("told"), Origin: event.OriginHook}, `said "told" heard false`},
		{event.Asked{}, `said "left" heard true, said "told" heard true`},
		{event.Steered{Origin: event.OriginPerson, Parts: llm.Say("right")}, `said "right" heard false`},
		{calls(llm.Text{Text: "Yes."}), `reply "Yes." whole`},
		{event.Stopped{Reason: event.ReasonDone}, `said "right" heard true, stop done turns 1 cost 1.00 took 7s, said "then" heard true`},
	})
	if !s.Run.Busy || s.Run.Turns != 0 || s.Run.Stopped != nil || len(s.Queued())+len(s.Now.Steered) != 0 || !s.CutOff() || s.Idle() {
		t.Errorf("the next run: %+v", s.Run)
	}
	var quiet session
	if quiet.do(event.Steered{Parts: llm.Say("news"), Origin: event.OriginAgent}); quiet.Run.Busy || !quiet.Idle() {
		t.Error("news begin a run")
	}
}

func TestImagesAreNamedOnce(t *testing.T) {
	var s session
	got := s.do(event.Said{Parts: llm.Parts{llm.Text{Text: "see [image 1]"}, llm.Image{}, llm.Text{Text: " and "}, llm.Image{}}})
	if want := `said "see [image 1] and [image]" heard true`; got != want {
		t.Errorf("got %s", got)
	}
}

func TestQuestionsOfChildren(t *testing.T) {
	var s session
	s.do(said("go"))
	s.follow(t, []step{
		{event.Spawned{Child: "s.1", Task: "look"}, `child s.1 back false`},
		{event.Raised{ID: "1/a", Child: "s.1", Of: 4}, `question 1/a closed false`},
		{event.Raised{ID: "1/a", Child: "s.1", Of: 4}, ``},
		{event.Raised{ID: "1/a", Child: "s.1", Of: 9}, `question 1/a closed true, question 1/a closed false`},
		{event.Raised{ID: "2", Call: "c"}, `question 2 closed false`},
		{event.Ended{Call: "c"}, `question 2 closed true, call  over`},
		{event.Returned{Child: "s.1", Cost: 2, Unpriced: true}, `question 1/a closed true, child s.1 back true`},
		{event.Returned{Child: "s.1", Cost: 2}, `child s.1 back true`}, // it was back, and counts once
	})
	if s.Spent.Cost != 2 || !s.Spent.Unpriced || len(s.Raised())+len(s.Now.Children) != 0 {
		t.Errorf("spent %+v, now %+v", s.Spent, s.Now)
	}
}

func TestModelThatAnswersIsToldOnce(t *testing.T) {
	var s session
	one := event.Routed{Route: "a/b", Rule: "r", Reason: "hard", Cost: 0.5}
	s.follow(t, []step{
		{one, `note of routed "a/b answers, by the rule r: hard"`},
		{one, ``},
		{event.Routed{Route: "c/d", From: "a/b", Error: "busy"}, `note of routed "c/d takes over from a/b: busy"`},
		{one, ``},
		{event.Routed{Route: "e/f", Rule: "s"}, `note of routed "e/f answers, by the rule s: "`},
	})
	if s.Spent.Cost != 1.5 {
		t.Errorf("routing cost %v", s.Spent.Cost)
	}
}

// TestWithdrawn checks that a message is taken back while it waits, and no longer.
func TestWithdrawn(t *testing.T) {
	var s session
	s.follow(t, []step{
		{said("go"), `said "go" heard true`},
		{said("next"), `said "next" heard false`},
		{said("last"), `said "last" heard false`},
		{event.Withdrawn{Of: 2}, `note of withdrawn "a queued message was taken back"`},
		{event.Withdrawn{Of: 2}, ``},
		{event.Withdrawn{Of: 1}, ``},
		{event.Withdrawn{}, ``},
	})
	if q := s.Queued(); len(q) != 1 || q[0].Text != "last" {
		t.Errorf("%+v", q)
	}
}

// TestQueueInTurn checks that each run begins with one of the messages that wait, so that the others can be taken back
// for longer.
func TestQueueInTurn(t *testing.T) {
	var s session
	s.follow(t, []step{
		{said("go"), `said "go" heard true`},
		{said("next"), `said "next" heard false`},
		{said("last"), `said "last" heard false`},
		{event.Stopped{Reason: event.ReasonDone}, `stop done turns 0 cost 0.00 took 3s, said "next" heard true`},
		{event.Withdrawn{Of: 3}, `note of withdrawn "a queued message was taken back"`},
		{said("more"), `said "more" heard false`},
		{event.Stopped{Reason: event.ReasonDone}, `stop done turns 0 cost 0.00 took 3s, said "more" heard true`},
		{event.Stopped{Reason: event.ReasonDone}, `stop done turns 0 cost 0.00 took 1s`},
	})
}

func TestSessionChanges(t *testing.T) {
	var s session
	s.follow(t, []step{
		{event.Opened{Root: "/w"}, `note of opened ""`},
		{
			event.Switched{Route: "a/b", Mode: "ask", Window: &event.Window{Tokens: 9}, Limits: &event.Limits{Turns: 3}},
			`note of switched "now working with a/b in mode ask"`,
		},
	})
	if !s.last[0].(*transcript.Note).First {
		t.Error("what it begins with is news")
	}
	s.follow(t, []step{
		{event.Switched{Mode: "plan"}, `note of switched "now working in mode plan"`},
		{event.Pinned{On: true}, `note of pinned ""`},
		{event.Moved{Root: "/w2"}, `note of moved ""`},
		{event.Titled{Title: "T"}, `note of titled ""`},
		{
			event.Compacted{Before: 9000, After: 100, Cost: 1},
			`note of compacted "the conversation was compacted from about 9,000 to 100 tokens; the log keeps all of it"`,
		},
		{event.Kept{Reason: "no", Cost: 1}, `note of kept "the conversation was not compacted: no"`},
		{event.Progress{Text: loop.Compacting}, `note of progress "compacting the conversation"`},
		{event.Progress{Text: "busy", Wait: 3}, `wait "busy" 3`},
		{event.Forked{From: "o"}, `note of forked ""`},
	})
	want := transcript.Session{ID: "s", Root: "/w2", Title: "T", Route: "a/b", Mode: "plan", Limits: event.Limits{Turns: 3}, Window: 9}
	if diff := gocmp.Diff(want, s.Session); diff != "" || s.Spent.Cost != 2 || s.Spent.Prompt.Input != 100 {
		t.Errorf("%s, spent %+v", diff, s.Spent)
	}
}

func TestForkLeavesWhatGoesOn(t *testing.T) {
	var s session
	s.do(said("go"), calls(bash("1"), bash("2")), event.Started{Call: "1"},
		event.Waiting{Call: "2"}, event.Spawned{Child: "s.1"}, event.Raised{ID: "q", Child: "s.1"})
	if s.Idle() || s.CutOff() {
		t.Error("what waits for an answer is idle, or cut off")
	}
	if got, want := s.do(event.Forked{From: "s"}), `question 2 closed true, question q closed true, note of forked ""`; got != want {
		t.Errorf("got %s", got)
	}
	if s.Run.Busy || len(s.Now.Running)+len(s.Now.Questions)+len(s.Now.Children) != 0 {
		t.Errorf("it goes on with %+v", s.Now)
	}
	if got := s.do(event.Ended{Call: "1", Outcome: event.OutcomeCancelled}); got != "call bash over" {
		t.Error("a call of the original has lost its name: " + got)
	}
}

// TestWhatIsOverIsLetGo checks that the fold keeps nothing that has ended: its reader decides how much of a long
// session to remember.
func TestWhatIsOverIsLetGo(t *testing.T) {
	var s session
	var over []weak.Pointer[transcript.Call]
	s.do(said("go"))
	for i := range 1000 {
		id := strconv.Itoa(i)
		s.do(event.Asked{}, calls(bash(id)), event.Judged{Call: id}, event.Waiting{Call: id},
			event.Decided{Call: id, Allow: true}, event.Started{Call: id})
		over = append(over, weak.Make(s.Now.Running[0]))
		s.do(event.Ended{Call: id, Parts: llm.Say("done")})
	}
	s.last = nil
	runtime.GC()
	kept := 0
	for _, p := range over {
		if p.Value() != nil {
			kept++
		}
	}
	if kept > 10 { // what is near the stack
		t.Errorf("%d of %d calls are kept", kept, len(over))
	}
	runtime.KeepAlive(&s)
}
