package eval

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/inspan/inspan/internal/install/config"
)

// promptfoo is a configuration of promptfoo, as far as it describes tasks: the models are those of the run. See
// https://promptfoo.dev/docs/configuration/reference/.
type promptfoo struct {
	Prompts   []any         `yaml:"prompts"`
	Default   promptfooTest `yaml:"defaultTest"`
	Tests     yaml.Node     `yaml:"tests"`
	Scenarios []any         `yaml:"scenarios"`
}

// promptfooTest is a test case: values for the variables of each prompt, and conditions.
type promptfooTest struct {
	Description string           `yaml:"description"`
	Vars        map[string]any   `yaml:"vars"`
	Assert      []map[string]any `yaml:"assert"`
	Threshold   any              `yaml:"threshold"`
}

// readPromptfoo reads the tasks of a configuration: each test case with each prompt. Whatever it can't read is an
// error, as a condition that is left out would pass.
func (s *Suite) readPromptfoo() error {
	data, err := config.ReadAtMost(s.Path, mostText)
	if err != nil {
		return err
	}
	s.Digest = textDigest(string(data))
	var c promptfoo
	if err := yaml.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("%s: %w", s.Path, err)
	}
	var tests []promptfooTest
	if c.Tests.Kind != yaml.SequenceNode || c.Tests.Decode(&tests) != nil {
		return fmt.Errorf("%s: tests must be a list of test cases in this file", s.Path)
	}
	if len(c.Scenarios) > 0 {
		return fmt.Errorf("%s: scenarios are not read here; write them as tests", s.Path)
	}
	var errs []error
	for n, test := range tests {
		for p, prompt := range c.Prompts {
			t, err := c.task(test, prompt)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: test %d, prompt %d: %w", s.Path, n+1, p+1, err))
				continue
			}
			if t.ID = named(fmt.Sprintf("%d-%s", n+1, strings.ToLower(test.Description))); len(c.Prompts) > 1 {
				t.ID = fmt.Sprintf("%d-%s", p+1, t.ID)
			}
			t.ID = strings.TrimRight(t.ID[:min(len(t.ID), 60)], "-_")
			t.Title = test.Description
			s.Tasks = append(s.Tasks, t)
		}
	}
	if len(c.Prompts) == 0 {
		errs = append(errs, fmt.Errorf("%s: it has no prompts", s.Path))
	}
	return errors.Join(errs...)
}

// task returns the task of a test case and a prompt.
func (c *promptfoo) task(test promptfooTest, prompt any) (*Task, error) {
	if fields, ok := prompt.(map[string]any); ok {
		prompt = fields["raw"]
	}
	text, ok := prompt.(string)
	if !ok || strings.HasPrefix(text, "file://") {
		return nil, errors.New("the prompt is not a text in this file")
	}
	if test.Threshold != nil || c.Default.Threshold != nil {
		return nil, errors.New("thresholds of test cases are not read here: all conditions must hold")
	}
	vars := maps.Clone(c.Default.Vars)
	if vars == nil {
		vars = map[string]any{}
	}
	maps.Copy(vars, test.Vars)
	text, err := filledIn(text, vars)
	if err != nil {
		return nil, err
	}
	conditions := slices.Concat(c.Default.Assert, test.Assert)
	if len(conditions) == 0 {
		return nil, errors.New("it has no assert, so any answer would pass")
	}
	for i := range conditions { // values have variables too
		conditions[i] = maps.Clone(conditions[i])
		for key, value := range conditions[i] {
			if conditions[i][key], err = filledAll(value, vars); err != nil {
				return nil, err
			}
		}
	}
	t := &Task{Prompt: text, Digest: textDigest(text, fmt.Sprint(conditions))}
	return t, t.assert(conditions)
}

// assert adds conditions to a task.
func (t *Task) assert(list []map[string]any) error {
	for _, fields := range list {
		a, g, err := assertion(fields)
		if err != nil {
			return fmt.Errorf("assert: %w", err)
		}
		if g != nil {
			g.Name = fmt.Sprintf("%s %d", g.Name, len(t.Graders)+1)
			t.Graders = append(t.Graders, *g)
			continue
		}
		t.Check.Asserts = append(t.Check.Asserts, a)
	}
	return nil
}

// hole matches a variable of a prompt, and other marks of its templates.
var hole = regexp.MustCompile(`\{\{.*?\}\}|\{%.*?%\}`)

// filledIn replaces the variables of a template.
func filledIn(text string, vars map[string]any) (string, error) {
	var errs []error
	out := hole.ReplaceAllStringFunc(text, func(mark string) string {
		name := strings.TrimSpace(strings.Trim(mark, "{}"))
		value, known := vars[name]
		switch value := value.(type) {
		case string, int, float64, bool:
			if text := fmt.Sprint(value); !strings.HasPrefix(text, "file://") {
				return text
			}
			errs = append(errs, fmt.Errorf("the variable %s is a file, which is not read here", name))
		case nil:
			if !known {
				errs = append(errs, fmt.Errorf("%s is no variable of the test; templates have only variables here", mark))
			}
		default:
			errs = append(errs, fmt.Errorf("the variable %s is not a text or a number", name))
		}
		return ""
	})
	return out, errors.Join(errs...)
}

// filledAll replaces the variables of the texts in a value.
func filledAll(value any, vars map[string]any) (any, error) {
	var err error
	switch value := value.(type) {
	case string:
		return filledIn(value, vars)
	case []any:
		list := slices.Clone(value)
		for i := range list {
			if list[i], err = filledAll(list[i], vars); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	return value, nil
}
