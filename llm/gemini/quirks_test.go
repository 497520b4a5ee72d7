package gemini

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/gemini/geminitest"
	"github.com/inspan/inspan/llm/internal/wire"
)

// answerOf lets the model answer a request, which the fake must take, and
// returns the reply and what was sent.
func answerOf(t *testing.T, id string, req llm.Request, answer geminitest.Answer) (llm.Reply, string) {
	t.Helper()
	var sent string
	m := &Model{ID: id, BaseURL: "http://vendor", HTTP: geminitest.Transport(t, &geminitest.Server{Answer: func(_ *http.Request, body []byte) geminitest.Answer {
		sent = string(body)
		return answer
	}})}
	for c, err := range m.Stream(t.Context(), req) {
		if err != nil {
			t.Fatalf("%v", err)
		}
		if c.Reply != nil {
			return *c.Reply, sent
		}
	}
	t.Fatal("no reply")
	return llm.Reply{}, ""
}

func asked(text string) llm.Request {
	return llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: llm.Say(text)}}}
}

// TestNames holds that tools whose names the vendor refuses go by others, in the
// definitions, the history and the replies, and come back under their own.
func TestNames(t *testing.T) {
	long := strings.Repeat("long ", 20)
	clash := toolName("a b") // a tool may have the very name that another one goes by
	tools := []string{clash, "a b", "a/b", long, "Grüße", "", "1st", "-x", strings.Repeat("9", 64), "ok-1.A_", strings.Repeat("x", 64)}
	req := asked("hi")
	for _, name := range tools {
		req.Tools = append(req.Tools, llm.ToolSpec{Name: name})
	}
	back := wire.ToolNames(req, toolName)
	var calls, history llm.Parts
	for i, name := range append(tools, "gone/tool") {
		history = append(history, llm.Call{ID: fmt.Sprintf("a%d", i), Name: name, Args: json.RawMessage(`{}`)})
	}
	for i, name := range tools {
		calls = append(calls, llm.Call{ID: fmt.Sprintf("b%d", i), Name: back.Theirs(name), Args: json.RawMessage(`{}`)})
	}
	calls = append(calls, llm.Call{ID: "b", Name: "invented", Args: json.RawMessage(`{}`)})
	req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Parts: history}, llm.Message{Role: llm.User})
	for _, c := range history.Calls() {
		req.Messages[2].Parts = append(req.Messages[2].Parts, llm.Result{CallID: c.ID, Name: c.Name})
	}
	for _, id := range []string{"gemini-3.8-flash", "gemini-2.5-pro"} {
		reply, sent := answerOf(t, id, req, geminitest.Answer{Parts: calls})
		var got []string
		for _, c := range reply.Calls() {
			got = append(got, c.Name)
		}
		if diff := cmp.Diff(append(slices.Clone(tools), "invented"), got); diff != "" {
			t.Errorf("names came back changed:\n%s", diff)
		}
		for i, name := range tools {
			theirs := back.Theirs(name)
			if strings.Count(sent, `"name":"`+theirs+`"`) != 3 {
				t.Errorf("%q goes by %q, which the request has not three times: %s", name, theirs, sent)
			}
			if slices.Contains([]int{0, 9, 10}, i) != (theirs == name) {
				t.Errorf("%q goes by %q", name, theirs)
			}
		}
	}
}

// TestHeavyImages holds that the oldest images make room for new ones, a quarter
// of the room at once, in messages and in results, and that one that never fits
// goes alone.
func TestHeavyImages(t *testing.T) {
	const heavy = 4 << 20
	image := func(mark string, size int) llm.Image {
		data := make([]byte, size/4*3)
		copy(data, mark)
		return llm.Image{MediaType: "image/png", Data: data}
	}
	none := llm.Image{MediaType: "image/png", Digest: "sha256:gone"} // its bytes were not found
	shots := llm.Parts{none, image("two", heavy), image("huge", imageLimits().Bytes+4), image("three", heavy)}
	req := llm.Request{Tools: []llm.ToolSpec{{Name: "shot"}}, Messages: []llm.Message{
		{Role: llm.User, Parts: llm.Parts{image("one", heavy)}},
		{Role: llm.Assistant, Parts: llm.Parts{llm.Call{ID: "a1", Name: "shot", Args: json.RawMessage(`{}`)}}},
		{Role: llm.User, Parts: llm.Parts{llm.Result{CallID: "a1", Name: "shot", Parts: shots}, image("four", heavy), image("five", heavy)}},
	}}
	for _, id := range []string{"gemini-3.8-flash", "gemini-2.5-pro"} {
		sent := string(body(&Model{ID: id}, req))
		for mark, want := range map[string]bool{"one": false, "two": false, "huge": false, "three": true, "four": true, "five": true} {
			if got := strings.Contains(sent, `"data":"`+base64.StdEncoding.EncodeToString([]byte(mark + "\x00\x00"))[:4]); got != want {
				t.Errorf("%s: image %q is sent: %v, want %v", id, mark, got, want)
			}
		}
		if n := strings.Count(sent, "An image was here"); n != 4 {
			t.Errorf("%s: %d words for images, want 4", id, n)
		}
	}
	if _, ok := shots[0].(llm.Image); !ok {
		t.Error("the request was changed")
	}
}

// TestSchemas holds that a schema goes out as it is, under the field that takes
// all of JSON Schema.
func TestSchemas(t *testing.T) {
	schema := `{"type":"object","properties":{"a":{"anyOf":[{"type":"integer","enum":[1,2]},{"$ref":"#/$defs/t"}]}},"additionalProperties":false,"$defs":{"t":{"type":"string"}}}`
	req := asked("hi")
	req.Tools = []llm.ToolSpec{{Name: "a", Schema: json.RawMessage(schema)}, {Name: "b", Schema: json.RawMessage(`not JSON`)}, {Name: "c"}}
	_, sent := answerOf(t, "gemini-3.8-flash", req, geminitest.Answer{})
	if want := `[{"name":"a","parametersJsonSchema":` + schema + `},{"name":"b"},{"name":"c"}]`; !strings.Contains(sent, want) {
		t.Errorf("sent %s, want %s", sent, want)
	}
}

// TestBlockedPrompt holds that a prompt a filter rejects is a refusal with the
// reason, whether or not the vendor sends candidates with it.
func TestBlockedPrompt(t *testing.T) {
	for data, want := range map[string]llm.Kind{
		`{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"responseId":"r"}`:                       llm.KindRefused,
		`{"candidates":[],"promptFeedback":{"blockReason":"SAFETY","blockReasonMessage":"no"}}`:          llm.KindRefused,
		`{"promptFeedback":{"blockReason":"BLOCK_REASON_UNSPECIFIED"}}`:                                  llm.KindStreamCut,
		`{"candidates":[{"content":{"parts":[{"text":"x"}]}}],"promptFeedback":{"blockReason":"OTHER"}}`: llm.KindStreamCut,
	} {
		_, _, err := decodeAll(strings.NewReader("data: " + data + "\n\n"))
		if e := llm.AsError(err); e == nil || e.Kind != want || want == llm.KindRefused && !strings.Contains(e.Message, e.Code) {
			t.Errorf("%s: %v, want %s", data, err, want)
		}
	}
}

// TestValidationLink holds that a person who must prove who they are is told where.
func TestValidationLink(t *testing.T) {
	e := classify(403, []byte(`{"error":{"status":"PERMISSION_DENIED","message":"Verify your account","details":[{"reason":"VALIDATION_REQUIRED","metadata":{"validation_link":"https://accounts.google.com/x"}}]}}`))
	if e.Kind != llm.KindAuth || e.Message != "Verify your account (https://accounts.google.com/x)" {
		t.Errorf("got %+v", e)
	}
}

// TestUsage reads the running totals: the prompt holds what was cached, thoughts
// are beside the reply, and a later chunk may leave figures out.
func TestUsage(t *testing.T) {
	got, _, err := decodeAll(strings.NewReader(`data: {"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":60,"thoughtsTokenCount":5}}

data: {"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":7,"toolUsePromptTokenCount":3}}

`))
	want := llm.Usage{Input: 43, CacheRead: 60, Output: 12, Reasoning: 5}
	if got.Usage != want || err != nil {
		t.Errorf("got %+v, %v, want %+v", got.Usage, err, want)
	}
}
