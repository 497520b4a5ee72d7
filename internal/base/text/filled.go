package text

import (
	"encoding/json"
	"strings"
)

// Filled returns a part of a text with titled parts, with values, as JSON, replacing names. Names and values
// alternate; a [json.RawMessage] is inserted unchanged.
func Filled(parts, title string, values ...any) json.RawMessage {
	_, rest, _ := strings.Cut(parts, "== "+title+"\n")
	part, _, _ := strings.Cut(rest, "\n== ")
	pairs := make([]string, len(values))
	for i := 0; i < len(values); i += 2 {
		raw, _ := json.Marshal(values[i+1]) // always JSON
		pairs[i], pairs[i+1] = values[i].(string), string(raw)
		if as, ok := values[i+1].(json.RawMessage); ok {
			pairs[i+1] = string(as)
		}
	}
	return json.RawMessage(strings.NewReplacer(pairs...).Replace(strings.TrimSuffix(part, "\n")))
}
