package config

import (
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/safety/secret"
)

const masked = "***"

// Masks returns a function that replaces possible secrets in a text with ***, detected by their form or by the
// name before them. It prefers to hide too much. The function is not safe for concurrent use.
func Masks() func(text string) string { return newMask().text }

// Secret reports whether a text contains a likely secret.
func Secret(text string) bool { return len(secret.Find(text)) > 0 }

// mask hides possible secrets in settings for display and reports. It prefers to hide too much.
type mask struct {
	finder    secret.Finder
	user      *regexp.Regexp   // the user part before the host of an address
	named     []*regexp.Regexp // a name and its value, in a command line or an address
	reference *regexp.Regexp   // a reference to a value elsewhere
}

func newMask() *mask {
	const value = `("[^"]*"|'[^']*'|[^\s&"']+)`
	return &mask{
		user: regexp.MustCompile(`://[^/\s]*@`),
		named: []*regexp.Regexp{
			regexp.MustCompile(`([\w.-]+)=` + value),
			regexp.MustCompile(`(--?[\w-]+)\s+` + value),
			regexp.MustCompile(`([\w-]+):[ \t]+([^"'\n]+)`), // a header
		},
		reference: regexp.MustCompile(`(?i)^((bearer|basic|token) )?\$(\w+|\{\w+\})$`),
	}
}

// value returns a value without its secrets. Path is the keys that lead to it.
func (m *mask) value(path []string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, kid := range v {
			out[key] = m.value(append(slices.Clip(path), key), kid)
		}
		return out
	case []map[string]any:
		out := make([]map[string]any, len(v))
		for i, kid := range v {
			out[i], _ = m.value(path, kid).(map[string]any)
		}
		return out
	case string:
		if secretly(path) && !m.reference.MatchString(v) {
			return masked
		}
		return m.text(v)
	case []any:
		return m.list(path, v)
	}
	if secretly(path) {
		return masked
	}
	return v
}

// list also hides the value after an option such as --token.
func (m *mask) list(path []string, list []any) []any {
	out := make([]any, len(list))
	for i, v := range list {
		out[i] = m.value(path, v)
		if i == 0 {
			continue
		}
		before, _ := list[i-1].(string)
		if text, ok := v.(string); ok && strings.HasPrefix(before, "-") &&
			!strings.Contains(before, "=") && named(before) && !m.reference.MatchString(text) {
			out[i] = masked
		}
	}
	return out
}

// text hides secrets in a text by their form, and by the names before them.
func (m *mask) text(text string) string {
	text = m.user.ReplaceAllString(m.finder.Hidden(text, masked), "://"+masked+"@")
	for _, re := range m.named {
		text = replaceGroups(re, text, func(name, value string) string {
			if !named(name) || m.reference.MatchString(strings.Trim(value, `"'`)) {
				return value
			}
			return masked
		})
	}
	return text
}

// replaceGroups replaces the second group of each match.
func replaceGroups(re *regexp.Regexp, text string, value func(name, value string) string) string {
	var b strings.Builder
	at := 0
	for _, m := range re.FindAllStringSubmatchIndex(text, -1) {
		b.WriteString(text[at:m[4]] + value(text[m[2]:m[3]], text[m[4]:m[5]]))
		at = m[5]
	}
	return b.String() + text[at:]
}

// named reports whether the name of an option, a variable or a header suggests a secret.
func named(name string) bool {
	name = strings.ReplaceAll(strings.TrimLeft(name, "-"), "-", "_")
	return secret.Named(name) || strings.HasSuffix(strings.ToLower(name), "authorization")
}

// secretly reports whether the names above a value suggest a secret: all values of environments and headers,
// and those with such a name. Keys of settings, such as key_env, don't.
func secretly(path []string) bool {
	table, key := path[:len(path)-1], path[len(path)-1]
	known := keysAt(reflect.TypeFor[Config](), table)
	if slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, key) }) {
		return false
	}
	above := ""
	if len(table) > 0 {
		above = strings.ToLower(table[len(table)-1])
	}
	return above == "env" || above == "headers" || named(key)
}
