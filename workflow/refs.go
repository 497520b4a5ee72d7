package workflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
)

// A reference names a value: "inputs.NAME", "STEP.FIELD", and within the steps of a loop or an each also
// "item", "round", "before.STEP.FIELD" and "history". In texts it is written ${STEP.FIELD}, and $${ is a
// literal ${.

// piece is a part of a text: words, or a reference.
type piece struct {
	words string
	ref   string // empty means words
}

// pieces splits a text at its references. The error names an invalid one.
func pieces(text string) (out []piece, err error) {
	var words strings.Builder
	for rest := text; ; {
		before, after, found := strings.Cut(rest, "${")
		if !found {
			words.WriteString(rest)
			break
		}
		if escaped, yes := strings.CutSuffix(before, "$"); yes {
			words.WriteString(escaped + "${")
			rest = after
			continue
		}
		words.WriteString(before)
		ref, tail, closed := strings.Cut(after, "}")
		if !closed {
			return nil, fmt.Errorf("the reference that begins with %q is not closed", "${"+after[:min(20, len(after))])
		}
		if ref = strings.TrimSpace(ref); ref == "" {
			return nil, errors.New("the reference ${} names nothing")
		}
		out = append(out, piece{words: words.String()}, piece{ref: ref})
		words.Reset()
		rest = tail
	}
	return append(out, piece{words: words.String()}), nil
}

// whole returns the reference that makes up a whole value; empty means the value is something else.
func whole(v any) string {
	s, _ := v.(string)
	inner, opened := strings.CutPrefix(s, "${")
	ref, closed := strings.CutSuffix(inner, "}")
	if !opened || !closed || strings.ContainsAny(ref, "${}") {
		return ""
	}
	return strings.TrimSpace(ref)
}

// isPath reports whether a text has the form of a reference.
func isPath(ref string) bool {
	return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*$`).MatchString(ref)
}

// frame holds the values that the steps of one list can see.
type frame struct {
	up     *frame
	values map[string]any // of steps that have ended, by id, and of inputs, item, before ...
}

// value looks a reference up. A missing value is nil.
func (f *frame) value(ref string) any {
	name, path, deep := strings.Cut(ref, ".")
	for at := f; at != nil; at = at.up {
		if v, there := at.values[name]; there {
			if !deep {
				return v
			}
			return within(v, path)
		}
	}
	return nil
}

// within returns a part of a value.
func within(v any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		switch at := v.(type) {
		case map[string]any:
			v = at[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(at) {
				return nil
			}
			v = at[i]
		default:
			return nil
		}
	}
	return v
}

// text replaces the references in a text by their values.
func (f *frame) text(s string) string { return f.put(s, func(string) bool { return true }) }

// put is text, but sets a value of several lines apart from the surrounding words, unless it is plain.
func (f *frame) put(s string, plain func(ref string) bool) string {
	parts, err := pieces(s)
	if err != nil {
		return s // which Check refuses
	}
	var out strings.Builder
	for _, p := range parts {
		out.WriteString(p.words)
		if p.ref == "" {
			continue
		}
		value := asText(f.value(p.ref))
		if strings.Contains(value, "\n") && !plain(p.ref) {
			value = "\n" + quoted(value) + "\n"
		}
		out.WriteString(value)
	}
	return out.String()
}

// asText converts a value to text: texts as they are, missing values to nothing, and others to JSON.
func asText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(raw)
}

// filled returns a value with its references replaced.
func (f *frame) filled(v any) any {
	switch v := v.(type) {
	case string:
		if ref := whole(v); ref != "" {
			return f.value(ref)
		}
		return strings.ReplaceAll(v, "$${", "${")
	case []any:
		out := make([]any, len(v))
		for i, one := range v {
			out[i] = f.filled(one)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for name, one := range v {
			out[name] = f.filled(one)
		}
		return out
	}
	return v
}

// refsOf returns the references in a value.
func refsOf(v any) (refs []string) {
	switch v := v.(type) {
	case string:
		if ref := whole(v); ref != "" {
			return []string{ref}
		}
	case []any:
		for _, one := range v {
			refs = append(refs, refsOf(one)...)
		}
	case map[string]any:
		for _, one := range v {
			refs = append(refs, refsOf(one)...)
		}
	}
	return refs
}

// operators are the comparisons of conditions.
func operators() []string { return []string{"is", "not", "less", "more", "in"} }

// holds reports whether all conditions hold, and if not, which one does not.
func (f *frame) holds(when map[string]any) (yes bool, why string) {
	for _, ref := range sortedKeys(when) {
		if v := f.value(ref); v == nil && when[ref] != nil || !compares(v, when[ref]) {
			return false, fmt.Sprintf("%s is %s", ref, shown(v))
		}
	}
	return true, ""
}

func shown(v any) string {
	if v == nil {
		return "not there"
	}
	s := asText(v)
	if s == "" {
		return "empty"
	}
	return text.Short(s, 200)
}

// compares compares a value with the one in a condition.
func compares(v, want any) bool {
	ops, some := want.(map[string]any)
	if !some {
		return same(v, want)
	}
	for op, with := range ops {
		n, number := asNumber(v)
		m, against := asNumber(with)
		list, _ := with.([]any)
		ok := map[string]bool{
			"is": same(v, with), "not": !same(v, with),
			"less": number && against && n < m, "more": number && against && n > m,
			"in": slices.ContainsFunc(list, func(one any) bool { return same(v, one) }),
		}[op]
		if !ok {
			return false
		}
	}
	return true
}

func same(a, b any) bool {
	n, number := asNumber(a)
	m, other := asNumber(b)
	if number && other {
		return n == m
	}
	x, err := json.Marshal(a)
	y, bad := json.Marshal(b)
	return err == nil && bad == nil && string(x) == string(y)
}

func asNumber(v any) (float64, bool) {
	switch n := v.(type) {
	case float64:
		return n, true
	case int:
		return float64(n), true
	case int64:
		return float64(n), true
	}
	return 0, false
}
