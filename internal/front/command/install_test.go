//go:build linux

package command

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"
)

// scriptOf runs a script of the repository, and returns its output.
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

// action is the part of a GitHub Action that the tests read.
type action struct {
	Inputs map[string]any
	Runs   struct {
		Steps []struct {
			ID, Run string
			Env     map[string]string
		}
	}
}

// workflowFile is the part of a GitHub workflow that the tests read.
type workflowFile struct {
	Jobs map[string]struct {
		If    string
		Steps []struct {
			Uses, Run string
			With      map[string]any
		}
	}
}

// TestAction checks that inputs of the Action never become a part of a script, that only the step that comments has the
// token, and that the examples use inputs and outputs that there are.
func TestAction(t *testing.T) {
	var a action
	var review, mention workflowFile
	for file, into := range map[string]any{
		"action.yml": &a, "examples/github/review.yml": &review, "examples/github/mention.yml": &mention,
	} {
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
		for name, value := range step.Env {
			if value == "${{ inputs.token }}" && (name != "GITHUB_TOKEN" || !strings.HasSuffix(step.Run, `/scripts/action-comment"`)) {
				t.Errorf("the token goes to %s", step.Run)
			}
			used[strings.TrimSuffix(strings.TrimPrefix(value, "${{ inputs."), " }}")] = true
		}
	}
	used["artifact"] = true // a condition
	for input := range a.Inputs {
		if !used[input] {
			t.Errorf("the input %s has no effect", input)
		}
	}
	for _, step := range slices.Concat(review.Jobs["review"].Steps, mention.Jobs["answer"].Steps) {
		for with := range step.With {
			if _, known := a.Inputs[with]; strings.HasPrefix(step.Uses, "inspan/") && !known {
				t.Errorf("an example gives %s, which is no input", with)
			}
		}
		// Otherwise the token is in .git/config, which the agent can read and repeat in its comment.
		if strings.HasPrefix(step.Uses, "actions/checkout@") && step.With["persist-credentials"] != false {
			t.Errorf("the agent can read the token of %s", step.Uses)
		}
		if strings.Contains(step.Run, "${{") {
			t.Errorf("an example has a script with an expression: %s", step.Run)
		}
	}
	// A stranger's comment is not a task.
	if strangers := mention.Jobs["answer"].If; !strings.Contains(strangers, "github.event.comment.author_association") ||
		strings.Contains(strangers, "CONTRIBUTOR") || strings.Contains(strangers, "NONE") {
		t.Errorf("who can give a task? %s", strangers)
	}
}

// TestActionRuns runs the steps of the Action.
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
		{"say: ```", "plan", "", 0, "```"},
		{"say: $(touch made) `touch made`\nsay: text<<EOF", "plan", "", 0, "$(touch made) `touch made`text<<EOF"},
		{"bash: touch made", "plan", "", 0, "Done: 1 step."},
		{"-v is what I mean", "plan", "--max-turns=3\n--label=a=b c\n", 0, "This is the offline model, not an AI."},
		{"say: ::add-mask::x", "plan", "", 0, "::add-mask::x"},
		{"say: ![a](https://host.example/?KEY)<IMG src=x>", "plan", "", 0, "![a](https://host.example/?KEY)<IMG src=x>"},
		{"say: x", "nonsense", "", 2, ""},
		{"/export made", "plan", "", 0, "This is the offline model, not an AI."},
	} {
		tmp := t.TempDir()
		output, summary := filepath.Join(tmp, "output"), filepath.Join(tmp, "summary")
		env := slices.DeleteFunc(h.command(t.Context()).Env, func(kv string) bool { return strings.HasPrefix(kv, "PATH=") })
		code, out := scriptOf(t, h.work, append(env,
			"PATH="+filepath.Dir(h.bin)+":"+os.Getenv("PATH"), "RUNNER_TEMP="+tmp, "GITHUB_OUTPUT="+output, "GITHUB_STEP_SUMMARY="+summary, "INPUT_TASK="+tc.task, "INPUT_MODE="+tc.mode,
			"INPUT_MODEL=script", "INPUT_MAX_COST=1", "INPUT_MAX_TIME=1m", "INPUT_ARGS="+tc.args), "scripts/action")
		set, text := outputsOf(t, output)
		if code != tc.code || !strings.HasPrefix(text, tc.text) {
			t.Errorf("%q: code %d, text %q\n%s", tc.task, code, text, out)
		}
		told, _ := os.ReadFile(summary)
		transcript, err := os.ReadFile(filepath.Join(set["files"], "transcript.md"))
		result, _ := os.ReadFile(set["result"])
		switch table, words, _ := strings.Cut(string(told), "\n\n"); {
		case tc.code != 0:
			if set["session"] != "" || set["reason"] != "error" || !strings.Contains(string(result), "nonsense") {
				t.Errorf("%q: %v", tc.task, set)
			}
		case err != nil || !strings.Contains(string(transcript), text) || filepath.Dir(set["result"]) != set["files"]:
			t.Errorf("%q: the transcript is %s, %v", tc.task, transcript, err)
		case set["session"] == "" || set["cost"] != "0" || set["reason"] != "done" ||
			!strings.Contains(table, "| done (0) |") || !strings.Contains(table, "| $0 | "+set["session"]+" |"),
			strings.TrimSpace(words) != strings.NewReplacer("![", `!\[`, "<IMG", "&lt;IMG").Replace(text):
			t.Errorf("%q: %v\n%s", tc.task, set, told)
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

// outputsOf reads the outputs of a step: those of one line, and the text.
func outputsOf(t *testing.T, file string) (set map[string]string, text string) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	set = map[string]string{}
	head, rest, _ := strings.Cut(string(raw), "text<<")
	for line := range strings.Lines(head) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		set[name] = value
	}
	end, rest, _ := strings.Cut(rest, "\n")
	text, after, ended := strings.Cut(rest, "\n"+end+"\n")
	if !ended || after != "" || strings.Contains(text, end) {
		t.Errorf("the text does not end where the outputs do:\n%s", raw)
	}
	return set, text
}

// fakeIssues serves the comments of an issue like the API of GitHub, and records writes.
type fakeIssues struct {
	mu       sync.Mutex
	comments []issueComment
	wrote    []string // methods and paths of requests that change something
}

type issueComment struct {
	ID   int               `json:"id"`
	Body string            `json:"body"`
	User map[string]string `json:"user"`
}

func (f *fakeIssues) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.Header.Get("Authorization") != "Bearer the-token" {
		http.Error(w, "who?", http.StatusUnauthorized)
		return
	}
	var sent issueComment
	if r.Method != http.MethodGet {
		f.wrote = append(f.wrote, r.Method+" "+r.URL.Path)
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	const issues = "/repos/ann/shop/issues/"
	switch path := strings.TrimPrefix(r.URL.Path, issues); {
	case r.Method == http.MethodGet && path == "7/comments":
		page, _ := strconv.Atoi(r.URL.Query().Get("page"))
		_ = json.NewEncoder(w).Encode(f.comments[min((page-1)*100, len(f.comments)):min(page*100, len(f.comments))])
	case r.Method == http.MethodPost && path == "7/comments":
		f.comments = append(f.comments, issueComment{1000 + len(f.comments), sent.Body, map[string]string{"login": "github-actions[bot]"}})
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, "{}")
	case r.Method == http.MethodPatch && strings.HasPrefix(path, "comments/"):
		for i := range f.comments {
			if path == fmt.Sprint("comments/", f.comments[i].ID) {
				f.comments[i].Body = sent.Body
			}
		}
		fmt.Fprint(w, "{}")
	default:
		http.NotFound(w, r)
	}
}

// TestActionComments checks that the Action writes one comment for each key and edits it later, that it edits no
// comment of others, and that a text is never a command.
func TestActionComments(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"jq", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("SKIPPED: " + program + " is not installed")
		}
	}
	issues := &fakeIssues{}
	for i := range 130 { // more than a page
		issues.comments = append(issues.comments, issueComment{i + 1, "a comment", map[string]string{"login": "ann"}})
	}
	s := httptest.NewServer(issues)
	t.Cleanup(s.Close)
	dir, result := t.TempDir(), filepath.Join(t.TempDir(), "result.json")
	reason := "done"
	comment := func(text, key, number, token string) (code int, out string) {
		raw, err := json.Marshal(map[string]any{"text": text, "session": "s1", "cost": 0.123456, "reason": reason})
		if err == nil {
			err = os.WriteFile(result, raw, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return scriptOf(t, dir, []string{
			"GITHUB_API_URL=" + s.URL, "GITHUB_REPOSITORY=ann/shop", "GITHUB_TOKEN=" + token, "GITHUB_WORKFLOW=review", "GITHUB_JOB=review",
			"INPUT_COMMENT=" + number, "INPUT_COMMENT_KEY=" + key, "INPUT_COMMENT_AUTHOR=github-actions[bot]",
			"RESULT=" + result,
		}, "scripts/action-comment")
	}
	text := "first $(touch made) `touch made` \" ' \\ ::add-mask::x\n::stop-commands::y <!-- inspan:"
	if code, out := comment(text, "", "7", "the-token"); code != 0 || strings.Contains(out, "::") {
		t.Fatalf("code %d: %s", code, out)
	}
	first := issues.comments[130]
	mark, rest, _ := strings.Cut(first.Body, "\n")
	if !strings.HasPrefix(mark, "<!-- inspan:") || !strings.HasPrefix(rest, text+"\n\n") || !strings.Contains(rest, "session s1 · $0.1235<") {
		t.Errorf("the comment is %q", first.Body)
	}
	// Its images are not loaded.
	if code, out := comment("![a](//h/?K) <img src=//h/?K> <Picture><source> `<div>` a<b", "", "7", "the-token"); code != 0 ||
		!strings.Contains(issues.comments[130].Body, "\n!\\[a](//h/?K) &lt;img src=//h/?K> &lt;Picture>&lt;source> `<div>` a<b\n") {
		t.Errorf("code %d: %s: %q", code, out, issues.comments[130].Body)
	}
	issues.wrote = issues.wrote[:1]
	// An answer that a limit has cut off is not whole, and says so.
	reason = "budget"
	if code, out := comment("half", "", "7", "the-token"); code != 0 || !strings.Contains(issues.comments[130].Body, " · not finished: budget<") {
		t.Errorf("code %d: %s: %q", code, out, issues.comments[130].Body)
	}
	reason, issues.wrote = "done", issues.wrote[:1]
	// Another author copies the mark, in front of ours.
	issues.comments[3].Body = mark + "\nmine"
	if code, out := comment("second", "", "7", "the-token"); code != 0 || !strings.Contains(out, "edited the comment on #7") {
		t.Fatalf("code %d: %s", code, out)
	}
	if code, out := comment(strings.Repeat("long ", 50000), "other", "7", "the-token"); code != 0 {
		t.Fatalf("code %d: %s", code, out)
	}
	if got := issues.comments; len(got) != 132 || !strings.HasPrefix(got[130].Body, mark+"\nsecond\n") || got[3].Body != mark+"\nmine" ||
		len(got[131].Body) > 65536 || !strings.Contains(got[131].Body, "[cut]") || strings.HasPrefix(got[131].Body, mark) {
		t.Errorf("%d comments: %q", len(got), issues.wrote)
	}
	want := []string{
		"POST /repos/ann/shop/issues/7/comments", fmt.Sprint("PATCH /repos/ann/shop/issues/comments/", first.ID), "POST /repos/ann/shop/issues/7/comments",
	}
	if !slices.Equal(issues.wrote, want) {
		t.Errorf("requests: %q", issues.wrote)
	}
	for number, code := range map[string]int{"7; touch made": 2, "../7": 2, "": 2} {
		if got, out := comment("x", "", number, "the-token"); got != code {
			t.Errorf("%q: code %d: %s", number, got, out)
		}
	}
	if code, out := comment("x", "", "7", "wrong"); code == 0 || strings.Contains(out, "wrong") {
		t.Errorf("with a wrong token: code %d: %s", code, out)
	}
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("a text was run: %v", entries)
	}
}

// TestReleaseRefuses checks that a release is built from a commit alone, and an image from a release.
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
