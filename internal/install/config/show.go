package config

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/inspan/inspan/event"
)

// schemaJSON is written by TestSchema from the types of this package.
//
//go:embed schema.json
var schemaJSON string

// Schema returns the JSON Schema (2020-12) of the user's settings, for editors.
func Schema() []byte { return []byte(schemaJSON) }

// Setting is the value of one setting.
type Setting struct {
	Key   string `json:"key"`   // as "sandbox.memory_mb" or "rule[0].reason"
	Value string `json:"value"` // as TOML writes it, with *** for possible secrets
	File  string `json:"file"`  // or the environment variable, "preset" and its name, or "default"
	Line  int    `json:"line"`  // 0 if unknown or none
	// Ignored is the reason why it is not in force; empty means it is.
	Ignored string `json:"ignored,omitempty"`
	// Evidence is the measured effect of a lever.
	Evidence string `json:"evidence,omitempty"`
}

// noEvidence is the value for every lever: no effect was measured with a real model.
const noEvidence = "no evidence"

// Origin returns where the setting comes from, for people.
func (s Setting) Origin() string {
	if s.Line > 0 {
		return fmt.Sprintf("%s:%d", s.File, s.Line)
	}
	return s.File
}

// Plain returns the value without the quotes that TOML puts around a string.
func (s Setting) Plain() string {
	if text, err := strconv.Unquote(s.Value); err == nil {
		return text
	}
	return s.Value
}

// Settings lists the settings in a file, in its order. A missing file has none; [Load] checks the keys.
func Settings(path string) ([]Setting, error) {
	raw, tree, err := parsed(path)
	if err != nil || tree == nil {
		return nil, err
	}
	tree, _ = newMask().value(nil, tree).(map[string]any)
	lines := keyLines(string(raw))
	var out []Setting
	flatten("", tree, func(key, value string) {
		out = append(out, Setting{Key: key, Value: value, File: path, Line: lineOf(lines, key)})
	})
	slices.SortStableFunc(out, func(a, b Setting) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Key, b.Key))
	})
	return out, nil
}

// Levers lists the default values of levers that are not among the settings. Their File is "default".
func Levers(l event.Levers, set []Setting) []Setting {
	var out []Setting
	v := reflect.ValueOf(l.Stated())
	for i := range v.NumField() {
		key := "levers." + v.Type().Field(i).Tag.Get("toml")
		if !slices.ContainsFunc(set, func(s Setting) bool { return s.Key == key }) {
			out = append(out, Setting{Key: key, Value: strconv.Quote(v.Field(i).String()), File: byDefault, Evidence: noEvidence})
		}
	}
	return out
}

// flatten calls found for each value of a tree.
func flatten(prefix string, v any, found func(key, value string)) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			flatten(strings.TrimPrefix(prefix+"."+bare(name), "."), v[name], found)
		}
	case []map[string]any:
		for i, item := range v {
			flatten(fmt.Sprintf("%s[%d]", prefix, i), item, found)
		}
	default:
		found(prefix, written(v))
	}
}

// bare returns a key as TOML writes it.
func bare(name string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
	}
	if name != "" && strings.IndexFunc(name, func(r rune) bool { return !plain(r) }) < 0 {
		return name
	}
	return strconv.Quote(name)
}

// written returns a value as TOML writes it.
func written(v any) string {
	if list := reflect.ValueOf(v); list.Kind() == reflect.Slice {
		var items []string
		for i := range list.Len() {
			items = append(items, written(list.Index(i).Interface()))
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	switch v := v.(type) {
	case string:
		return strconv.Quote(v)
	case map[string]any:
		var items []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			items = append(items, bare(name)+" = "+written(v[name]))
		}
		return "{ " + strings.Join(items, ", ") + " }"
	}
	return fmt.Sprint(v)
}

// keyLines finds the lines on which keys and tables begin.
func keyLines(text string) map[string]int {
	lines, above, count, table, n := map[string]int{}, map[string]int{}, map[string]int{}, "", 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if list, ok := strings.CutPrefix(line, "[["); ok {
			name, _, _ := strings.Cut(list, "]]")
			name = strings.TrimSpace(name)
			table = fmt.Sprintf("%s[%d]", name, count[name])
			count[name]++
			lines[table] = n
			continue
		}
		if head, ok := strings.CutPrefix(line, "["); ok {
			if name, _, closed := strings.Cut(head, "]"); closed && !strings.Contains(name, ",") {
				table = strings.TrimSpace(name)
				lines[table] = n
			}
			continue
		}
		key, _, ok := strings.Cut(line, "=")
		if key = strings.TrimSpace(key); ok && !strings.HasPrefix(key, "#") {
			full := strings.TrimPrefix(table+"."+key, ".")
			if _, twice := lines[full]; !twice {
				lines[full] = n
			}
		}
	}
	for name, n := range lines { // tables that only prefix others
		for at := strings.LastIndexByte(name, '.'); at > 0; at = strings.LastIndexByte(name, '.') {
			name = name[:at]
			if first, there := above[name]; !there || n < first {
				above[name] = n
			}
		}
	}
	maps.Copy(above, lines)
	return above
}

// lineOf returns the line of a key, or of the nearest table that contains it.
func lineOf(lines map[string]int, key string) int {
	for {
		if n, ok := lines[key]; ok {
			return n
		}
		at := strings.LastIndexAny(key, ".[")
		if at < 0 {
			return 0
		}
		key = key[:at]
	}
}
