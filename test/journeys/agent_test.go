package journeys_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

func TestZeroAgentAnswers(t *testing.T) {
	a := inspan.Agent{Model: scripted(t, "Hello there.")}
	got, err := a.Answer(t.Context(), "hi")
	if err != nil || got != "Hello there." {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := (&inspan.Agent{}).Answer(t.Context(), "hi"); err == nil {
		t.Error("an agent without a model must say so")
	}
}

// opinion is a judge that allows, and may answer a question of the mode if grants is set.
type opinion struct {
	grants bool
	asked  int
}

func (o *opinion) Grants() bool { return o.grants }

func (o *opinion) Judge(context.Context, *tool.Call, []tool.Effect) (tool.Verdict, error) {
	o.asked++
	return tool.Verdict{Action: tool.Allow, By: "opinion", Grant: o.grants}, nil
}

// TestJudgesThatMayGrant checks that a judge answers a question of the mode only if it may, that no judge answers a
// question of a rule, and that a judge that may not grant is not asked in vain.
func TestJudgesThatMayGrant(t *testing.T) {
	ask := []inspan.Rule{{Action: tool.Ask, Text: "note"}}
	for _, tt := range []struct {
		name       string
		alone      bool
		grants     bool
		rules      []inspan.Rule
		asked, ran int
	}{
		{"it may", true, true, nil, 1, 1},
		{"it may not", true, false, nil, 0, 0},
		{"it may not, and somebody is there", false, false, nil, 1, 0},
		{"a rule asks", true, true, ask, 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var l ledger
			o := &opinion{grants: tt.grants}
			a := inspan.Agent{
				Model: scripted(t, "call: note {\"word\":\"a\"}", "Done."), Tools: []tool.Tool{l.writer()}, Mode: "ask",
				Env: tool.Env{Root: "/w"}, Unattended: tt.alone, Rules: tt.rules, Judges: []tool.Judge{o},
			}
			s := open(t, &a, event.NewMemory("s"))
			collect(t, s.Run(t.Context(), event.Say("go")))
			if o.asked != tt.asked || len(l.runs) != tt.ran {
				t.Errorf("asked %d times, %q ran", o.asked, l.runs)
			}
		})
	}
}

func TestWorkspaceIsText(t *testing.T) {
	a := &inspan.Agent{Model: scripted(t, "hi")}
	a.Env.Root = "/srv/caf\xe9"
	if _, err := a.Open(t.Context(), event.NewMemory("s")); err == nil || !strings.Contains(err.Error(), `"/srv/caf\xe9", is not UTF-8`) {
		t.Errorf("%v", err)
	}
}

func TestRunOfCalls(t *testing.T) {
	var l ledger
	a := inspan.Agent{
		Model: scripted(t, "I look.\ncall: look {\"word\":\"a\"}\ncall: look {\"word\":\"b\"}", "call: note {\"word\":\"c\"}", "Done."),
		Tools: []tool.Tool{l.reader(), l.writer()}, Env: tool.Env{Root: "/w"}, Mode: "edit",
	}
	s := open(t, &a, event.NewMemory("m"))
	events := collect(t, s.Run(t.Context(), said("go")))
	want := "claimed said asked replied judged judged started started ended ended asked replied judged started ended asked replied stopped"
	if got := kinds(events); got != want {
		t.Errorf("events:\n got %s\nwant %s", got, want)
	}
	st := s.Status()
	if st.Turns != 3 || st.Calls != 3 || st.Stopped.Reason != event.ReasonDone || st.Waiting != nil {
		t.Errorf("status = %+v", st)
	}
	slices.Sort(l.runs[:2])
	if diff := cmp.Diff([]string{"look a", "look b", "note c"}, l.runs); diff != "" {
		t.Error(diff)
	}
}

func TestWhatAModelMayGetWrong(t *testing.T) {
	var l ledger
	crash := tool.New("crash", "", func(context.Context, *tool.Call, struct{}) (tool.Result, error) { panic("boom") })
	crash.Effects = tool.NoEffects
	fail := tool.New("fail", "", func(context.Context, *tool.Call, struct{}) (tool.Result, error) {
		return tool.Text("half"), errors.New("no luck")
	})
	fail.Effects = crash.Effects
	for _, tc := range []struct {
		name, reply string
		outcome     event.Outcome
		text        string
	}{
		{"no such tool", "call: lok {\"word\":\"a\"}", event.OutcomeInvalid, `no tool "lok"`},
		{"missing argument", "call: look {}", event.OutcomeInvalid, "word"},
		{"wrong type", "call: look {\"word\":{}}", event.OutcomeInvalid, "word"},
		{"unknown argument", "call: look {\"word\":\"a\",\"wrod\":1}", event.OutcomeInvalid, "wrod"},
		{"panic", "call: crash", event.OutcomeFailed, "boom"},
		{"error", "call: fail", event.OutcomeFailed, "no luck"},
		{"cut reply", "call: look {\"word\":\"a\"}\nstop: length", event.OutcomeCut, "cut"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := inspan.Agent{Model: scripted(t, tc.reply, "Done."), Tools: []tool.Tool{l.reader(), crash, fail}, Env: tool.Env{Root: "/w"}}
			events := collect(t, a.Run(t.Context(), "go"))
			end := last[event.Ended](t, events)
			if end.Outcome != tc.outcome || !strings.Contains(end.Parts.Text(), tc.text) {
				t.Errorf("ended %s: %s", end.Outcome, end.Parts.Text())
			}
			if r := last[event.Stopped](t, events).Reason; r != event.ReasonDone {
				t.Errorf("stopped as %s", r)
			}
		})
	}
	if len(l.runs) != 0 {
		t.Errorf("ran %v", l.runs)
	}
}

// A call that would ask waits, across restarts, for a decision.
func TestApprovalIsDurable(t *testing.T) {
	var l ledger
	a := inspan.Agent{Model: scripted(t, "call: note {\"word\":\"a\"}", "Done."), Tools: []tool.Tool{l.writer()}, Env: tool.Env{Root: "/w"}}
	log := event.NewMemory("m")
	s := open(t, &a, log)
	collect(t, s.Run(t.Context(), said("go")))
	again := open(t, &a, log)
	if diff := cmp.Diff("", kinds(collect(t, again.Run(t.Context())))[len("claimed"):]); diff != "" {
		t.Error(diff)
	}
	w := again.Status().Waiting
	if len(w) != 1 || len(l.runs) != 0 {
		t.Fatalf("waiting %v, ran %v", w, l.runs)
	}
	events := collect(t, again.Run(t.Context(), event.Decided{Call: w[0].Call.ID, Allow: true, By: "ann"}))
	if r := last[event.Stopped](t, events).Reason; r != event.ReasonDone || len(l.runs) != 1 {
		t.Errorf("stopped as %s, ran %v", r, l.runs)
	}
}

// The log has arguments once, unless the call runs with other arguments than the model wrote.
func TestArgumentsAreStoredOnce(t *testing.T) {
	type words struct {
		Word string `json:"word"`
		Also string `json:"also"`
	}
	two := tool.New("two", "", func(context.Context, *tool.Call, words) (tool.Result, error) { return tool.Result{}, nil })
	for args, stored := range map[string]string{
		`{"word":"a","also":"b"}`: "", `{"also":"b","word":"a"}`: "", `{"word":1,"also":"b"}`: `{"also":"b","word":"1"}`,
	} {
		a := inspan.Agent{Model: scripted(t, "call: two "+args, "Done."), Tools: []tool.Tool{two}, Mode: "auto"}
		if got := string(last[event.Judged](t, collect(t, open(t, &a, event.NewMemory("s")).Run(t.Context(), said("go")))).Args); got != stored {
			t.Errorf("%s: stored %q, want %q", args, got, stored)
		}
	}
}

// While one call looks at the files the session has seen, the end of another
// changes them.
func TestCallsDoNotShareWhatWasSeen(t *testing.T) {
	ended := make(chan struct{})
	var times atomic.Int64
	quick := tool.New("quick", "", func(context.Context, *tool.Call, struct{}) (tool.Result, error) {
		return tool.Result{Files: []tool.File{{Path: "/w/a", Digest: fmt.Sprint(times.Add(1))}}}, nil
	})
	quick.Effects = tool.NoEffects
	slow := tool.New("slow", "", func(_ context.Context, c *tool.Call, _ struct{}) (tool.Result, error) {
		<-ended
		if got, _ := c.Seen.Digest("/w/a"); got != "1" {
			t.Errorf("the call sees digest %q, which came after it began", got)
		}
		return tool.Result{}, nil
	})
	slow.Effects = quick.Effects
	a := inspan.Agent{Model: scripted(t, "call: quick", "call: quick\ncall: slow", "Done."), Tools: []tool.Tool{quick, slow}}
	n := 0
	for e, err := range a.Run(t.Context(), "go") {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := e.Body.(event.Ended); ok {
			if n++; n == 2 {
				close(ended)
			}
		}
	}
}

func TestUnattendedDenies(t *testing.T) {
	var l ledger
	a := inspan.Agent{
		Model: scripted(t, "call: note {\"word\":\"a\"}", "Done."),
		Tools: []tool.Tool{l.writer()}, Env: tool.Env{Root: "/w"}, Unattended: true,
	}
	events := collect(t, a.Run(t.Context(), "go"))
	if end := last[event.Ended](t, events); end.Outcome != event.OutcomeDenied || len(l.runs) != 0 {
		t.Errorf("ended %s, ran %v", end.Outcome, l.runs)
	}
}

func TestJudges(t *testing.T) {
	rewrite := tool.JudgeFunc(func(_ context.Context, c *tool.Call, _ []tool.Effect) (tool.Verdict, error) {
		if strings.Contains(string(c.Args), "secret") {
			return tool.Verdict{Action: tool.Allow, By: "hook", Args: json.RawMessage(`{"word":"[hidden]"}`)}, nil
		}
		return tool.Verdict{}, nil
	})
	broken := tool.JudgeFunc(func(context.Context, *tool.Call, []tool.Effect) (tool.Verdict, error) {
		return tool.Verdict{}, errors.New("out of order")
	})
	settled := tool.JudgeFunc(func(context.Context, *tool.Call, []tool.Effect) (tool.Verdict, error) {
		return tool.Verdict{Args: json.RawMessage(`{"word":"again"}`)}, nil
	})
	restless := tool.JudgeFunc(func(_ context.Context, c *tool.Call, _ []tool.Effect) (tool.Verdict, error) {
		return tool.Verdict{Args: json.RawMessage(fmt.Sprintf(`{"word":"%s!"}`, strings.Repeat("x", len(c.Args))))}, nil
	})
	for _, tc := range []struct {
		name  string
		agent inspan.Agent
		ran   []string
		by    string
	}{
		{
			"a rewritten argument runs and is recorded",
			inspan.Agent{Mode: "edit", Judges: []tool.Judge{rewrite}},
			[]string{"note [hidden]"},
			"mode edit",
		},
		{"a judge can't loosen", inspan.Agent{Mode: "plan", Judges: []tool.Judge{rewrite}}, nil, "mode plan"},
		{"a judge that fails denies", inspan.Agent{Mode: "edit", Judges: []tool.Judge{broken}}, nil, "a judge that failed"},
		{"the same rewriting again is none", inspan.Agent{Mode: "edit", Judges: []tool.Judge{settled}}, []string{"note again"}, "mode edit"},
		{"endless rewriting denies", inspan.Agent{Mode: "edit", Judges: []tool.Judge{restless}}, nil, ""},
		{"a rule allows what the mode asks", inspan.Agent{
			Mode: "ask", Rules: []inspan.Rule{{Action: tool.Allow, Text: "note"}},
			Unattended: true,
		}, []string{"note secret"}, "rule note"},
		{"a rule can't loosen plan mode", inspan.Agent{Mode: "plan", Rules: []inspan.Rule{{Action: tool.Allow, Text: "note"}}}, nil, "mode plan"},
		{"deny beats all", inspan.Agent{Mode: "auto", Rules: []inspan.Rule{
			{Action: tool.Allow, Text: "note"},
			{Action: tool.Deny, Text: "note(/w/*)"},
		}}, nil, "rule note(/w/*)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var l ledger
			a := tc.agent
			a.Model, a.Tools, a.Env = scripted(t, "call: note {\"word\":\"secret\"}", "Done."), []tool.Tool{l.writer()}, tool.Env{Root: "/w"}
			events := collect(t, a.Run(t.Context(), "go"))
			if diff := cmp.Diff(tc.ran, l.runs); diff != "" {
				t.Error(diff)
			}
			if by := last[event.Judged](t, events).By; by != tc.by {
				t.Errorf("judged by %q, want %q", by, tc.by)
			}
		})
	}
}

func TestInterruptKeepsTheText(t *testing.T) {
	a := inspan.Agent{Model: &slow{}}
	s := open(t, &a, event.NewMemory("m"))
	var events []event.Event
	for e, err := range s.Run(t.Context(), said("go")) {
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := e.Body.(event.Delta); ok && d.Text != "" {
			if err := s.Send(t.Context(), event.Cancelled{By: "ann"}); err != nil {
				t.Fatal(err)
			}
		}
		events = append(events, e)
	}
	r := last[event.Replied](t, events)
	if r.Stop != llm.StopCut || r.Parts.Text() != "I think" {
		t.Errorf("replied %+v", r)
	}
	if got := last[event.Stopped](t, events).Reason; got != event.ReasonCancelled {
		t.Errorf("stopped as %s", got)
	}
}

func TestInterruptStopsCalls(t *testing.T) {
	running := make(chan struct{})
	hang := tool.New("hang", "", func(ctx context.Context, _ *tool.Call, _ struct{}) (tool.Result, error) {
		close(running)
		<-ctx.Done()
		return tool.Text("so far"), ctx.Err()
	})
	a := inspan.Agent{Model: scripted(t, "call: hang", "Done."), Tools: []tool.Tool{hang}, Mode: "yolo"}
	s := open(t, &a, event.NewMemory("m"))
	go func() {
		<-running
		if err := s.Send(context.Background(), event.Cancelled{By: "ann"}); err != nil {
			t.Error(err)
		}
	}()
	events := collect(t, s.Run(t.Context(), said("go")))
	if end := last[event.Ended](t, events); end.Outcome != event.OutcomeCancelled || !strings.Contains(end.Parts.Text(), "so far") {
		t.Errorf("ended %s %q", end.Outcome, end.Parts.Text())
	}
}

func TestBreakingOffLeavesASessionToGoOnWith(t *testing.T) {
	var l ledger
	a := inspan.Agent{
		Model: scripted(t, "call: note {\"word\":\"a\"}", "Done."),
		Tools: []tool.Tool{l.writer()}, Env: tool.Env{Root: "/w"}, Mode: "edit",
	}
	s := open(t, &a, event.NewMemory("m"))
	for e, err := range s.Run(t.Context(), said("go")) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Body.Kind() == "judged" {
			break
		}
	}
	events := collect(t, s.Run(t.Context()))
	if r := last[event.Stopped](t, events).Reason; r != event.ReasonDone || len(l.runs) != 1 {
		t.Errorf("stopped as %s, ran %v", r, l.runs)
	}
}

func TestRunsDoNotOverlap(t *testing.T) {
	a := inspan.Agent{Model: scripted(t, "Hi.")}
	s := open(t, &a, event.NewMemory("m"))
	for _, err := range s.Run(t.Context(), said("go")) {
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range s.Run(t.Context()) {
			if !errors.Is(err, inspan.ErrBusy) {
				t.Errorf("second run: %v", err)
			}
		}
		break
	}
}

func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		a := inspan.Agent{Model: scripted(t, "fail: 529 x3\nHello.")}
		events := collect(t, a.Run(t.Context(), "go"))
		want := "opened switched claimed said asked failed failed failed replied stopped"
		if got := kinds(events); got != want[len("opened switched "):] {
			t.Errorf("events %s", got)
		}
		if waited := time.Since(began); waited < 2*time.Second || waited > 6*time.Second {
			t.Errorf("waited %v", waited)
		}
	})
}

func TestNoRetryWhereItCanNotHelp(t *testing.T) {
	for reply, want := range map[string]event.Reason{"fail: 401": event.ReasonFailed, "fail: 402": event.ReasonFailed} {
		a := inspan.Agent{Model: scripted(t, reply+"\nHello.")}
		stopped := last[event.Stopped](t, collect(t, a.Run(t.Context(), "go")))
		if stopped.Reason != want || !strings.Contains(stopped.Detail, "HTTP") {
			t.Errorf("%s: %+v", reply, stopped)
		}
	}
}

// recorder keeps the requests a model was sent.
type recorder struct {
	llm.Model
	requests []llm.Request
}

func (r *recorder) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	r.requests = append(r.requests, req)
	return r.Model.Stream(ctx, req)
}

// pieces splits a request so that one request continues another exactly if its pieces start with the other's.
func pieces(t testing.TB, req llm.Request) []string {
	t.Helper()
	var out []string
	add := func(v any) {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(raw))
	}
	add(req.Tools)
	for _, s := range req.System {
		add(s)
	}
	for _, m := range req.Messages {
		add(m)
	}
	return out
}

// TestCutAnywhere stops a run after every single event, like a crash, and continues with a new agent: no finished call
// runs again, each write runs at most once, and the requests of both lives continue one another.
func TestCutAnywhere(t *testing.T) {
	replies := []string{
		"Look.\ncall: look {\"word\":\"a\"}\ncall: look {\"word\":\"b\"}",
		"reason: hm\ncall: note {\"word\":\"c\"}\ncall: look {\"word\":\"d\"}",
		"call: lok {}\ncall: note {\"word\":\"e\"}\nstop: length",
		"call: note {\"word\":\"f\"}",
		"Done.",
	}
	whole := func() (int, []string) {
		var l ledger
		a := inspan.Agent{Model: scripted(t, replies...), Tools: []tool.Tool{l.reader(), l.writer()}, Env: tool.Env{Root: "/w"}, Mode: "edit"}
		return len(collect(t, a.Run(t.Context(), "go"))), l.runs
	}
	events, wanted := whole()
	if events < 25 || len(wanted) != 5 {
		t.Fatalf("%d events, ran %v", events, wanted)
	}
	for cut := 1; cut <= events; cut++ {
		var l ledger
		agent := func() (*inspan.Agent, *recorder) {
			rec := &recorder{Model: scripted(t, replies...)}
			return &inspan.Agent{
				Model: rec, Tools: []tool.Tool{l.reader(), l.writer()}, System: []event.Added{{Source: "t", Text: "be good"}},
				Env: tool.Env{Root: "/w"}, Mode: "edit",
			}, rec
		}
		log := event.NewMemory("m")
		first, rec := agent()
		s := open(t, first, log)
		seen := 0
		for e, err := range s.Run(t.Context(), said("go")) {
			if err != nil {
				t.Fatal(err)
			}
			if !e.Transient() {
				seen++
			}
			if seen == cut {
				break
			}
		}
		second, rec2 := agent()
		s2 := open(t, second, log)
		collect(t, s2.Run(t.Context()))
		if st := s2.Status(); st.Stopped == nil || st.Stopped.Reason != event.ReasonDone {
			t.Fatalf("cut after %d: %+v", cut, st.Stopped)
		}
		checkLedger(t, cut, log, l.runs)
		checkPrefixes(t, cut, append(rec.requests, rec2.requests...))
	}
}

// checkLedger compares the calls that ran with the log.
func checkLedger(t *testing.T, cut int, log event.Log, runs []string) {
	t.Helper()
	starts, ends, unknown := 0, map[string]int{}, 0
	for e, err := range log.Read(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := e.Body.(type) {
		case event.Started:
			starts++
		case event.Ended:
			ends[b.Call]++
			if b.Outcome == event.OutcomeUnknown {
				unknown++
			}
		}
	}
	for id, n := range ends {
		if n != 1 {
			t.Errorf("cut after %d: call %s ended %d times", cut, id, n)
		}
	}
	count := map[string]int{}
	for _, r := range runs {
		count[r]++
		if strings.HasPrefix(r, "note") && count[r] > 1 {
			t.Errorf("cut after %d: %s ran %d times", cut, r, count[r])
		}
	}
	if len(runs) > starts || unknown > 1 {
		t.Errorf("cut after %d: %d runs, %d intents, %d unknown", cut, len(runs), starts, unknown)
	}
}

func checkPrefixes(t *testing.T, cut int, requests []llm.Request) {
	t.Helper()
	for i := 1; i < len(requests); i++ {
		before, after := pieces(t, requests[i-1]), pieces(t, requests[i])
		if len(after) < len(before) || !slices.Equal(before, after[:len(before)]) {
			t.Errorf("cut after %d: request %d does not continue the one before:\n%s", cut, i+1, cmp.Diff(before, after))
		}
	}
}

// TestDigestsHold folds logs again and compares the state with the digest that was recorded when each run stopped.
func TestDigestsHold(t *testing.T) {
	var l ledger
	a := inspan.Agent{
		Model: scripted(t, "call: look {\"word\":\"a\"}", "One.", "call: note {\"word\":\"b\"}", "Two."),
		Tools: []tool.Tool{l.reader(), l.writer()}, Env: tool.Env{Root: "/w"}, Mode: "edit",
	}
	log := event.NewMemory("m")
	s := open(t, &a, log)
	collect(t, s.Run(t.Context(), said("one")))
	collect(t, s.Run(t.Context(), said("two")))
	var st loop.State
	checked := 0
	for e, err := range log.Read(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := e.Body.(event.Stopped); ok {
			checked++
			if got := st.Digest(); got != b.Digest || b.Digest == "" {
				t.Errorf("event %d: digest %s, recorded %s", e.Seq, got, b.Digest)
			}
		}
		if err := st.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	if checked != 2 {
		t.Errorf("checked %d digests", checked)
	}
}

func TestBigResultsGoToBlobs(t *testing.T) {
	big := tool.New("big", "", func(context.Context, *tool.Call, struct{}) (tool.Result, error) {
		return tool.Text(strings.Repeat("0123456789\n", 10_000)), nil
	})
	blobs := &memoryBlobs{}
	a := inspan.Agent{Model: scripted(t, "call: big", "Done."), Tools: []tool.Tool{big}, Env: tool.Env{Blobs: blobs}, Mode: "yolo"}
	text := last[event.Ended](t, collect(t, a.Run(t.Context(), "go"))).Parts.Text()
	if len(text) > 31_000 || !strings.Contains(text, "blob:sha256-0") || len(blobs.stored) != 1 {
		t.Errorf("%d characters, %d blobs: %.200s", len(text), len(blobs.stored), text)
	}
}

func TestSettingsOfAnOldSessionStand(t *testing.T) {
	log := event.NewMemory("m")
	first := inspan.Agent{Model: scripted(t, "Hi."), Mode: "plan", Limits: inspan.Limits{Turns: 7}}
	collect(t, open(t, &first, log).Run(t.Context(), said("go")))
	second := inspan.Agent{Model: scripted(t, "Hi.", "Ho.")}
	s := open(t, &second, log)
	if got := kinds(collect(t, s.Run(t.Context(), said("again")))); got != "claimed said asked replied stopped" {
		t.Errorf("events %s", got)
	}
	third := inspan.Agent{Model: scripted(t, "Hi.", "Ho.", "Ha."), Mode: "edit"}
	sw := last[event.Switched](t, collect(t, open(t, &third, log).Run(t.Context(), said("and again"))))
	if sw.Mode != "edit" || sw.Limits != nil || sw.Tools != nil {
		t.Errorf("switched %+v", sw)
	}
}

// TestLimitsCanBeTakenAway checks that a negative limit of an agent means no limit, even in a session that had one.
func TestLimitsCanBeTakenAway(t *testing.T) {
	log := event.NewMemory("m")
	few := inspan.Agent{Model: scripted(t, "Hi."), Limits: inspan.Limits{Turns: 7, Cost: 1, Tokens: 100_000, Time: time.Hour}}
	collect(t, open(t, &few, log).Run(t.Context(), said("go")))
	none := inspan.Agent{Model: scripted(t, "Hi.", "Ho."), Limits: inspan.Limits{Turns: -1, Cost: -1, Tokens: -1, Time: -1}}
	for name, log := range map[string]event.Log{"old": log, "new": event.NewMemory("n")} {
		s := open(t, &none, log)
		collect(t, s.Run(t.Context(), said("again")))
		if got := s.Status().Limits; got != (event.Limits{}) {
			t.Errorf("%s session: %+v", name, got)
		}
	}
}

func TestOpenRefusesNonsense(t *testing.T) {
	twice := tool.New("t", "", func(context.Context, *tool.Call, struct{}) (tool.Result, error) { return tool.Result{}, nil })
	for name, a := range map[string]inspan.Agent{
		"two tools of one name": {Tools: []tool.Tool{twice, twice}},
		"unknown mode":          {Mode: "careful"},
		"broken rule":           {Rules: []inspan.Rule{{Action: tool.Allow, Text: "bash("}}},
	} {
		a.Model = scripted(t, "Hi.")
		if _, err := a.Open(t.Context(), event.NewMemory("m")); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestSendTakesOnlyInputs(t *testing.T) {
	a := inspan.Agent{Model: scripted(t, "Hi.")}
	if err := open(t, &a, event.NewMemory("m")).Send(t.Context(), event.Started{Call: "1"}); err == nil {
		t.Error("started is not an input")
	}
}

func TestEventsFollow(t *testing.T) {
	a := inspan.Agent{Model: scripted(t, "Hi.")}
	s := open(t, &a, event.NewMemory("m"))
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan string)
	go func() {
		var out []event.Event
		for e, err := range s.Events(ctx, 0) {
			if err != nil {
				t.Error(err)
			}
			out = append(out, e)
			if e.Body.Kind() == "stopped" {
				cancel()
			}
		}
		got <- kinds(out)
	}()
	collect(t, s.Run(t.Context(), said("go")))
	if want := "opened switched claimed said asked replied stopped"; <-got != want {
		t.Error("followed something else")
	}
}
