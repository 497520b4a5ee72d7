package openai

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
		id := fmt.Sprintf("call_%d", i)
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

func benchmark(b *testing.B, m llm.Model, req llm.Request) {
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range m.Stream(b.Context(), req) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

// benchmarkStream also reports which part of a core a stream of 1 MB/s takes:
// it has to be under 5 %.
func benchmarkStream(b *testing.B, m llm.Model, size int) {
	b.SetBytes(int64(size))
	benchmark(b, m, greeting())
	b.ReportMetric(100*b.Elapsed().Seconds()/float64(b.N)/(float64(size)/1e6), "%core")
}

func BenchmarkHistory200KB(b *testing.B) {
	req := longRequest()
	b.SetBytes(int64(len(encoded(&Model{}, req))))
	benchmark(b, &Model{ID: "m", HTTP: canned(sampleStream())}, req)
}

func BenchmarkStream1MB(b *testing.B) {
	var s bytes.Buffer
	for s.Len() < 1<<20 {
		s.WriteString(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"a few words more "},"finish_reason":null}]}` + "\n\n")
	}
	s.WriteString(finish(`"stop"`) + done)
	benchmarkStream(b, &Model{ID: "m", HTTP: canned(s.Bytes())}, s.Len())
}

func BenchmarkResponsesHistory200KB(b *testing.B) {
	req := longRequest()
	b.SetBytes(int64(len(encodedResponses(&Responses{}, req))))
	benchmark(b, &Responses{ID: "m", HTTP: canned(sampleResponse())}, req)
}

func BenchmarkResponsesStream1MB(b *testing.B) {
	var s bytes.Buffer
	for s.Len() < 1<<20 {
		s.WriteString(sse("response.output_text.delta", `,"sequence_number":7,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"a few words more ","logprobs":[]`))
	}
	s.WriteString(completed)
	benchmarkStream(b, &Responses{ID: "m", HTTP: canned(s.Bytes())}, s.Len())
}
