package journeys_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/tool"
)

func TestUnattendedWaitsForAnAllowance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		a := inspan.Agent{Model: &vendor{answers: []answer{fails(llm.KindQuota, 5*time.Hour)}}, Unattended: true}
		if got := last[event.Stopped](t, collect(t, a.Run(t.Context(), "go"))); got.Reason != event.ReasonDone {
			t.Errorf("stopped %+v", got)
		}
		if waited := time.Since(began); waited < 5*time.Hour || waited > 6*time.Hour {
			t.Errorf("waited %v", waited)
		}
	})
}

func TestAPersonHearsOfAnAllowanceAtOnce(t *testing.T) {
	a := inspan.Agent{Model: &vendor{answers: []answer{fails(llm.KindQuota, 5*time.Hour)}}}
	got := last[event.Stopped](t, collect(t, a.Run(t.Context(), "go")))
	if got.Reason != event.ReasonFailed || got.Cause != llm.KindQuota {
		t.Errorf("stopped %+v", got)
	}
}

// An interrupted wait continues where it was, whoever drives then.
func TestWaitsOutlastTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := event.NewMemory("s")
		began := time.Now()
		v := &vendor{answers: []answer{fails(llm.KindQuota, 3*time.Hour)}}
		a := &inspan.Agent{Model: v, Unattended: true}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		for _, err := range open(t, a, log).Run(ctx, said("go")) {
			if err != nil && ctx.Err() == nil {
				t.Fatal(err)
			}
		}
		cancel()
		if waited := time.Since(began); waited != time.Hour {
			t.Fatalf("broken off after %v", waited)
		}
		if got := last[event.Stopped](t, collect(t, open(t, a, log).Run(t.Context()))); got.Reason != event.ReasonDone {
			t.Errorf("stopped %+v", got)
		}
		if waited := time.Since(began); waited < 3*time.Hour || waited > 3*time.Hour+time.Second {
			t.Errorf("waited %v in all", waited)
		}
	})
}

func TestAWaitCanBeInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := event.NewMemory("s")
		a := &inspan.Agent{Model: &vendor{answers: []answer{fails(llm.KindQuota, 3*time.Hour)}}, Unattended: true}
		waits := func(_ *inspan.Session, e event.Event) bool { _, failed := e.Body.(event.Failed); return !failed }
		play(t, a, log, waits, said("go"))
		s := open(t, a, log)
		for e, err := range s.Run(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if p, ok := e.Body.(event.Progress); ok && p.Wait > 10_000 {
				send(t, s, event.Cancelled{By: "me"})
			}
		}
		if got := s.Status().Stopped; got == nil || got.Reason != event.ReasonCancelled {
			t.Errorf("stopped %+v", got)
		}
	})
}

// Text held back at an interrupt was not sent, and costs nothing.
func TestAnInterruptedWaitCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &inspan.Agent{Model: &vendor{answers: []answer{fails(llm.KindQuota, 3*time.Hour)}}, Unattended: true}
		s := open(t, a, event.NewMemory("s"))
		for e, err := range s.Run(t.Context(), said(strings.Repeat("word ", 100))) {
			if err != nil {
				t.Fatal(err)
			}
			switch b := e.Body.(type) {
			case event.Failed:
				if b.Retry > 0 {
					send(t, s, event.Cancelled{By: "me"})
				}
			case event.Replied:
				t.Errorf("replied %+v", b)
			}
		}
		if st := s.Status(); st.Stopped == nil || st.Stopped.Reason != event.ReasonCancelled || st.Turns != 0 || st.Usage != (llm.Usage{}) {
			t.Errorf("status %+v", st)
		}
	})
}

// An interrupt that comes while the request is made keeps it from being sent.
func TestInterruptBeforeTheRequest(t *testing.T) {
	v := &vendor{}
	s := open(t, &inspan.Agent{Model: v}, event.NewMemory("s"))
	for e, err := range s.Run(t.Context(), said("go")) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := e.Body.(event.Said); ok {
			send(t, s, event.Cancelled{By: "me"})
		}
	}
	if st := s.Status(); len(v.requests) != 0 || st.Stopped == nil || st.Stopped.Reason != event.ReasonCancelled {
		t.Errorf("%d requests, stopped %+v", len(v.requests), st.Stopped)
	}
}

// Another model need not wait for a shortage of the first one.
func TestAnotherModelDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := event.NewMemory("s")
		a := &inspan.Agent{Model: &vendor{answers: []answer{fails(llm.KindQuota, 3*time.Hour)}}, Unattended: true}
		waits := func(_ *inspan.Session, e event.Event) bool { _, failed := e.Body.(event.Failed); return !failed }
		play(t, a, log, waits, said("go"))
		began := time.Now()
		other := &inspan.Agent{Model: scripted(t, "Hello.")}
		collect(t, open(t, other, log).Run(t.Context()))
		if waited := time.Since(began); waited > time.Second {
			t.Errorf("waited %v", waited)
		}
	})
}

func TestCredentialsAreRenewedOnce(t *testing.T) {
	for n, want := range map[int]event.Reason{1: event.ReasonDone, 2: event.ReasonFailed} {
		v := &vendor{}
		for range n {
			v.answers = append(v.answers, fails(llm.KindAuthExpired, 0))
		}
		a := inspan.Agent{Model: v}
		if got := last[event.Stopped](t, collect(t, a.Run(t.Context(), "go"))); got.Reason != want {
			t.Errorf("%d times expired: %+v", n, got)
		}
	}
}

// Every kind of failure has one end, which names it.
func TestEveryFailureIsNamed(t *testing.T) {
	for kind, want := range map[llm.Kind]event.Reason{
		llm.KindTransient: event.ReasonFailed, llm.KindRateLimited: event.ReasonFailed, llm.KindQuota: event.ReasonFailed,
		llm.KindOverloaded: event.ReasonFailed, llm.KindTimeout: event.ReasonFailed, llm.KindStreamCut: event.ReasonFailed,
		llm.KindWindow: event.ReasonFailed, llm.KindTooLarge: event.ReasonFailed, llm.KindAuthExpired: event.ReasonFailed,
		llm.KindAuth: event.ReasonFailed, llm.KindBilling: event.ReasonFailed, llm.KindRefused: event.ReasonRefused,
		llm.KindHistory: event.ReasonFailed, llm.KindInvalid: event.ReasonFailed, llm.KindNoModel: event.ReasonFailed,
		llm.KindNoTools: event.ReasonFailed, llm.KindNoReply: event.ReasonFailed, llm.KindBudget: event.ReasonBudget, llm.KindPanic: event.ReasonFailed,
	} {
		v := &vendor{}
		for range 10 {
			v.answers = append(v.answers, fails(kind, 0))
		}
		a := inspan.Agent{Model: v, Limits: inspan.Limits{Retry: -1}}
		if got := last[event.Stopped](t, collect(t, a.Run(t.Context(), "go"))); got.Reason != want || got.Cause != kind {
			t.Errorf("%s: stopped %+v", kind, got)
		}
	}
}

// A conversation that a vendor refuses is sent in ever simpler forms, and stays
// in the form that was accepted.
func TestRefusedConversationIsHealed(t *testing.T) {
	v := &vendor{answers: []answer{
		{reply: llm.Reply{Stop: llm.StopCalls, Parts: llm.Parts{
			llm.Reasoning{Text: "hm", Opaque: json.RawMessage(`{"a":1}`), Route: "test/m"},
			llm.Call{ID: "c1", Name: "look", Args: json.RawMessage(`{"word":"a"}`)},
		}}},
		fails(llm.KindHistory, 0), fails(llm.KindHistory, 0), fails(llm.KindHistory, 0),
	}}
	look := tool.New("look", "shows a picture", func(context.Context, *tool.Call, wordArgs) (tool.Result, error) {
		return tool.Result{Parts: llm.Parts{llm.Text{Text: "here"}, llm.Image{MediaType: "image/png", Data: []byte("png")}}}, nil
	})
	look.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) {
		return []tool.Effect{{Kind: tool.Read, Path: "/w/a"}}, nil
	}
	log := event.NewMemory("s")
	agent := &inspan.Agent{Model: v, Tools: []tool.Tool{look}, Mode: "auto", Env: tool.Env{Root: "/w"}}
	s := open(t, agent, log)
	events := collect(t, s.Run(t.Context(), said("go")))
	events = append(events, collect(t, s.Run(t.Context(), said("and now?")))...)
	if got := last[event.Stopped](t, events); got.Reason != event.ReasonDone {
		t.Fatalf("stopped %+v after %s", got, kinds(events))
	}
	var levels []event.Healing
	for _, e := range events {
		if h, ok := e.Body.(event.Healed); ok {
			levels = append(levels, h.Level)
		}
	}
	if diff := cmp.Diff([]event.Healing{loop.HealReasoning, loop.HealImages, loop.HealCalls}, levels); diff != "" {
		t.Error(diff)
	}
	want := []llm.Message{
		{Role: llm.User, Parts: llm.Say("go")},
		{Role: llm.Assistant, Parts: llm.Say(`[called look with {"word":"a"}]`)},
		{Role: llm.User, Parts: llm.Say("[result of look]\nhere[an image was here; it is no longer sent]")},
		{Role: llm.Assistant, Parts: llm.Say("Done.")},
		{Role: llm.User, Parts: llm.Say("and now?")},
	}
	if diff := cmp.Diff(want, v.requests[len(v.requests)-1].Messages); diff != "" {
		t.Error(diff)
	}
}

// A request that can't be simplified any further fails for good, and is not repeated forever.
func TestHealingEnds(t *testing.T) {
	v := &vendor{}
	for range 10 {
		v.answers = append(v.answers, fails(llm.KindHistory, 0))
	}
	a := inspan.Agent{Model: v}
	got := last[event.Stopped](t, collect(t, a.Run(t.Context(), "go")))
	if got.Cause != llm.KindHistory || len(v.requests) != 1 {
		t.Errorf("stopped %+v after %d requests", got, len(v.requests))
	}
}

func TestChoicesAreStored(t *testing.T) { synctest.Test(t, choicesAreStored) }

func choicesAreStored(t *testing.T) {
	near := llm.Info{Provider: "near", Model: "a", Prices: llm.Prices{{Output: 1}}}
	far := llm.Info{Provider: "far", Model: "b", Prices: llm.Prices{{Output: 2}}}
	usage := llm.Usage{Output: 1e6}
	a := inspan.Agent{Model: &vendor{answers: []answer{
		{routed: &llm.Routed{Info: near, Rule: "small", Reason: "12 tokens"}, reply: llm.Reply{Route: "near/a", Usage: usage}},
	}}}
	events := collect(t, a.Run(t.Context(), "go"))
	want := event.Routed{Route: "near/a", Rule: "small", Reason: "12 tokens"}
	if diff := cmp.Diff(want, last[event.Routed](t, events)); diff != "" {
		t.Error(diff)
	}
	if r := last[event.Replied](t, events); r.Cost != 1 || r.Route != "near/a" {
		t.Errorf("replied %+v", r)
	}

	cause := &llm.Error{Kind: llm.KindBilling, Message: "pay"}
	a = inspan.Agent{Model: &vendor{answers: []answer{
		{routed: &llm.Routed{Info: far, Rule: "small", Reason: "the next", Cause: cause}, reply: llm.Reply{Route: "far/b", Usage: usage}},
	}}}
	events = collect(t, a.Run(t.Context(), "go"))
	want = event.Routed{Route: "far/b", Rule: "small", Reason: "the next", From: "test/m", Cause: llm.KindBilling, Error: "billing: pay"}
	if diff := cmp.Diff(want, last[event.Routed](t, events)); diff != "" {
		t.Error(diff)
	}
	if r := last[event.Replied](t, events); r.Cost != 2 {
		t.Errorf("replied %+v", r)
	}
}

func TestLostCacheIsNoted(t *testing.T) {
	cached := func(read, write int) answer {
		return answer{reply: llm.Reply{
			Parts: llm.Parts{llm.Call{ID: "c", Name: "look", Args: json.RawMessage(`{"word":"a"}`)}}, Stop: llm.StopCalls,
			Usage: llm.Usage{Input: 10, CacheRead: read, CacheWrite: write},
		}}
	}
	for name, tc := range map[string]struct {
		answers []answer
		between event.Body
		later   time.Duration
		want    string // of the note; empty means none
	}{
		"all is well":           {[]answer{cached(0, 9000), cached(9000, 100)}, nil, 0, ""},
		"the vendor lost it":    {[]answer{cached(0, 9000), cached(100, 9000)}, nil, 0, "the previous request was sent again unchanged"},
		"too small to matter":   {[]answer{cached(0, 900), cached(0, 1000)}, nil, 0, ""},
		"no cache at all":       {[]answer{cached(0, 0), cached(0, 0)}, nil, 0, ""},
		"it had time to expire": {[]answer{cached(0, 9000), cached(0, 9000)}, nil, 6 * time.Minute, ""},
		"it expired in a wait":  {[]answer{cached(0, 9000), fails(llm.KindRateLimited, 10*time.Minute), cached(0, 9000)}, nil, 0, ""},
		"explained":             {[]answer{cached(0, 9000), cached(0, 9000)}, event.Switched{Effort: "high"}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &ledger{}
				v := &vendor{answers: tc.answers}
				log := event.NewMemory("s")
				s := open(t, &inspan.Agent{
					Model: v, Tools: []tool.Tool{l.reader()},
					Mode: "auto", Limits: inspan.Limits{Turns: 3, Retry: time.Hour}, Env: tool.Env{Root: "/w"},
				}, log)
				var events []event.Event
				for e, err := range s.Run(t.Context(), said("go")) {
					if err != nil {
						t.Fatal(err)
					}
					events = append(events, e)
					if _, ok := e.Body.(event.Started); ok && len(v.requests) == 1 {
						time.Sleep(tc.later)
						if tc.between != nil {
							if _, err := harnesstest.Write(t.Context(), log, tc.between); err != nil {
								t.Fatal(err)
							}
						}
					}
				}
				got := ""
				for _, e := range events {
					if n, ok := e.Body.(event.Note); ok && n.Topic == "cache" {
						got += n.Text
					}
				}
				if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
					t.Errorf("noted %q, want %q", got, tc.want)
				}
			})
		})
	}
}

func TestInterruptedRepliesAreEstimated(t *testing.T) {
	log := event.NewMemory("s")
	s := open(t, &inspan.Agent{Model: &slow{}}, log)
	var replied event.Replied
	for e, err := range s.Run(t.Context(), said(strings.Repeat("word ", 100))) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := e.Body.(type) {
		case event.Delta:
			send(t, s, event.Cancelled{})
		case event.Replied:
			replied = b
		}
	}
	if u := replied.Usage; !u.Estimated || u.Input < 100 || u.Output == 0 {
		t.Errorf("usage %+v", u)
	}
}

// If a vendor does not report the usage, it is estimated and flagged, so that limits on money hold.
func TestMissingUsageIsEstimated(t *testing.T) {
	silent := answer{reply: llm.Reply{Parts: llm.Say("all is well here"), Stop: llm.StopEnd}}
	a := inspan.Agent{Model: &vendor{answers: []answer{silent}}}
	r := last[event.Replied](t, collect(t, a.Run(t.Context(), strings.Repeat("word ", 100))))
	if want := (llm.Usage{Input: 125, Output: 4, Estimated: true}); r.Usage != want || r.Cost != 4 {
		t.Errorf("usage %+v, cost %g", r.Usage, r.Cost)
	}
}

// A session that is played back leaves the same log, byte for byte.
func TestReplayedSessionIsTheSame(t *testing.T) {
	replies := []string{
		"reason: hm\nBoth.\ncall: look {\"word\":\"a\"}\ncall: note {\"word\":\"b\"}\nusage: 100 20 50",
		"fail: 529\ncall: none {}", "stop: length\nA long", "Done.",
	}
	live := func(m llm.Model) string {
		var log bytes.Buffer
		synctest.Test(t, func(t *testing.T) {
			var l ledger
			memory := event.NewMemory("s")
			a := &inspan.Agent{Model: m, Tools: []tool.Tool{l.reader(), l.writer()}, Mode: "auto", Env: tool.Env{Root: "/w"}, Limits: inspan.Limits{Retry: -1}}
			s := open(t, a, memory)
			collect(t, s.Run(t.Context(), said("go")))
			collect(t, s.Run(t.Context(), event.Said{}))
			for e, err := range memory.Read(t.Context(), 0) {
				if err != nil {
					t.Fatal(err)
				}
				if c, ok := e.Body.(event.Claimed); ok {
					c.Writer = ""
					e.Body = c
				}
				line, err := event.Encode(e)
				if err != nil {
					t.Fatal(err)
				}
				log.Write(append(line, '\n'))
			}
		})
		return log.String()
	}
	var cassette bytes.Buffer
	recorded := live(&script.Recorder{Model: scripted(t, replies...), To: &cassette})
	player, err := script.Play(&cassette)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(recorded, live(player)); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(recorded, "Done.") || !strings.Contains(recorded, "overloaded") {
		t.Errorf("the session holds too little:\n%s", recorded)
	}
}
