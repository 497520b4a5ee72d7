package journeys_test

// The runs of the corpus; see log_corpus_test.go.

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// corpus names the runs. Each makes a log within a synctest bubble.
func corpus() map[string]func(*testing.T) event.Log {
	return map[string]func(*testing.T) event.Log{
		"answer":      answerRun,
		"parallel":    parallelRun,
		"denied":      deniedRun,
		"waited":      waitedRun,
		"waiting":     waitingRun,
		"crashed":     crashedRun,
		"compacted":   compactedRun,
		"forked":      forkedRun,
		"steered":     steeredRun,
		"interrupted": interruptedRun,
		"retried":     retriedRun,
		"failed":      failedRun,
		"healed":      healedRun,
		"routed":      routedRun,
		"stuck":       stuckRun,
		"max-turns":   maxTurnsRun,
		"image":       imageRun,
		"invalid":     invalidRun,
		"from-later":  fromLaterRun,
		"within":      withinRun,
		"steps":       stepsRun,
	}
}

func answerRun(t *testing.T) event.Log {
	log := newSteady("answer")
	a := corpusAgent(t, "ask", "reason: they greet\nHello <there> & welcome.\nusage: 120 9 80")
	play(t, a, log, nil, said("hi"), event.Titled{Title: "A greeting"})
	return log
}

// parallelRun makes two calls at once; the second ends first.
func parallelRun(t *testing.T) event.Log {
	log := newSteady("parallel")
	a := corpusAgent(t, "edit", "Both.\ncall: look {\"word\":\"slow\"}\ncall: look {\"word\":\"quick\"}\nusage: 200 30",
		"call: note {\"word\":\"c\"}", "Done.")
	quick := make(chan struct{})
	look := a.Tools[0].Run
	a.Tools[0].Run = func(ctx context.Context, c *tool.Call) (tool.Result, error) {
		if string(c.Args) == `{"word":"slow"}` {
			<-quick
		}
		return look(ctx, c)
	}
	ended := 0
	play(t, a, log, func(_ *inspan.Session, e event.Event) bool {
		if _, ok := e.Body.(event.Ended); ok {
			if ended++; ended == 1 {
				close(quick)
			}
		}
		return true
	}, said("look at both"))
	return log
}

// deniedRun has one call that a rule denies and one that a person denies.
func deniedRun(t *testing.T) event.Log {
	log := newSteady("denied")
	a := corpusAgent(t, "ask", "call: picture", "call: note {\"word\":\"x\"}", "Then not.")
	a.Rules = []inspan.Rule{{Action: tool.Deny, Text: "picture"}}
	play(t, a, log, nil, said("show and note"))
	id := open(t, a, log).Status().Waiting[0].Call.ID
	play(t, a, log, nil, event.Decided{Call: id, By: "ann", Reason: "not on a Friday"})
	return log
}

// waitedRun waits for a decision across a restart.
func waitedRun(t *testing.T) event.Log {
	log := waitingRun(t)
	a := corpusAgent(t, "", "call: note {\"word\":\"x\"}", "Noted.")
	id := open(t, a, log).Status().Waiting[0].Call.ID
	play(t, a, log, nil, event.Decided{Call: id, Allow: true, By: "ann", Rule: "note"})
	return log
}

// withinRun has a call that makes others, one of which waits for a decision across a restart.
func withinRun(t *testing.T) event.Log {
	log := newSteady("within")
	both := tool.New("both", "Looks and notes.", func(ctx context.Context, c *tool.Call, in wordArgs) (tool.Result, error) {
		args, _ := json.Marshal(in)
		found, err := c.Do(ctx, "look", args)
		if err != nil {
			return found, err
		}
		return c.Do(ctx, "note", args)
	})
	both.Calls = true
	agent := func(replies ...string) *inspan.Agent {
		a := corpusAgent(t, "ask", replies...)
		a.Tools = append(a.Tools, both)
		return a
	}
	replies := []string{"call: both {\"word\":\"x\"}", "Noted."}
	play(t, agent(replies...), log, nil, said("look and note"))
	id := open(t, agent(replies...), log).Status().Waiting[0].Call.ID
	play(t, agent(replies...), log, nil, event.Decided{Call: id, Allow: true, By: "ann"})
	return log
}

// stepsRun performs two steps without a model, one of which fails. The second driver does nothing.
func stepsRun(t *testing.T) event.Log {
	log := newSteady("steps")
	for range 2 {
		s := open(t, &inspan.Agent{Env: tool.Env{Root: "/w"}, Opening: inspan.Opening{Labels: map[string]string{"ticket": "7"}}}, log)
		err := s.Perform(t.Context(), func(ctx context.Context, steps *inspan.Steps) error {
			for _, id := range []string{"fetch", "build"} {
				step := event.StepStarted{Step: id, Does: "run", Input: json.RawMessage(`{"of":"x"}`)}
				if _, err := steps.Do(ctx, step, func(context.Context) (event.StepEnded, error) {
					if id == "build" {
						return event.StepEnded{}, errors.New("it does not build")
					}
					return event.StepEnded{Result: json.RawMessage(`{"files":2}`)}, nil
				}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return log
}

// waitingRun ends while a call waits.
func waitingRun(t *testing.T) event.Log {
	log := newSteady("waiting")
	play(t, corpusAgent(t, "ask", "call: note {\"word\":\"x\"}", "Noted."), log, nil, said("note x"))
	return log
}

// crashedRun dies in the midst of a call that writes and one that only reads.
func crashedRun(t *testing.T) event.Log {
	log := newSteady("crashed")
	replies := []string{"call: note {\"word\":\"x\"}", "call: look {\"word\":\"y\"}", "Done, as far as I know."}
	die := func(_ *inspan.Session, e event.Event) bool {
		_, started := e.Body.(event.Started)
		return !started
	}
	play(t, corpusAgent(t, "edit", replies...), log, die, said("note x"))
	play(t, corpusAgent(t, "edit", replies...), log, die)
	play(t, corpusAgent(t, "edit", replies...), log, nil)
	return log
}

// compactedRun is compacted between two runs, as a driver would do it.
func compactedRun(t *testing.T) event.Log {
	log := newSteady("compacted")
	a := corpusAgent(t, "edit", "call: look {\"word\":\"a\"}", "It is a.", "call: note {\"word\":\"b\"}", "It is b.")
	play(t, a, log, nil, said("what is it?"))
	var state loop.State
	for e, err := range log.Read(t.Context(), 0) {
		if err != nil || state.Apply(e) != nil {
			t.Fatal("fold", err)
		}
	}
	// Assistant messages stay, since the script counts them.
	state.Messages = append([]llm.Message{{Role: llm.User, Parts: llm.Say("Summary: the word is a.")}},
		state.Messages[len(state.Messages)-3:]...)
	snapshot, err := state.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := harnesstest.Write(t.Context(), log, event.Compacted{Before: 900, After: 300, Snapshot: snapshot}); err != nil {
		t.Fatal(err)
	}
	play(t, a, log, nil, said("and now?"))
	return log
}

// forkedRun goes another way from the middle of a run.
func forkedRun(t *testing.T) event.Log {
	log := newSteady("trunk")
	play(t, corpusAgent(t, "edit", "call: look {\"word\":\"a\"}", "call: note {\"word\":\"b\"}", "The map it is."), log, nil, said("choose"))
	branch := newSteady("branch")
	for e, err := range log.Read(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		branch.copied = append(branch.copied, e)
		if _, started := e.Body.(event.Started); started {
			break
		}
	}
	if _, err := harnesstest.Write(t.Context(), branch, event.Forked{From: "trunk", Seq: uint64(len(branch.copied))}); err != nil {
		t.Fatal(err)
	}
	play(t, corpusAgent(t, "edit", "", "The slice it is."), branch, nil, said("choose otherwise"))
	return branch
}

// steeredRun gets a steering message while a call runs, and a queued one for later.
func steeredRun(t *testing.T) event.Log {
	log := newSteady("steered")
	a := corpusAgent(t, "edit", "call: look {\"word\":\"a\"}", "As you say.", "That too.")
	play(t, a, log, func(s *inspan.Session, e event.Event) bool {
		if _, started := e.Body.(event.Started); started {
			send(t, s, event.Steered{Origin: event.OriginPerson, Parts: llm.Say("in German, please"), By: "ann"})
			send(t, s, event.Said{Parts: llm.Say("then tidy up"), By: "ann"})
		}
		return true
	}, said("look"))
	return log
}

// interruptedRun is interrupted while the model writes.
func interruptedRun(t *testing.T) event.Log {
	log := newSteady("interrupted")
	a := corpusAgent(t, "ask", "unused")
	a.Model = &slow{}
	play(t, a, log, func(s *inspan.Session, e event.Event) bool {
		if d, ok := e.Body.(event.Delta); ok && d.Text != "" {
			send(t, s, event.Cancelled{By: "ann", Reason: "wrong file"})
		}
		return true
	}, said("think"))
	return log
}

func retriedRun(t *testing.T) event.Log {
	log := newSteady("retried")
	play(t, corpusAgent(t, "ask", "fail: 529 x2\nHello at last."), log, nil, said("hi"))
	return log
}

// failedRun fails for good, and continues on request.
func failedRun(t *testing.T) event.Log {
	log := newSteady("failed")
	a := corpusAgent(t, "ask", "fail: 401\nHello at last.")
	play(t, a, log, nil, said("hi"))
	play(t, a, log, nil, event.Said{})
	return log
}

// healedRun is refused twice because of its content.
func healedRun(t *testing.T) event.Log {
	log := newSteady("healed")
	a := corpusAgent(t, "edit", "unused")
	a.Model = &vendor{answers: []answer{
		{reply: llm.Reply{Stop: llm.StopCalls, Parts: llm.Parts{
			llm.Reasoning{Text: "hm", Opaque: json.RawMessage(`{"a":1}`), Route: "test/m"},
			llm.Call{ID: "c1", Name: "look", Args: json.RawMessage(`{"word":"a"}`)},
		}}},
		fails(llm.KindHistory, 0), fails(llm.KindHistory, 0),
	}}
	play(t, a, log, nil, said("look"))
	return log
}

// routedRun is answered by one model, then by another that takes over.
func routedRun(t *testing.T) event.Log {
	log := newSteady("routed")
	near := llm.Info{Provider: "near", Model: "a", Prices: llm.Prices{{Output: 10}}}
	far := llm.Info{Provider: "far", Model: "b", Prices: llm.Prices{{Output: 20}}}
	usage := llm.Usage{Input: 100, Output: 10}
	a := corpusAgent(t, "edit", "unused")
	a.Model = &vendor{answers: []answer{
		{routed: &llm.Routed{Info: near, Rule: "easy", Reason: "complexity 0.10"}, reply: llm.Reply{
			Route: "near/a", Usage: usage, Stop: llm.StopCalls,
			Parts: llm.Parts{llm.Call{ID: "c1", Name: "look", Args: json.RawMessage(`{"word":"a"}`)}},
		}},
		{
			routed: &llm.Routed{Info: far, Rule: "easy", Reason: "the next", Cause: &llm.Error{Kind: llm.KindOverloaded, Status: 529}},
			reply:  llm.Reply{Route: "far/b", Usage: usage},
		},
	}}
	play(t, a, log, nil, said("look"))
	return log
}

func stuckRun(t *testing.T) event.Log {
	log := newSteady("stuck")
	same := `call: look {"word":"a"}`
	play(t, corpusAgent(t, "edit", same, same, same, same, same, same), log, nil, said("look"))
	return log
}

// maxTurnsRun reaches its limit and continues with a higher one.
func maxTurnsRun(t *testing.T) event.Log {
	log := newSteady("max-turns")
	replies := []string{`call: look {"word":"a"}`, `call: look {"word":"b"}`, "Done."}
	few := corpusAgent(t, "edit", replies...)
	few.Limits.Turns, few.Limits.Cost = 1, 2.5
	play(t, few, log, nil, said("look twice"))
	more := corpusAgent(t, "", replies...)
	more.Limits.Turns = 9
	play(t, more, log, nil, event.Said{})
	return log
}

func imageRun(t *testing.T) event.Log {
	log := newSteady("image")
	play(t, corpusAgent(t, "auto", "call: picture", "A fine picture."), log, nil,
		event.Said{Parts: llm.Parts{
			llm.Text{Text: "like this one?"},
			llm.Image{MediaType: "image/png", Digest: "sha256-" + tool.Digest([]byte("1")) + tool.Digest([]byte("2"))},
		}})
	return log
}

// invalidRun makes calls that can't be made and one that is cut, and then
// gives nothing but empty replies.
func invalidRun(t *testing.T) event.Log {
	log := newSteady("invalid")
	play(t, corpusAgent(t, "edit", "call: lok {}\ncall: look {\"wrod\":1}", "call: look {\"word\":\"a\"}\nstop: length", "stop: empty"),
		log, nil, said("look"))
	return log
}

// fromLaterRun has events that a later version might write.
func fromLaterRun(t *testing.T) event.Log {
	log := newSteady("from-later")
	play(t, corpusAgent(t, "ask", "Hello."), log, nil, said("hi"))
	_, err := harnesstest.Write(t.Context(), log,
		event.Unknown{Name: "glimpsed", Raw: json.RawMessage(`{"of":[1, 2.50, "<x>"]}`)},
		event.Steered{Origin: event.OriginPerson, Parts: llm.Parts{llm.Text{Text: "hear this"}, llm.Unknown{Raw: json.RawMessage(`{"type":"sound","digest":"sha256-0"}`)}}})
	if err != nil {
		t.Fatal(err)
	}
	return log
}
