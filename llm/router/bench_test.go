package router_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/router"
)

// long is a conversation of about 200 KB.
func long() llm.Request {
	req := llm.Request{Session: "s", System: []string{strings.Repeat("Rules. ", 1000)}}
	for i := range 20 {
		req.Tools = append(req.Tools, llm.ToolSpec{
			Name:   fmt.Sprint("tool", i),
			Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`),
		})
	}
	for i := range 40 {
		id := fmt.Sprint("call", i)
		req.Messages = append(req.Messages,
			llm.Message{Role: llm.User, Parts: llm.Say("Do the next step in main.go.")},
			llm.Message{Role: llm.Assistant, Parts: llm.Parts{
				llm.Text{Text: "Reading."},
				llm.Call{ID: id, Args: json.RawMessage(`{"path":"internal/some/file.go"}`)},
			}},
			llm.Message{Role: llm.User, Parts: llm.Parts{llm.Result{
				CallID: id,
				Parts:  llm.Say(strings.Repeat("\tif err != nil {\n\t\treturn TOKEN, KEY\n\t}\n", 120)),
			}}},
			llm.Message{Role: llm.Assistant, Parts: llm.Say("Done.")})
	}
	return req
}

// BenchmarkFirst decides on a long conversation that was never seen,
// BenchmarkNext on one to which a turn was added.
func BenchmarkFirst(b *testing.B) {
	req := long()
	for b.Loop() {
		m := hybrid()
		m.Decide(m.Features(req), router.View{})
	}
}

func BenchmarkNext(b *testing.B) {
	m, req := hybrid(), long()
	m.Features(req)
	n := len(req.Messages)
	for i := 0; b.Loop(); i++ {
		result := strings.Repeat(fmt.Sprintf("\tline %d of some(code, KEY)\n", i), 100)
		req.Messages = append(req.Messages[:n], llm.Message{Role: llm.User, Parts: llm.Parts{llm.Result{CallID: "x", Parts: llm.Say(result)}}})
		m.Decide(m.Features(req), router.View{})
	}
}
