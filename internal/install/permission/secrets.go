package permission

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/safety/secret"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

// Note records a secret that was seen. Name describes it.
func (s *Set) Note(name, value string) { s.noted.Store(name, value) }

// secrets returns the values that no session may show: variables named like secrets, passwords in addresses in
// other variables, inspan's own keys, and keys that were noted.
func (s *Set) secrets() map[string]string {
	out := map[string]string{}
	for _, kv := range os.Environ() {
		name, value, _ := strings.Cut(kv, "=")
		if secret.Named(name) && !isPlace(value) {
			out[name] = value
		} else if password := secret.PasswordOf(value); password != "" {
			out["the password in "+name] = password
		}
	}
	for _, name := range s.keys() {
		out[name] = os.Getenv(name)
	}
	s.noted.Range(func(name, key any) bool {
		out[name.(string)], _ = key.(string)
		return true
	})
	return out
}

// isPlace reports whether a value is the path of an existing file in a folder, as in SSH_AUTH_SOCK and
// GOOGLE_APPLICATION_CREDENTIALS. Someone who works in the workspace can't create a file whose full path is the
// secret. Secrets that happen to begin with a slash, as base64 may, are never below a folder.
func isPlace(value string) bool {
	if !filepath.IsAbs(value) || filepath.Clean(value) != value || filepath.Dir(filepath.Dir(value)) == filepath.Dir(value) {
		return false
	}
	_, err := os.Stat(value)
	return err == nil
}

// keys returns the variables that hold inspan's own keys: for providers, tools, the web and notifications.
func (s *Set) keys() []string {
	var out []string
	out = append(out, s.Keys()...)
	for _, byTool := range s.Config.ToolSecrets {
		for _, names := range byTool {
			out = append(out, names...)
		}
	}
	for _, s := range s.Config.Web.Secrets {
		out = append(out, s.Env)
	}
	out = append(out, s.Config.Web.KeyEnv, s.Config.Notify.TokenEnv)
	return slices.DeleteFunc(out, func(name string) bool { return name == "" })
}

// Withheld lists the environment variables that commands don't get in a mode.
func (s *Set) Withheld(mode tool.Mode) []sandbox.Withheld {
	return sandbox.Withhold(os.Environ(), s.walls(places.Map{}, ""), mode == tool.ModeYolo)
}

// Explained returns, by name, the reason why a variable is withheld, for the output of failed commands.
func (s *Set) Explained(mode tool.Mode) map[string]string {
	out := map[string]string{}
	for _, w := range s.Withheld(mode) {
		out[w.Name] = w.Why
	}
	return out
}
