package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// File is a settings file that [File.Set] writes.
type File struct {
	Path    string
	Project bool                    // of a project, which can set few keys
	Check   func(path string) error // returns all faults of a file, see [Faulty]; nil means those of [Load] or [LoadProject]
}

// Faulty returns the faults of the file; nil means none.
func (f File) Faulty() error { return f.check(f.Path) }

func (f File) check(path string) (err error) {
	switch {
	case f.Check != nil:
		return f.Check(path)
	case f.Project:
		_, err = LoadProject(path)
	default:
		_, err = Load(path)
	}
	return err
}

// Change is the change of one setting.
type Change struct {
	Key    string   // as TOML writes it: "sandbox.memory_mb", "providers.\"my host\".kind"
	Values []string // one, or the elements of a list, or a list as TOML writes it; none: the setting is removed
	Add    bool     // add the values to the existing list
}

// Describe describes the effect of a change, and the variable that overrides it, if any.
func (f File) Describe(c Change) (done, shadow string) {
	does := "Set "
	if len(c.Values) == 0 {
		does = "Removed "
	}
	if variable := "INSPAN_" + strings.ToUpper(strings.ReplaceAll(c.Key, ".", "__")); !f.Project && os.Getenv(variable) != "" {
		shadow = "The variable " + variable + " is set and comes before the file."
	}
	return does + c.Key + " in " + f.Path + ".", shadow
}

// Set changes settings in a file, which is created if necessary. Comments and order are preserved. It writes
// nothing if a change adds a fault to the file, or would affect other settings. The faults of a file can be
// corrected one by one. Several processes may edit a file concurrently.
func (f File) Set(changes ...Change) error {
	path := followed(f.Path)
	unlock, err := lock(path)
	if err != nil {
		return err
	}
	defer unlock()
	old, before, err := parsed(path)
	if err != nil {
		return err
	}
	wrong := Faults(f.check(path))
	text := string(old)
	for _, c := range changes {
		if text, err = f.changed(text, c); err != nil {
			return err
		}
	}
	if text == string(old) {
		return nil
	}
	return replaceChecked(path, []byte(text), func(path string) error {
		_, now, err := parsed(path)
		if err == nil {
			err = worse(wrong, f.check(path))
		}
		if err == nil {
			err = onlyChanged(before, now, changes)
		}
		return err
	})
}

// worse returns the first fault of a file that is new.
func worse(before []Fault, now error) error {
	for _, one := range single(now) {
		fault, ok := errors.AsType[Fault](one)
		if !ok {
			return one
		}
		if !slices.ContainsFunc(before, func(b Fault) bool { return b.Err.Error() == fault.Err.Error() }) {
			return fault
		}
	}
	return nil
}

// changed returns the text of a file after one change.
func (f File) changed(text string, c Change) (string, error) {
	lines := statements(text)
	if len(c.Values) == 0 {
		return f.removed(text, lines, c.Key)
	}
	key, kind, err := f.kind(c.Key)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(lines, func(s statement) bool { return s.key != nil && !s.list && slices.Equal(s.full(), key) })
	added := listed(kind, c.Values)
	values := added
	if c.Add && i >= 0 {
		var is struct{ V []string }
		if _, err := toml.Decode("V = "+text[lines[i].value:lines[i].stop], &is); err != nil {
			return "", fmt.Errorf("%s is not a list of texts", c.Key)
		}
		values = is.V
		for _, v := range added {
			if !slices.Contains(values, v) {
				values = append(values, v)
			}
		}
	}
	value, err := encoded(c.Key, kind, values)
	if err != nil {
		return "", err
	}
	if i >= 0 {
		return text[:lines[i].value] + value + text[lines[i].stop:], nil
	}
	return inserted(text, lines, key, value), nil
}

// listed returns the values of a list of texts; a single one that is a list as TOML or JSON writes it stands for its
// elements.
func listed(kind reflect.Type, values []string) []string {
	if kind != reflect.TypeFor[[]string]() || len(values) != 1 || !strings.HasPrefix(values[0], "[") {
		return values
	}
	var is struct{ V []string }
	if meta, err := toml.Decode("V = "+values[0], &is); err != nil || len(meta.Keys()) != 1 {
		return values
	}
	return is.V
}

// removed returns a text without a key, or without all of its table. An unknown key can be removed if the file
// contains it.
func (f File) removed(text string, lines []statement, name string) (string, error) {
	key, out, at := parsedKey(name), "", 0
	for _, s := range lines {
		if full := s.full(); s.list || len(key) == 0 || len(full) < len(key) || !slices.Equal(full[:len(key)], key) {
			continue
		}
		out, at = out+text[at:s.start], s.end
	}
	if at > 0 {
		return out + text[at:], nil
	}
	if _, kind, err := f.kind(name); err != nil {
		return "", err
	} else if kind.Kind() == reflect.Slice && kind.Elem().Kind() == reflect.Struct {
		return "", fmt.Errorf("%s is a list of tables; edit it in the file", name)
	}
	return "", fmt.Errorf("%s is not set in %s", name, f.Path)
}

// CheckKey returns an error for an unknown key of a person's settings, with the nearest one.
func CheckKey(text string) error {
	_, _, err := File{}.kind(text)
	return err
}

// kind splits a key into its parts, and returns the type of its value.
func (f File) kind(text string) (toml.Key, reflect.Type, error) {
	key := parsedKey(text)
	if key == nil {
		return nil, nil, fmt.Errorf("%q is not a key such as sandbox.memory_mb; a name with other characters needs quotes", text)
	}
	in := reflect.TypeFor[Config]()
	if f.Project {
		if in = reflect.TypeFor[Project](); typeAt(in, key) == nil && typeAt(reflect.TypeFor[Config](), key) != nil {
			return nil, nil, notOfProject(text)
		}
	}
	if kind := typeAt(in, key); kind != nil {
		return key, kind, nil
	}
	known := keysAt(in, key[:len(key)-1])
	for len(known) == 0 && len(key) > 1 { // its table is also unknown
		key = key[:len(key)-1]
		known = keysAt(in, key[:len(key)-1])
	}
	return nil, nil, unknown(key.String(), key[len(key)-1], known)
}

// typeAt returns the type of the value at a key; nil means unknown key.
func typeAt(t reflect.Type, key toml.Key) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if len(key) == 0 {
		return t
	}
	switch t.Kind() {
	case reflect.Map:
		return typeAt(t.Elem(), key[1:])
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			if !f.Anonymous && key[0] != "-" && f.Tag.Get("toml") == key[0] {
				return typeAt(f.Type, key[1:])
			}
		}
	}
	return nil
}

// encoded returns a value as TOML writes it.
func encoded(key string, kind reflect.Type, values []string) (string, error) {
	switch {
	case kind.Kind() == reflect.Slice && kind.Elem().Kind() == reflect.String:
		return asTOML(values)
	case kind.Kind() == reflect.Struct, kind.Kind() == reflect.Map:
		return "", fmt.Errorf("%s is a table; name one of its keys: %s", key, strings.Join(keysAt(kind, nil), ", "))
	case kind.Kind() == reflect.Slice:
		return "", fmt.Errorf("%s is a list of tables; edit it in the file", key)
	case len(values) > 1:
		return "", fmt.Errorf("%s takes one value, got %d", key, len(values))
	}
	v := reflect.New(kind).Elem()
	if err := parse(v, values[0]); err != nil {
		return "", fmt.Errorf("%s: %w", key, err)
	}
	if kind == reflect.TypeFor[time.Duration]() || kind.Kind() == reflect.String {
		return asTOML(values[0])
	}
	return asTOML(v.Interface())
}

func asTOML(v any) (string, error) {
	var b bytes.Buffer
	err := toml.NewEncoder(&b).Encode(map[string]any{"v": v})
	return strings.TrimSpace(strings.TrimPrefix(b.String(), "v = ")), err
}

// inserted returns a text with a key added: in its table, next to keys that name the table, or in a new table
// at the end.
func inserted(text string, lines []statement, key toml.Key, value string) string {
	table, name := key[:len(key)-1], key[len(key)-1:]
	at, short, there := -1, name, false
	for _, s := range lines {
		switch {
		case s.list:
		case slices.Equal(s.table, table):
			at, short, there = s.end, name, true
		case !there && s.key != nil && len(s.full()) > len(table) && len(table) > len(s.table) && slices.Equal(s.full()[:len(table)], table):
			at, short = s.end, key[len(s.table):]
		}
	}
	line := spelled(short) + " = " + value + "\n"
	switch {
	case at >= 0:
		if !strings.HasSuffix(text[:at], "\n") {
			line = "\n" + line
		}
		return text[:at] + line + text[at:]
	case len(table) == 0 && len(lines) > 0: // before the first table and its comment
		at = opening(text, lines[0].start)
		return text[:at] + line + "\n" + text[at:]
	case len(table) == 0:
		return ended(text) + line
	}
	if text != "" {
		text = ended(text) + "\n"
	}
	return text + "[" + spelled(table) + "]\n" + line
}

// opening returns the start of the comment directly above a line.
func opening(text string, at int) int {
	for at > 0 {
		before := strings.LastIndexByte(text[:at-1], '\n') + 1
		if !strings.HasPrefix(strings.TrimSpace(text[before:at]), "#") {
			break
		}
		at = before
	}
	return at
}

func ended(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// Key returns one part of a key as TOML writes it.
func Key(part string) string { return bare(part) }

// spelled returns a key as TOML writes it.
func spelled(key toml.Key) string {
	parts := make([]string, len(key))
	for i, part := range key {
		parts[i] = bare(part)
	}
	return strings.Join(parts, ".")
}

// onlyChanged returns an error if two versions of a file differ in more than the changes.
func onlyChanged(before, now map[string]any, changes []Change) error {
	for _, tree := range []map[string]any{before, now} {
		for _, c := range changes {
			without(tree, parsedKey(c.Key))
		}
	}
	if len(before)+len(now) > 0 && !reflect.DeepEqual(before, now) {
		return errors.New("inspan can't edit this file safely; edit it by hand")
	}
	return nil
}

// without removes a key from a tree, and tables that become empty.
func without(tree map[string]any, key toml.Key) {
	if len(key) == 1 {
		delete(tree, key[0])
		return
	}
	inner, ok := tree[key[0]].(map[string]any)
	if !ok {
		return
	}
	if without(inner, key[1:]); len(inner) == 0 {
		delete(tree, key[0])
	}
}
