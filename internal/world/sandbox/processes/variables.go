package processes

import (
	"regexp"
	"slices"
	"strings"
)

// UserInfo matches a password inside a URL.
var UserInfo = regexp.MustCompile(`://[^/\s]*@`)

// SetVars returns an environment with some variables replaced, and without those given only by name.
func SetVars(env []string, vars ...string) []string {
	named := map[string]bool{}
	for _, kv := range vars {
		name, _, _ := strings.Cut(kv, "=")
		named[name] = true
	}
	unset := func(kv string) bool { return !strings.Contains(kv, "=") }
	out := slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return named[name]
	})
	return append(out, slices.DeleteFunc(slices.Clone(vars), unset)...)
}
