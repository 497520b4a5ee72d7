package custom

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
)

// Kinds of drafts.
const (
	KindProgram = "program" // an executable text that begins with #!
	KindScript  = "script"  // JavaScript whose calls are judged one by one
)

// Bounds of a draft.
const (
	maxCode  = 32 << 10 // bytes, so that a reviewer reads all of it
	maxTests = 20
	maxTest  = 8 << 10   // bytes of the arguments of a test, and of its expected result
	MaxDraft = 512 << 10 // bytes of the JSON of the whole draft
)

// Draft is a tool that a model has written and no one has approved.
type Draft struct {
	Kind        string          `json:"kind"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
	Effects     json.RawMessage `json:"effects,omitempty"` // in the form of a program's declaration; if empty, it only reads
	Seconds     int             `json:"timeout_seconds,omitempty"`
	Code        string          `json:"code"`
	Tests       []Test          `json:"tests"`
}

// Test is a call of a draft, and its expected text.
type Test struct {
	Args   json.RawMessage `json:"args"`
	Expect string          `json:"expect"`
	Calls  []TestCall      `json:"calls,omitempty"` // results for the calls of a script, in order for each tool
}

// TestCall is a call by a script in a test. No tool is called.
type TestCall struct {
	Tool   string `json:"tool"`
	Brings string `json:"brings"`
}

// texts returns all texts of the test.
func (t Test) texts() string {
	all := string(t.Args) + t.Expect
	for _, c := range t.Calls {
		all += c.Tool + c.Brings
	}
	return all
}

// ReadDraft decodes a draft from its JSON, and checks it.
func ReadDraft(data []byte) (Draft, error) {
	if len(data) > MaxDraft {
		return Draft{}, fmt.Errorf("it has %d bytes; at most %d", len(data), MaxDraft)
	}
	if _, err := object(data, "kind", "name", "description", "schema", "effects", "timeout_seconds", "code", "tests"); err != nil {
		return Draft{}, err
	}
	var d Draft
	if err := json.Unmarshal(data, &d); err != nil {
		return Draft{}, err
	}
	return d, d.Check()
}

// Check returns an error if a draft is invalid. A valid draft can be shown as it is: nothing in it is
// invisible, and its name is not a path.
func (d Draft) Check() error {
	if _, err := d.declared(); err != nil {
		return err
	}
	switch {
	case strings.HasPrefix(d.Name, "_"), isFile(d.Name):
		return fmt.Errorf("name is %q, which is not a valid name for a file; choose another", d.Name)
	case d.Kind != KindProgram && d.Kind != KindScript:
		return fmt.Errorf("kind is %q; use %q or %q", text.Clip(d.Kind, 40), KindProgram, KindScript)
	case d.Kind == KindProgram && !strings.HasPrefix(d.Code, "#!"):
		return errors.New("code does not begin with #! and the program that runs it, such as #!/bin/sh")
	case strings.TrimSpace(d.Code) == "":
		return errors.New("code is empty")
	case len(d.Code) > maxCode:
		return fmt.Errorf("code has %d bytes; at most %d", len(d.Code), maxCode)
	case len(d.Tests) == 0:
		return errors.New("tests is empty; give at least one call and what it prints")
	case len(d.Tests) > maxTests:
		return fmt.Errorf("tests has %d entries; at most %d", len(d.Tests), maxTests)
	}
	err := errors.Join(plain("description", d.Description), plain("code", d.Code), plain("schema", string(d.Schema)),
		plain("effects", string(d.Effects)))
	for i, t := range d.Tests {
		if what := fmt.Sprintf("test %d", i+1); len(t.texts()) > maxTest {
			err = errors.Join(err, fmt.Errorf("%s has more than %d bytes", what, maxTest))
		} else {
			err = errors.Join(err, plain(what, t.texts()))
		}
	}
	return err
}

// isFile reports whether an entry has a file of this name, which would be started instead of the file that
// describes the tool. Some file systems are case-insensitive.
func isFile(name string) bool {
	return slices.ContainsFunc(entryFiles(), func(file string) bool {
		return strings.EqualFold(file, name)
	})
}

// plain returns an error for text that a person would not see.
func plain(what, s string) error {
	for _, r := range s {
		if text.Unshown.Has(r) {
			return fmt.Errorf("%s has the character %U, which people don't see; write it as an escape", what, r)
		}
	}
	return nil
}

// declared returns the declaration of a draft. A draft without declared effects only reads, and its box
// enforces that.
func (d Draft) declared() (declaration, error) {
	data, err := d.declaration()
	if err != nil {
		return declaration{}, err
	}
	return decode(data)
}

// declaration returns the description that the program prints of itself. The effects of a script are those of its
// calls, so its declaration says that it has no others.
func (d Draft) declaration() ([]byte, error) {
	out := struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Schema      json.RawMessage `json:"schema"`
		Effects     json.RawMessage `json:"effects"`
		Seconds     int             `json:"timeout_seconds,omitempty"`
	}{d.Name, d.Description, d.Schema, d.Effects, d.Seconds}
	var e effects
	if err := e.decode(d.Effects); err != nil {
		return nil, err
	}
	switch {
	case d.Kind == KindScript && !e.silent():
		return nil, errors.New("effects are those of its calls, for a script: leave them out")
	case e.silent():
		out.Effects = json.RawMessage(`{"read":true}`)
	}
	if len(d.Schema) == 0 {
		return nil, errors.New("schema is missing")
	}
	return json.MarshalIndent(out, "", "  ")
}
