package anthropic

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/internal/wire"
)

// body returns the request that the model sends.
func body(m *Model, req llm.Request) []byte {
	p, _ := m.platform()
	return encode(m.Info(), p, wire.ToolNames(req, wire.ToolName), req)
}

// longTurn is a conversation whose last turn added n results and a text.
func longTurn(n int, system ...string) llm.Request {
	req := llm.Request{
		System:   system,
		Tools:    []llm.ToolSpec{{Name: "read"}, {Name: "now"}},
		Messages: []llm.Message{{Role: llm.User, Parts: llm.Say("Go.")}, {Role: llm.Assistant}, {Role: llm.User}},
	}
	for i := range (n + 1) / 2 {
		id := "toolu_" + string(rune('a'+i))
		req.Messages[1].Parts = append(req.Messages[1].Parts, llm.Call{ID: id, Name: "now", Args: json.RawMessage(`{}`)})
		req.Messages[2].Parts = append(req.Messages[2].Parts, llm.Result{CallID: id, Name: "now"})
	}
	if n%2 == 0 {
		req.Messages[2].Parts = append(req.Messages[2].Parts, llm.Text{Text: "Go on."})
	}
	return req
}

func TestVersion(t *testing.T) {
	cases := []struct {
		id           string
		major, minor int
		ok           bool
	}{
		{"claude-opus-4-6", 4, 6, true},
		{"claude-opus-5", 5, 0, true},
		{"claude-3-7-sonnet-20250219", 3, 7, true},
		{"claude-sonnet-4-20250514", 4, 0, true},
		{"anthropic.claude-opus-4-6-v1:0", 4, 6, true},
		{"claude-haiku-4-5@20251001", 4, 5, true},
		{"claude-mythos-preview", 0, 0, false},
		{"gpt-5", 0, 0, false},
	}
	for _, c := range cases {
		if major, minor, ok := version(c.id); major != c.major || minor != c.minor || ok != c.ok {
			t.Errorf("version(%q) = %d, %d, %v", c.id, major, minor, ok)
		}
	}
}

// decodeAll runs a stream to its end.
func decodeAll(r io.Reader) (llm.Reply, string, error) {
	d := newDecoder("anthropic/m", wire.NewAliases(wire.ToolName))
	var text strings.Builder
	done, err := d.run(serverSent(r), func(c llm.Chunk) bool {
		text.WriteString(c.Text)
		return true
	})
	if done == nil && err == nil {
		err = errors.New("neither done nor failed")
	}
	return d.reply, text.String(), err
}

const sample = `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","usage":{"input_tokens":10,"cache_read_input_tokens":5,"output_tokens":1}}}

event: ping
data: {"type":"ping"}

data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}

data: {"type":"content_block_stop","index":0}

data: {"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"xyz"}}

data: {"type":"content_block_stop","index":1}

data: {"type":"content_block_stop","index":9}

data: {"type":"something_new","index":3}

data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"now","input":{}}}

data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}

data: {"type":"content_block_stop","index":2}

data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":7}}

data: {"type":"message_stop"}

`

// TestUnsignedThinking checks that thinking that was cut off is dropped.
func TestUnsignedThinking(t *testing.T) {
	unsigned := strings.Replace(sample, `"signature":"c2ln"`, `"signature":""`, 1)
	got, _, err := decodeAll(strings.NewReader(unsigned))
	if err != nil || len(got.Parts) != 2 || string(got.Parts[0].(llm.Reasoning).Opaque) != `{"type":"redacted_thinking","data":"xyz"}` {
		t.Errorf("got %+v, %v", got.Parts, err)
	}
}
