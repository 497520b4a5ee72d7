package workflow

import (
	"embed"
	"iter"
	"strings"
)

//go:embed builtin/*.yaml
var builtin embed.FS

// BuiltIn yields the files of the built-in workflows, by name.
func BuiltIn() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		entries, err := builtin.ReadDir("builtin")
		if err != nil {
			return
		}
		for _, e := range entries {
			data, err := builtin.ReadFile("builtin/" + e.Name())
			if err != nil || !yield(strings.TrimSuffix(e.Name(), ".yaml"), data) {
				return
			}
		}
	}
}
