package plugin_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/extend/plugin"
)

// put writes files; one whose name ends in * is executable.
func put(t *testing.T, dir string, files map[string]string) string {
	t.Helper()
	for name, text := range files {
		name, exec := strings.CutSuffix(name, "*")
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if exec {
			mode = 0o755
		}
		if err := os.WriteFile(at, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(at, mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const manifest = ".claude-plugin/plugin.json"

// full has one of each kind of part.
func full() map[string]string {
	return map[string]string{
		manifest: `{"name":"acme","version":"1.0.0","description":"Does ` +
			`all.","author":{"name":"Ann"},"license":"MIT","homepage":"https://acme.example","keywords":["x"]}`,
		"commands/review.md":  "---\ndescription: Reviews.\n---\nReview with ${CLAUDE_PLUGIN_ROOT}/rules.txt $ARGUMENTS",
		"commands/git/log.md": "Show the log.",
		"agents/critic.md": "---\nname: critic\ndescription: Finds flaws.\nskills: deploy\n---\n" +
			"You find flaws; see ${INSPAN_PLUGIN_ROOT}/rules.txt.",
		"skills/deploy/SKILL.md":       "---\nname: deploy\ndescription: Ships it.\nallowed-tools: Bash(touch:*)\n---\nShip it.",
		"skills/deploy/scripts/go.sh*": "#!/bin/sh\necho go\n",
		"hooks/hooks.json": `{"description":"x","hooks":{"PostToolUse":[{"matcher":"Write","hooks":[{"type":"command",` +
			`"command":"${CLAUDE_PLUGIN_ROOT}/scripts/fmt.sh"}]}]}}`,
		"scripts/fmt.sh*":    "#!/bin/sh\nexit 0\n",
		"tools/shout*":       "#!/bin/sh\necho '{}'\n",
		"tools/whisper/run*": "#!/bin/sh\necho '{}'\n",
		"tools/whisper/lib":  "x",
		".mcp.json": `{"mcpServers":{"db":{"command":"${CLAUDE_PLUGIN_ROOT}/db","args":["--port","1"],"env":{"TOKEN":"hush",` +
			`"A":"b"}}}}`,
		"rules.txt": "Be nice.",
		"same.txt":  "Be nice.",
	}
}

// with is full with some files in the place of others; an empty one is left out.
func with(more map[string]string) map[string]string {
	files := full()
	for name, text := range more {
		files[name] = text
		if text == "" {
			delete(files, name)
		}
	}
	return files
}

func git(_ context.Context, dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("GIT_TEST_HOME"), "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_NOSYSTEM=1"}
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		err = errors.New(errs.String())
	}
	return string(out), err
}

// repository makes a git repository of files.
func repository(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	put(t, dir, files)
	run(t, dir, "init", "--quiet", "--initial-branch=main")
	commit(t, dir)
}

func commit(t *testing.T, dir string) string {
	t.Helper()
	run(t, dir, "add", "--all", "--force")
	run(t, dir, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--allow-empty", "--message=x")
	return strings.TrimSpace(run(t, dir, "rev-parse", "HEAD"))
}

func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := git(t.Context(), dir, args...)
	if err != nil {
		t.Fatalf("git %v: %v", args, err)
	}
	return out
}

func store(t *testing.T) *plugin.Store {
	t.Helper()
	t.Setenv("GIT_TEST_HOME", t.TempDir())
	return &plugin.Store{Dir: filepath.Join(t.TempDir(), "plugins"), Git: git}
}

// install installs and enables.
func install(t *testing.T, s *plugin.Store, from string) plugin.Plugin {
	t.Helper()
	p, err := s.Install(t.Context(), from)
	if err == nil {
		err = s.Enable(t.Context(), p.Name, p.Digest)
	}
	if err != nil {
		t.Fatal(err)
	}
	return get(t, s, p.Name)
}

func get(t *testing.T, s *plugin.Store, name string) plugin.Plugin {
	t.Helper()
	p, err := s.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// refused holds that an error says something.
func refused(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

// empty checks that a failure leaves nothing behind.
func empty(t *testing.T, s *plugin.Store) {
	t.Helper()
	if list, err := s.List(t.Context()); err != nil || len(list) > 0 {
		t.Errorf("%v %v", list, err)
	}
	entries, _ := os.ReadDir(s.Dir)
	for _, e := range entries {
		if e.Name() != "lock" && e.Name() != "plugins.json" {
			t.Errorf("%s is left behind", e.Name())
		}
	}
}
