package journeys_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/tool"
)

// TestApprovalScopes checks that an approval covers what was shown, for as long as it says, and nothing else.
func TestApprovalScopes(t *testing.T) {
	for _, tt := range []struct {
		scope      event.Scope
		again      bool // the same call runs unasked in this session
		remembered bool
	}{
		{event.ScopeOnce, false, false},
		{event.ScopeSession, true, false},
		{event.ScopeProject, true, true},
		{event.ScopeAlways, true, true},
		{"of a later version", true, false},
	} {
		t.Run(string(tt.scope), func(t *testing.T) {
			var ran, kept []string
			a := inspan.Agent{
				Model: scripted(t, `call: put {"path":"a"}`, `call: put {"path":"a"}`, `call: put {"path":"b"}`, "Done."),
				Tools: []tool.Tool{writer(&ran)}, Env: tool.Env{Root: "/w"},
				Approvals: inspan.Approvals{Remember: func(_ context.Context, _ event.Scope, rules []string) error {
					kept = append(kept, rules...)
					return nil
				}},
			}
			log := event.NewMemory("m")
			s := open(t, &a, log)
			collect(t, s.Run(t.Context(), event.Say("go")))
			w := s.Status().Waiting
			if len(w) != 1 || !slices.Equal(w[0].Rules, []string{"write(a)"}) {
				t.Fatalf("waiting %+v", w)
			}
			collect(t, s.Run(t.Context(), event.Decided{Call: w[0].Call.ID, Allow: true, Scope: tt.scope, By: "ann"}))
			want := []string{"a"}
			if tt.again {
				want = []string{"a", "a"}
			}
			if !slices.Equal(ran, want) {
				t.Errorf("ran %q, want %q", ran, want)
			}
			next := map[bool]string{false: `{"path":"a"}`, true: `{"path":"b"}`}[tt.again]
			if w := s.Status().Waiting; len(w) != 1 || string(w[0].Call.Args) != next {
				t.Errorf("waiting %+v, want %s", w, next)
			}
			if (len(kept) == 1 && kept[0] == "write(a)") != tt.remembered || !tt.remembered && kept != nil {
				t.Errorf("kept %q", kept)
			}
			// The approval survives a restart.
			restarted := open(t, &a, log)
			collect(t, restarted.Run(t.Context()))
			if w := restarted.Status().Waiting; len(w) != 1 || string(w[0].Call.Args) != next {
				t.Errorf("after a restart: waiting %+v, want %s", w, next)
			}
		})
	}
}

// TestApprovalIsKeptOrNotGiven checks that an approval that can't be stored does not count.
func TestApprovalIsKeptOrNotGiven(t *testing.T) {
	var ran []string
	a := inspan.Agent{
		Model: scripted(t, `call: put {"path":"a"}`, "Done."), Tools: []tool.Tool{writer(&ran)}, Env: tool.Env{Root: "/w"},
		Approvals: inspan.Approvals{Remember: func(context.Context, event.Scope, []string) error { return errors.New("the disk is full") }},
	}
	s := open(t, &a, event.NewMemory("m"))
	collect(t, s.Run(t.Context(), event.Say("go")))
	var failed error
	for _, err := range s.Run(t.Context(), event.Decided{Call: s.Status().Waiting[0].Call.ID, Allow: true, Scope: event.ScopeAlways}) {
		failed = err
	}
	if failed == nil || !strings.Contains(failed.Error(), "the disk is full") || len(ran) > 0 {
		t.Errorf("ran %q, %v", ran, failed)
	}
}

// TestAskTimeout checks that a question without an answer becomes a no, also across a restart.
func TestAskTimeout(t *testing.T) {
	var ran []string
	a := inspan.Agent{
		Model: scripted(t, `call: put {"path":"a"}`, "Done."),
		Tools: []tool.Tool{writer(&ran)}, Env: tool.Env{Root: "/w"}, Approvals: inspan.Approvals{Timeout: time.Second},
	}
	log := event.NewMemory("m")
	s := open(t, &a, log)
	collect(t, s.Run(t.Context(), event.Say("go")))
	until := s.Status().Waiting[0].Until
	if until.IsZero() {
		t.Fatal("it waits for ever")
	}
	timer := time.NewTimer(time.Until(until) + time.Millisecond)
	defer timer.Stop()
	<-timer.C
	events := collect(t, open(t, &a, log).Run(t.Context()))
	if got := last[event.Ended](t, events); got.Outcome != event.OutcomeDenied ||
		!strings.Contains(got.Parts.Text(), "nobody answered in time") || len(ran) > 0 {
		t.Errorf("%+v, ran %q", got, ran)
	}
}

// TestApprove checks that Agent.Approve decides on calls that need a person: a yes runs the call, the model reads about
// a no, an error ends the run, and without Approve the error names the field.
func TestApprove(t *testing.T) {
	for name, tt := range map[string]struct {
		approve func(context.Context, inspan.Pending) (bool, error)
		ran     int
		outcome event.Outcome
		failed  string
	}{
		"yes":     {func(context.Context, inspan.Pending) (bool, error) { return true, nil }, 1, event.OutcomeOK, ""},
		"no":      {func(context.Context, inspan.Pending) (bool, error) { return false, nil }, 0, event.OutcomeDenied, ""},
		"error":   {func(context.Context, inspan.Pending) (bool, error) { return false, errors.New("gone") }, 0, "", "gone"},
		"crashes": {func(context.Context, inspan.Pending) (bool, error) { panic("boom") }, 0, "", "Agent.Approve crashed: boom"},
		"nobody":  {nil, 0, "", "set Agent.Approve"},
	} {
		ran := 0
		plain := tool.New("plain", "Does something.", func(context.Context, *tool.Call, struct{}) (tool.Result, error) {
			ran++
			return tool.Text("done"), nil
		})
		a := &inspan.Agent{Model: scripted(t, "call: plain {}", "Done."), Tools: []tool.Tool{plain}, Approve: tt.approve}
		var ends []event.Ended
		var failed error
		for e, err := range a.Run(t.Context(), "go") {
			if failed = err; err != nil {
				break
			}
			if end, ok := e.Body.(event.Ended); ok {
				ends = append(ends, end)
			}
		}
		if ran != tt.ran {
			t.Errorf("%s: it ran %d times", name, ran)
		}
		if (failed == nil) != (tt.failed == "") || failed != nil && !strings.Contains(failed.Error(), tt.failed) {
			t.Errorf("%s: failed with %v", name, failed)
		}
		if tt.outcome != "" && (len(ends) != 1 || ends[0].Outcome != tt.outcome) {
			t.Errorf("%s: ended %+v", name, ends)
		}
	}
}
