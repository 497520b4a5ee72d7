package sandbox

import (
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/tool"
)

// without returns the names in an environment that are not our settings.
func without(env []string) []string {
	env = slices.DeleteFunc(env, func(kv string) bool { return slices.Contains(settings(false), kv) })
	for i, kv := range env {
		env[i], _, _ = strings.Cut(kv, "=")
	}
	return env
}

func TestEnviron(t *testing.T) {
	ours := []string{
		"PATH=/bin:/w/bin:bin", "HOME=/home/x", "PIP_BREAK_SYSTEM_PACKAGES=1", "JAVA_HOME=/j", "HTTP_PROXY=http://proxy:1", "NO_PROXY=localhost",
		"ANY_ENV_OF_AN_IMAGE=i", "PYTHONPATH=/p", "GIT_AUTHOR_NAME=x",
		"GIT_SSH_COMMAND=ssh -v", "CI=1", "TOKENIZERS_PARALLELISM=false", "MAX_TOKENS=128000", "EMPTY_KEY=",
		// named like secrets
		"ANTHROPIC_API_KEY=a", "AWS_SECRET_ACCESS_KEY=b", "GITHUB_TOKEN=c", "MY_PASSWORD=d", "SSH_AUTH_SOCK=/e", "NPM_AUTH=f", "NAMED_TOKEN=k",
		"MINE=l",
		// secrets by their value
		"https_proxy=http://u:p@proxy", "DATABASE_URL=postgres://app:hunter2hunter2@db/x", "PLAIN=ghp_f7Kq2LmX9vRt4YsB6nWc3ZpD8hJg5EaU1oQi",
		"DB_PASS=hunter2hunter2",
		// variables that steer programs
		"BASH_ENV=j", "ENV=j", "LD_PRELOAD=/x.so", "PROMPT_COMMAND=x", "BASH_FUNC_cat%%=() { x; }", "GIT_DIR=/x", "GIT_CONFIG_GLOBAL=/x",
		"GIT_EXTERNAL_DIFF=x", "INSPAN_MODEL=m", "INSPAN_API_KEY=n",
		// variables of shells, and those that our settings replace
		"PWD=/w", "SHLVL=1", "PAGER=less", "TERM=xterm",
	}
	o := Options{Environ: []string{"NAMED_TOKEN"}, Keys: []string{"MINE", "ANTHROPIC_API_KEY"}}
	usual := []string{
		"ANY_ENV_OF_AN_IMAGE", "CI", "EMPTY_KEY", "GIT_AUTHOR_NAME", "GIT_SSH_COMMAND", "HOME", "HTTP_PROXY", "JAVA_HOME",
		"MAX_TOKENS", "NAMED_TOKEN", "NO_PROXY", "PATH", "PIP_BREAK_SYSTEM_PACKAGES", "PYTHONPATH", "TOKENIZERS_PARALLELISM",
	}
	for _, tc := range []struct {
		name string
		o    Options
		c    tool.Command
		want []string
	}{
		{"usual", o, tool.Command{}, usual},
		{
			"reads", o,
			tool.Command{Box: tool.Box{Level: tool.BoxRead}},
			[]string{
				"ANY_ENV_OF_AN_IMAGE", "CI", "EMPTY_KEY", "GIT_AUTHOR_NAME", "HOME", "HTTP_PROXY", "MAX_TOKENS", "NAMED_TOKEN", "NO_PROXY",
				"PATH", "PIP_BREAK_SYSTEM_PACKAGES", "TOKENIZERS_PARALLELISM",
			},
		},
		{"container", Options{Environ: o.Environ, Container: &Container{}}, tool.Command{}, []string{"CI", "NAMED_TOKEN"}},
		{"complete", o, tool.Command{Env: []string{"A=b", "C=d"}, Vars: []string{"A", "MY_PASSWORD=of the model"}}, []string{"C", "MY_PASSWORD"}},
		{
			"varied",
			Options{Environ: o.Environ, Container: &Container{}},
			tool.Command{Vars: []string{"CI", "A=b"}},
			[]string{"A", "CI", "NAMED_TOKEN"},
		},
	} {
		if got := without(environ(ours, tc.o, "/w", tc.c)); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
	if env := environ(ours, o, "/w", tool.Command{Box: tool.Box{Level: tool.BoxRead}}); !slices.Contains(env, "PATH=/bin") ||
		!slices.Contains(env, "PAGER=cat") {
		t.Errorf("reads: %q", env)
	}
	whole := without(environ(ours, o, "/w", tool.Command{Pass: tool.Pass{All: true}}))
	for _, kv := range ours {
		name, _, _ := strings.Cut(kv, "=")
		held := slices.Contains([]string{"MINE", "ANTHROPIC_API_KEY", "INSPAN_API_KEY", "PWD", "SHLVL", "PAGER", "TERM"}, name)
		if slices.Contains(whole, name) == held {
			t.Errorf("whole: %s: held back: %t", name, held)
		}
	}
}

func TestWithhold(t *testing.T) {
	got := Withhold([]string{"A=b", "B_TOKEN=x", "LD_PRELOAD=y", "KEY_OF_OURS=z", "PWD=/w", "C=http://u:p@h"},
		Options{Keys: []string{"KEY_OF_OURS"}}, false)
	want := []Withheld{
		{"B_TOKEN", "looks like a secret"},
		{"C", "looks like a secret"},
		{"KEY_OF_OURS", "is a key of inspan itself"},
		{"LD_PRELOAD", "steers what shells, git or the loader run"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestEditors checks that a command without a terminal gets an editor that does nothing, and one on a terminal the
// person's.
func TestEditors(t *testing.T) {
	ours := []string{"EDITOR=nano", "PATH=/bin"}
	plain := environ(ours, Options{}, "/w", tool.Command{})
	terminal := environ(ours, Options{}, "/w", tool.Command{TTY: tool.TTY{Rows: 40, Cols: 120}})
	for _, name := range []string{"EDITOR", "VISUAL", "GIT_EDITOR"} {
		if !slices.Contains(plain, name+"=true") || slices.Contains(terminal, name+"=true") {
			t.Errorf("%s: %q, and on a terminal %q", name, plain, terminal)
		}
	}
	if !slices.Contains(terminal, "EDITOR=nano") {
		t.Errorf("on a terminal %q", terminal)
	}
}
