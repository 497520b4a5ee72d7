package journeys_test

// What the log records about a run beyond its conversation: times, attempts, other requests to models, kinds of faults,
// labels, and inputs that come twice.

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/fault"
	"github.com/inspan/inspan/internal/safety/guard"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// sluggish is a model that takes its time: to fail, and then to begin and to end an answer.
type sluggish struct{ asked int }

func (*sluggish) Info() llm.Info { return llm.Info{Provider: "test", Model: "slow"} }

func (m *sluggish) Stream(context.Context, llm.Request) iter.Seq2[llm.Chunk, error] {
	m.asked++
	return func(yield func(llm.Chunk, error) bool) {
		<-time.After(3 * time.Second)
		if m.asked == 1 {
			yield(llm.Chunk{}, &llm.Error{Kind: llm.KindOverloaded, Message: "busy"})
			return
		}
		if !yield(llm.Chunk{Text: "Hello"}, nil) {
			return
		}
		<-time.After(4 * time.Second)
		yield(llm.Chunk{Reply: &llm.Reply{Parts: llm.Say("Hello"), Stop: llm.StopEnd}}, nil)
	}
}

// TestAttemptsAreTimed checks that the log has the length of each attempt, and the time to the first token of the one
// that succeeded, waits between them aside.
func TestAttemptsAreTimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := inspan.Agent{Model: &sluggish{}}
		events := collect(t, a.Run(t.Context(), "hi"))
		failed, replied := last[event.Failed](t, events), last[event.Replied](t, events)
		if failed.Millis != 3000 || failed.Retry == 0 || replied.First != 3000 || replied.Millis != 7000 {
			t.Errorf("failed after %d ms, first token after %d of %d ms", failed.Millis, replied.First, replied.Millis)
		}
	})
}

// TestReviewsAreModelCalls checks that a verdict names the requests to models that it took.
func TestReviewsAreModelCalls(t *testing.T) {
	l := &ledger{}
	send := l.tool("send", tool.Effect{Kind: tool.Network, Text: "example.com"})
	reviewer := &guard.Reviewer{Model: scripted(t, "ALLOW\nIt is what was asked for.\nusage: 40 8")}
	a := inspan.Agent{
		Model: scripted(t, `call: send {"word":"a"}`, "Done."), Mode: "yolo", Env: tool.Env{Root: "/w"}, Tools: []tool.Tool{send},
		Judges: []tool.Judge{reviewer},
	}
	j := last[event.Judged](t, collect(t, open(t, &a, event.NewMemory("s")).Run(t.Context(), said("send it"))))
	if len(j.Consulted) != 1 || j.Consulted[0].Usage.Input != 40 || j.Consulted[0].Purpose != guard.PurposeReview || j.Consulted[0].Cause != "" {
		t.Errorf("consulted %+v: %s", j.Consulted, j.Reason)
	}
}

// TestFaultsHaveClasses checks that failed calls can be told apart without reading their texts.
func TestFaultsHaveClasses(t *testing.T) {
	for class, err := range map[event.ErrorClass]error{
		fault.ErrorNotFound:   &fs.PathError{Op: "open", Path: "/x", Err: fs.ErrNotExist},
		fault.ErrorPermission: fmt.Errorf("change: %w", fs.ErrPermission),
		fault.ErrorTimeout:    os.ErrDeadlineExceeded,
		fault.ErrorNetwork:    &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
		fault.ErrorDisk:       &fs.PathError{Op: "write", Path: "/x", Err: syscall.ENOSPC},
		fault.ErrorTool:       errors.New("no luck"),
		fault.ErrorPanic:      nil,
		fault.ErrorExit:       nil,
		fault.ErrorArguments:  nil,
		fault.ErrorUnknown:    nil,
	} {
		fails := tool.New("note", "", func(_ context.Context, _ *tool.Call, _ wordArgs) (tool.Result, error) {
			if class == fault.ErrorPanic {
				panic("boom")
			}
			code := 3
			if class != fault.ErrorExit {
				return tool.Result{}, err
			}
			return tool.Result{Parts: llm.Say("it failed"), Exit: &code}, nil
		})
		fails.Effects = tool.NoEffects
		call := oneNote
		if class == fault.ErrorArguments {
			call = `call: note {"wrod":"a"}`
		}
		if class == fault.ErrorUnknown {
			call = `call: nothing {"word":"a"}`
		}
		a := inspan.Agent{Model: scripted(t, call, "Done."), Mode: "yolo", Env: tool.Env{Root: "/w"}, Tools: []tool.Tool{fails}}
		end := last[event.Ended](t, collect(t, a.Run(t.Context(), "go")))
		if end.Class != class {
			t.Errorf("%v: class %q, want %q", err, end.Class, class)
		}
	}
}

// TestLabels checks that a session has the labels and the span of its agent, and that invalid ones are refused before
// anything is stored.
func TestLabels(t *testing.T) {
	const span = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	log := event.NewMemory("s")
	open(t, &inspan.Agent{Opening: inspan.Opening{Labels: map[string]string{"ticket": "INS-7"}, Traceparent: span}}, log)
	opened := collect(t, log.Read(t.Context(), 0))[0].Body.(event.Opened)
	if opened.Labels["ticket"] != "INS-7" || opened.Traceparent != span {
		t.Errorf("opened %+v", opened)
	}
	many := map[string]string{}
	for i := range 33 {
		many[fmt.Sprint("l", i)] = ""
	}
	for want, a := range map[string]*inspan.Agent{
		`label "a b": a name has`:        {Opening: inspan.Opening{Labels: map[string]string{"a b": ""}}},
		`label "": a name has`:           {Opening: inspan.Opening{Labels: map[string]string{"": "x"}}},
		"label a: its value has 300":     {Opening: inspan.Opening{Labels: map[string]string{"a": strings.Repeat("x", 300)}}},
		"label a: its value has 1 bytes": {Opening: inspan.Opening{Labels: map[string]string{"a": "\xff"}}},
		"33 labels":                      {Opening: inspan.Opening{Labels: many}},
		"traceparent \"00-x\"":           {Opening: inspan.Opening{Traceparent: "00-x"}},
		"traceparent \"00-000":           {Opening: inspan.Opening{Traceparent: "00-00000000000000000000000000000000-b7ad6b7169203331-01"}},
	} {
		log := event.NewMemory("s")
		_, err := a.Open(t.Context(), log)
		if err == nil || !strings.Contains(err.Error(), want) || len(collect(t, log.Read(t.Context(), 0))) > 0 {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestInputsCountOnce checks that of inputs with the same key the first counts, whether the second is sent by the same
// process or by another that knows of nothing.
func TestInputsCountOnce(t *testing.T) {
	l := &ledger{}
	log := event.NewMemory("s")
	agent := func() *inspan.Agent {
		return &inspan.Agent{Model: scripted(t, oneNote, "Done.", "Again."), Mode: "edit", Env: tool.Env{Root: "/w"}, Tools: []tool.Tool{l.writer()}}
	}
	s := open(t, agent(), log)
	input := event.Said{Parts: llm.Say("note it"), Message: "m1"}
	for range 2 {
		if err := s.Send(t.Context(), input); err != nil {
			t.Fatal(err)
		}
		collect(t, s.Run(t.Context()))
	}
	if _, err := log.Append(t.Context(), input, event.Cancelled{Message: "m1"}); err != nil { // by a program that keeps no state
		t.Fatal(err)
	}
	events := collect(t, open(t, agent(), log).Run(t.Context()))
	if strings.Contains(kinds(events), "asked") || len(l.runs) != 1 {
		t.Errorf("%s; ran %q", kinds(events), l.runs)
	}
	n := 0
	for _, e := range collect(t, log.Read(t.Context(), 0)) {
		if e.Body.Kind() == "said" {
			n++
		}
	}
	if n != 2 {
		t.Errorf("%d inputs are stored: one that was sent again, and the one of another program", n)
	}
}
