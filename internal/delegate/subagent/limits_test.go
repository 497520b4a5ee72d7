package subagent_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/extend/skill"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// TestManyQuestionsAtOnce checks that each question of a child is asked once and that each answer counts, however they
// come.
func TestManyQuestionsAtOnce(t *testing.T) {
	for round := range 25 {
		var ran atomic.Int32
		h := newHouse(t, func(task string, turn int, _ llm.Request) (llm.Parts, error) {
			switch {
			case task == "start" && turn == 0:
				return llm.Parts{spawn("c1", "leaf")}, nil
			case task == "leaf" && turn == 0:
				var parts llm.Parts
				for i := range 4 {
					parts = append(parts, call(fmt.Sprint("x", i), "change", map[string]any{"n": i}))
				}
				return parts, nil
			}
			return llm.Say("ok"), nil
		}, changing(&ran))
		s := h.open()
		asked := map[string]int{}
		answers := make(chan string, 8)
		go func() {
			for id := range answers {
				time.AfterFunc(time.Duration(round%5)*time.Millisecond, func() { _ = s.Send(t.Context(), event.Decided{Call: id, Allow: true}) })
			}
		}()
		run(t, s, func(e event.Event) {
			if r, ok := e.Body.(event.Raised); ok {
				asked[r.ID]++
				answers <- r.ID
			}
		}, say("start"))
		close(answers)
		if len(asked) != 4 || ran.Load() != 4 {
			t.Errorf("round %d: asked %v, ran %d", round, asked, ran.Load())
		}
		for id, n := range asked {
			if n != 1 {
				t.Errorf("round %d: %s was asked %d times", round, id, n)
			}
		}
		closed(t, s)
	}
}

// TestLimitsOfOrders checks that the smallest number of turns counts, that no deadline overflows, and that limits on
// money are passed on.
func TestLimitsOfOrders(t *testing.T) {
	h := newHouse(t, fan(1, func(int, int) (llm.Parts, error) { return llm.Say("x"), nil }, "agent", "quick", "max_turns", 500))
	h.more = []skill.Role{{Name: "quick", Prompt: "Be quick.", MaxTurns: 3}}
	s := h.open()
	run(t, s, nil, event.Switched{Limits: &event.Limits{Turns: 7, Cost: 5}}, say("start"))
	if o := h.orders[0]; o.Limits.Turns != 3 || !o.Limited {
		t.Errorf("%+v", o)
	}
	closed(t, s)
	h = newHouse(t, fan(1, func(int, int) (llm.Parts, error) { return llm.Say("x"), nil }, "deadline", 10_000_000_000))
	s = h.open()
	defer closed(t, s)
	if ended := of[event.Ended](run(t, s, nil, say("start"))); !strings.Contains(text(ended[0]), "deadline is 0 to 86400 seconds") {
		t.Errorf("%+v", ended)
	}
}

// TestSecretsHaveOneName checks that a placeholder stands for the same secret in a session and in those that work for
// it.
func TestSecretsHaveOneName(t *testing.T) {
	secrets := []string{"ghp_aB3dE6gH9k9Zt4Lm2Qw8Er5Ty7Ui1Op3As6D", "ghp_Zz9Yx8Wv7Ut6Sr5Qp4On3Ml2Kj1Ih0Gf9Ed8"}
	n := 0
	look := looking(nil)
	look.Run = func(context.Context, *tool.Call) (tool.Result, error) {
		n++
		return tool.Text("token: " + secrets[n-1]), nil
	}
	h := newHouse(t, func(task string, turn int, req llm.Request) (llm.Parts, error) {
		last := req.Messages[len(req.Messages)-1].Parts
		switch {
		case turn == 0:
			return llm.Parts{call("x", "look", nil)}, nil
		case task == "start" && turn == 1:
			return llm.Parts{spawn("c1", "leaf")}, nil
		case task == "leaf":
			return llm.Say("It is " + last[0].(llm.Result).Parts.Text()), nil
		}
		return llm.Say("ok"), nil
	}, look)
	s := h.open()
	defer closed(t, s)
	got := ""
	for _, e := range of[event.Ended](run(t, s, nil, say("start"))) {
		got += text(e) + "\n"
	}
	said := regexp.MustCompile(`(It is )?token: (\[secret:[a-z2-7]{8}\])`).FindAllStringSubmatch(got, -1)
	if len(said) != 2 || said[0][2] == said[1][2] || strings.Contains(got, "ghp_") {
		t.Error(got)
	}
}
