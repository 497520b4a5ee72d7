package transcript_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// spansOf folds bodies whose events are a second apart, and prints each span in a line: its id, parent, name, seconds
// and outcome.
func spansOf(bodies ...event.Body) string {
	var s transcript.Spans
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i, b := range bodies {
		s.Apply(event.Event{Seq: uint64(i + 1), Time: began.Add(time.Duration(i+1) * time.Second), Session: "s", Body: b})
	}
	var out strings.Builder
	for _, span := range s.List() {
		end := "on"
		if !span.End.IsZero() {
			end = fmt.Sprint(span.End.Sub(began).Seconds())
		}
		fmt.Fprintln(&out, strings.Join(strings.Fields(fmt.Sprintf("%s %s %s %v-%s %s", span.ID, span.Parent, span.Name,
			span.Start.Sub(began).Seconds(), end, span.Outcome)), " "))
	}
	return out.String()
}

// TestSpans checks which things become spans, where these begin and end, and their parents.
func TestSpans(t *testing.T) {
	call := func(id, name string) llm.Parts { return llm.Parts{llm.Call{ID: id, Name: name}} }
	three := 3
	for name, c := range map[string]struct {
		bodies []event.Body
		want   string
	}{
		"a request, a retry, a call that waits, and its job": {
			[]event.Body{
				event.Opened{},
				event.Say("go"),
				event.Claimed{Epoch: 1},
				event.Asked{Turn: 1, Route: "p/m"},
				event.Failed{Cause: llm.KindRateLimited, Retry: 1},
				event.Asked{Turn: 1, Route: "p/m"},
				event.Replied{Parts: call("c", "bash"), Stop: llm.StopCalls, Route: "p/m"},
				event.Judged{Call: "c", Action: tool.Ask},
				event.Waiting{Call: "c"},
				event.Decided{Call: "c", Allow: true},
				event.Started{Call: "c"},
				event.Ended{Call: "c", Outcome: event.OutcomeOK, Job: &tool.Job{ID: "j"}},
				event.Finished{Job: "j", Exit: &three},
				event.Stopped{Reason: event.ReasonDone},
			},
			`run-2 2-14 done
model-4 run-2 p/m 4-5 rate_limited
pause-5 run-2 rate_limited 5-6 ok
model-6 run-2 p/m 6-7 calls
wait-9 run-2 bash 9-10 allowed
call-11 run-2 bash 11-12 ok
job-12 call-11 bash 12-13 failed
`,
		},
		"calls that are asked about together": {
			[]event.Body{
				event.Opened{},
				event.Say("go"),
				event.Judged{Call: "p", Tool: "script", Action: tool.Allow},
				event.Started{Call: "p"},
				event.Judged{Call: "p/1", Parent: "p", Tool: "bash", Action: tool.Ask},
				event.Waiting{Call: "p/1"},
				event.Judged{Call: "p/2", Parent: "p", Tool: "bash", Action: tool.Ask, RequestedAhead: true},
				event.Waiting{Call: "p/2"},
				event.Decided{Call: "p/1", Question: 6, Also: []uint64{8}, Allow: true},
				event.Started{Call: "p/1", Parent: "p"},
				event.Ended{Call: "p/1", Parent: "p", Outcome: event.OutcomeOK},
			},
			`run-2 2-on
call-4 run-2 script 4-on
wait-6 run-2 bash 6-9 allowed
wait-8 run-2 bash 8-9 allowed
call-10 call-4 bash 10-11 ok
`,
		},
		"another model takes over": {
			[]event.Body{
				event.Opened{},
				event.Say("go"),
				event.Asked{Turn: 1, Route: "r"},
				event.Routed{Route: "a/b", Rule: "x"},
				event.Routed{Route: "c/d", From: "a/b", Cause: llm.KindOverloaded},
				event.Replied{Route: "c/d", Stop: llm.StopEnd},
				event.Stopped{Reason: event.ReasonDone},
			},
			"run-2 2-7 done\nmodel-3 run-2 a/b 3-5 overloaded\nmodel-5 run-2 c/d 5-6 end\n",
		},
		"a driver dies, and the next one makes the call again": {
			[]event.Body{
				event.Opened{},
				event.Say("go"),
				event.Asked{Turn: 1, Route: "p/m"},
				event.Replied{Parts: call("c", "read_file"), Route: "p/m"},
				event.Started{Call: "c"},
				event.Claimed{Epoch: 2},
				event.Started{Call: "c"},
				event.Ended{Call: "c", Outcome: event.OutcomeOK},
				event.Asked{Turn: 2, Route: "p/m"},
				event.Claimed{Epoch: 3},
				event.Asked{Turn: 2, Route: "p/m"},
			},
			"run-2 2-on\nmodel-3 run-2 p/m 3-4\ncall-5 run-2 read_file 5-6 lost\ncall-7 run-2 read_file 7-8 ok\n" +
				"model-9 run-2 p/m 9-10 lost\nmodel-11 run-2 p/m 11-on\n",
		},
		"what is said meanwhile begins the next run, and an agent's mail begins none": {
			[]event.Body{
				event.Opened{},
				event.Steered{Origin: event.OriginPerson, Parts: llm.Say("go")},
				event.Say("then this"),
				event.Stopped{Reason: event.ReasonDone},
				event.Asked{Turn: 1, Route: "p/m"},
				event.Replied{Stop: llm.StopEnd},
				event.Stopped{Reason: event.ReasonDone},
				event.Steered{Parts: llm.Say("news"), By: "s.1", Origin: event.OriginAgent},
			},
			"run-2 2-4 done\nrun-5 5-7 done\nmodel-5 run-5 p/m 5-6 end\n",
		},
		"a child asks, and comes back": {
			[]event.Body{
				event.Opened{},
				event.Say("go"),
				event.Replied{Parts: call("c", "agent")},
				event.Started{Call: "c"},
				event.Spawned{Child: "s.1", Call: "c@1", Agent: "explore"},
				event.Raised{ID: "q", Child: "s.1", Tool: "bash"},
				event.Returned{Child: "s.1", Reason: event.ReasonDone},
				event.Ended{Call: "c", Outcome: event.OutcomeOK},
				event.Stopped{Reason: event.ReasonDone},
			},
			"run-2 2-9 done\ncall-4 run-2 agent 4-8 ok\nchild-s.1 call-4 explore 5-7 done\nwait-6 child-s.1 bash 6-7 lost\n",
		},
		"what was withdrawn is none, and a fork's are its own": {
			[]event.Body{
				event.Opened{},
				event.Say("go"),
				event.Asked{Turn: 1, Route: "p/m"},
				event.Forked{From: "o", Seq: 3},
				event.Say("no"),
				event.Withdrawn{Of: 5},
				event.StepStarted{Step: "a", Does: "run"},
				event.StepStarted{Step: "b", Title: "test", Parent: "a"},
				event.StepEnded{Step: "b", Outcome: event.OutcomeFailed},
			},
			"step-7 a 7-on\nstep-8 step-7 test 8-9 failed\n",
		},
	} {
		if diff := cmp.Diff(c.want, spansOf(c.bodies...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestSpansOfLogs checks, for every log of the corpus, that every request and every call has its span, that the parent
// of each began before it, that none ends before it begins, and that spans seen live equal those seen later.
func TestSpansOfLogs(t *testing.T) {
	for _, path := range logs(t) {
		events, _ := readLog(t, path)
		var s transcript.Spans
		want := map[transcript.SpanKind]int{}
		known := map[string]string{}
		for _, e := range events {
			s.Apply(e)
			switch b := e.Body.(type) {
			case event.Forked:
				clear(want)
				clear(known)
			case event.Asked:
				want[transcript.SpanModel]++
			case event.Routed:
				if b.From != "" {
					want[transcript.SpanModel]++
				}
			case event.Started:
				want[transcript.SpanCall]++
			}
			for _, span := range s.List() {
				if began, there := known[span.ID]; there && began != span.Parent {
					t.Fatalf("%s: event %d: %s was a part of %q, and is of %q", path, e.Seq, span.ID, began, span.Parent)
				}
				known[span.ID] = span.Parent
			}
		}
		got, began := map[transcript.SpanKind]int{}, map[string]uint64{}
		for _, span := range s.List() {
			if got[span.Kind]++; began[span.ID] > 0 {
				t.Errorf("%s: %s is there twice", path, span.ID)
			}
			began[span.ID] = span.Seq
			if above := began[span.Parent]; span.Parent != "" && (above == 0 || above > span.Seq) {
				t.Errorf("%s: %s is a part of %q, which has not begun", path, span.ID, span.Parent)
			}
			if !span.End.IsZero() && (span.End.Before(span.Start) || span.Outcome == "" && span.Kind != transcript.SpanModel) {
				t.Errorf("%s: %+v", path, span)
			}
			if _, err := json.Marshal(span); err != nil {
				t.Error(err)
			}
		}
		for kind, n := range want {
			if got[kind] != n {
				t.Errorf("%s: %d spans of kind %s, want %d", path, got[kind], kind, n)
			}
		}
	}
}
