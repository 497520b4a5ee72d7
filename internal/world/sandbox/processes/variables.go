package processes

import (
	"regexp"
	"slices"
	"strings"
)

// UserInfo matches a password inside a URL.
var UserInfo = regexp.MustCompile(`://[^/\s]*@`)

// MavenOptions is the variable with options for the Java that runs Maven. Java reads no variables for proxies,
// certificates or caches.
const MavenOptions = "MAVEN_OPTS"

// WithOptions returns a variable that holds options: those that it has in an environment, and more.
func WithOptions(env []string, name string, more ...string) string {
	had := ""
	for _, kv := range env {
		if value, is := strings.CutPrefix(kv, name+"="); is {
			had = value
		}
	}
	return name + "=" + strings.TrimSpace(had+" "+strings.Join(more, " "))
}

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
