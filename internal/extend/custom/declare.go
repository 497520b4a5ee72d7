package custom

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/shell"
)

const (
	maxDescription = 2000 // bytes
	maxExternal    = 200  // bytes
	maxHosts       = 20
	maxSecrets     = 20
	maxTimeout     = 900 // seconds
	defaultTimeout = 60  // seconds
)

// declaration is a program's description of itself. The result of decode is valid.
type declaration struct {
	name        string
	description string
	schema      json.RawMessage
	effects     effects
	secrets     []string
	timeout     time.Duration
}

// effects are the effects that a program declares. The zero value declares nothing.
type effects struct {
	read, write bool
	network     []string
	external    string
}

func (e effects) silent() bool {
	return !e.read && !e.write && len(e.network) == 0 && e.external == ""
}

// onlyReads reports whether nothing but reading is declared.
func (e effects) onlyReads() bool {
	return e.read && !e.write && len(e.network) == 0 && e.external == ""
}

// decode parses a declaration.
func decode(data []byte) (declaration, error) {
	m, err := object(data, "name", "description", "schema", "effects", "secrets", "timeout_seconds")
	if err != nil {
		return declaration{}, err
	}
	d := declaration{}
	seconds := defaultTimeout
	err = errors.Join(
		m.field("name", &d.name), m.field("description", &d.description), m.field("secrets", &d.secrets),
		m.field("timeout_seconds", &seconds), d.effects.decode(m["effects"]),
	)
	if err == nil {
		d.schema, d.timeout = m["schema"], time.Duration(seconds)*time.Second
		err = errors.Join(checkName(d.name), checkText("description", d.description, maxDescription), d.checkSecrets(), checkSeconds(seconds))
	}
	if err == nil {
		d.schema, err = checkSchema(d.name, d.schema)
	}
	if err != nil {
		return declaration{}, err
	}
	return d, nil
}

func (e *effects) decode(data json.RawMessage) error {
	if data == nil {
		return nil
	}
	m, err := object(data, "read", "write", "network", "external")
	if err != nil {
		return fmt.Errorf("effects: %w", err)
	}
	err = errors.Join(m.field("read", &e.read), m.field("write", &e.write), m.field("network", &e.network), m.field("external", &e.external))
	if err != nil {
		return fmt.Errorf("effects: %w", err)
	}
	if _, given := m["external"]; given {
		if err := checkText("external", e.external, maxExternal); err != nil {
			return fmt.Errorf("effects: %w", err)
		}
		if strings.ContainsFunc(e.external, unicode.IsControl) {
			return errors.New("effects: external has more than one line")
		}
	}
	if len(e.network) > maxHosts {
		return fmt.Errorf("effects: network has more than %d hosts; a name like \"*.example.com\" stands for many", maxHosts)
	}
	for _, host := range e.network {
		if !isHost(host) {
			return fmt.Errorf("effects: network has %q, which is not a host; write it like \"slack.com\", \"*.example.com\", "+
				"\"example.com:443\" or \"*\"", host)
		}
	}
	return nil
}

// isHost reports whether a box can open a named host.
func isHost(text string) bool {
	if text == "*" {
		return true
	}
	name, port, has := strings.Cut(strings.TrimPrefix(text, "*."), ":")
	if has && (port == "" || len(port) > 5 || strings.Trim(port, "0123456789") != "") {
		return false
	}
	if name == "" || len(name) > 253 || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "-") || strings.Contains(name, "..") {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool { return !isWord(r) && r != '.' })
}

// isWord reports whether a character is allowed in a name.
func isWord(r rune) bool {
	return r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) || r == '_' || r == '-'
}

func checkName(name string) error {
	if name == "" || len(name) > 64 || strings.ContainsFunc(name, func(r rune) bool { return !isWord(r) }) {
		return fmt.Errorf("name is %q; it must have 1 to 64 letters of ASCII, digits, _ and -", text.Clip(name, 80))
	}
	if strings.HasPrefix(strings.ToLower(name), "mcp__") {
		return fmt.Errorf("name is %q; names that begin with mcp__ are those of the tools of MCP servers", name)
	}
	return nil
}

func checkText(field, text string, most int) error {
	switch {
	case strings.TrimSpace(text) == "":
		return fmt.Errorf("%s is missing or empty", field)
	case len(text) > most:
		return fmt.Errorf("%s has %d bytes; at most %d", field, len(text), most)
	case strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }):
		return fmt.Errorf("%s has control characters", field)
	}
	return nil
}

func (d declaration) checkSecrets() error {
	if len(d.secrets) > maxSecrets {
		return fmt.Errorf("secrets has more than %d names", maxSecrets)
	}
	for i, name := range d.secrets {
		switch {
		case !shell.IsName(name) || len(name) > 64:
			return fmt.Errorf("secrets has %q, which is not the name of a variable", text.Clip(name, 80))
		case strings.HasPrefix(name, "INSPAN_"):
			return fmt.Errorf("secrets has %s; names that begin with INSPAN_ are taken", name)
		case slices.Contains(d.secrets[:i], name):
			return fmt.Errorf("secrets has %s twice", name)
		}
	}
	return nil
}

func checkSeconds(n int) error {
	if n < 1 || n > maxTimeout {
		return fmt.Errorf("timeout_seconds is %d, not between 1 and %d", n, maxTimeout)
	}
	return nil
}

// fields holds the fields of a JSON object.
type fields map[string]json.RawMessage

// object parses one JSON object with known fields only, none of them twice, which encoding/json alone does not
// check.
func object(data []byte, known ...string) (fields, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("it is not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("want one JSON object and nothing else, got %q", text.Clip(strings.TrimSpace(string(data)), 40))
	}
	out := fields{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, fmt.Errorf("the JSON is broken: %w", err)
		}
		name, _ := t.(string) // only a string can be here
		if !slices.Contains(known, name) {
			return nil, unknown(name, known)
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("%s is there twice", name)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, fmt.Errorf("the JSON is broken in %s: %w", name, err)
		}
		out[name] = value
	}
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("the JSON is broken: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON object")
	}
	return out, nil
}

func unknown(name string, known []string) error {
	hint := "the fields are " + strings.Join(known, ", ")
	if near := text.Nearest(name, known); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return fmt.Errorf("there is no field %q; %s", text.Clip(name, 80), hint)
}

// field decodes one field. A missing field leaves the value unchanged.
func (m fields) field(name string, into any) error {
	data, given := m[name]
	if !given {
		return nil
	}
	if string(data) == "null" {
		return fmt.Errorf("%s is null; leave it out", name)
	}
	var wrong *json.UnmarshalTypeError
	err := json.Unmarshal(data, into)
	if errors.As(err, &wrong) {
		return fmt.Errorf("%s has a %s where it must have %s", name, wrong.Value, kind(into))
	}
	return err
}

// kind names the type of a field.
func kind(into any) string {
	switch into.(type) {
	case *bool:
		return "true or false"
	case *int:
		return "a whole number"
	case *[]string:
		return "a list of texts"
	}
	return "a text"
}
