package anthropic

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/llm"
)

// marked returns where the markers of a body stand, as "tools", "system 0" or
// "message 2".
func marked(t *testing.T, body []byte) []string {
	t.Helper()
	var req struct {
		Tools, System []json.RawMessage
		Messages      []struct{ Content []json.RawMessage }
	}
	if err := json.Unmarshal(body, &req); err != nil {
		t.Fatal(err)
	}
	var at []string
	find := func(what string, list []json.RawMessage) {
		for i, raw := range list {
			if strings.Contains(string(raw), marker) {
				at = append(at, what+" "+string(rune('0'+i))+" of "+string(rune('0'+len(list))))
			}
		}
	}
	find("tool", req.Tools)
	find("system", req.System)
	for i, m := range req.Messages {
		if slices.ContainsFunc(m.Content, func(raw json.RawMessage) bool { return strings.Contains(string(raw), marker) }) {
			at = append(at, "message "+string(rune('0'+i)))
		}
		for _, raw := range m.Content[:max(len(m.Content)-1, 0)] {
			if strings.Contains(string(raw), marker) {
				t.Errorf("message %d has a marker before its last block", i)
			}
		}
	}
	return at
}

// TestMarkers checks where the four markers go: the system prompt's first and last block, the end, and after the
// request before if this turn was long, or else the tools.
func TestMarkers(t *testing.T) {
	paused := longTurn(2, "One.")
	paused.Messages = append(paused.Messages[:1:1], llm.Message{Role: llm.Assistant, Parts: llm.Say("So")})
	first := longTurn(2, "One.", "Two.")
	first.Messages = first.Messages[:1]
	for name, c := range map[string]struct {
		req  llm.Request
		want []string
	}{
		"first":           {first, []string{"tool 1 of 2", "system 0 of 2", "system 1 of 2", "message 0"}},
		"near":            {longTurn(17, "One.", "Two.", "Three."), []string{"tool 1 of 2", "system 0 of 3", "system 2 of 3", "message 2"}},
		"just near":       {longTurn(17, "One."), []string{"tool 1 of 2", "system 0 of 1", "message 2"}},
		"far":             {longTurn(19, "One.", " ", "Two."), []string{"system 0 of 2", "system 1 of 2", "message 0", "message 2"}},
		"far, one block":  {longTurn(19, "One.", ""), []string{"tool 1 of 2", "system 0 of 1", "message 0", "message 2"}},
		"far, no system":  {longTurn(40), []string{"tool 1 of 2", "message 0", "message 2"}},
		"nothing but one": {llm.Request{Messages: first.Messages}, []string{"message 0"}},
		"paused":          {paused, []string{"tool 1 of 2", "system 0 of 1", "message 1"}},
	} {
		if diff := cmp.Diff(c.want, marked(t, body(&Model{ID: "claude-opus-4-8"}, c.req))); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// TestMarkersLookBack follows a conversation of turns of every length: the end of
// each request is within the vendor's reach in the next one, and without its
// markers each begins with the one before.
func TestMarkersLookBack(t *testing.T) {
	for n := 1; n <= 60; n++ {
		req := longTurn(n, "One.", "Two.")
		now := body(&Model{ID: "claude-opus-4-8"}, req)
		before := body(&Model{ID: "claude-opus-4-8"}, llm.Request{System: req.System, Tools: req.Tools, Messages: req.Messages[:1]})
		blocks := len(req.Messages[1].Parts) + len(req.Messages[2].Parts)
		if at := marked(t, now); !slices.Contains(at, "message 0") && blocks >= 20 {
			t.Errorf("%d blocks: the last entry is out of reach: %v", blocks, at)
		}
		if c := strings.Count(string(now), marker); c != 4 {
			t.Errorf("%d markers", c)
		}
		plain := func(b []byte) string { return strings.ReplaceAll(string(b), marker, "") }
		if !strings.HasPrefix(plain(now), strings.TrimRight(plain(before), "]}")) {
			t.Errorf("%s\ndoes not begin with\n%s", plain(now), plain(before))
		}
	}
}
