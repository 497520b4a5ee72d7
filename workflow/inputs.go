package workflow

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/inspan/inspan/internal/view/words"
)

// Fits returns the reason why the workflow can't run with these inputs; nil means it can.
func (w *Workflow) Fits(inputs map[string]any) error {
	_, err := w.given(inputs)
	return err
}

// Typed parses inputs typed by a person: NAME=VALUE each, where the value is a text for an input of that type,
// and JSON for others. Other words are joined as the value of the only required text input that is missing,
// unless they begin like an input that the workflow does not have. The error is written for the person.
func (w *Workflow) Typed(args []string) (map[string]any, error) {
	inputs, said, known := map[string]any{}, []string{}, sortedKeys(w.Inputs)
	for _, arg := range args {
		name, value, named := strings.Cut(arg, "=")
		s := w.Inputs[name]
		switch {
		case named && s == nil && (len(said) == 0 && !strings.ContainsFunc(name, unicode.IsSpace) || len(words.Near(name, known)) > 0):
			return nil, w.unknown(name)
		case !named || s == nil:
			said = append(said, arg)
			continue
		}
		if s.Type == "string" {
			inputs[name] = value
			continue
		}
		var v any
		if err := json.Unmarshal([]byte(value), &v); err != nil {
			return nil, fmt.Errorf("input %s of %s is to be of type %s, not %q", name, w.Name, s.Type, value)
		}
		inputs[name] = v
	}
	missing := slices.DeleteFunc(sortedKeys(w.Inputs), func(name string) bool {
		_, given := inputs[name]
		return given || w.Inputs[name].Default != nil
	})
	switch {
	case len(said) > 0 && len(missing) == 1 && w.Inputs[missing[0]].Type == "string":
		inputs[missing[0]], missing = strings.Join(said, " "), nil
	case len(said) > 0:
		return nil, w.unknown(said[0])
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%s needs %s; give them as NAME=VALUE", w.Name, strings.Join(missing, ", "))
	}
	_, err := w.given(inputs)
	return inputs, err
}

// unknown returns the error for an input that the workflow does not have.
func (w *Workflow) unknown(name string) error {
	return fmt.Errorf("%s has no input %q; %s", w.Name, name, remedyFor(name, sortedKeys(w.Inputs)))
}

// filledIn adds the defaults of missing inputs.
func filledIn(with map[string]any) map[string]any {
	out := map[string]any{}
	for name, v := range with {
		if v != nil {
			out[name] = v
		}
	}
	return out
}
