package loop_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// The hash at a stop and the events since make the digest of the whole, whatever comes between: another prompt, other
// tools, shortened results, a compaction.
func TestDigestIsOfTheWhole(t *testing.T) {
	st, seq := &loop.State{}, uint64(0)
	check := func(after string) {
		t.Helper()
		raw, err := json.Marshal([]any{st.System, st.Tools, st.Messages, st.Seen, st.Cwd, st.Mode, st.Route, st.Total})
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(raw)
		if got, want := st.Digest(), "1:"+hex.EncodeToString(sum[:16]); got != want {
			t.Errorf("after %s: digest %s, want %s", after, got, want)
		}
	}
	apply := func(bodies ...event.Body) {
		t.Helper()
		for _, b := range bodies {
			seq++
			if err := st.Apply(event.Event{Seq: seq, Session: "s", Body: b}); err != nil {
				t.Fatal(err)
			}
			check(b.Kind())
		}
	}
	run := func(text string) {
		apply(event.Say(text), event.Asked{Turn: 1},
			event.Replied{Parts: llm.Parts{llm.Text{Text: "<a> & b"}, llm.Call{ID: text, Name: "look", Args: json.RawMessage(`{"<":1}`)}}},
			event.Judged{Call: text, Action: tool.Allow}, event.Started{Call: text},
			event.Ended{Call: text, Outcome: event.OutcomeOK, Parts: llm.Say("found"), Files: []tool.File{{Path: "/w/a", Digest: text}}, Cwd: "/w/<b>"},
			event.Asked{Turn: 2}, event.Replied{Parts: llm.Say("done")}, event.Stopped{Reason: event.ReasonDone})
	}
	check("nothing")
	apply(event.Opened{Root: "/w"}, event.Stopped{})
	run("one")
	apply(event.Added{Where: event.PlaceSystem, Text: "be good"})
	run("two")
	apply(event.Switched{Tools: []llm.ToolSpec{{Name: "look"}}})
	run("three")
	apply(event.Pruned{Upto: 3}, event.Healed{Level: loop.HealReasoning})
	run("four")
	compacted, err := st.Compacted(event.Compacted{}, loop.Shortened{Messages: st.Messages[:2]})
	if err != nil {
		t.Fatal(err)
	}
	apply(compacted)
	run("five")
	run("six")
}
