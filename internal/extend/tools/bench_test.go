package tools_test

import (
	"go/build"
	"path/filepath"
	"testing"
)

// BenchmarkSearch searches the source of the Go distribution.
func BenchmarkSearch(b *testing.B) {
	for name, a := range map[string]args{
		"literal":     {"pattern": "func NoSuchFunction"},
		"regexp":      {"pattern": `NoSuch\w+Function\d`},
		"ignore case": {"pattern": "nosuchfunction", "ignore_case": true},
	} {
		b.Run(name, func(b *testing.B) {
			s := newSession(b)
			s.cwd = filepath.Join(build.Default.GOROOT, "src")
			for b.Loop() {
				s.run("search_files", a)
			}
		})
	}
}
