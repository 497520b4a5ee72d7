package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/words"
)

const (
	maxFields  = 20 // of a form
	maxChoices = 50 // of a field
	maxTries   = 3  // to answer for one field
)

// form is the information that a server asks for: an object with plain fields.
type form struct {
	fields []field
}

// field is one question. The schemas are those of elicitation since revision 2025-06-18: plain values, choices,
// and lists of choices.
type field struct {
	name     string
	required bool

	Type        string   `json:"type"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Format      string   `json:"format"`
	Default     any      `json:"default"`
	Enum        []string `json:"enum"`
	EnumNames   []string `json:"enumNames"`
	OneOf       []option `json:"oneOf"`
	Items       struct {
		Enum  []string `json:"enum"`
		AnyOf []option `json:"anyOf"`
	} `json:"items"`
	Minimum   *float64 `json:"minimum"`
	Maximum   *float64 `json:"maximum"`
	MinLength *int     `json:"minLength"`
	MaxLength *int     `json:"maxLength"`
	MinItems  *int     `json:"minItems"`
	MaxItems  *int     `json:"maxItems"`
}

// option is a value with its label.
type option struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// readForm reads the schema of a form. Hidden characters and other kinds of fields are errors.
func readForm(schema []byte) (*form, error) {
	var tree any
	left := maxValues
	if err := json.Unmarshal(schema, &tree); err != nil {
		return nil, err
	}
	if err := tame(tree, 0, &left); err != nil {
		return nil, err
	}
	var top struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if err := json.Unmarshal(schema, &top); err != nil {
		return nil, err
	}
	if len(top.Properties) > maxFields {
		return nil, errors.New("it has too many fields")
	}
	f := &form{}
	for _, name := range slices.Sorted(maps.Keys(top.Properties)) {
		one := field{name: name, required: slices.Contains(top.Required, name)}
		if err := json.Unmarshal(top.Properties[name], &one); err != nil {
			return nil, err
		}
		if !slices.Contains([]string{"string", "number", "integer", "boolean", "array"}, one.Type) || len(one.options()) > maxChoices ||
			one.Type == "array" && one.options() == nil {
			return nil, fmt.Errorf("%q is not a plain field", name)
		}
		f.fields = append(f.fields, one)
	}
	return f, nil
}

// options returns the choices of a field, nil if it has none.
func (f field) options() []option {
	var out []option
	switch {
	case f.OneOf != nil:
		return f.OneOf
	case f.Items.AnyOf != nil:
		return f.Items.AnyOf
	case f.Type == "boolean":
		return []option{{"true", "yes"}, {"false", "no"}}
	}
	for i, v := range append(slices.Clone(f.Enum), f.Items.Enum...) {
		o := option{Const: v}
		if i < len(f.EnumNames) {
			o.Title = f.EnumNames[i]
		}
		out = append(out, o)
	}
	return out
}

func (o option) label() string {
	if o.Title != "" {
		return words.OneLine(o.Title, 200)
	}
	return words.OneLine(o.Const, 200)
}

// fill asks for one field after the other. Nil without an error: the person declined.
func (f *form) fill(ctx context.Context, ask asker, message string) (map[string]any, error) {
	values := map[string]any{}
	if len(f.fields) == 0 {
		answer, err := ask(ctx, message, []string{"yes", "no"})
		if err != nil || answer != "yes" {
			return nil, err
		}
		return values, nil
	}
	for _, one := range f.fields {
		v, given, err := one.ask(ctx, ask, message)
		if err != nil || !given {
			return nil, err
		}
		if v != nil {
			values[one.name] = v
		}
	}
	return values, nil
}

// skip is the answer that leaves a field out.
const skip = "(leave out)"

// ask asks for one field until the answer fits. Given is false if the person declined; given with a nil value
// leaves the field out.
func (f field) ask(ctx context.Context, ask asker, message string) (value any, given bool, err error) {
	problem := ""
	for range maxTries {
		answer, err := ask(ctx, message+"\n"+f.question()+problem, f.offers())
		if err != nil || answer == "" {
			return nil, false, err
		}
		if answer == skip && !f.required {
			return nil, true, nil
		}
		v, wrong := f.read(answer)
		if wrong == nil {
			return v, true, nil
		}
		problem = "\n(" + wrong.Error() + ")"
	}
	return nil, false, nil
}

func (f field) question() string {
	text := words.OneLine(f.name, 100)
	for _, more := range []string{f.Title, f.Description} {
		if more = words.OneLine(more, 1000); more != "" {
			text += ": " + more
		}
	}
	var notes []string
	if f.Type == "array" {
		notes = append(notes, "several, with commas between them")
	} else if f.options() == nil && f.Type != "string" || f.Format != "" {
		notes = append(notes, strings.TrimSpace(f.Type+" "+words.OneLine(f.Format, 40)))
	}
	if f.Default != nil {
		data, _ := json.Marshal(f.Default) // it came as JSON
		notes = append(notes, "usually "+words.OneLine(string(data), 200))
	}
	if len(notes) > 0 {
		text += " [" + strings.Join(notes, "; ") + "]"
	}
	return text
}

// offers returns the answers to choose from.
func (f field) offers() []string {
	var out []string
	for _, o := range f.options() {
		out = append(out, o.label())
	}
	if !f.required {
		out = append(out, skip)
	}
	return out
}

// read converts an answer to a value. The error describes a fitting answer.
func (f field) read(answer string) (any, error) {
	answer = strings.TrimSpace(answer)
	switch {
	case f.Type == "array":
		return f.several(answer)
	case f.options() != nil:
		v, ok := f.choice(answer)
		if !ok {
			return nil, errors.New("choose one of those")
		}
		if f.Type == "boolean" {
			return v == "true", nil
		}
		return v, nil
	case f.Type == "string":
		return answer, f.text(answer)
	}
	n, err := strconv.ParseFloat(answer, 64)
	whole := float64(int64(n))
	if err != nil || f.Type == "integer" && n != whole || f.Minimum != nil && n < *f.Minimum || f.Maximum != nil && n > *f.Maximum {
		return nil, fmt.Errorf("want %s%s", map[string]string{"integer": "a whole number", "number": "a number"}[f.Type],
			between(f.Minimum, f.Maximum))
	}
	return n, nil
}

// choice finds an option by its label or number.
func (f field) choice(answer string) (string, bool) {
	list := f.options()
	if n, err := strconv.Atoi(answer); err == nil && n >= 1 && n <= len(list) &&
		!slices.ContainsFunc(list, func(o option) bool { return o.Const == answer }) {
		return list[n-1].Const, true
	}
	for _, o := range list {
		if strings.EqualFold(answer, o.label()) || answer == o.Const {
			return o.Const, true
		}
	}
	return "", false
}

func (f field) several(answer string) (any, error) {
	out := []string{}
	for part := range strings.SplitSeq(answer, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		v, ok := f.choice(part)
		if !ok {
			return nil, fmt.Errorf("%q is none of those", text.Cut(part, 60))
		}
		if !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	if f.MinItems != nil && len(out) < *f.MinItems || f.MaxItems != nil && len(out) > *f.MaxItems {
		return nil, fmt.Errorf("want%s of those", between(f.MinItems, f.MaxItems))
	}
	return out, nil
}

// text checks the answer to a text field.
func (f field) text(answer string) error {
	var err error
	switch f.Format {
	case "email":
		_, err = mail.ParseAddress(answer)
	case "uri":
		var u *url.URL
		if u, err = url.Parse(answer); err == nil && u.Scheme == "" {
			err = errors.New("it has no scheme")
		}
	case "date":
		_, err = time.Parse(time.DateOnly, answer)
	case "date-time":
		_, err = time.Parse(time.RFC3339, answer)
	}
	if err != nil {
		return fmt.Errorf("that is no %s", f.Format)
	}
	if n := len([]rune(answer)); f.MinLength != nil && n < *f.MinLength || f.MaxLength != nil && n > *f.MaxLength {
		return fmt.Errorf("want%s characters", between(f.MinLength, f.MaxLength))
	}
	return nil
}

// between describes a range in words.
func between[T int | float64](low, high *T) string {
	text := ""
	if low != nil {
		text += fmt.Sprintf(" at least %v", *low)
	}
	if high != nil {
		text += fmt.Sprintf(" at most %v", *high)
	}
	return text
}
