package gemini

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/testkit/geminitest"
	"github.com/inspan/inspan/llm"
)

// answerOf lets the model answer a request, which the fake must accept, and returns the reply and the request that was
// sent.
func answerOf(t *testing.T, id string, req llm.Request, answer geminitest.Answer) (llm.Reply, string) {
	t.Helper()
	var sent string
	m := &Model{ID: id, BaseURL: "http://vendor", HTTP: geminitest.Transport(t,
		&geminitest.Server{Answer: func(_ *http.Request, body []byte) geminitest.Answer {
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

// TestHeavyImages checks that the oldest images make room for new ones, a quarter of the room at once, in messages and
// in results, and that one that never fits goes alone.
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

// TestSchemas checks that a schema goes out as it is, under the field that takes all of JSON Schema.
func TestSchemas(t *testing.T) {
	schema := `{"type":"object","properties":{"a":{"anyOf":[{"type":"integer","enum":[1,2]},{"$ref":"#/$defs/t"}]}},` +
		`"additionalProperties":false,"$defs":{"t":{"type":"string"}}}`
	req := asked("hi")
	req.Tools = []llm.ToolSpec{{Name: "a", Schema: json.RawMessage(schema)}, {Name: "b", Schema: json.RawMessage(`not JSON`)}, {Name: "c"}}
	_, sent := answerOf(t, "gemini-3.8-flash", req, geminitest.Answer{})
	if want := `[{"name":"a","parametersJsonSchema":` + schema + `},{"name":"b"},{"name":"c"}]`; !strings.Contains(sent, want) {
		t.Errorf("sent %s, want %s", sent, want)
	}
}
