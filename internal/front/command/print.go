package command

import (
	"encoding/json"
	"io"
	"reflect"
)

// printJSON prints a value as JSON for people.
func printJSON(out io.Writer, v any) error {
	if list := reflect.ValueOf(v); list.Kind() == reflect.Slice && list.IsNil() {
		v = []any{}
	}
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
