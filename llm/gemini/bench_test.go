package gemini

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/testkit/wiretest"
	"github.com/inspan/inspan/llm"
)

func BenchmarkHistory200KB(b *testing.B) {
	req := wiretest.LongRequest(llm.Reasoning{Opaque: json.RawMessage(`{"on":"call","thoughtSignature":"` +
		strings.Repeat("c2ln", 50) + `"}`), Route: "gemini/gemini-3.8-flash"})
	b.SetBytes(int64(len(body(&Model{ID: "gemini-3.8-flash"}, req))))
	wiretest.BenchmarkModel(b, &Model{ID: "gemini-3.8-flash", HTTP: wiretest.Canned(sample)}, req)
}

func BenchmarkStream1MB(b *testing.B) {
	var s bytes.Buffer
	for s.Len() < 1<<20 {
		s.WriteString(`data: {"candidates":[{"content":{"parts":[{"text":"a few words more "}],"role":"model"},"index":0}],` +
			`"usageMetadata":{"promptTokenCount":15,"candidatesTokenCount":4},"modelVersion":"gemini-3.8-flash","responseId":"r1"}` + "\r\n\r\n")
	}
	s.WriteString(`data: {"candidates":[{"finishReason":"STOP"}]}` + "\r\n\r\n")
	b.SetBytes(int64(s.Len()))
	wiretest.BenchmarkModel(b, &Model{ID: "gemini-3.8-flash", HTTP: wiretest.Canned(s.Bytes())},
		llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: llm.Say("hi")}}})
}
