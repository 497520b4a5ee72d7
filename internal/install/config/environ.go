package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/llm/router"
)

// Settings come from the file, a preset, the environment, [SettingsVariable] and flags; later ones override earlier ones. In the
// environment, each setting with a single value has its name from the file in capitals after INSPAN_, with two
// underscores for a dot: INSPAN_MAX_TURNS, INSPAN_SANDBOX__OFF. An empty variable counts as missing. These are
// not in the file:
const (
	PresetVariable  = "INSPAN_PRESET"   // see Preset
	StoreVariable   = "INSPAN_STORE"    // URL of a shared store; not a setting, as it may contain a password
	baseURLVariable = "INSPAN_BASE_URL" // address of the provider of the model in use
	keyVariable     = "INSPAN_API_KEY"  // key of that provider
	modelVariable   = "INSPAN_MODEL"
)

// Presets lists the presets with descriptions.
func Presets() [][2]string {
	return [][2]string{{
		"container",
		"for throwaway machines: mode yolo, no turn limit, and processes keep running after the session",
	}}
}

// preset applies a preset.
func (c *Config) preset(name string) error {
	switch name {
	case "":
		return nil
	case "container":
		none := 0
		c.Mode, c.MaxTurns, c.Leftovers = "yolo", &none, "keep"
		return nil
	}
	var names []string
	for _, p := range Presets() {
		names = append(names, p[0])
	}
	return fmt.Errorf("%s: unknown preset %q%s", PresetVariable, name, cmp.Or(didYouMean(name, names), "; use "+strings.Join(names, " or ")))
}

// Over overrides settings with the preset and the variables of an environment. It returns the settings that it
// changed, and warnings about unknown variables that begin with INSPAN_. An invalid value is an error that
// names its variable.
func (c *Config) Over(environment []string) (set []Setting, warnings []string, err error) {
	values := map[string]string{}
	for _, kv := range environment {
		if name, value, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "INSPAN_") && value != "" {
			values[name] = value
		}
	}
	if err := c.preset(values[PresetVariable]); err != nil {
		return nil, nil, err
	}
	if name := values[PresetVariable]; name != "" {
		for key, value := range map[string]string{"mode": string(c.Mode), "max_turns": strconv.Itoa(*c.MaxTurns), "leftovers": c.Leftovers} {
			set = append(set, Setting{Key: key, Value: value, File: "preset " + name})
		}
		slices.SortStableFunc(set, func(a, b Setting) int { return strings.Compare(a.Key, b.Key) })
	}
	keys := scalars(reflect.TypeFor[Config](), "")
	known := append(slices.Sorted(maps.Keys(keys)), // and variables that are not settings
		"INSPAN_CONFIG_DIR", "INSPAN_STATE_DIR", "INSPAN_REMOTE_TOKEN", SettingsVariable, PresetVariable, StoreVariable, baseURLVariable, keyVariable)
	ours := []string{ // set for commands, tools and hooks
		"INSPAN_CALL", "INSPAN_SESSION", "INSPAN_AGENT", "INSPAN_PARENT", "INSPAN_LEAD", "INSPAN_ROOT", "INSPAN_KEY", "INSPAN_PLUGIN_ROOT",
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case keys[name] != "":
			names = append(names, name)
			shown := newMask().value(strings.Split(keys[name], "."), values[name])
			set = append(set, Setting{Key: keys[name], Value: written(shown), File: name})
		case !slices.Contains(known, name) && !slices.Contains(ours, name):
			warnings = append(warnings, name+" is not a setting"+didYouMean(name, known))
		}
	}
	before := *c
	if err := c.putAll(keys, values, names); err != nil {
		return nil, nil, before.blame(keys, values, names, err)
	}
	return set, warnings, nil
}

// putAll sets the values of some variables, and checks the result.
func (c *Config) putAll(keys, values map[string]string, names []string) error {
	for _, name := range names {
		if err := c.put(keys[name], values[name]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return first(c.check())
}

// first returns the first of joined errors.
func first(err error) error {
	if all := single(err); len(all) > 0 {
		return all[0]
	}
	return nil
}

// blame names the variable that causes an error: without it, there is none.
func (c Config) blame(keys, values map[string]string, names []string, err error) error {
	if strings.HasPrefix(err.Error(), "INSPAN_") {
		return err
	}
	for i, name := range names {
		without := c
		if without.putAll(keys, values, slices.Delete(slices.Clone(names), i, i+1)) == nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return fmt.Errorf("%s: %w", strings.Join(names, ", "), err)
}

// didYouMean is like words.DidYouMean.
func didYouMean(want string, names []string) string {
	if near := text.Nearest(want, names); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// Aim sets the address and the key of a model's provider from the environment. The model that the environment
// names takes precedence: an address must not get the key of another provider. Without a model name it changes
// nothing. Route resolves a name to "provider/model".
func (c *Config) Aim(model string, route func(name string) (string, error)) error {
	url, key := os.Getenv(baseURLVariable), os.Getenv(keyVariable)
	if url == "" && key == "" {
		return nil
	}
	model, err := route(cmp.Or(os.Getenv(modelVariable), model, c.Model))
	if err != nil {
		return err
	}
	name, _, _ := strings.Cut(model, "/")
	if name == "" || name == "script" || name == router.Provider {
		return nil
	}
	p := c.Providers[name]
	if url != "" {
		p.BaseURL = url
	}
	if key != "" {
		p.KeyEnv, p.KeyCommand, p.OAuth = keyVariable, "", nil
	}
	if err := first(p.check()); err != nil {
		return fmt.Errorf("%s: %w", baseURLVariable, err)
	}
	c.Providers = maps.Clone(c.Providers)
	if c.Providers == nil {
		c.Providers = map[string]Provider{}
	}
	c.Providers[name] = p
	return nil
}

// scalars maps the variables of settings with a single value to their dotted keys.
func scalars(t reflect.Type, prefix string) map[string]string {
	out := map[string]string{}
	for _, f := range reflect.VisibleFields(t) {
		kind := f.Type
		if kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		key := below(prefix, f.Tag.Get("toml"))
		switch kind.Kind() {
		case reflect.Struct:
			if !f.Anonymous {
				maps.Copy(out, scalars(kind, key))
			}
		case reflect.String, reflect.Bool, reflect.Int, reflect.Int64, reflect.Float64:
			out["INSPAN_"+strings.ToUpper(strings.ReplaceAll(key, ".", "__"))] = key
		}
	}
	return out
}

// put sets the value at a dotted key.
func (c *Config) put(key, text string) error {
	v := reflect.ValueOf(c).Elem()
	for name := range strings.SplitSeq(key, ".") {
		v = v.FieldByNameFunc(func(field string) bool {
			f, _ := v.Type().FieldByName(field)
			return f.Tag.Get("toml") == name
		})
		if v.Kind() == reflect.Pointer {
			fresh := reflect.New(v.Type().Elem()) // not shared with another Config
			if !v.IsNil() {
				fresh.Elem().Set(v.Elem())
			}
			v.Set(fresh)
			v = fresh.Elem()
		}
	}
	return parse(v, text)
}

// parse parses a value as in the file, without quotes.
func parse(v reflect.Value, text string) error {
	want := func(what string) error { return fmt.Errorf("%q is not %s", text, what) }
	if v.Type() == reflect.TypeFor[time.Duration]() {
		d, err := time.ParseDuration(text)
		if err != nil && text != "0" {
			return want(aTime)
		}
		v.SetInt(int64(d))
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return want("true or false")
		}
		v.SetBool(b)
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return want("a whole number")
		}
		v.SetInt(n)
	case reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || !isFinite(f) {
			return want("a number")
		}
		v.SetFloat(f)
	default:
		return errors.New("it can be set only in the file")
	}
	return nil
}
