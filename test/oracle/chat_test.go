package oracle

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/inspan/inspan/internal/testkit"
)

// TestChatClients lets OpenAI's own client talk to an agent of the real server: chat completions and
// responses, at once and in a stream, several messages each.
func TestChatClients(t *testing.T) {
	s := serve(t)
	client := openai.NewClient(option.WithBaseURL(s.url+"/v1"), option.WithAPIKey(s.token), option.WithMaxRetries(0))
	step := func(name string, f func(ctx context.Context) error) {
		t.Helper()
		ctx, end := context.WithTimeout(t.Context(), testkit.Patience)
		defer end()
		if err := f(ctx); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, strings.Join(s.said(), "\n"))
		}
	}
	talk := []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("Be brief."), openai.UserMessage("say: heron")}
	ask := func() openai.ChatCompletionNewParams {
		return openai.ChatCompletionNewParams{Model: "inspan", Messages: talk}
	}
	step("a chat completion", func(ctx context.Context) error {
		got, err := client.Chat.Completions.New(ctx, ask())
		if err != nil {
			return err
		}
		talk = append(talk, got.Choices[0].Message.ToParam(), openai.UserMessage("say: egret"))
		if got.Choices[0].Message.Content != "heron" || got.Choices[0].FinishReason != "stop" || got.Usage.TotalTokens == 0 {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
	step("the next one, in a stream", func(ctx context.Context) error {
		stream := client.Chat.Completions.NewStreaming(ctx, ask())
		var all openai.ChatCompletionAccumulator
		for stream.Next() {
			if !all.AddChunk(stream.Current()) {
				return fmt.Errorf("a chunk does not fit: %s", stream.Current().RawJSON())
			}
		}
		if err := stream.Err(); err != nil {
			return err
		}
		if all.Choices[0].Message.Content != "egret" || all.Choices[0].FinishReason != "stop" {
			return fmt.Errorf("%+v", all.ChatCompletion)
		}
		return nil
	})
	step("a mistake", func(ctx context.Context) error {
		_, err := client.Chat.Completions.New(ctx, openai.ChatCompletionNewParams{Model: "inspan", N: openai.Int(2), Messages: talk})
		var api *openai.Error
		if !errors.As(err, &api) || api.StatusCode != 400 || api.Message == "" || api.Type != "invalid_request_error" {
			return fmt.Errorf("%v", err)
		}
		return nil
	})
	last := ""
	step("a response", func(ctx context.Context) error {
		got, err := client.Responses.New(ctx, responses.ResponseNewParams{
			Model: "inspan", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("say: heron")},
		})
		if err != nil {
			return err
		}
		if last = got.ID; got.OutputText() != "heron" || got.Status != "completed" {
			return fmt.Errorf("%s", got.RawJSON())
		}
		return nil
	})
	step("the next one, in a stream", func(ctx context.Context) error {
		stream := client.Responses.NewStreaming(ctx, responses.ResponseNewParams{
			Model: "inspan", PreviousResponseID: openai.String(last),
			Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("say: egret")},
		})
		said, done := "", ""
		for stream.Next() {
			switch e := stream.Current().AsAny().(type) {
			case responses.ResponseTextDeltaEvent:
				said += e.Delta
			case responses.ResponseCompletedEvent:
				done = e.Response.OutputText()
			}
		}
		if err := stream.Err(); err != nil {
			return err
		}
		if said != "egret" || done != "egret" {
			return fmt.Errorf("said %q, in the end %q", said, done)
		}
		return nil
	})
	step("the models", func(ctx context.Context) error {
		got, err := client.Models.List(ctx)
		if err != nil {
			return err
		}
		if len(got.Data) != 1 || got.Data[0].ID != "inspan" {
			return fmt.Errorf("%s", got.RawJSON())
		}
		return nil
	})
}
