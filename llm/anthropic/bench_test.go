package anthropic_test

import (
	"bytes"
	"testing"

	"github.com/inspan/inspan/internal/testkit/wiretest"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/anthropic"
)

func BenchmarkHistory200KB(b *testing.B) {
	req := wiretest.LongRequest()
	b.SetBytes(int64(len(anthropic.Body(&anthropic.Model{ID: "claude-opus-5-5"}, req))))
	wiretest.BenchmarkModel(b, &anthropic.Model{ID: "claude-opus-5-5", HTTP: wiretest.Canned(anthropic.Sample)}, req)
}

func BenchmarkStream1MB(b *testing.B) {
	var s bytes.Buffer
	s.WriteString(`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n")
	for s.Len() < 1<<20 {
		s.WriteString("event: content_block_delta\ndata: " +
			"{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"a few words more \"}}\n\n")
	}
	s.WriteString(`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}` + "\n\ndata: {\"type\":\"message_stop\"}\n\n")
	b.SetBytes(int64(s.Len()))
	wiretest.BenchmarkModel(b, &anthropic.Model{ID: "claude-opus-5-5", HTTP: wiretest.Canned(s.Bytes())},
		llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: llm.Say("hi")}}})
}
