package oracle

import (
	"encoding/json"
	"net/http"
	"testing"

	"google.golang.org/genai"

	"github.com/inspan/inspan/internal/testkit/geminitest"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/gemini"
)

func TestGemini(t *testing.T) {
	for _, model := range []string{"gemini-3.8-flash", "gemini-2.5-flash"} {
		for name, parts := range turns() {
			t.Run(model+"/"+name, func(t *testing.T) {
				u := usage()
				u.Input, u.CacheWrite = u.Input+u.CacheWrite, 0 // writing to the cache is not told on this wire
				base := geminitest.Start(t, &geminitest.Server{Answer: func(*http.Request, []byte) geminitest.Answer {
					return geminitest.Answer{Parts: parts, Usage: u, Split: 5}
				}})
				adapter, reply := ours(t, &gemini.Model{ID: model, BaseURL: base}, request())
				adapter.Thinking, adapter.Signature = thoughts(t, reply)
				contents := genai.Text("Hello")
				_, got := stream(t, client(t, base), model, contents)
				if model == "gemini-2.5-flash" {
					for i := range adapter.Calls { // ours: there are none on the wire
						adapter.Calls[i].ID = ""
					}
				}
				same(t, got, adapter)
			})
		}
	}
}

// thoughts returns the thinking of a reply and all its signatures.
func thoughts(t *testing.T, parts llm.Parts) (text, signatures string) {
	t.Helper()
	for _, p := range parts {
		r, ok := p.(llm.Reasoning)
		if !ok {
			continue
		}
		var s struct {
			Signature []byte `json:"thoughtSignature"`
		}
		if err := json.Unmarshal(r.Opaque, &s); err != nil {
			t.Fatal(err)
		}
		text += r.Text
		signatures += string(s.Signature)
	}
	return text, signatures
}

// TestGeminiHistory lets the SDK send back the reply it got: the fake must find signatures, calls and responses, as
// with the adapter.
func TestGeminiHistory(t *testing.T) {
	for _, turn := range []string{"calls", "thinking"} {
		t.Run(turn, func(t *testing.T) { geminiHistory(t, turns()[turn]) })
	}
}

func geminiHistory(t *testing.T, parts llm.Parts) {
	answers := 0
	base := geminitest.Start(t, &geminitest.Server{Answer: func(*http.Request, []byte) geminitest.Answer {
		if answers++; answers%2 == 0 {
			return geminitest.Answer{Parts: llm.Say("end")}
		}
		return geminitest.Answer{Parts: parts}
	}})
	const model = "gemini-3.8-flash"
	c := client(t, base)
	contents := genai.Text("Hello")
	reply, first := stream(t, c, model, contents)
	back := &genai.Content{Role: "user"}
	for _, call := range first.Calls {
		part := genai.NewPartFromFunctionResponse(call.Name, map[string]any{"output": "12:00"})
		part.FunctionResponse.ID = call.ID
		back.Parts = append(back.Parts, part)
	}
	contents = append(contents, reply, back)
	if _, got := stream(t, c, model, contents); got.Text != "end" {
		t.Errorf("SDK: %+v", got)
	}

	m := &gemini.Model{ID: model, BaseURL: base}
	req := request()
	_, answered := ours(t, m, req)
	results := llm.Message{Role: llm.User}
	for _, call := range answered.Calls() {
		results.Parts = append(results.Parts, llm.Result{CallID: call.ID, Name: call.Name, Parts: llm.Say("12:00")})
	}
	req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Parts: answered}, results)
	if got, _ := ours(t, m, req); got.Text != "end" {
		t.Errorf("adapter: %+v", got)
	}
}

func client(t *testing.T, base string) *genai.Client {
	t.Helper()
	c, err := genai.NewClient(t.Context(), &genai.ClientConfig{
		APIKey: "k", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: base},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// stream returns the model's content as the SDK's own chats keep it, and its text.
func stream(t *testing.T, c *genai.Client, model string, contents []*genai.Content) (*genai.Content, seen) {
	t.Helper()
	config := &genai.GenerateContentConfig{
		SystemInstruction: genai.NewContentFromText("Be terse.", "user"),
		ThinkingConfig:    &genai.ThinkingConfig{IncludeThoughts: true},
		Tools: []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{
			{Name: "read", ParametersJsonSchema: map[string]any{"type": "object"}}, {Name: "now"},
		}}},
	}
	whole := &genai.Content{Role: "model"}
	var s seen
	for r, err := range c.Models.GenerateContentStream(t.Context(), model, contents, config) {
		if err != nil {
			t.Fatal(err)
		}
		for _, cand := range r.Candidates {
			for _, p := range cand.Content.Parts {
				s.part(t, p)
				if p.Text != "" || p.FunctionCall != nil || p.ThoughtSignature != nil {
					whole.Parts = append(whole.Parts, p)
				}
			}
			if cand.FinishReason != "" {
				s.Stop = map[genai.FinishReason]string{genai.FinishReasonStop: "end"}[cand.FinishReason]
			}
		}
		if u := r.UsageMetadata; u != nil && u.CandidatesTokenCount > 0 {
			s.Usage = llm.Usage{
				Input: int(u.PromptTokenCount - u.CachedContentTokenCount), CacheRead: int(u.CachedContentTokenCount),
				Output: int(u.CandidatesTokenCount + u.ThoughtsTokenCount), Reasoning: int(u.ThoughtsTokenCount),
			}
		}
	}
	if s.Stop == "end" && len(s.Calls) > 0 {
		s.Stop = "calls"
	}
	return whole, s
}

func (s *seen) part(t *testing.T, p *genai.Part) {
	t.Helper()
	s.Signature += string(p.ThoughtSignature)
	switch {
	case p.FunctionCall != nil:
		args := []byte("{}")
		if p.FunctionCall.Args != nil {
			args, _ = json.Marshal(p.FunctionCall.Args)
		}
		s.call(t, p.FunctionCall.ID, p.FunctionCall.Name, args)
	case p.Thought:
		s.Thinking += p.Text
	default:
		s.Text += p.Text
	}
}
