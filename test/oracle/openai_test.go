package oracle

import (
	"net/http"
	"testing"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/inspan/inspan/internal/testkit/openaitest"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/openai"
)

func TestOpenAI(t *testing.T) {
	for name, parts := range turns() {
		if name == "thinking" {
			continue // the SDK knows no reasoning on this wire
		}
		t.Run(name, func(t *testing.T) {
			base := openaitest.Start(t, &openaitest.Server{Answer: func(*http.Request, []byte) openaitest.Answer {
				return openaitest.Answer{Parts: parts, Usage: usage(), Split: 5}
			}})
			adapter, _ := ours(t, &openai.Model{ID: "gpt-5", BaseURL: base}, request())
			same(t, complete(t, base, sdk.ChatCompletionNewParams{
				Model:         "gpt-5",
				Messages:      []sdk.ChatCompletionMessageParamUnion{sdk.UserMessage("Hello")},
				StreamOptions: sdk.ChatCompletionStreamOptionsParam{IncludeUsage: sdk.Bool(true)},
			}), adapter)
		})
	}
}

// TestOpenAIHistory lets the SDK send back the reply it got, and the adapter too.
func TestOpenAIHistory(t *testing.T) {
	answers := 0
	base := openaitest.Start(t, &openaitest.Server{Answer: func(*http.Request, []byte) openaitest.Answer {
		if answers++; answers%2 == 0 {
			return openaitest.Answer{Parts: llm.Say("end")}
		}
		return openaitest.Answer{Parts: turns()["calls"]}
	}})
	params := sdk.ChatCompletionNewParams{Model: "gpt-5", Messages: []sdk.ChatCompletionMessageParamUnion{sdk.UserMessage("Hello")}}
	client := sdk.NewClient(option.WithBaseURL(base), option.WithAPIKey("k"), option.WithMaxRetries(0))
	first, err := client.Chat.Completions.New(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	params.Messages = append(params.Messages, first.Choices[0].Message.ToParam(),
		sdk.ToolMessage("one", "toolu_1"), sdk.ToolMessage("two", "toolu_2"))
	if got := complete(t, base, params); got.Text != "end" {
		t.Errorf("SDK: %+v", got)
	}

	m := &openai.Model{ID: "gpt-5", BaseURL: base}
	req := request()
	_, parts := ours(t, m, req)
	req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Parts: parts}, llm.Message{Role: llm.User, Parts: llm.Parts{
		llm.Result{CallID: "toolu_1", Name: "read", Parts: llm.Say("one")}, llm.Result{CallID: "toolu_2", Name: "now", Parts: llm.Say("two")},
	}})
	if got, _ := ours(t, m, req); got.Text != "end" {
		t.Errorf("adapter: %+v", got)
	}
}

func complete(t *testing.T, base string, params sdk.ChatCompletionNewParams) seen {
	t.Helper()
	client := sdk.NewClient(option.WithBaseURL(base), option.WithAPIKey("k"), option.WithMaxRetries(0))
	stream := client.Chat.Completions.NewStreaming(t.Context(), params)
	var acc sdk.ChatCompletionAccumulator
	var u sdk.CompletionUsage // the accumulator leaves out the cache writes
	for stream.Next() {
		if now := stream.Current().Usage; now.TotalTokens > 0 {
			u = now
		}
		if !acc.AddChunk(stream.Current()) {
			t.Fatalf("the SDK does not take the chunk %s", stream.Current().RawJSON())
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	choice := acc.Choices[0]
	s := seen{Text: choice.Message.Content, Stop: map[string]string{"stop": "end", "tool_calls": "calls"}[choice.FinishReason]}
	for _, c := range choice.Message.ToolCalls {
		s.call(t, c.ID, c.Function.Name, []byte(c.Function.Arguments))
	}
	read, write := int(u.PromptTokensDetails.CachedTokens), int(u.PromptTokensDetails.CacheWriteTokens)
	s.Usage = llm.Usage{
		Input: int(u.PromptTokens) - read - write, CacheRead: read, CacheWrite: write,
		Output: int(u.CompletionTokens), Reasoning: int(u.CompletionTokensDetails.ReasoningTokens),
	}
	return s
}
