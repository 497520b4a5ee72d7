//go:build linux

package command

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// scriptOf runs a script of the repository, and returns what it printed.
func scriptOf(t *testing.T, dir string, env []string, name string, args ...string) (code int, out string) {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../..", name))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	raw, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(raw)
}

// fakeReleases serves one release, whose binary is a script, as the pages of a repository do.
func fakeReleases(t *testing.T, name, version string, broken bool) (url string) {
	t.Helper()
	binary := []byte("#!/bin/sh\necho inspan " + version + "\n")
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	w := tar.NewWriter(z)
	err := w.WriteHeader(&tar.Header{Name: name + "/inspan", Mode: 0o755, Size: int64(len(binary))})
	if err == nil {
		_, err = w.Write(binary)
	}
	if err != nil || w.Close() != nil || z.Close() != nil {
		t.Fatal("the archive can't be written")
	}
	sums := fmt.Sprintf("%x  %s.tar.gz\n", sha256.Sum256(packed.Bytes()), name)
	if broken {
		packed.WriteByte('x')
	}
	files := map[string][]byte{name + ".tar.gz": packed.Bytes(), "inspan_" + version + "_checksums.txt": []byte(sums)}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		file, found := files[strings.TrimPrefix(r.URL.Path, "/download/v"+version+"/")]
		switch {
		case r.URL.Path == "/latest":
			http.Redirect(w, r, "/tag/v"+version, http.StatusFound)
		case r.URL.Path == "/tag/v"+version:
		case found:
			_, _ = w.Write(file)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestInstallScript installs a release whose checksum is right, and nothing else.
func TestInstallScript(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("SKIPPED: curl is not installed")
	}
	name := "inspan_9.9.9_linux_" + runtime.GOARCH
	good, bad := fakeReleases(t, name, "9.9.9", false), fakeReleases(t, name, "9.9.9", true)
	other := fakeReleases(t, "inspan_9.9.9_plan9_mips", "9.9.9", false)
	for _, tc := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--from", good}, 0, "installed inspan 9.9.9 to "},
		{[]string{"--from", good, "--version", "v9.9.9"}, 0, "is not in your PATH"},
		{[]string{"--from", good, "--version", "9.9.9"}, 0, "installed inspan 9.9.9 to "},
		{[]string{"--from", bad}, 1, "the checksum of " + name + ".tar.gz is wrong; nothing was installed"},
		{[]string{"--from", good, "--version", "v1.0.0"}, 1, "can't download " + good + "/download/v1.0.0/"},
		{[]string{"--from", other}, 1, "can't download "},
		{[]string{"--from", good + "/nowhere"}, 1, "can't ask " + good + "/nowhere for the newest release"},
		{[]string{"--from"}, 1, "--from needs a value"},
		{[]string{"--form", good}, 1, "unknown flag --form"},
	} {
		dir := filepath.Join(t.TempDir(), "new", "bin")
		code, out := scriptOf(t, "", nil, "scripts/install", append([]string{"--dir", dir}, tc.args...)...)
		if code != tc.code || !strings.Contains(out, tc.want) {
			t.Errorf("%q: code %d: %s", tc.args, code, out)
		}
		said, err := exec.CommandContext(t.Context(), filepath.Join(dir, "inspan")).Output()
		if tc.code == 0 && string(said) != "inspan 9.9.9\n" || tc.code != 0 && err == nil {
			t.Errorf("%q: the binary says %q, %v", tc.args, said, err)
		}
	}
}

// action is what is read of a GitHub Action.
type action struct {
	Inputs map[string]any
	Runs   struct {
		Steps []struct {
			ID, Run string
			Env     map[string]string
		}
	}
}

// TestAction holds that inputs of the Action never become a part of a script, and that the example
// uses inputs and outputs that there are.
func TestAction(t *testing.T) {
	var a action
	var w struct {
		Jobs map[string]struct {
			Steps []struct {
				Uses string
				With map[string]any
			}
		}
	}
	for file, into := range map[string]any{"action.yml": &a, "examples/github/review.yml": &w} {
		raw, err := os.ReadFile(filepath.Join("../../..", file))
		if err == nil {
			err = yaml.Unmarshal(raw, into)
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	used := map[string]bool{"working-directory": true}
	for _, step := range a.Runs.Steps {
		if strings.Contains(step.Run, "${{") {
			t.Errorf("a script has an expression: %s", step.Run)
		}
		for _, value := range step.Env {
			used[strings.TrimSuffix(strings.TrimPrefix(value, "${{ inputs."), " }}")] = true
		}
	}
	for input := range a.Inputs {
		if !used[input] {
			t.Errorf("the input %s has no effect", input)
		}
	}
	for _, step := range w.Jobs["review"].Steps {
		for with := range step.With {
			if _, known := a.Inputs[with]; strings.HasPrefix(step.Uses, "inspan/") && !known {
				t.Errorf("the example gives %s, which is no input", with)
			}
		}
	}
}

// TestActionRuns runs what the Action does.
func TestActionRuns(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip("SKIPPED: jq is not installed")
	}
	h := withoutModel(t)
	for _, tc := range []struct {
		task, mode, args string
		code             int
		text             string
	}{
		{"say: $(touch made) `touch made`\nsay: text<<EOF", "plan", "", 0, "$(touch made) `touch made`text<<EOF"},
		{"bash: touch made", "plan", "", 0, "Done: 1 step."},
		{"-v is what I mean", "plan", "--max-turns=3\n--label=a=b c\n", 0, "This is the offline model, not an AI."},
		{"say: ::add-mask::x", "plan", "", 0, "::add-mask::x"},
		{"say: x", "nonsense", "", 2, ""},
	} {
		tmp := t.TempDir()
		output := filepath.Join(tmp, "output")
		env := slices.DeleteFunc(h.command(t.Context()).Env, func(kv string) bool { return strings.HasPrefix(kv, "PATH=") })
		code, out := scriptOf(t, h.work, append(env,
			"PATH="+filepath.Dir(h.bin)+":"+os.Getenv("PATH"), "RUNNER_TEMP="+tmp, "GITHUB_OUTPUT="+output, "INPUT_TASK="+tc.task, "INPUT_MODE="+tc.mode,
			"INPUT_MODEL=script", "INPUT_MAX_COST=1", "INPUT_MAX_TIME=1m", "INPUT_ARGS="+tc.args), "scripts/action")
		raw, _ := os.ReadFile(output)
		lines := strings.Split(string(raw), "\n")
		if code != tc.code || len(lines) < 4 || lines[0] != "result="+filepath.Join(tmp, "inspan-result.json") ||
			!strings.HasPrefix(lines[2], tc.text) || strings.TrimPrefix(lines[1], "text<<") != lines[len(lines)-2] {
			t.Errorf("%q: code %d\n%s\n%s", tc.task, code, out, raw)
		}
		// The runner reads no command between these lines, which are the first and the last.
		printed := strings.Split(strings.TrimSpace(out), "\n")
		word, stops := strings.CutPrefix(printed[0], "::stop-commands::")
		if !stops || len(word) < 32 || printed[len(printed)-1] != "::"+word+"::" || strings.Count(out, word) != 2 {
			t.Errorf("%q prints %s", tc.task, out)
		}
	}
	if h.has("made") {
		t.Error("the text of a task was run")
	}
}

// TestReleaseRefuses holds that a release is built from a commit alone, and an image from a release.
func TestReleaseRefuses(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"release", "image"} {
		raw, err := os.ReadFile(filepath.Join("../../../scripts", name))
		if err == nil {
			err = os.MkdirAll(filepath.Join(dir, "scripts"), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "scripts", name), raw, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	engine := t.TempDir()
	if err := os.WriteFile(filepath.Join(engine, "podman"), []byte("#!/bin/sh\nexit 9\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"release": "make release: there are changes without a commit",
		"image":   "is missing; run make release first",
	} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "scripts", name))
		cmd.Env = append(os.Environ(), "PATH="+engine+":"+os.Getenv("PATH"))
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "dist")); err == nil {
		t.Error("dist was begun")
	}
}
