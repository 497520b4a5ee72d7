package wiretest

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

// LongRequest returns a conversation of about 200 KB, for benchmarks. Beside is put before each call, such as
// reasoning of the vendor.
func LongRequest(beside ...llm.Part) llm.Request {
	req := llm.Request{System: []string{strings.Repeat("Rules. ", 1000)}}
	schema := json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)
	for i := range 20 {
		req.Tools = append(req.Tools, llm.ToolSpec{Name: fmt.Sprintf("tool%d", i), Schema: schema})
	}
	for i := range 40 {
		id := fmt.Sprintf("call_%d", i)
		parts := append(llm.Parts{llm.Text{Text: "Reading."}}, beside...)
		parts = append(parts, llm.Call{ID: id, Name: "tool1", Args: json.RawMessage(`{"path":"internal/some/file.go"}`)})
		result := llm.Result{CallID: id, Parts: llm.Say(strings.Repeat("\tif err != nil {\n\t\treturn \"x\"\n\t}\n", 135))}
		req.Messages = append(req.Messages,
			llm.Message{Role: llm.User, Parts: llm.Say("Do the next step.")},
			llm.Message{Role: llm.Assistant, Parts: parts},
			llm.Message{Role: llm.User, Parts: llm.Parts{result}},
			llm.Message{Role: llm.Assistant, Parts: llm.Say("Done.")})
	}
	return req
}

// Canned is a vendor that answers every request with the same body.
type Canned []byte

// RoundTrip implements [http.RoundTripper].
func (c Canned) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(c))}, nil
}

// BenchmarkModel sends a request repeatedly.
func BenchmarkModel(b *testing.B, m llm.Model, req llm.Request) {
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range m.Stream(b.Context(), req) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
