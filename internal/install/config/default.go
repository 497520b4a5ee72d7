package config

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
)

// byDefault is the origin of a setting with its default value.
const byDefault = "default"

// defaults returns the default values of settings that differ from the zero value of their type.
func defaults() map[string]string {
	out := map[string]string{
		"mode": `"ask"`, "max_turns": "200", "protected_branches": `["main", "master"]`, "checkpoints.quota_mb": "2048",
		"agents.depth": "2", "agents.open": "64", "programs.depth": "1", "programs.asks": "2000", "programs.plain": "16384", "reviewer.timeout": `"30s"`, "tui.theme": `"auto"`,
	}
	for _, lever := range Levers(event.Levers{}, nil) {
		out[lever.Key] = lever.Value
	}
	return out
}

// Defaults lists the settings of a key, or of the table of that name, that have their default value. Optional
// tables are left out. Their File is "default".
func Defaults(key string, set []Setting) (out []Setting) {
	known := defaults()
	visit(reflect.TypeFor[Config](), parsedKey(key), func(key string, t reflect.Type) {
		if slices.ContainsFunc(set, func(s Setting) bool { return s.Ignored == "" && (s.Key == key || inside(s.Key, key)) }) {
			return
		}
		value, ok := known[key]
		if !ok {
			value = zero(t)
		}
		out = append(out, Setting{Key: key, Value: value, File: byDefault})
	})
	return out
}

// visit calls found for each value at a path below a type, and below that.
func visit(t reflect.Type, path []string, found func(key string, t reflect.Type)) {
	var down func(t reflect.Type, at string)
	down = func(t reflect.Type, at string) {
		if t.Kind() != reflect.Struct {
			if t.Kind() != reflect.Map {
				found(at, t)
			}
			return
		}
		for _, f := range reflect.VisibleFields(t) {
			if key := f.Tag.Get("toml"); !f.Anonymous && key != "-" && (f.Type.Kind() != reflect.Pointer || f.Type.Elem().Kind() != reflect.Struct) {
				down(f.Type, below(at, key))
			}
		}
	}
	if t := typeAt(t, path); t != nil {
		down(t, spelled(path))
	}
}

// zero returns the empty value of a type, as TOML writes it.
func zero(t reflect.Type) string {
	switch {
	case t.Kind() == reflect.Pointer:
		return `""` // depends on other settings
	case t == reflect.TypeFor[time.Duration]():
		return `"0s"`
	case t.Kind() == reflect.Slice:
		return "[]"
	}
	return written(reflect.Zero(t).Interface())
}

// inside reports whether a key is in the table or the list of another.
func inside(key, of string) bool {
	return strings.HasPrefix(key, of+".") || strings.HasPrefix(key, of+"[")
}

// Of returns the settings of a key, or of the table of that name, that are in force. The last of several values
// counts, but rules add up.
func Of(key string, list []Setting) (out []Setting) {
	for _, s := range list {
		switch {
		case s.Ignored != "":
		case s.Key == key && !slices.Contains([]string{"allow", "ask", "deny"}, key):
			out = []Setting{s}
		case s.Key == key || inside(s.Key, key):
			out = append(out, s)
		}
	}
	return out
}
