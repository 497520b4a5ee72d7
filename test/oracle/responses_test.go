package oracle

import (
	"net/http"
	"testing"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"github.com/inspan/inspan/internal/testkit/openaitest"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/openai"
)

func TestResponses(t *testing.T) {
	for name, parts := range turns() {
		t.Run(name, func(t *testing.T) {
			base := openaitest.StartResponses(t, &openaitest.Responses{Answer: func(*http.Request, []byte) openaitest.Answer {
				return openaitest.Answer{Parts: parts, Usage: usage(), Split: 5}
			}})
			adapter, _ := ours(t, &openai.Responses{ID: "gpt-5", BaseURL: base}, request())
			got, _ := respond(t, base, params())
			if (got.Signature == "") != (adapter.Signature == "") {
				t.Errorf("encrypted content: SDK %q, adapter %q", got.Signature, adapter.Signature)
			}
			got.Signature, adapter.Signature = "", "" // it depends on the request
			same(t, got, adapter)
		})
	}
}

// TestResponsesHistory lets the SDK send back the reply it got, and the adapter too. The server refuses items without
// the items that they belong to.
func TestResponsesHistory(t *testing.T) {
	answers := 0
	base := openaitest.StartResponses(t, &openaitest.Responses{Phases: true, Answer: func(*http.Request, []byte) openaitest.Answer {
		if answers++; answers%2 == 0 {
			return openaitest.Answer{Parts: llm.Say("end")}
		}
		return openaitest.Answer{Parts: turns()["thinking"]}
	}})
	p := params()
	_, items := respond(t, base, p)
	result := responses.ResponseInputItemParamOfFunctionCallOutput("noon")
	result.OfFunctionCallOutput.CallID = sdk.String("toolu_3")
	p.Input.OfInputItemList = append(append(p.Input.OfInputItemList, items...), result)
	if got, _ := respond(t, base, p); got.Text != "end" {
		t.Errorf("SDK: %+v", got)
	}

	m := &openai.Responses{ID: "gpt-5", BaseURL: base}
	req := request()
	_, parts := ours(t, m, req)
	req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Parts: parts}, llm.Message{Role: llm.User, Parts: llm.Parts{
		llm.Result{CallID: "toolu_3", Name: "now", Parts: llm.Say("noon")},
	}})
	if got, _ := ours(t, m, req); got.Text != "end" {
		t.Errorf("adapter: %+v", got)
	}
}

func params() responses.ResponseNewParams {
	return responses.ResponseNewParams{
		Model:     "gpt-5",
		Store:     sdk.Bool(false),
		Include:   []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent},
		Reasoning: shared.ReasoningParam{Summary: shared.ReasoningSummaryAuto},
		Input: responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{
			responses.ResponseInputItemParamOfMessage("Hello", responses.EasyInputMessageRoleUser),
		}},
	}
}

// respond reduces what the SDK reads, and returns the items to send back.
func respond(t *testing.T, base string, p responses.ResponseNewParams) (seen, responses.ResponseInputParam) {
	t.Helper()
	client := sdk.NewClient(option.WithBaseURL(base), option.WithAPIKey("k"), option.WithMaxRetries(0))
	stream := client.Responses.NewStreaming(t.Context(), p)
	var last responses.Response
	text, args := "", ""
	for stream.Next() {
		switch e := stream.Current().AsAny().(type) {
		case responses.ResponseTextDeltaEvent:
			text += e.Delta
		case responses.ResponseFunctionCallArgumentsDeltaEvent:
			args += e.Delta
		case responses.ResponseCompletedEvent:
			last = e.Response
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	s := seen{Text: last.OutputText(), Stop: "end"}
	var back responses.ResponseInputParam
	whole := ""
	for _, item := range last.Output {
		switch v := item.AsAny().(type) {
		case responses.ResponseReasoningItem:
			s.Signature = v.EncryptedContent
			for _, summary := range v.Summary {
				s.Thinking += summary.Text
			}
			param := v.ToParam()
			back = append(back, responses.ResponseInputItemUnionParam{OfReasoning: &param})
		case responses.ResponseOutputMessage:
			param := v.ToParam()
			back = append(back, responses.ResponseInputItemUnionParam{OfOutputMessage: &param})
		case responses.ResponseFunctionToolCall:
			s.Stop = "calls"
			s.call(t, v.CallID, v.Name, []byte(v.Arguments))
			whole += v.Arguments
			param := v.ToParam()
			back = append(back, responses.ResponseInputItemUnionParam{OfFunctionCall: &param})
		}
	}
	if text != s.Text || args != whole {
		t.Errorf("the SDK streamed %q and %q, but got %q and %q", text, args, s.Text, whole)
	}
	in, out := last.Usage.InputTokensDetails, last.Usage.OutputTokensDetails
	s.Usage = llm.Usage{
		Input:     int(last.Usage.InputTokens - in.CachedTokens - in.CacheWriteTokens),
		CacheRead: int(in.CachedTokens), CacheWrite: int(in.CacheWriteTokens),
		Output: int(last.Usage.OutputTokens), Reasoning: int(out.ReasoningTokens),
	}
	return s, back
}
