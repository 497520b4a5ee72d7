package loop_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// tape folds bodies the way a log would number them.
type tape struct {
	t *testing.T
	*loop.State
}

func newTape(t *testing.T, bodies ...event.Body) *tape {
	t.Helper()
	tp := &tape{t, &loop.State{}}
	tp.add(event.Opened{Format: 1, Root: "/w"}, event.Switched{Route: "a/b", Mode: "ask", Limits: &event.Limits{Turns: 200}})
	tp.add(bodies...)
	return tp
}

func (tp *tape) add(bodies ...event.Body) {
	tp.t.Helper()
	for _, b := range bodies {
		if err := tp.Apply(event.Event{Seq: tp.Seq + 1, Session: "s", Body: b}); err != nil {
			tp.t.Fatal(err)
		}
	}
}

// next is the next step as a short line, so that tables stay readable.
func (tp *tape) next() string {
	switch n := tp.Next().(type) {
	case loop.Ask:
		return fmt.Sprintf("ask %d", n.Turn)
	case loop.Judge:
		return "judge " + ids(n.Calls)
	case loop.RunCalls:
		return "run " + ids(n.Calls)
	case loop.End:
		var out []string
		for _, e := range n.Ended {
			out = append(out, e.Call+"="+string(e.Outcome))
		}
		return "end " + strings.Join(out, " ")
	case loop.Compact:
		return strings.TrimSpace("compact " + string(n.Why) + " " + n.Focus)
	case loop.Steer:
		return "steer " + n.Steered.Parts.Text()
	case loop.Await:
		return "await"
	case loop.Wait:
		return strings.TrimSpace("wait " + ids(n.Calls))
	case loop.Stop:
		return strings.TrimSpace("stop " + string(n.Stopped.Reason) + " " + n.Stopped.Detail)
	}
	return "?"
}

func (tp *tape) want(want string) {
	tp.t.Helper()
	if got := tp.next(); !strings.HasPrefix(got, want) || want == "wait" && got != want {
		tp.t.Fatalf("next = %q, want %q", got, want)
	}
}

func ids(calls []loop.Call) string {
	var out []string
	for _, c := range calls {
		out = append(out, c.ID)
	}
	return strings.Join(out, " ")
}

func said(text string) event.Body { return event.Say(text) }

func reply(stop llm.Stop, parts ...llm.Part) event.Body {
	return event.Replied{Parts: parts, Stop: stop, Route: "a/b", Usage: llm.Usage{Input: 10, Output: 1}}
}

func call(id, name string) llm.Part {
	return llm.Call{ID: id, Name: name, Args: json.RawMessage(`{"x":"` + name + `"}`)}
}

func allowed(id string, effects ...tool.Effect) event.Body {
	return event.Judged{Call: id, Action: tool.Allow, By: "t", Effects: effects}
}

func ended(id, text string) event.Body {
	return event.Ended{Call: id, Outcome: event.OutcomeOK, Parts: llm.Say(text)}
}

func read(p string) tool.Effect  { return tool.Effect{Kind: tool.Read, Path: p} }
func write(p string) tool.Effect { return tool.Effect{Kind: tool.Write, Path: p} }

func TestAnswerWithoutCallsIsDone(t *testing.T) {
	tp := newTape(t)
	tp.want("wait")
	tp.add(said("hi"))
	tp.want("ask 1")
	tp.add(event.Asked{Turn: 1}, reply(llm.StopEnd, llm.Text{Text: "hello"}))
	tp.want("stop done")
	tp.add(event.Stopped{Reason: event.ReasonDone})
	tp.want("wait")
	tp.add(said("more"))
	tp.want("ask 1")
}

func TestCallsAreJudgedRunAndAnsweredInOrder(t *testing.T) {
	tp := newTape(t, said("hi"), event.Asked{Turn: 1}, reply(llm.StopCalls, call("1", "r"), call("2", "r")))
	tp.want("judge 1 2")
	tp.add(allowed("1", read("/a")), allowed("2", read("/b")))
	tp.want("run 1 2")
	tp.add(event.Started{Call: "1"}, event.Started{Call: "2"}, ended("2", "two"), ended("1", "one"))
	tp.want("ask 2")
	last := tp.Messages[len(tp.Messages)-1]
	want := llm.Message{Role: llm.User, Parts: llm.Parts{
		llm.Result{CallID: "1", Name: "r", Parts: llm.Say("one")},
		llm.Result{CallID: "2", Name: "r", Parts: llm.Say("two")},
	}}
	if diff := cmp.Diff(want, last); diff != "" {
		t.Error(diff)
	}
}

// Whatever conflicts with an earlier call waits for its end.
func TestOnlyWhatDoesNotConflictRunsTogether(t *testing.T) {
	exec := tool.Effect{Kind: tool.Execute, Text: "make"}
	for _, tc := range []struct {
		name string
		a, b []tool.Effect
		both bool
	}{
		{"two reads of one file", []tool.Effect{read("/a")}, []tool.Effect{read("/a")}, true},
		{"writes to two files", []tool.Effect{write("/a")}, []tool.Effect{write("/b")}, true},
		{"writes to one file", []tool.Effect{write("/a")}, []tool.Effect{write("/a")}, false},
		{"read after write", []tool.Effect{write("/d/a")}, []tool.Effect{read("/d")}, false},
		{"write below what is read", []tool.Effect{read("/d")}, []tool.Effect{write("/d/a")}, false},
		{"same prefix, other folder", []tool.Effect{write("/d")}, []tool.Effect{write("/dd/a")}, true},
		{"root holds everything", []tool.Effect{read("/")}, []tool.Effect{write("/a")}, false},
		{"a file that is not named", []tool.Effect{write("")}, []tool.Effect{write("/a")}, false},
		{"two that are not named", []tool.Effect{write("")}, []tool.Effect{write("")}, false},
		{"commands", []tool.Effect{exec}, []tool.Effect{exec}, false},
		{"command beside a read", []tool.Effect{exec}, []tool.Effect{read("/a")}, false},
		{"pure beside a command", nil, []tool.Effect{exec}, true},
		{"not understood", []tool.Effect{{Kind: tool.External}}, []tool.Effect{read("/a")}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tp := newTape(t, said("x"), event.Asked{Turn: 1}, reply(llm.StopCalls, call("1", "r"), call("2", "r")),
				allowed("1", tc.a...), allowed("2", tc.b...))
			if want := map[bool]string{true: "run 1 2", false: "run 1"}[tc.both]; tp.next() != want {
				t.Errorf("next = %q, want %q", tp.next(), want)
			}
			tp.add(event.Started{Call: "1"}, ended("1", ""))
			if !tc.both {
				tp.want("run 2")
			}
		})
	}
}

func TestUnusableReplies(t *testing.T) {
	for _, tc := range []struct {
		name  string
		reply event.Body
		want  string
	}{
		{"empty", reply(llm.StopEnd), "steer Your reply was empty"},
		{"white space", reply(llm.StopEnd, llm.Text{Text: " \n"}), "steer Your reply was empty"},
		{"only thoughts", reply(llm.StopEnd, llm.Reasoning{Text: "hm"}), "steer Your reply contained only reasoning"},
		{"what looks like a call", reply(llm.StopSpoken, llm.Text{Text: "<tool_call>"}), "steer No tool was called: your reply contains what looks like a tool call"},
		{"cut text", reply(llm.StopLength, llm.Text{Text: "half a"}), "steer Your reply was cut"},
		{"cut call", reply(llm.StopLength, call("1", "w")), "end 1=cut"},
		{"call when the window is full", reply(llm.StopWindow, call("1", "w")), "end 1=cut"},
		{"pause", reply(llm.StopPause, llm.Text{Text: "searching"}), "ask 2"},
		{"refusal", reply(llm.StopRefusal, llm.Text{Text: "no"}), "stop refused"},
		{"window", reply(llm.StopWindow, llm.Text{Text: "so far"}), "compact overflow"},
		{"unknown stop with text", reply(llm.StopOther, llm.Text{Text: "ok"}), "stop done"},
		{"unknown stop with calls", reply(llm.StopOther, call("1", "w")), "judge 1"},
		{"end with calls", reply(llm.StopEnd, call("1", "w")), "judge 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			newTape(t, said("x"), event.Asked{Turn: 1}, tc.reply).want(tc.want)
		})
	}
}

// A reply that looks like a call, or has thoughts alone, is asked for once more; then it counts as it is.
func TestAskedForOnceMore(t *testing.T) {
	for _, tc := range []struct {
		reply event.Body
		want  string
	}{
		{reply(llm.StopSpoken, llm.Text{Text: "<tool_call>"}), "stop done"},
		{reply(llm.StopEnd, llm.Reasoning{Text: "it is 42"}), "stop failed"},
	} {
		tp := newTape(t, said("x"), event.Asked{Turn: 1}, tc.reply)
		steer, ok := tp.Next().(loop.Steer)
		if !ok {
			t.Fatalf("next = %+v", tp.Next())
		}
		tp.add(steer.Steered, event.Asked{Turn: 2}, tc.reply)
		tp.want(tc.want)
		if stop, ok := tp.Next().(loop.Stop); !ok || tc.want == "stop failed" && !strings.Contains(stop.Stopped.Detail, "it is 42") {
			t.Errorf("%+v", tp.Next())
		}
	}
}

func TestEmptyRepliesEndTheRunAtLast(t *testing.T) {
	tp := newTape(t, said("x"))
	for range 3 {
		tp.want("ask")
		tp.add(event.Asked{Turn: 1}, reply(llm.StopEnd))
		tp.want("steer")
		tp.add(tp.Next().(loop.Steer).Steered)
	}
	tp.add(event.Asked{Turn: 4}, reply(llm.StopEnd))
	tp.want("stop failed 4 replies in a row")
}

func TestRefusedTurnLeavesNoTrace(t *testing.T) {
	tp := newTape(t, said("x"))
	before := len(tp.Messages)
	tp.add(event.Asked{Turn: 1}, reply(llm.StopRefusal, llm.Text{Text: "no"}), event.Stopped{Reason: event.ReasonRefused})
	if len(tp.Messages) != before {
		t.Errorf("%d messages, want %d", len(tp.Messages), before)
	}
}

// rounds makes n turns with one call each, whose arguments and results come
// from the functions.
func rounds(tp *tape, n int, name, result func(i int) string, effect tool.Effect) {
	for i := range n {
		id := fmt.Sprint(tp.Seq)
		tp.add(event.Asked{Turn: tp.Run.Turn + 1}, reply(llm.StopCalls, call(id, name(i))),
			allowed(id, effect), event.Started{Call: id}, ended(id, result(i)))
	}
}

func same(s string) func(int) string   { return func(int) string { return s } }
func varied(s string) func(int) string { return func(i int) string { return fmt.Sprint(s, i) } }

func TestStuck(t *testing.T) {
	exec := tool.Effect{Kind: tool.Execute}
	tp := newTape(t, said("x"))
	rounds(tp, 2, same("c"), same("r"), exec)
	tp.want("ask 3")
	rounds(tp, 1, same("c"), same("r"), exec)
	tp.want("steer You have made the same call 3 times")
	tp.add(tp.Next().(loop.Steer).Steered)
	tp.want("ask 4") // told once
	rounds(tp, 1, same("c"), same("r"), exec)
	tp.want("ask 5")
	rounds(tp, 1, same("c"), same("r"), exec)
	tp.want(`stop stuck the same call returned the same result 5 times: c {"x":"c"}`)
}

func TestStuckInALoopOfTwo(t *testing.T) {
	tp := newTape(t, said("x"))
	rounds(tp, 11, func(i int) string { return []string{"a", "b"}[i%2] }, same("r"), tool.Effect{Kind: tool.Execute})
	tp.want("stop stuck")
}

func TestWorkIsNotStuck(t *testing.T) {
	exec, rd := tool.Effect{Kind: tool.Execute}, read("/a")
	for name, drive := range map[string]func(*tape){
		"results differ":            func(tp *tape) { rounds(tp, 50, same("poll"), varied("r"), exec) },
		"different calls":           func(tp *tape) { rounds(tp, 50, varied("c"), same("r"), exec) },
		"reads of different things": func(tp *tape) { rounds(tp, 50, varied("c"), same("none"), rd) },
		"one failing test after different edits": func(tp *tape) {
			for i := range 20 {
				rounds(tp, 1, same(fmt.Sprint("edit", i)), same("ok"), write("/a"))
				rounds(tp, 1, same("test"), same("FAIL"), exec)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			tp := newTape(t, said("x"))
			drive(tp)
			tp.want("ask")
		})
	}
}

func TestSteering(t *testing.T) {
	steer := event.Steered{Origin: event.OriginPerson, Parts: llm.Say("mind the gap")}
	t.Run("between calls comes after the results", func(t *testing.T) {
		tp := newTape(t, said("x"), event.Asked{Turn: 1}, reply(llm.StopCalls, call("1", "r")),
			allowed("1"), event.Started{Call: "1"}, steer, ended("1", "ok"))
		tp.want("ask 2")
		if got := tp.Messages[len(tp.Messages)-1].Parts.Text(); got != "mind the gap" {
			t.Errorf("last message = %q", got)
		}
	})
	t.Run("during the answer keeps the run going", func(t *testing.T) {
		newTape(t, said("x"), event.Asked{Turn: 1}, steer, reply(llm.StopEnd, llm.Text{Text: "done"})).want("ask 2")
	})
	t.Run("outside a run starts one", func(t *testing.T) {
		newTape(t, steer).want("ask 1")
	})
	t.Run("said in a run waits for its end", func(t *testing.T) {
		tp := newTape(t, said("x"), event.Asked{Turn: 1}, said("then this"), reply(llm.StopEnd, llm.Text{Text: "done"}))
		tp.want("stop done")
		tp.add(event.Stopped{Reason: event.ReasonDone})
		tp.want("ask 1")
	})
}

func TestInterrupt(t *testing.T) {
	t.Run("keeps the text so far", func(t *testing.T) {
		tp := newTape(t, said("x"), event.Asked{Turn: 1}, event.Cancelled{}, reply(llm.StopCut, llm.Text{Text: "I will"}))
		tp.want("stop cancelled")
		if got := tp.Messages[1].Parts.Text(); got != "I will" {
			t.Errorf("kept %q", got)
		}
	})
	t.Run("ends what waits and what is ready", func(t *testing.T) {
		tp := newTape(t, said("x"), event.Asked{Turn: 1}, reply(llm.StopCalls, call("1", "r"), call("2", "r")),
			allowed("1"), event.Judged{Call: "2", Action: tool.Ask}, event.Waiting{Call: "2"}, event.Cancelled{})
		tp.want("end 1=cancelled 2=cancelled")
	})
	t.Run("outside a run is nothing", func(t *testing.T) {
		newTape(t, event.Cancelled{}, said("x")).want("ask 1")
	})
	t.Run("can be gone on from", func(t *testing.T) {
		tp := newTape(t, said("x"), event.Asked{Turn: 1}, event.Cancelled{}, reply(llm.StopCut, llm.Text{Text: "I will"}),
			event.Stopped{Reason: event.ReasonCancelled}, event.Said{})
		tp.want("ask 2")
		if tp.Messages[len(tp.Messages)-1].Role != llm.User {
			t.Error("the conversation must end with the user")
		}
	})
}

func TestApproval(t *testing.T) {
	ask := []event.Body{
		said("x"),
		event.Asked{Turn: 1},
		reply(llm.StopCalls, call("1", "w")),
		event.Judged{Call: "1", Action: tool.Ask, By: "mode ask"},
		event.Waiting{Call: "1"},
	}
	newTape(t, ask...).want("wait 1")
	newTape(t, append(ask, event.Claimed{Epoch: 2})...).want("wait 1") // survives a restart
	newTape(t, append(ask, event.Decided{Call: "1", Allow: true})...).want("run 1")
	newTape(t, append(ask, event.Decided{Call: "1", By: "ann", Reason: "not there"})...).want("end 1=denied")
	newTape(t, append(ask, event.Decided{Call: "1", Allow: true}, event.Decided{Call: "1"})...).want("run 1") // the first counts
	newTape(t, append(ask, event.Decided{Call: "9", Allow: true})...).want("wait 1")
}

func TestCrash(t *testing.T) {
	started := func(e ...tool.Effect) []event.Body {
		return []event.Body{
			said("x"),
			event.Asked{Turn: 1},
			reply(llm.StopCalls, call("1", "w")),
			allowed("1", e...),
			event.Started{Call: "1"},
			event.Claimed{Epoch: 2},
		}
	}
	newTape(t, started(read("/a"))...).want("run 1")
	newTape(t, started(write("/a"))...).want("end 1=unknown")
	newTape(t, started(tool.Effect{Kind: tool.Execute})...).want("end 1=unknown")
	newTape(t, said("x"), event.Asked{Turn: 1}, event.Claimed{Epoch: 2}).want("ask 2")
}

func TestLimitsStopAndCanBeRaised(t *testing.T) {
	tp := newTape(t, event.Switched{Limits: &event.Limits{Turns: 2}}, said("x"))
	rounds(tp, 2, varied("c"), varied("r"), read("/a"))
	tp.want("stop max_turns 2 turns used of 2")
	tp.add(event.Stopped{Reason: event.ReasonMaxTurns}, event.Said{})
	tp.want("stop max_turns")
	tp.add(event.Stopped{Reason: event.ReasonMaxTurns}, event.Switched{Limits: &event.Limits{Turns: 3}}, event.Said{})
	tp.want("ask 3")

	tp = newTape(t, event.Switched{Limits: &event.Limits{Cost: 1}}, said("x"), event.Asked{Turn: 1},
		event.Replied{Parts: llm.Parts{call("1", "r")}, Stop: llm.StopCalls, Cost: 1.5})
	tp.want("judge 1") // what is paid for is used
	tp.add(allowed("1"), event.Started{Call: "1"}, ended("1", "ok"))
	tp.want("stop budget $1.5000 spent of $1.0000")
}

func TestFailure(t *testing.T) {
	failed := func(cause llm.Kind, retry float64) event.Body {
		return event.Failed{Cause: cause, Message: "m", Retry: retry}
	}
	newTape(t, said("x"), event.Asked{Turn: 1}, failed(llm.KindAuth, 0)).want("stop failed m")
	newTape(t, said("x"), event.Asked{Turn: 1}, failed(llm.KindRefused, 0)).want("stop refused m")
	tp := newTape(t, said("x"), event.Asked{Turn: 1}, failed(llm.KindOverloaded, 2), reply(llm.StopEnd, llm.Text{Text: "ok"}))
	tp.want("stop done")
	newTape(t, said("x"), event.Asked{Turn: 1}, failed(llm.KindAuth, 0), event.Stopped{Reason: event.ReasonFailed}, event.Said{}).want("ask 2")
}

func TestForkCancelsWhatWasGoingOn(t *testing.T) {
	tp := newTape(t, said("x"), event.Asked{Turn: 1}, reply(llm.StopCalls, call("1", "w")), allowed("1", write("/a")),
		event.Started{Call: "1"}, event.Forked{From: "s", Seq: 7}, event.Claimed{Epoch: 3})
	tp.want("end 1=unknown")
	tp.add(tp.Next().(loop.End).Ended[0])
	tp.want("stop cancelled")
}

func TestSnapshotIsTheWholeState(t *testing.T) {
	tp := newTape(t, event.Added{Where: event.PlaceSystem, Text: "be good"}, said("x"))
	rounds(tp, 3, same("c"), same("r"), read("/a"))
	tp.add(event.Ended{Call: "none"}, event.Asked{Turn: 4}, reply(llm.StopCalls, call("a", "w"),
		llm.Reasoning{Text: "r", Opaque: json.RawMessage(`{"k":1}`)}),
		event.Judged{Call: "a", Action: tool.Ask, Effects: []tool.Effect{write("/x")}}, event.Waiting{Call: "a", Preview: "p"}, said("later"))
	snap, err := tp.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	fresh := &tape{t, &loop.State{}}
	if err := fresh.Apply(event.Event{Seq: tp.Seq + 1, Session: "s", Body: event.Compacted{Snapshot: snap}}); err != nil {
		t.Fatal(err)
	}
	tp.Seq++
	tp.CallsDropped = true // calls that are named in what was there before
	again, err := fresh.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	whole, err := tp.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(whole), string(again)); diff != "" {
		t.Error(diff)
	}
	if fresh.Digest() != tp.Digest() || fresh.next() != tp.next() {
		t.Error("the state from the snapshot differs")
	}
	if err := fresh.Apply(event.Event{Seq: 9, Body: event.Compacted{Snapshot: json.RawMessage(`[]`)}}); err == nil {
		t.Error("a broken snapshot must be an error")
	}
}

// TestCompactsInTime checks when a conversation is compacted, and that two compactions never follow each other without
// a word of the model between them.
func TestCompactsInTime(t *testing.T) {
	window := event.Switched{Window: &event.Window{Tokens: 100_000, Reserve: 20_000}}
	used := func(prompt int, parts ...llm.Part) event.Replied {
		r := reply(llm.StopCalls, parts...).(event.Replied)
		r.Usage, r.Route = llm.Usage{Input: prompt, Output: 10}, "p/m"
		return r
	}
	compacted := func(tp *tape, messages []llm.Message) event.Compacted {
		t.Helper()
		b, err := tp.Compacted(event.Compacted{Why: loop.CompactWindow, Usage: llm.Usage{Input: 7}, Cost: 0.5}, loop.Shortened{Messages: messages, Person: []int{0}})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	short := []llm.Message{{Role: llm.User, Parts: llm.Say("x")}, {Role: llm.User, Parts: llm.Say("summary")}}

	tp := newTape(t, window, said("x"), event.Asked{Turn: 1}, used(79_000, call("1", "r")), allowed("1"), event.Started{Call: "1"})
	tp.add(ended("1", "short"))
	tp.want("ask 2")
	tp.add(event.Asked{Turn: 2}, used(79_500, call("2", "r")), allowed("2"), event.Started{Call: "2"}, ended("2", strings.Repeat("y", 4000)))
	tp.want("compact window")
	b := compacted(tp, short)
	if b.Before < 80_000 || b.After > 60_000 || b.Of != tp.Seq {
		t.Errorf("before %d, after %d, of %d", b.Before, b.After, b.Of)
	}
	tp.add(b)
	if tp.Total.Cost != 0.5 || tp.Total.Usage.Input != 79_000+79_500+7 || len(tp.Messages) != 2 || tp.Compaction.Times != 1 {
		t.Errorf("%+v, %d messages", tp.Total, len(tp.Messages))
	}
	tp.want("ask 3")

	// The vendor says that it is still too long: it gets shorter until it can't.
	tooLong := event.Failed{Cause: llm.KindWindow, Message: "too long"}
	tp.add(event.Asked{Turn: 3}, tooLong)
	tp.want("compact overflow")
	tp.add(compacted(tp, short), event.Asked{Turn: 3}, tooLong)
	tp.want("compact overflow")
	tp.add(event.Kept{Why: loop.CompactOverflow})
	tp.want("stop failed too long")

	// Another run tries again: by then more may have been said, or less be in the way.
	tp.add(tp.Next().(loop.Stop).Stopped, event.Said{})
	tp.want("ask 4")
	tp.add(event.Asked{Turn: 4}, tooLong)
	tp.want("compact overflow")

	for _, tc := range []struct {
		name string
		with []event.Body
		want string
	}{
		{"overflow", []event.Body{said("x"), event.Asked{Turn: 1}, event.Failed{Cause: llm.KindWindow, Message: "m"}}, "compact overflow"},
		{"overflow, kept", []event.Body{
			said("x"),
			event.Asked{Turn: 1},
			event.Failed{Cause: llm.KindWindow, Message: "m"},
			event.Kept{Why: loop.CompactOverflow},
		}, "stop failed m"},
		{"asked in a run", []event.Body{said("x"), event.Compact{Focus: "tests"}}, "compact asked tests"},
		{"asked between calls", []event.Body{said("x"), event.Asked{Turn: 1}, used(10, call("1", "r")), event.Compact{}}, "judge 1"},
		{"asked with nothing going on", []event.Body{event.Compact{}}, "compact asked"},
		{"asked and kept", []event.Body{event.Compact{}, event.Kept{Why: loop.CompactAsked}}, "wait"},
		{"not known", []event.Body{event.Switched{Window: &event.Window{}}, said(strings.Repeat("x", 1<<20))}, "ask 1"},
		{"before the first reply", []event.Body{said(strings.Repeat("x", 350_000))}, "compact window"},
		{"kept", []event.Body{said(strings.Repeat("x", 350_000)), event.Kept{Why: loop.CompactWindow}}, "ask 1"},
		{"overflow after one for the window was not done", []event.Body{
			said("x"),
			event.Kept{Why: loop.CompactWindow},
			event.Asked{Turn: 1},
			event.Failed{Cause: llm.KindWindow, Message: "m"},
		}, "compact overflow"},
		{
			"cut by the window",
			[]event.Body{said("x"), event.Asked{Turn: 1}, reply(llm.StopWindow, llm.Text{Text: "so far"}), event.Kept{}},
			"stop failed the context window is full",
		},
		{"interrupted", []event.Body{said("x"), event.Asked{Turn: 1}, event.Failed{Cause: llm.KindWindow}, event.Cancelled{}}, "stop cancelled"},
	} {
		t.Run(tc.name, func(t *testing.T) { newTape(t, append([]event.Body{window}, tc.with...)...).want(tc.want) })
	}

	cut := newTape(t, window, said("x"), event.Asked{Turn: 1}, reply(llm.StopWindow, llm.Text{Text: "so far"}))
	cut.add(compacted(cut, short))
	cut.want("steer Your reply was cut by the output limit")
}

// TestNoEndlessCompaction checks that a conversation whose end alone is too long is not compacted at every turn.
func TestNoEndlessCompaction(t *testing.T) {
	tp := newTape(t, event.Switched{Window: &event.Window{Tokens: 10_000, Reserve: 2_000}}, said(strings.Repeat("x", 40_000)))
	long, times := tp.Messages, 0
	for i := range 20 {
		if _, ok := tp.Next().(loop.Compact); ok {
			times++
			b, err := tp.Compacted(event.Compacted{}, loop.Shortened{Messages: long, Person: []int{0}})
			if err != nil {
				t.Fatal(err)
			}
			tp.add(b)
		}
		tp.want("ask")
		id := fmt.Sprint(i)
		tp.add(event.Asked{Turn: i + 1}, reply(llm.StopCalls, call(id, id)), allowed(id), event.Started{Call: id}, ended(id, "ok"))
	}
	if times != 1 {
		t.Errorf("%d compactions, want 1", times)
	}
}

// TestTokensAreCalibrated checks that the estimate of a prompt is off by less than 5 % after three calls, whatever the
// tokenizer.
func TestTokensAreCalibrated(t *testing.T) {
	for name, perByte := range map[string]float64{"English": 0.22, "code": 0.36, "dense": 0.6, "Chinese": 0.31} {
		t.Run(name, func(t *testing.T) {
			count := func(req llm.Request) int { return int(float64(req.Bytes())*perByte) + 12*len(req.Messages) + 300 }
			tp := newTape(t, event.Added{Where: event.PlaceSystem, Text: strings.Repeat("be good ", 500)}, said("x"))
			for i := range 40 {
				want := count(tp.Request())
				if off := math.Abs(float64(tp.Tokens())/float64(want) - 1); i >= 3 && off > 0.05 {
					t.Errorf("call %d: %d tokens, counted %d", i+1, tp.Tokens(), want)
				}
				id := fmt.Sprint("c", i)
				r := reply(llm.StopCalls, llm.Text{Text: "next"}, call(id, "r")).(event.Replied)
				r.Usage, r.Route = llm.Usage{CacheRead: want / 2, Input: want - want/2, Output: int(float64(r.Parts.Bytes()) * perByte)}, "p/m"
				tp.add(event.Asked{Turn: i + 1}, r, allowed(id), event.Started{Call: id}, ended(id, strings.Repeat("z", 100+i*i*20)))
			}
		})
	}
}

// TestLimitsOfTokensAndTime holds two more limits of a run.
func TestLimitsOfTokensAndTime(t *testing.T) {
	tp := newTape(t, event.Switched{Limits: &event.Limits{Tokens: 100}}, said("x"), event.Asked{Turn: 1})
	r := reply(llm.StopPause, llm.Text{Text: "hm"}).(event.Replied)
	r.Usage = llm.Usage{Input: 60, CacheRead: 30, Output: 10}
	tp.add(r)
	tp.want("stop max_tokens 100 tokens used of 100")
	tp.add(tp.Next().(loop.Stop).Stopped, event.Switched{Limits: &event.Limits{Tokens: 200}}, event.Said{})
	tp.want("ask 2")

	var s loop.State
	at := time.Unix(1e9, 0)
	pass := func(d time.Duration, b event.Body) {
		at = at.Add(d)
		if err := s.Apply(event.Event{Seq: s.Seq + 1, Time: at, Body: b}); err != nil {
			t.Fatal(err)
		}
	}
	pass(0, event.Switched{Limits: &event.Limits{Seconds: 60}})
	pass(time.Hour, said("x")) // nothing went on
	pass(0, event.Asked{Turn: 1})
	pass(20*time.Second, reply(llm.StopCalls, call("1", "w")))
	pass(time.Second, event.Judged{Call: "1", Action: tool.Ask})
	pass(0, event.Waiting{Call: "1"})
	pass(time.Hour, event.Decided{Call: "1", Allow: true}) // a person took their time
	pass(0, event.Started{Call: "1"})
	pass(20*time.Second, ended("1", "ok"))
	if _, ok := s.Next().(loop.Ask); !ok || s.Run.Seconds != 41 {
		t.Fatalf("%T after %v s", s.Next(), s.Run.Seconds)
	}
	pass(0, event.Asked{Turn: 2})
	pass(time.Hour, event.Claimed{Epoch: 2}) // no one was there
	pass(0, event.Asked{Turn: 2})
	pass(20*time.Second, reply(llm.StopPause, llm.Text{Text: "hm"}))
	if stop, ok := s.Next().(loop.Stop); !ok || stop.Stopped.Reason != event.ReasonMaxTime {
		t.Fatalf("%+v after %v s", s.Next(), s.Run.Seconds)
	}
}

// TestWorkIsRemembered checks the facts about the work that the log proves.
func TestWorkIsRemembered(t *testing.T) {
	tp := newTape(t, said("x"))
	ran := func(id, command, out string, exit int, effects ...tool.Effect) {
		tp.add(event.Asked{Turn: 1}, reply(llm.StopCalls, call(id, "bash")),
			allowed(id, append(effects, tool.Effect{Kind: tool.Execute, Text: command})...), event.Started{Call: id})
		e := ended(id, out).(event.Ended)
		e.Exit = &exit
		tp.add(e)
	}
	ran("1", "go test ./...", "--- FAIL: TestCart (0.00s)\nFAIL\texample.com/shop\n[exit code 1]", 1)
	tp.add(event.Asked{Turn: 2}, reply(llm.StopCalls, call("2", "edit")), allowed("2", write("/w/a")), event.Started{Call: "2"},
		event.Ended{Call: "2", Outcome: event.OutcomeOK, Files: []tool.File{
			{Path: "/w/a", Digest: "d", Written: true},
			{Path: "/w/read", Digest: "d"},
		}})
	ran("3", "touch b", "[no output]\n[exit code 0]", 0, write("/w/b"))
	ran("4", "touch c", "touch: cannot touch 'c'\n[exit code 1]", 1, write("/w/c"))
	ran("5", "pytest | tail", "== 2 failed, 3 passed in 1s ==\n[exit code 0]", 0)
	ran("6", "go test ./...", "ok  \texample.com/shop\t0.1s\n[exit code 0]", 0)
	want := loop.Work{Changed: []string{"/w/a", "/w/b"}, Ran: []loop.Ran{
		{Command: "touch b"},
		{Command: "touch c", Exit: 1, Failed: true, Line: "touch: cannot touch 'c'"},
		{Command: "pytest | tail", Failed: true, Line: "== 2 failed, 3 passed in 1s ==", Check: true},
		{Command: "go test ./...", Line: "ok  \texample.com/shop\t0.1s", Check: true},
	}}
	if diff := cmp.Diff(want, tp.Work); diff != "" {
		t.Error(diff)
	}
}

// TestFailuresAreRemembered checks that the names of failed checks, and the reasons, are kept from the output of
// programs, however long it is.
func TestFailuresAreRemembered(t *testing.T) {
	noise := strings.Repeat("a line about an error that was expected\nok 12 - reads\n", 300)
	for _, tt := range []struct{ program, out, name, why string }{
		{"go", "=== RUN TestTabs\n    lex_test.go:12: got 2 tabs, want 3\n--- FAIL: TestTabs (0.00s)\nFAIL\tx/lex\t0.01s\n", "TestTabs", "lex_test.go:12: got 2 tabs, want 3"},
		{"go build", "# x/lex\n./lex.go:7:2: undefined: tabs\nFAIL\tx/lex [build failed]\n", "x/lex", "lex.go:7:2: undefined: tabs"},
		{"pytest", "E   assert 41 == 43\nFAILED tests/test_q.py::test_w - AssertionError: 41 != 43\n1 failed in 2s\n", "test_w", "41 != 43"},
		{"unittest", "FAIL: test_w (q.TestQ)\nTraceback:\nAssertionError: 41 != 43\nFAILED (failures=1)\n", "test_w (q.TestQ)", "AssertionError: 41 != 43"},
		{"cargo", "test queue::wobble ... FAILED\nthread 'wobble' panicked at src/q.rs:5:9:\n  left: 41\n right: 43\n", "queue::wobble", "left: 41"},
		{"jest", "  ● Cart › adds numbers\n\n    expect(received).toBe(expected)\n    Expected: 43\n    Received: 41\n", "Cart › adds numbers", "Received: 41"},
		{"mocha", "  1 failing\n  1) Cart adds:\n     AssertionError [ERR]: expected 41 to equal 43\n", "Cart adds", "expected 41 to equal 43"},
		{"tap", "not ok 3 - adds numbers\n  expected: 43\n  actual: 41\n", "adds numbers", "actual: 41"},
		{"maven", "[ERROR]   CartTest.adds:12 expected:<43> but was:<41>\n", "CartTest.adds:12", "but was:<41>"},
		{"a program of somebody", "checking the order book\norder 17 is empty\n", "order 17", "is empty"},
	} {
		tp := newTape(t, said("x"), event.Asked{Turn: 1}, reply(llm.StopCalls, call("1", "bash")),
			allowed("1", tool.Effect{Kind: tool.Execute, Text: "./check"}), event.Started{Call: "1"})
		e, exit := ended("1", noise+tt.out+"[exit code 1]").(event.Ended), 1
		e.Exit = &exit
		tp.add(e)
		ran := tp.Work.Ran[0]
		if got := ran.Shown + "\n" + ran.Line; !strings.Contains(got, tt.name) || !strings.Contains(got, tt.why) || len(got) > 1300 {
			t.Errorf("%s: %s", tt.program, got)
		}
	}
}

// TestAnswersAreRemembered checks that a person's answer to a call is kept, and an automatic one is not.
func TestAnswersAreRemembered(t *testing.T) {
	for name, tt := range map[string]struct {
		decided event.Decided
		want    bool
	}{
		"an answer":        {event.Decided{Call: "1", Allow: true, Answer: "8080", By: "ann"}, true},
		"why not":          {event.Decided{Call: "1", Reason: "use mv", By: "ann"}, true},
		"no reason":        {event.Decided{Call: "1", By: "ann"}, false},
		"a yes":            {event.Decided{Call: "1", Allow: true, By: "ann"}, false},
		"nobody, too late": {event.Decided{Call: "1", Reason: "nobody answered in time", By: loop.By}, false},
	} {
		tp := newTape(t, said("x"), event.Asked{Turn: 1}, reply(llm.StopCalls, call("1", "ask_user")), event.Judged{Call: "1", Action: tool.Ask},
			event.Waiting{Call: "1", Preview: "which port?"}, tt.decided, ended("1", "The result."))
		var want []loop.Answer
		if tt.want {
			want = []loop.Answer{{Seq: tp.Seq, Call: "1", To: "which port?", Text: "The result."}}
		}
		if diff := cmp.Diff(want, tp.Answers); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func BenchmarkFold100k(b *testing.B) {
	var events []event.Event
	add := func(bodies ...event.Body) {
		for _, body := range bodies {
			events = append(events, event.Event{Seq: uint64(len(events)) + 1, Session: "s", Body: body})
		}
	}
	add(event.Opened{Root: "/w"}, event.Switched{Mode: "auto"}, said("x"))
	for i := 0; len(events) < 100_000; i++ {
		id := fmt.Sprint("c", i)
		add(event.Asked{Turn: i}, reply(llm.StopCalls, llm.Text{Text: "next"}, call(id, fmt.Sprint("r", i))), allowed(id, read("/a")),
			event.Started{Call: id}, ended(id, strings.Repeat("x", 200)))
	}
	for b.Loop() {
		var s loop.State
		for _, e := range events {
			if err := s.Apply(e); err != nil {
				b.Fatal(err)
			}
		}
		if _, ok := s.Next().(loop.Ask); !ok {
			b.Fatal("the run should go on")
		}
	}
	b.ReportMetric(float64(len(events)), "events")
}

// TestForkOfWhatRuns checks that a call which runs when the session is forked, or taken back to that place, is lost
// there at once.
func TestForkOfWhatRuns(t *testing.T) {
	tp := newTape(t, said("x"))
	tp.add(event.Asked{Turn: 1}, reply(llm.StopCalls, call("a", "w")), event.Judged{Call: "a", Action: tool.Allow}, event.Started{Call: "a"})
	back, err := tp.Rewound(tp.State, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []event.Body{event.Forked{From: "y"}, back} {
		copied := *tp.State
		copied.Run.Calls = slices.Clone(copied.Run.Calls)
		branch := &tape{t, &copied}
		branch.add(b)
		branch.want("end a=unknown")
	}
}

// TestToldOfWhatWentBack checks the model's text about files that a person restored, or that the restore removed.
func TestToldOfWhatWentBack(t *testing.T) {
	back := "The person has put these files back to an earlier state: "
	for told, b := range map[string]event.Restored{
		"[" + back + "a, b. Read them again before you go on.]": {Files: []string{"a", "b"}},
		"[The person has removed these files again: a, b.]":     {Files: []string{"a", "b"}, Removed: []string{"a", "b"}},
		"[" + back + "a. Read them again before you go on. The person has removed these files again: b.]": {
			Files: []string{"a", "b"}, Removed: []string{"b"},
		},
	} {
		tp := newTape(t, said("x"))
		tp.add(event.Asked{Turn: 1}, reply(llm.StopEnd, llm.Text{Text: "done"}), event.Stopped{Reason: event.ReasonDone}, b)
		if got := tp.Messages[len(tp.Messages)-1].Parts.Text(); got != told {
			t.Errorf("%q, want %q", got, told)
		}
	}
}

// TestForkAsksAgain checks that an approval for a session does not hold for its forks.
func TestForkAsksAgain(t *testing.T) {
	tp := newTape(t, said("x"))
	tp.add(event.Asked{Turn: 1}, reply(llm.StopCalls, call("a", "w")), event.Judged{Call: "a", Action: tool.Ask})
	tp.add(event.Waiting{Call: "a", Rules: []string{"bash"}}, event.Decided{Call: "a", Allow: true, Scope: event.ScopeSession})
	if len(tp.Granted) != 1 {
		t.Fatalf("granted %q", tp.Granted)
	}
	before := *tp.State
	before.Run.Calls = slices.Clone(before.Run.Calls)
	forked := event.Event{Seq: before.Seq + 1, Session: "fork", Body: event.Forked{From: "y"}}
	if err := tp.Apply(forked); err != nil {
		t.Fatal(err)
	}
	if len(tp.Granted) != 0 {
		t.Errorf("the fork has %q", tp.Granted)
	}
	back, err := tp.Rewound(&before, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := tp.Apply(event.Event{Seq: before.Seq + 2, Session: "fork", Body: back}); err != nil {
		t.Fatal(err)
	}
	if len(tp.Granted) != 0 {
		t.Errorf("a fork that was taken back to before it has %q", tp.Granted)
	}
}

// TestFoldersAreTold checks that the model learns of folders that are opened or closed after its first request, with
// the next one, and not of those in the system prompt.
func TestFoldersAreTold(t *testing.T) {
	tp := newTape(t, event.Switched{Folders: []string{"/a"}}, event.Say("one"), event.Asked{Turn: 1}, event.Replied{Parts: llm.Say("yes"), Stop: llm.StopEnd},
		event.Stopped{Reason: event.ReasonDone}, event.Switched{Mode: "auto"}, event.Switched{Folders: []string{"/b"}}, event.Say("two"))
	if diff := cmp.Diff([]string{"/b"}, tp.Folders); diff != "" {
		t.Error(diff)
	}
	said := ""
	for _, m := range tp.Request().Messages {
		said += m.Parts.Text() + "\n"
	}
	if strings.Count(said, "/a") != 1 || strings.Count(said, "/b") != 1 || !strings.Contains(said, "workspace, by absolute paths: /b. These folders are closed to the session again: /a.]") {
		t.Errorf("the model hears %q", said)
	}
}
