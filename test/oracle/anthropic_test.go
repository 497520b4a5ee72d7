package oracle

import (
	"net/http"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/inspan/inspan/internal/testkit/anthropictest"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/anthropic"
)

func TestAnthropic(t *testing.T) {
	for name, parts := range turns() {
		t.Run(name, func(t *testing.T) {
			base := anthropictest.Start(t, &anthropictest.Server{Answer: func(*http.Request, []byte) anthropictest.Answer {
				return anthropictest.Answer{Parts: parts, Usage: usage(), Split: 5}
			}})
			adapter, _ := ours(t, &anthropic.Model{ID: "claude-opus-5-5", BaseURL: base}, request())
			client := sdk.NewClient(option.WithBaseURL(base), option.WithAPIKey("k"), option.WithMaxRetries(0))
			message := accumulate(t, client, sdk.MessageNewParams{
				Model: "claude-opus-5-5", MaxTokens: 4000,
				Messages: []sdk.MessageParam{sdk.NewUserMessage(sdk.NewTextBlock("Hello"))},
			})
			same(t, anthropicSeen(t, message), adapter)
		})
	}
}

// TestAnthropicHistory lets the SDK send back the reply it got: the fake must find thinking, calls and results in
// order, as with the adapter.
func TestAnthropicHistory(t *testing.T) {
	answers := 0
	base := anthropictest.Start(t, &anthropictest.Server{Answer: func(*http.Request, []byte) anthropictest.Answer {
		if answers++; answers%2 == 0 {
			return anthropictest.Answer{Parts: llm.Say("end")}
		}
		return anthropictest.Answer{Parts: turns()["thinking"]}
	}})
	client := sdk.NewClient(option.WithBaseURL(base), option.WithAPIKey("k"), option.WithMaxRetries(0))
	params := sdk.MessageNewParams{
		Model: "claude-opus-5-5", MaxTokens: 4000,
		Tools: []sdk.ToolUnionParam{{OfTool: &sdk.ToolParam{
			Name:        "now",
			InputSchema: sdk.ToolInputSchemaParam{Properties: map[string]any{}},
		}}},
		Messages: []sdk.MessageParam{sdk.NewUserMessage(sdk.NewTextBlock("Hello"))},
	}
	first := accumulate(t, client, params)
	params.Messages = append(params.Messages, first.ToParam(), sdk.NewUserMessage(sdk.NewToolResultBlock("toolu_3", "12:00", false)))
	if got := anthropicSeen(t, accumulate(t, client, params)); got.Text != "end" {
		t.Errorf("SDK: %+v", got)
	}

	m := &anthropic.Model{ID: "claude-opus-5-5", BaseURL: base}
	req := request()
	_, parts := ours(t, m, req)
	req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Parts: parts},
		llm.Message{Role: llm.User, Parts: llm.Parts{llm.Result{CallID: "toolu_3", Name: "now", Parts: llm.Say("12:00")}}})
	if got, _ := ours(t, m, req); got.Text != "end" {
		t.Errorf("adapter: %+v", got)
	}
}

func accumulate(t *testing.T, client sdk.Client, params sdk.MessageNewParams) sdk.Message {
	t.Helper()
	stream := client.Messages.NewStreaming(t.Context(), params)
	var m sdk.Message
	for stream.Next() {
		if err := m.Accumulate(stream.Current()); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	return m
}

func anthropicSeen(t *testing.T, m sdk.Message) seen {
	t.Helper()
	s := seen{Stop: map[sdk.StopReason]string{"end_turn": "end", "tool_use": "calls"}[m.StopReason]}
	for _, b := range m.Content {
		switch v := b.AsAny().(type) {
		case sdk.TextBlock:
			s.Text += v.Text
		case sdk.ThinkingBlock:
			s.Thinking, s.Signature = v.Thinking, v.Signature
		case sdk.ToolUseBlock:
			s.call(t, v.ID, v.Name, v.Input)
		}
	}
	s.Usage = llm.Usage{
		Input: int(m.Usage.InputTokens), CacheRead: int(m.Usage.CacheReadInputTokens), CacheWrite: int(m.Usage.CacheCreationInputTokens),
		Output: int(m.Usage.OutputTokens), Reasoning: int(m.Usage.OutputTokensDetails.ThinkingTokens),
	}
	return s
}
