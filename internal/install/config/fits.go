package config

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// fitting checks a TOML tree against the types of the settings before it is decoded. The decoder's errors are
// for programmers, and it stops at the first.
type fitting struct {
	mask    *mask
	project bool // of a project, which can set few keys
	wrong   []misfit
}

// misfit is an invalid value or key.
type misfit struct {
	key string
	err error
}

// value returns the valid part of a value; ok is false if nothing is valid.
func (f *fitting) value(t reflect.Type, key string, v any) (fits any, ok bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	table, isTable := v.(map[string]any)
	switch {
	case t.Kind() == reflect.Interface:
		return v, true
	case t.Kind() == reflect.Struct && isTable:
		return f.fields(t, key, table), true
	case t.Kind() == reflect.Map && isTable:
		out := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(table)) {
			if kid, ok := f.value(t.Elem(), below(key, bare(name)), table[name]); ok {
				out[name] = kid
			}
		}
		return out, true
	case t.Kind() == reflect.Slice && isList(v):
		return f.list(t, key, reflect.ValueOf(v))
	}
	if problem := misfits(t, v); problem != "" {
		f.add(key, "%s: %s is not %s", key, f.shown(v), problem)
		return nil, false
	}
	return v, true
}

func (f *fitting) add(key, format string, args ...any) {
	f.wrong = append(f.wrong, misfit{key, fmt.Errorf(format, args...)})
}

// fields returns the valid keys of a table for a struct, spelled as the struct has them. The decoder takes keys in any
// case, so two spellings of one key would hide each other.
func (f *fitting) fields(t reflect.Type, key string, table map[string]any) map[string]any {
	out, spelled := map[string]any{}, map[string]string{}
	known := keysAt(t, nil)
	for _, name := range slices.Sorted(maps.Keys(table)) {
		full := below(key, bare(name))
		is := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(k, name) })
		switch {
		case is < 0 && f.project && key == "" && typeAt(reflect.TypeFor[Config](), []string{name}) != nil:
			f.wrong = append(f.wrong, misfit{full, notOfProject(name)})
			continue
		case is < 0:
			f.wrong = append(f.wrong, misfit{full, unknown(full, name, known)})
			continue
		case spelled[known[is]] != "":
			f.add(full, "%s and %s are the same key; remove one", below(key, spelled[known[is]]), full)
			continue
		}
		spelled[known[is]] = name
		if kid, ok := f.value(typeAt(t, []string{known[is]}), full, table[name]); ok {
			out[known[is]] = kid
		}
	}
	return out
}

func isList(v any) bool { return reflect.ValueOf(v).Kind() == reflect.Slice }

// list returns a list if all its elements are valid, so that indexes are those in the file.
func (f *fitting) list(t reflect.Type, key string, list reflect.Value) (fits any, ok bool) {
	before := len(f.wrong)
	for i := range list.Len() {
		f.value(t.Elem(), fmt.Sprintf("%s[%d]", key, i), list.Index(i).Interface())
	}
	return list.Interface(), len(f.wrong) == before
}

// shown formats a value for a message, without secrets.
func (f *fitting) shown(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "a table"
	case string:
		return fmt.Sprintf("%.80q", f.mask.text(v))
	}
	if isList(v) {
		return "a list"
	}
	return fmt.Sprint(v)
}

// misfits returns the description of the expected value, with a hint; empty means the value is valid.
func misfits(t reflect.Type, v any) string {
	written, quoted := v.(string)
	unquoted := func(want string) string {
		if quoted && parse(reflect.New(t).Elem(), written) == nil {
			return want + "; write " + written + " without quotes"
		}
		return want
	}
	number, whole := v.(int64)
	broken, fraction := v.(float64)
	switch {
	case t == reflect.TypeFor[time.Duration]():
		switch err := parse(reflect.New(t).Elem(), written); {
		case quoted && err == nil, whole && number == 0:
			return ""
		case whole:
			return fmt.Sprintf("a time; it needs a unit, as in \"%ds\"", number)
		}
		return aTime
	case t.Kind() == reflect.String:
		if quoted {
			return ""
		}
		return "a text in quotes"
	case t.Kind() == reflect.Bool:
		if _, ok := v.(bool); ok {
			return ""
		}
		return unquoted("true or false")
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64:
		if whole {
			return ""
		}
		return unquoted("a whole number")
	case t.Kind() == reflect.Float64:
		switch {
		case whole, fraction && isFinite(broken):
			return ""
		case fraction:
			return "a finite number"
		}
		return unquoted("a number")
	case t.Kind() == reflect.Slice:
		if quoted && t.Elem().Kind() == reflect.String {
			return "a list; write [" + strconv.Quote(written) + "]"
		}
		return "a list"
	}
	return "a table"
}

const aTime = `a time such as "90s" or "2h"`

// isFinite reports whether a number is neither infinite nor NaN.
func isFinite(f float64) bool { return !math.IsInf(f, 0) && !math.IsNaN(f) }

// below returns the path of a key in a table; the fields of an embedded struct have no path of their own.
func below(table, key string) string { return strings.Trim(table+"."+key, ".") }

// notOfProject returns the error about a setting that only a person may set.
func notOfProject(key string) error {
	may := strings.Join(keysAt(reflect.TypeFor[Project](), nil), ", ")
	return fmt.Errorf("a project can't set %s, only %s; set it in your own settings", key, may)
}

// unknown returns the error about an unknown key, with the nearest known one.
func unknown(key, name string, known []string) error {
	secrets := []string{"api_key", "apikey", "key", "token", "auth_token", "api-key"} // in other programs
	if slices.Contains(secrets, strings.ToLower(name)) && slices.Contains(known, "key_env") {
		return fmt.Errorf("unknown key %q; settings hold no keys: name the variable with key_env, or run 'inspan setup'", key)
	}
	complexity := [2]string{"max_tokens", "inspan no longer scores the words of a task; write hard = true or hard = false, or said = \"...\" with your own expression"}
	gone := map[string][2]string{ // keys of earlier versions: another key of their table, and the replacement
		"hard": {"routes", "inspan no longer scores the words of a task; set begin = \"local\" or begin = \"cloud\", or a judge, " +
			"or write rules with when = { hard = true }"},
		"min_complexity": complexity, "max_complexity": complexity,
	}
	if instead, is := gone[name]; is && slices.Contains(known, instead[0]) {
		return fmt.Errorf("unknown key %q; %s", key, instead[1])
	}
	near := didYouMean(name, known)
	if near == "" {
		near = "; known here: " + strings.Join(known, ", ")
	}
	return fmt.Errorf("unknown key %q%s", key, near)
}
