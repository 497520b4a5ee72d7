package openai

import (
	"bytes"
	"testing"

	"github.com/inspan/inspan/internal/testkit/wiretest"
	"github.com/inspan/inspan/llm"
)

// benchmarkStream also reports which part of a core a stream of 1 MB/s takes:
// it has to be under 5 %.
func benchmarkStream(b *testing.B, m llm.Model, size int) {
	b.SetBytes(int64(size))
	wiretest.BenchmarkModel(b, m, greeting())
	b.ReportMetric(100*b.Elapsed().Seconds()/float64(b.N)/(float64(size)/1e6), "%core")
}

func BenchmarkHistory200KB(b *testing.B) {
	req := wiretest.LongRequest()
	b.SetBytes(int64(len(encoded(&Model{}, req))))
	wiretest.BenchmarkModel(b, &Model{ID: "m", HTTP: wiretest.Canned(sampleStream())}, req)
}

func BenchmarkStream1MB(b *testing.B) {
	var s bytes.Buffer
	for s.Len() < 1<<20 {
		s.WriteString(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,` +
			`"delta":{"content":"a few words more "},"finish_reason":null}]}` + "\n\n")
	}
	s.WriteString(finish(`"stop"`) + done)
	benchmarkStream(b, &Model{ID: "m", HTTP: wiretest.Canned(s.Bytes())}, s.Len())
}

func BenchmarkResponsesHistory200KB(b *testing.B) {
	req := wiretest.LongRequest()
	b.SetBytes(int64(len(encodedResponses(&Responses{}, req))))
	wiretest.BenchmarkModel(b, &Responses{ID: "m", HTTP: wiretest.Canned(sampleResponse())}, req)
}

func BenchmarkResponsesStream1MB(b *testing.B) {
	var s bytes.Buffer
	for s.Len() < 1<<20 {
		s.WriteString(sse("response.output_text.delta",
			`,"sequence_number":7,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"a few words more ","logprobs":[]`))
	}
	s.WriteString(completed)
	benchmarkStream(b, &Responses{ID: "m", HTTP: wiretest.Canned(s.Bytes())}, s.Len())
}
