package ollama

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/internal/wire"
)

var (
	tooLong = regexp.MustCompile(`\((\d+) tokens\) exceeds the available context size \((\d+) tokens\)`)
	noFit   = regexp.MustCompile(`(?i)exceed(?:s|ed)?.{0,30}context|no user query found`)
	noModel = regexp.MustCompile(`(?i)model .*not found`)
)

// classify turns an error body, or an error line behind a status 200, into an [llm.Error]. Nearly all of the
// server's information is in the text.
func classify(model string, status int, body []byte) *llm.Error {
	e := &llm.Error{Kind: wire.KindOfStatus(status), Message: message(body)}
	if status != http.StatusOK {
		e.Status = status
	}
	text := strings.ToLower(e.Message)
	has := func(s string) bool { return strings.Contains(text, s) }
	switch {
	case noFit.MatchString(e.Message):
		e.Kind = llm.KindWindow
		if m := tooLong.FindStringSubmatch(e.Message); m != nil {
			e.Used, _ = strconv.Atoi(m[1])
			e.Limit, _ = strconv.Atoi(m[2])
		}
	case noModel.MatchString(e.Message):
		e.Kind = llm.KindNoModel
		e.Message += "; get it with: ollama pull " + model
	case has("does not support tools"):
		e.Kind = llm.KindNoTools
	case has("does not support"), has("requires more system memory"):
		e.Kind = llm.KindInvalid
	case has("server busy"), has("loading model"):
		e.Kind = llm.KindOverloaded
	case has("usage limit"):
		e.Kind = llm.KindQuota
	}
	return e
}

// message returns the text of an error body. It may contain the error of a runner as a JSON string.
func message(body []byte) string {
	var v struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &v) != nil || len(v.Error) == 0 {
		return wire.Said(body)
	}
	var s string
	if json.Unmarshal(v.Error, &s) == nil {
		if strings.HasPrefix(s, "{") {
			return message([]byte(s))
		}
		return s
	}
	var inner struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(v.Error, &inner) == nil && inner.Message != "" {
		return inner.Message
	}
	return wire.Excerpt(v.Error)
}
