package eval

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/inspan/inspan/internal/view/words"
)

// Assert is a condition on the agent's last message, or on what the trial cost. Its types and their meaning are
// those of promptfoo, see https://promptfoo.dev/docs/configuration/expected-outputs/deterministic/.
type Assert struct {
	name  string // its type and value, for people
	holds func(answer string, cost, seconds float64) bool
}

// assertion reads one condition. One that asks a model becomes a grader; then the other result is nil.
func assertion(fields map[string]any) (*Assert, *Grader, error) {
	kind, _ := fields["type"].(string)
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains([]string{"type", "value", "threshold", "metric", "provider"}, key) && (key != "weight" || fmt.Sprint(fields[key]) != "1") {
			return nil, nil, fmt.Errorf("%s: the key %s is not read here", kind, key)
		}
	}
	if kind == "llm-rubric" {
		return rubric(fields)
	}
	if fields["provider"] != nil {
		return nil, nil, fmt.Errorf("%s: only llm-rubric has a provider", kind)
	}
	a := &Assert{name: words.OneLine(fmt.Sprint(kind, " ", shownValue(fields)), 120)}
	base, not := strings.CutPrefix(kind, "not-")
	if base == "cost" || base == "latency" {
		most, ok := number(fields["threshold"])
		if !ok || not {
			return nil, nil, fmt.Errorf("%s needs a threshold, and can't be negated", kind)
		}
		if a.holds = func(_ string, cost, _ float64) bool { return cost <= most }; base == "latency" {
			a.holds = func(_ string, _, seconds float64) bool { return seconds*1000 <= most }
		}
		return a, nil, nil
	}
	says, err := says(base, fields["value"])
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", kind, err)
	}
	a.holds = func(answer string, _, _ float64) bool { return says(answer) != not }
	return a, nil, nil
}

// shownValue describes the expected value of a condition, for people.
func shownValue(fields map[string]any) any {
	if fields["value"] != nil {
		return fields["value"]
	}
	if fields["threshold"] != nil {
		return fields["threshold"]
	}
	return ""
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

func rubric(fields map[string]any) (*Assert, *Grader, error) {
	g := Grader{Name: "llm-rubric", Required: true}
	var ok bool
	if g.Rubric, ok = fields["value"].(string); !ok || g.Rubric == "" {
		return nil, nil, errors.New("llm-rubric: the value must be a text")
	}
	if g.Model, ok = fields["provider"].(string); !ok && fields["provider"] != nil {
		return nil, nil, errors.New("llm-rubric: the provider must be a model as provider/model")
	}
	if fields["threshold"] != nil {
		if g.Pass, ok = number(fields["threshold"]); !ok {
			return nil, nil, errors.New("llm-rubric: the threshold must be a number")
		}
	}
	return nil, &g, g.validate()
}

// says returns the condition of a type on a text.
func says(kind string, value any) (func(answer string) bool, error) {
	switch kind {
	case "is-json", "contains-json":
		return isJSON(kind, value)
	case "equals":
		if text, ok := value.(string); ok {
			return func(answer string) bool { return strings.TrimSpace(answer) == strings.TrimSpace(text) }, nil
		}
		return func(answer string) bool {
			var got, want any
			raw, err := json.Marshal(value)
			return err == nil && json.Unmarshal(raw, &want) == nil && json.Unmarshal([]byte(answer), &got) == nil && reflect.DeepEqual(got, want)
		}, nil
	case "regex":
		text, ok := value.(string)
		if !ok {
			return nil, errors.New("the value must be a text")
		}
		pattern, err := regexp.Compile(text)
		if err != nil {
			return nil, err
		}
		return pattern.MatchString, nil
	case "starts-with", "contains", "icontains", "contains-all", "contains-any", "icontains-all", "icontains-any":
	default:
		return nil, errors.New("this type is not read here; write a checker in a folder of tasks, which can do anything")
	}
	list, err := texts(kind, value)
	if err != nil {
		return nil, err
	}
	if kind == "starts-with" {
		return func(answer string) bool { return strings.HasPrefix(answer, list[0]) }, nil
	}
	plain, fold := strings.CutPrefix(kind, "icontains")
	any := strings.HasSuffix(plain, "-any")
	return func(answer string) bool {
		has := func(text string) bool {
			if fold {
				return strings.Contains(strings.ToLower(answer), strings.ToLower(text))
			}
			return strings.Contains(answer, text)
		}
		if any {
			return slices.ContainsFunc(list, has)
		}
		return !slices.ContainsFunc(list, func(text string) bool { return !has(text) })
	}, nil
}

// texts returns the values of a condition: one, or a list for types that take one.
func texts(kind string, value any) (list []string, err error) {
	many := strings.HasSuffix(kind, "-all") || strings.HasSuffix(kind, "-any")
	switch value := value.(type) {
	case []any:
		for _, one := range value {
			list = append(list, fmt.Sprint(one))
		}
	case string, int, float64, bool:
		if list = []string{fmt.Sprint(value)}; many {
			list = strings.Split(list[0], ",")
			for i := range list {
				list[i] = strings.TrimSpace(list[i])
			}
		}
	}
	if len(list) == 0 || len(list) > 1 && !many || slices.Contains(list, "") {
		return nil, errors.New("the value must be a text that is not empty, or a list of them for -all and -any")
	}
	return list, nil
}

// mostJSON bounds how many places of an answer are tried as the beginning of JSON.
const mostJSON = 1000

// isJSON returns the condition that a text is JSON or contains an object or list, of a schema if there is one.
func isJSON(kind string, value any) (func(answer string) bool, error) {
	fits := func(any) bool { return true }
	if value != nil {
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		var schema jsonschema.Schema
		if err := json.Unmarshal(raw, &schema); err != nil {
			return nil, fmt.Errorf("the schema can't be read: %w", err)
		}
		resolved, err := schema.Resolve(nil)
		if err != nil {
			return nil, fmt.Errorf("the schema can't be used: %w", err)
		}
		fits = func(v any) bool { return resolved.Validate(v) == nil }
	}
	return func(answer string) bool {
		if kind == "is-json" {
			var v any
			return json.Unmarshal([]byte(answer), &v) == nil && fits(v)
		}
		tries := 0
		for at := range answer {
			if answer[at] != '{' && answer[at] != '[' {
				continue
			}
			if tries++; tries > mostJSON {
				return false
			}
			var v any
			if json.NewDecoder(strings.NewReader(answer[at:])).Decode(&v) == nil && fits(v) {
				return true
			}
		}
		return false
	}, nil
}
