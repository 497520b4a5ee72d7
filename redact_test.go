package inspan_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/secret"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// testKey is a key for placeholders that tests know.
const testKey = "the key of these tests"

// placeholder is what stands for a secret under testKey.
func placeholder(t *testing.T, value string) string {
	t.Helper()
	v := secret.Vault{Key: []byte(testKey)}
	if !v.Add("VALUE", value) {
		t.Fatalf("%q is no secret", value)
	}
	return v.Redact(value)
}

// TestSecretsStayOut follows a registered value, and one that only has the shape
// of a token, through everything a session writes, shows and sends.
func TestSecretsStayOut(t *testing.T) {
	const value = "correct-horse-battery-9174"
	shaped := "ghp" + "_" + strings.Repeat("a1B2c3", 6)
	var ran, judged []string
	peek := tool.New("peek", "", func(_ context.Context, c *tool.Call, in struct {
		Text string `json:"text"`
	},
	) (tool.Result, error) {
		ran = append(ran, in.Text)
		c.Progress("working with " + value)
		return tool.Result{
			Parts: llm.Say("it is " + value + " and " + shaped),
			Files: []tool.File{{Path: "/w/a", Digest: "d", Written: true, Diff: "+" + value}},
		}, errors.New("failed near " + value)
	})
	peek.Effects = func(_ context.Context, c *tool.Call) ([]tool.Effect, error) {
		return []tool.Effect{{Kind: tool.External, Text: "use " + string(c.Args)}}, nil
	}
	peek.Preview = func(_ context.Context, c *tool.Call) (string, error) { return "+ " + string(c.Args), nil }
	blobs := &memoryBlobs{}
	model := &watched{Model: scripted(t, `call: peek {"text":"`+placeholder(t, value)+` please"}`, "The value is "+value+".")}
	a := inspan.Agent{
		Model: model, Tools: []tool.Tool{peek}, Mode: "ask", Env: tool.Env{Blobs: blobs},
		System:  []event.Added{{Source: "AGENTS.md", Text: "the password is " + value}},
		Secrets: func() map[string]string { return map[string]string{"DOOR": value} }, PlaceholderKey: []byte(testKey),
		Judges: []tool.Judge{tool.JudgeFunc(func(_ context.Context, c *tool.Call, effects []tool.Effect) (tool.Verdict, error) {
			raw, err := json.Marshal(effects)
			judged = append(judged, string(c.Args)+string(raw))
			return tool.Verdict{}, err
		})},
	}
	log := event.NewMemory("m")
	s := open(t, &a, log)
	var shown []event.Event
	for _, input := range []event.Body{event.Said{Parts: llm.Say("use " + value + " or " + shaped)}, event.Decided{Call: "", Allow: true}} {
		if d, ok := input.(event.Decided); ok {
			d.Call, d.By = s.Status().Waiting[0].Call.ID, "ann"
			input = d
		}
		for e, err := range s.Run(t.Context(), input) {
			if err != nil {
				t.Fatal(err)
			}
			shown = append(shown, e)
		}
	}
	for name, what := range map[string]any{"events": shown, "requests": model.asked, "status": s.Status(), "judges": judged} {
		raw, err := json.Marshal(what)
		if err != nil {
			t.Fatal(err)
		}
		for _, held := range []string{value, shaped} {
			if strings.Contains(string(raw), held) {
				t.Errorf("%s hold %s: %s", name, held, raw)
			}
		}
		if (name == "events" || name == "requests") && !strings.Contains(string(raw), placeholder(t, value)) {
			t.Errorf("%s hold no placeholder: %s", name, raw)
		}
	}
	if len(ran) != 1 || ran[0] != value+" please" {
		t.Errorf("the tool got %q", ran)
	}
}

// watched keeps the requests a model gets.
type watched struct {
	llm.Model
	asked []llm.Request
}

func (w *watched) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	w.asked = append(w.asked, req)
	return w.Model.Stream(ctx, req)
}
