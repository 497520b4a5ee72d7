package words

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/inspan/inspan/llm"
)

// Subject names the subject of a call in words: its command, path, pattern or code, its name, or the things that it
// lists; empty if nothing says so. Arguments without any of these are shown as they are if all are plain values. It
// is text by others, of any length.
func Subject(c llm.Call) string {
	args := arguments(c)
	if text := named(args, "command", "path", "pattern", "question", "url", "query", "task", "code", "id"); text != "" {
		return text
	}
	if action := named(args, "action"); action != "" { // from a tool that manages things
		return strings.Join(append([]string{action}, others(args)...), " ")
	}
	if text := named(args, "title"); text != "" {
		return text
	}
	plain := !slices.ContainsFunc(slices.Collect(maps.Values(args)), func(v any) bool { return !isPlain(v) })
	switch {
	case string(c.Args) == "{}":
		return ""
	case plain:
		return string(c.Args)
	}
	return spoken(args)
}

// arguments returns the arguments of a call; none unless they are an object.
func arguments(c llm.Call) map[string]any {
	var args map[string]any
	_ = json.Unmarshal(c.Args, &args)
	return args
}

// named returns the first of some arguments that is text.
func named(args map[string]any, keys ...string) string {
	for _, key := range keys {
		if s, ok := args[key].(string); ok && s != "" {
			return s
		}
	}
	return ""
}

// others returns the texts and lists other than the action, by name.
func others(args map[string]any) (out []string) {
	for _, key := range slices.Sorted(maps.Keys(args)) {
		text, isText := args[key].(string)
		if !isText && !isPlain(args[key]) {
			text = spoken(args[key])
		}
		if key != "action" && text != "" {
			out = append(out, text)
		}
	}
	return out
}

// isPlain reports whether a JSON value contains no others.
func isPlain(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

// spoken returns a JSON value as words. For an object with a text or a name that describes it, it is that.
func spoken(v any) string {
	var parts []string
	switch v := v.(type) {
	case string:
		return v
	case []any:
		for _, e := range v {
			parts = append(parts, spoken(e))
		}
		return strings.Join(parts, " · ")
	case map[string]any:
		if text := named(v, "text", "title", "name", "path"); text != "" {
			return text
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if text := spoken(v[key]); isPlain(v[key]) {
				parts = append(parts, key+" "+text)
			} else {
				parts = append(parts, text)
			}
		}
		return strings.Join(parts, ", ")
	}
	raw, _ := json.Marshal(v) // it comes from JSON
	return string(raw)
}
