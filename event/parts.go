package event

import (
	"encoding/json"

	"github.com/inspan/inspan/internal/base/rawjson"
	"github.com/inspan/inspan/llm"
)

// intoParts decodes the bodies that make up most of a log. It decodes their parts separately, since
// encoding/json would scan them twice more.
func intoParts[B Body](raw json.RawMessage, parts func(*B) *llm.Parts) (Body, error) {
	var b B
	list, rest, ok := rawjson.CutList(raw, "parts")
	if ok && parts(&b).UnmarshalJSON(list) == nil && json.Unmarshal(rest, &b) == nil {
		return b, nil
	}
	return into[B](raw)
}
