package wire

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/llm"
)

func TestWriter(t *testing.T) {
	var w Writer
	w.Raw(`{`).Comma().Raw(`"a":[`).Comma().Int(-7).Comma().Str("é\"").Comma().JSON(json.RawMessage(`{ "x": "\u003c" }`))
	at := len(w.Buf)
	w.Comma().Quoted(json.RawMessage(`{"y": 1}`)).Raw(`],"b":"`).Base64([]byte("png")).Raw(`","c":`)
	w.Schema(nil, `{"none":0}`).Raw(`,"d":`).Schema(json.RawMessage(`{"type": "object"}`), "").Raw(`}`)
	w.Insert(at, `,true`)
	const want = `{"a":[-7,"é\"",{"x":"<"},true,"{\"y\":1}"],"b":"cG5n","c":{"none":0},"d":{"type":"object"}}`
	if got := string(w.Buf); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestCalled(t *testing.T) {
	call := func(name string) llm.Part { return llm.Call{ID: "x", Name: name} }
	got := Called([]Turn{{Parts: []llm.Part{call("b"), llm.Text{Text: "t"}, call("a")}}, {Parts: []llm.Part{call("b")}}})
	if diff := cmp.Diff([]llm.ToolSpec{{Name: "b"}, {Name: "a"}}, got); diff != "" {
		t.Error(diff)
	}
}
