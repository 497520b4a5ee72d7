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

// Note takes a secret down that was seen. Name says what it is.
func (s *Set) Note(name, value string) { s.noted.Store(name, value) }

// secrets are the values that no session may show: those of variables that are
// called like secrets, passwords in the addresses of others, and the keys that commands have printed.
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

// isPlace reports whether a value says where something is, as those of SSH_AUTH_SOCK and
// GOOGLE_APPLICATION_CREDENTIALS do: the full path of what is there now, in a folder. Whoever
// works in the workspace can name a file like a secret there, but not so that its full path is
// the secret. What begins with a slash by chance, as base64 may, is in no folder but the root.
func isPlace(value string) bool {
	if !filepath.IsAbs(value) || filepath.Clean(value) != value || filepath.Dir(filepath.Dir(value)) == filepath.Dir(value) {
		return false
	}
	_, err := os.Stat(value)
	return err == nil
}

// keys are the variables that hold keys of inspan itself: of its providers, of its
// tools and of the web.
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

// Withheld lists the variables of the environment that commands don't get in a
// mode.
func (s *Set) Withheld(mode tool.Mode) []sandbox.Withheld {
	return sandbox.Withhold(os.Environ(), s.walls(places.Map{}, ""), mode == tool.ModeYolo)
}

// Explained is what of that a failed command is told, by name.
func (s *Set) Explained(mode tool.Mode) map[string]string {
	out := map[string]string{}
	for _, w := range s.Withheld(mode) {
		out[w.Name] = w.Why
	}
	return out
}
