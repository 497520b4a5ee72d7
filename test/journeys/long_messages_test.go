package journeys_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// strict is a model that refuses prompts beyond its window, as vendors do. It
// counts tokens by a measure of its own.
type strict struct {
	window  int
	told    int     // what it says its window is
	count   float64 // its tokens for one of ours
	look    bool    // it looks at something before it answers
	down    bool
	calls   int
	refused int
	last    llm.Request
}

func (m *strict) Info() llm.Info { return llm.Info{Provider: "p", Model: "m", Window: m.told} }

func (m *strict) Stream(_ context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		prompt := int(float64(req.Tokens()) * m.count)
		switch {
		case prompt > m.window:
			m.refused++
			yield(llm.Chunk{}, &llm.Error{Kind: llm.KindWindow, Message: "prompt is too long"})
			return
		case m.down:
			yield(llm.Chunk{}, &llm.Error{Kind: llm.KindInvalid, Message: "down"})
			return
		}
		reply := &llm.Reply{Stop: llm.StopEnd, Route: "p/m", Usage: llm.Usage{Input: prompt, Output: 5}, Parts: llm.Say("Yes.")}
		if req.Purpose == "" {
			m.last = req
			if m.look {
				m.look = false
				m.calls++
				args := json.RawMessage(fmt.Sprintf(`{"word":"w%d"}`, m.calls))
				reply.Stop, reply.Parts = llm.StopCalls, llm.Parts{llm.Call{ID: fmt.Sprint("c", m.calls), Name: "look", Args: args}}
			}
		}
		yield(llm.Chunk{Reply: reply}, nil)
	}
}

// talkingTo opens a session with it.
func talkingTo(t testing.TB, m *strict) *inspan.Session {
	t.Helper()
	agent := &inspan.Agent{
		Model: m, Tools: []tool.Tool{looks()}, Mode: "yolo", Limits: inspan.Limits{Turns: -1},
		Env: tool.Env{Root: "/w"}, System: []event.Added{{Text: "You are careful."}},
	}
	s, err := agent.Open(t.Context(), event.NewMemory("s"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestNoMessageIsOneTooMany checks that no number of messages ends a session, that few messages need a compaction, and
// that omitted ones are counted.
func TestNoMessageIsOneTooMany(t *testing.T) {
	for window, n := range map[int]int{8000: 150, 32_000: 300} {
		t.Run(fmt.Sprint(window), func(t *testing.T) {
			m := &strict{window: window, told: window, count: 1}
			s, compactions := talkingTo(t, m), 0
			for i := range n {
				text := fmt.Sprintf("Wish %d: %s", i, strings.Repeat("this part is about colours and sounds, ", 15))
				compactions += len(bodiesOf[event.Compacted](drivenTo(t, s, event.Say(text))))
				if st := s.Status(); st.Stopped == nil || st.Stopped.Reason != event.ReasonDone {
					t.Fatalf("message %d: %+v after %d compactions", i, st.Stopped, compactions)
				}
			}
			said := fmt.Sprint(m.last.Messages)
			newest := []string{fmt.Sprintf("Wish %d: this", n-1), fmt.Sprintf("Wish %d: this", n-2)}
			out := fmt.Sprintf("\nMessages left out for lack of room: %d. The first is event ", n-strings.Count(said, "Wish "))
			for _, want := range append(newest, "Wish 0: this", out) {
				if !strings.Contains(said, want) {
					t.Errorf("the last request lacks %q", want)
				}
			}
			if compactions == 0 || compactions > n/6 || m.refused > 0 {
				t.Errorf("%d compactions, %d prompts were refused", compactions, m.refused)
			}
			t.Logf("compact: window %d: %d messages, %d compactions", window, n, compactions)
		})
	}
}

// TestWhateverIsSaid checks that no run ends because a prompt is too long, whatever is said, shown and found: also
// unattended, with a known or unknown window, and with our or another count of tokens.
func TestWhateverIsSaid(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		m := &strict{window: rapid.IntRange(4000, 30_000).Draw(r, "window"), count: rapid.SampledFrom([]float64{0.7, 1, 1, 1.6}).Draw(r, "count")}
		m.told = rapid.SampledFrom([]int{m.window, m.window, 0, 2 * m.window}).Draw(r, "told")
		s := talkingTo(t, m)
		usual := rapid.IntRange(1, 600)
		size := rapid.OneOf(usual, usual, usual, usual, rapid.IntRange(1, 3*m.window))
		for range rapid.IntRange(1, 12).Draw(r, "steps") {
			parts := llm.Say(strings.Repeat("a word of ", size.Draw(r, "size")*7/20+1))
			for range max(0, rapid.IntRange(-12, 8).Draw(r, "images")) {
				parts = append(parts, llm.Image{MediaType: "image/png", Digest: "d"})
			}
			m.look, m.down = rapid.Bool().Draw(r, "look"), rapid.IntRange(0, 3).Draw(r, "down") == 0
			drivenTo(t, s, event.Said{Parts: parts})
			if st := s.Status(); st.Stopped == nil || st.Stopped.Cause == llm.KindWindow || !m.down && st.Stopped.Reason != event.ReasonDone {
				r.Fatalf("%+v", st.Stopped)
			}
		}
	})
}
