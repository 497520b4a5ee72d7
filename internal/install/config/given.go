package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// SettingsVariable names a settings file for this process and its children, or has settings as JSON. They come
// before the file, the preset and the other variables.
const SettingsVariable = "INSPAN_SETTINGS"

// Given is settings that a person gives for one run.
type Given struct {
	from string         // what they come from, for people
	tree map[string]any // nil means there are none
}

// ReadGiven reads settings as the settings file has them: in a TOML or JSON file, or as JSON itself, which
// messages call by name. Empty text gives none.
func ReadGiven(name, text string) (g Given, err error) {
	if text == "" {
		return g, nil
	}
	g.from = name
	data := []byte(text)
	if !isObject(data) {
		g.from = text
		if data, err = ReadFile(text); err != nil {
			return g, err
		}
	}
	var c Config
	tree := map[string]any{}
	if isObject(data) {
		if tree, err = jsonTree(data); err != nil {
			return g, fmt.Errorf("%s: it is not JSON: %w", g.from, err)
		}
		c, err = decodeTree(g.from, tree)
	} else if err = Decode(g.from, data, &tree); err == nil {
		c, err = decoded[Config](g.from, data, tree)
	}
	g.tree, _ = fitted[Config]("", "", tree)
	return g, errors.Join(err, Faulty(g.from, c.check()))
}

func isObject(data []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) }

// jsonTree decodes a JSON object with whole numbers as such.
func jsonTree(data []byte) (map[string]any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var tree map[string]any
	if err := dec.Decode(&tree); err != nil {
		return nil, err
	}
	if dec.More() {
		return nil, errors.New("something follows the object")
	}
	numbers(tree)
	return tree, nil
}

// numbers replaces the numbers of a decoded JSON value by those that TOML has.
func numbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key := range v {
			v[key] = numbers(v[key])
		}
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64() // it is a number of JSON
		return f
	}
	return v
}

// decodeTree decodes settings that don't come from a file of TOML, so that faults have no line.
func decodeTree(path string, tree map[string]any) (c Config, err error) {
	fits, errs := fitted[Config](path, "", tree)
	var b bytes.Buffer
	if err := toml.NewEncoder(&b).Encode(fits); err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	c, err = decoded[Config](path, b.Bytes(), fits)
	for _, fault := range Faults(err) {
		fault.Line = 0
		errs = append(errs, fault)
	}
	return c, errors.Join(errs...)
}

// over returns the settings of a file with the given ones over them. Rules are added; other lists are replaced.
func (g Given) over(path string) (Config, error) {
	_, tree, err := parsed(path)
	if err != nil {
		return Config{}, err
	}
	tree, _ = fitted[Config]("", "", tree)
	merged := maps.Clone(tree)
	merge(merged, g.tree)
	for _, key := range []string{"allow", "ask", "deny", "rule"} {
		merged[key] = joined(tree[key], g.tree[key])
		if merged[key] == nil {
			delete(merged, key)
		}
	}
	c, err := decodeTree(g.from, merged)
	return c, errors.Join(err, Faulty(g.from, c.check()))
}

// merge puts the values of a tree over those of another.
func merge(into, from map[string]any) {
	for key, value := range from {
		inner, isTable := value.(map[string]any)
		below, wasTable := into[key].(map[string]any)
		if isTable && wasTable {
			below = maps.Clone(below)
			merge(below, inner)
			value = below
		}
		into[key] = value
	}
}

// joined returns the elements of both lists; nil means there are none.
func joined(lists ...any) any {
	var all []any
	for _, list := range lists {
		v := reflect.ValueOf(list)
		if list == nil || v.Kind() != reflect.Slice {
			continue
		}
		for i := range v.Len() {
			all = append(all, v.Index(i).Interface())
		}
	}
	if all == nil {
		return nil
	}
	return all
}

// variables returns the given settings that are single values as variables of an environment, so that they
// override the preset and other variables.
func (g Given) variables() (out []string) {
	names := map[string]string{}
	for name, key := range scalars(reflect.TypeFor[Config](), "") {
		names[key] = name
	}
	walk("", g.tree, func(key string, value any) {
		if name := names[key]; name != "" {
			out = append(out, name+"="+fmt.Sprint(value))
		}
	})
	return out
}

// walk calls found for each value of a tree that is not a table.
func walk(prefix string, tree map[string]any, found func(key string, value any)) {
	for key, value := range tree {
		if inner, ok := value.(map[string]any); ok {
			walk(below(prefix, key), inner, found)
			continue
		}
		found(below(prefix, key), value)
	}
}

// settings returns the given settings for a list, with *** for possible secrets.
func (g Given) settings() (out []Setting) {
	tree, _ := newMask().value(nil, g.tree).(map[string]any)
	flatten("", tree, func(key, value string) {
		out = append(out, Setting{Key: key, Value: value, File: g.from})
	})
	slices.SortFunc(out, func(a, b Setting) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// loaded returns the settings of a file, with those of the environment over them.
func loaded(path string) (c Config, set []Setting, warnings []string, err error) {
	if c, err = Load(path); err != nil {
		return c, nil, nil, err
	}
	given, err := ReadGiven(SettingsVariable, os.Getenv(SettingsVariable))
	if err == nil && given.tree != nil {
		c, err = given.over(path)
	}
	if err != nil {
		return c, nil, nil, err
	}
	set, warnings, err = c.Over(slices.Concat(os.Environ(), given.variables()))
	set = slices.DeleteFunc(set, func(s Setting) bool {
		return slices.ContainsFunc(given.settings(), func(g Setting) bool { return g.Key == s.Key })
	})
	return c, append(set, given.settings()...), warnings, err
}
