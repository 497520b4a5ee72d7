package journeys_test

import (
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
)

// counting is a vendor whose figures are not our estimates: it counts a prompt by its bytes, words
// and all else alike, and adds something of its own to each.
type counting struct {
	perByte float64
	own     int
}

func (c *counting) Info() llm.Info {
	return llm.Info{Provider: "test", Model: "m", Prices: llm.Prices{{Output: 1}}}
}

func (c *counting) Stream(_ context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	fixed := float64(llm.Request{System: req.System, Tools: req.Tools}.Bytes()) * 0.2
	words := float64(llm.Request{Messages: req.Messages}.Bytes()) * c.perByte
	return func(yield func(llm.Chunk, error) bool) {
		yield(llm.Chunk{Reply: &llm.Reply{
			Parts: llm.Say(strings.Repeat("So be it. ", 80)), Stop: llm.StopEnd, Route: "test/m",
			Usage: llm.Usage{Input: int(fixed+words) + c.own, Output: 160},
		}}, nil)
	}
}

// TestContextAddsUp checks that the parts of a prompt make up the whole at every turn, and that the system prompt does
// not grow or shrink as messages are counted.
func TestContextAddsUp(t *testing.T) {
	for name, v := range map[string]*counting{"dense": {0.6, 300}, "sparse": {0.12, 0}, "as the rest": {0.2, 10}} {
		t.Run(name, func(t *testing.T) {
			s := open(t, &inspan.Agent{Model: v, System: []event.Added{
				{Source: "rules", Text: strings.Repeat("be good ", 4000)},
				{Source: "AGENTS.md", Text: strings.Repeat("run the tests ", 500)},
			}}, event.NewMemory("s"))
			first := 0
			for turn := range 12 {
				c := s.Context()
				sum, system := 0, 0
				for _, source := range c.Sources {
					sum += source.Tokens
					if source.Name == "rules" {
						system = source.Tokens
					}
				}
				if sum != c.Tokens || c.Tokens == 0 {
					t.Errorf("turn %d: the parts have %d tokens, the whole %d", turn, sum, c.Tokens)
				}
				switch {
				case turn == 1:
					first = system
				case turn > 1 && (system < first*9/10 || system > first*11/10):
					t.Errorf("turn %d: the system prompt has %d tokens, and had %d", turn, system, first)
				}
				drivenTo(t, s, said(strings.Repeat("and then? ", 200)))
			}
		})
	}
}
