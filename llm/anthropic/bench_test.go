package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/inspan/inspan/llm"
)

// longRequest is a conversation of about 200 KB.
func longRequest() llm.Request {
	req := llm.Request{System: []string{strings.Repeat("Rules. ", 1000)}}
	for i := range 20 {
		req.Tools = append(req.Tools, llm.ToolSpec{Name: fmt.Sprintf("tool%d", i), Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)})
	}
	for i := range 40 {
		id := fmt.Sprintf("toolu_%d", i)
		req.Messages = append(req.Messages,
			llm.Message{Role: llm.User, Parts: llm.Say("Do the next step.")},
			llm.Message{Role: llm.Assistant, Parts: llm.Parts{llm.Text{Text: "Reading."}, llm.Call{ID: id, Name: "tool1", Args: json.RawMessage(`{"path":"internal/some/file.go"}`)}}},
			llm.Message{Role: llm.User, Parts: llm.Parts{llm.Result{CallID: id, Parts: llm.Say(strings.Repeat("\tif err != nil {\n\t\treturn \"x\"\n\t}\n", 135))}}},
			llm.Message{Role: llm.Assistant, Parts: llm.Say("Done.")})
	}
	return req
}

// canned answers every request with the same stream.
type canned []byte

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(c))}, nil
}

func benchmark(b *testing.B, req llm.Request, stream []byte) {
	m := &Model{ID: "claude-opus-5-5", HTTP: canned(stream)}
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range m.Stream(b.Context(), req) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkHistory200KB(b *testing.B) {
	req := longRequest()
	b.SetBytes(int64(len(body(&Model{ID: "claude-opus-5-5"}, req))))
	benchmark(b, req, []byte(sample))
}

func BenchmarkStream1MB(b *testing.B) {
	var s bytes.Buffer
	s.WriteString(`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n")
	for s.Len() < 1<<20 {
		s.WriteString("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"a few words more \"}}\n\n")
	}
	s.WriteString(`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}` + "\n\ndata: {\"type\":\"message_stop\"}\n\n")
	b.SetBytes(int64(s.Len()))
	benchmark(b, llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: llm.Say("hi")}}}, s.Bytes())
}
