package protocol

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"unicode/utf8"
)

// Paths, arguments and variables are bytes, but JSON text must be UTF-8. A text of an order that is not UTF-8
// is sent escaped; all others are sent unchanged.

// escaped returns a text, or NUL and the numbers of its bytes if it is not UTF-8. No path, argument or variable
// contains a NUL.
func escaped(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	out := []rune{0}
	for _, b := range []byte(text) {
		out = append(out, rune(b))
	}
	return string(out)
}

// raw is the inverse of escaped.
func raw(text string) string {
	rest, ok := strings.CutPrefix(text, "\x00")
	if !ok {
		return text
	}
	var out []byte
	for _, r := range rest {
		out = append(out, byte(r))
	}
	return string(out)
}

// escapedTree returns a value as json.Marshal would encode it, with its texts escaped.
func escapedTree(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return escapedTree(v.Elem())
	case reflect.String:
		return escaped(v.String())
	case reflect.Slice:
		if v.IsNil() || v.Type().Elem().Kind() == reflect.Uint8 {
			return v.Interface()
		}
		out := make([]any, v.Len())
		for i := range out {
			out[i] = escapedTree(v.Index(i))
		}
		return out
	case reflect.Map:
		out := make(map[string]any, v.Len())
		for _, key := range v.MapKeys() {
			out[escaped(key.String())] = escapedTree(v.MapIndex(key))
		}
		return out
	case reflect.Struct:
		out := make(map[string]any, v.NumField())
		for i := range v.NumField() {
			field := v.Type().Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			switch {
			case field.Anonymous:
				maps.Copy(out, escapedTree(v.Field(i)).(map[string]any))
			case !field.IsExported() || name == "-":
			case name != "":
				out[name] = escapedTree(v.Field(i))
			default:
				out[field.Name] = escapedTree(v.Field(i))
			}
		}
		return out
	}
	return v.Interface()
}

// unescape reverses escapedTree.
func unescape(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			unescape(v.Elem())
		}
	case reflect.String:
		v.SetString(raw(v.String()))
	case reflect.Slice:
		for i := range v.Len() {
			unescape(v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			value := reflect.New(v.Type().Elem()).Elem()
			value.Set(v.MapIndex(key))
			unescape(value)
			v.SetMapIndex(key, reflect.Value{})
			v.SetMapIndex(reflect.ValueOf(raw(key.String())).Convert(key.Type()), value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() || field.Anonymous {
				unescape(v.Field(i))
			}
		}
	}
}

// Marshal is json.Marshal for texts of any bytes.
func Marshal(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil || !strings.Contains(string(data), `\ufffd`) {
		return data, err
	}
	return json.Marshal(escapedTree(reflect.ValueOf(v)))
}

// unmarshal is the inverse of Marshal.
func unmarshal(data []byte, v any) error {
	if err := json.Unmarshal(data, v); err != nil || !strings.Contains(string(data), `"\u0000`) {
		return err
	}
	unescape(reflect.ValueOf(v))
	return nil
}
