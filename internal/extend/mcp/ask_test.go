package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/extend/mcp"
	"github.com/inspan/inspan/llm"
)

// person answers in turn, and keeps the questions.
type person struct {
	answers []string
	asked   []string
	offered [][]string
}

func (p *person) ask(_ context.Context, question string, options []string) (string, error) {
	p.asked, p.offered = append(p.asked, question), append(p.offered, options)
	if len(p.answers) == 0 {
		return "", errors.New("gone")
	}
	a := p.answers[0]
	p.answers = p.answers[1:]
	return a, nil
}

// asker is a server that asks, of the newest revision or one with a handshake.
func asker(t *testing.T, mode string) *house {
	t.Helper()
	h := newHouse(t, self(t, "own", mode))
	h.Sample = func(_ context.Context, req llm.Request) (*llm.Reply, float64, error) {
		return &llm.Reply{
			Parts: llm.Say(fmt.Sprintf("42 to %q %q %d", req.System, req.Messages[0].Parts.Text(), req.MaxOutput)),
			Route: "p/m", Stop: llm.StopEnd,
		}, 0.25, nil
	}
	h.begin("own", mcp.Ready)
	return h
}

// asks calls the tool that asks.
func (h *house) asks(what string, ask func(context.Context, string, []string) (string, error)) (string, error) {
	h.t.Helper()
	h.ask = ask
	args, err := json.Marshal(map[string]string{"text": what})
	if err != nil {
		h.t.Fatal(err)
	}
	res, err := h.call(h.t.Context(), "mcp__own__ask", string(args))
	return text(res), err
}

func TestAsk(t *testing.T) {
	bird := `{"type":"object","required":["bird","many"],"properties":{"bird":{"type":"string","oneOf":[{"const":"h","title":"Heron"},{"const":"e","title":"Egret"}]},
		"many":{"type":"integer","minimum":1,"maximum":9},"sure":{"type":"boolean","default":true},"where":{"type":"array","minItems":1,"items":{"type":"string","enum":["lake","sea"]}},"note":{"type":"string","format":"email"}}}`
	for _, mode := range []string{"honest", "handshake"} {
		h := asker(t, mode)
		for _, c := range []struct {
			what, want string
			answers    []string
			asked      int
		}{
			{"city", "accept map[city:Ulm]", []string{"Ulm"}, 1},
			{"city", "decline map[]", []string{""}, 1},
			{"city", "cancel map[]", nil, 1},
			{"api_key", "decline map[]", []string{"x"}, 0},
			{"ci\u202ety", "decline map[]", []string{"x"}, 0},
			{"pin", "decline map[]", []string{"x"}, 0},
			{`{"type":"object","properties":{"x":{"type":"string","title":"Your password"}}}`, "decline map[]", []string{"x"}, 0},
			{`{"type":"object","properties":{"x":{"type":"string","description":"paste your API token"}}}`, "decline map[]", []string{"x"}, 0},
			// Fields come in the order of their names: bird, many, note, sure, where.
			{bird, "accept map[bird:e many:3 sure:true where:[lake sea]]", []string{"egret", "3", "(leave out)", "yes", "sea,lake,1,2"}, 5},
			{
				bird, "accept map[bird:h many:9 note:a@b.example sure:false where:[sea]]",
				[]string{"1", "ten", "12", "9", "no mail", "a@b.example", "no", "2"},
				8,
			},
			{bird, "decline map[]", []string{"owl", "crow", "jay"}, 3},
			{`{"type":"object"}`, "accept map[]", []string{"yes"}, 1},
			{`{"type":"object"}`, "decline map[]", []string{"no"}, 1},
			{"https://bank.example/login?x=1", "accept map[]", []string{"done"}, 1},
			{"https://bank.example/login?x=1", "decline map[]", []string{"no"}, 1},
			{"javascript://bank.example/", "decline map[]", []string{"done"}, 0},
			{"https://me@bank.example/", "decline map[]", []string{"done"}, 0},
			{"a model", `42 to ["be brief\x1b"] "how much is it?" 50 by p/m endTurn`, []string{"yes"}, 1},
		} {
			if c.what == "a model" && mode == "honest" {
				continue // the newest revision has none
			}
			t.Run(fmt.Sprintf("%s %.20s %q", mode, c.what, c.answers), func(t *testing.T) {
				p := &person{answers: c.answers}
				got, err := h.asks(c.what, p.ask)
				sorted := strings.NewReplacer("[sea lake]", "[lake sea]").Replace(got)
				if err != nil || sorted != c.want || len(p.asked) != c.asked {
					t.Errorf("%q, %v, asked %q", got, err, p.asked)
				}
				if len(p.asked) != c.asked {
					return
				}
				if c.asked > 0 && !strings.HasPrefix(p.asked[0], "The MCP server own ") || strings.Contains(strings.Join(p.asked, ""), "\x1b") {
					t.Errorf("asked %q", p.asked)
				}
				if c.what == bird && !slices.Equal(p.offered[0], []string{"Heron", "Egret"}) {
					t.Errorf("offered %q", p.offered)
				}
				if strings.Contains(c.what, "bank") && c.asked > 0 && !strings.Contains(p.asked[0], "go to bank.example:\n"+c.what) {
					t.Errorf("asked %q", p.asked)
				}
			})
		}
		t.Run(mode+" nobody", func(t *testing.T) {
			if got, err := h.asks("city", nil); err != nil || got != "cancel map[]" {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	h := asker(t, "handshake")
	for _, much := range []string{"a long model", "a flood"} {
		p := &person{answers: slices.Repeat([]string{"yes"}, 500)}
		if got, err := h.asks(much, p.ask); err == nil && !strings.Contains(got, "flooded") || len(p.asked) > 100 {
			t.Errorf("%s: %q, %v, asked %d times", much, got, err, len(p.asked))
		}
	}
	if got, err := asker(t, "handshake").asks("a model", (&person{answers: []string{"no"}}).ask); err == nil {
		t.Errorf("%q", got)
	}
}

// TestAskedModelCosts checks that the cost of a model's answer to a server counts for the call, even if the person
// rejects the answer.
func TestAskedModelCosts(t *testing.T) {
	h := asker(t, "handshake")
	for said, want := range map[string]float64{"yes": 0.25, "no": 0} {
		h.ask = (&person{answers: []string{said}}).ask
		if res, err := h.call(t.Context(), "mcp__own__ask", `{"text":"a model"}`); res.Cost != want {
			t.Errorf("%s: it cost %v (%v)", said, res.Cost, err)
		}
	}
}

// TestAskTakesTime checks that a call does not run out of time while the person thinks, and does afterwards.
func TestAskTakesTime(t *testing.T) {
	t.Parallel()
	server := self(t, "own", "handshake")
	server.Timeout = 3 * time.Second
	h := newHouse(t, server)
	thought := make(chan struct{})
	h.ask = func(ctx context.Context, _ string, _ []string) (string, error) {
		timer := time.NewTimer(2 * server.Timeout)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		close(thought)
		return "Ulm", ctx.Err()
	}
	h.begin("own", mcp.Ready)
	if res, err := h.call(t.Context(), "mcp__own__ask", `{"text":"city"}`); err != nil || text(res) != "accept map[city:Ulm]" {
		t.Errorf("%q, %v", text(res), err)
	}
	<-thought
	if _, err := h.call(t.Context(), "mcp__own__steps", `{"text":"x"}`); err == nil ||
		!strings.Contains(err.Error(), "did not answer within 3s") {
		t.Error(err)
	}
}
