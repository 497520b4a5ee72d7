package request

import (
	"strings"
	"testing"

	"github.com/inspan/inspan/llm"
)

func TestDifference(t *testing.T) {
	req := func(system, tool string, said ...string) llm.Request {
		r := llm.Request{System: []string{system}, Tools: []llm.ToolSpec{{Name: tool}}}
		for _, text := range said {
			r.Messages = append(r.Messages, llm.Message{Role: llm.User, Parts: llm.Say(text)})
		}
		return r
	}
	before := req("s", "t", "one", "two")
	for want, now := range map[string]llm.Request{
		"was sent again unchanged": req("s", "t", "one", "two", "three"),
		"system block 1 differs":   req("z", "t", "one", "two"),
		"tool 1 differs":           req("s", "z", "one", "two"),
		"message 2 differs":        req("s", "t", "one", "twenty", "three"),
		"message 2 is gone":        req("s", "t", "one"),
		`"enty\"}]}" was "o\"}]}"`: req("s", "t", "one", "twenty"),
		"byte 49 on":               req("s", "t", "one", "twenty"),
	} {
		if got := difference(before, now); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
