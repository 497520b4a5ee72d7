package secret

import (
	"slices"
	"strings"
)

// Named reports whether the name of an environment variable suggests a secret. In doubt it returns true. The
// working folders of a shell, folders of secrets, and switches are not secrets.
func Named(variable string) bool {
	name := strings.ToUpper(variable)
	if variable == "PWD" || variable == "OLDPWD" || strings.HasSuffix(name, "_DIR") || strings.HasSuffix(name, "_BYPASS") {
		return false
	}
	for _, part := range []string{"KEY", "TOKEN", "SECRET", "PASSW", "PASSPHRASE", "CREDENTIAL", "COOKIE", "JWT", "OTLP_HEADERS"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	words := strings.Split(name, "_")
	for _, w := range words {
		if strings.HasPrefix(w, "BEARER") || slices.Contains([]string{"AUTH", "PAT", "PWD"}, w) {
			return true
		}
	}
	bare := strings.TrimRight(name, "0123456789")
	if bare != name {
		bare = strings.TrimSuffix(bare, "_")
	}
	last := bare[strings.LastIndexByte(bare, '_')+1:]
	return slices.Contains([]string{"PASS", "DSN", "SEED", "SK"}, last)
}
