package app_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/llm"
)

const forgeToken = "token-of-ann-0123456789"

// gitIn runs git in a folder.
func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// hosted is a repository whose origin a stand-in has.
func hosted(t *testing.T, stand *testkit.Stand, h http.Handler, files map[string]string) (root, bare string) {
	t.Helper()
	root = repository(t, files)
	bare = filepath.Join(t.TempDir(), "shop.git")
	gitIn(t, root, "branch", "-M", "main")
	gitIn(t, root, "clone", "-q", "--bare", ".", bare)
	stand.T, stand.Token, stand.Git = t, forgeToken, bare
	at := httptest.NewServer(h)
	t.Cleanup(at.Close)
	gitIn(t, root, "remote", "add", "origin", at.URL+"/ann/shop.git")
	for name, value := range map[string]string{
		"GITHUB_TOKEN": "", "GH_TOKEN": "", "GITHUB_API_URL": "", "GITHUB_APP_ID": "", "GITLAB_TOKEN": "", "GITLAB_API_URL": "",
	} {
		t.Setenv(name, value)
	}
	switch h.(type) {
	case *testkit.GitLab:
		t.Setenv("GITLAB_TOKEN", forgeToken)
		t.Setenv("GITLAB_API_URL", at.URL+"/api/v4")
	default:
		t.Setenv("GITHUB_TOKEN", forgeToken)
		t.Setenv("GITHUB_API_URL", at.URL)
	}
	return root, bare
}

// TestFixIssue checks that an issue becomes a pull request: by a test that fails before, a fix that a reviewer sends
// back once, and a branch that is pushed when a person has approved.
func TestFixIssue(t *testing.T) {
	needsBoxes(t)
	hub := &testkit.GitHub{}
	root, bare := hosted(t, &hub.Stand, hub, map[string]string{"sum.sh": "echo $(($1 - $2))\n", "test.sh": "sh sum.sh 1 0 | grep -qx 1\n"})
	hook := filepath.Join(root, ".git", "hooks", "pre-push")
	if err := os.WriteFile(hook, []byte("#!/bin/sh\ntouch '"+root+"/hooked'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	var writes, changes atomic.Int32
	model := played(func(task string, turn int) llm.Parts {
		bash := func(command string) llm.Parts { return makes("bash", map[string]any{"command": command}) }
		switch {
		case strings.HasPrefix(task, "Write a test"):
			if !strings.Contains(task, "GitHub issue ann/shop#12, open, by bob: Wrong sum") {
				t.Errorf("the issue is missing: %.300s", task)
			}
			if turn == 0 && writes.Add(1) == 1 {
				return bash("echo 'sh sum.sh 1 0 | grep -qx 1' > sum_test.sh") // it passes before
			} else if turn == 0 {
				return bash("echo 'sh sum.sh 1 1 | grep -qx 2' > sum_test.sh")
			}
			return brings(turn, 1, map[string]any{"test": "sh sum_test.sh"})
		case strings.HasPrefix(task, "Fix this issue"):
			if turn > 0 {
				return llm.Say("Fixed.")
			}
			if changes.Add(1) == 1 {
				return bash("echo 'echo 2' > sum.sh")
			}
			if !strings.Contains(task, "it only fits the test") {
				t.Errorf("the review was not fed back: %s", task)
			}
			return bash(`echo 'echo $(($1 + $2))' > sum.sh`)
		case strings.HasPrefix(task, "Review what"):
			good := changes.Load() == 2
			return brings(turn, 0, map[string]any{"passed": good, "findings": map[bool]string{false: "it only fits the test", true: "none"}[good]})
		}
		return brings(turn, 0, map[string]any{"text": "Add, don't subtract\n\nFixes #12."})
	})
	out, s, err := flows(t, model, root, "fix-issue", []string{"issue=#12", "check=sh test.sh"}, app.Options{}, "yes", "approve")
	if err != nil || s.Status().Stopped.Reason != event.ReasonDone {
		t.Fatalf("%v, %+v", err, s.Status().Stopped)
	}
	if out != "approved: true\nbranch: fix-issue-12\nreview: none" || writes.Load() != 2 || changes.Load() != 2 {
		t.Errorf("it brings %q after %d tests and %d changes", out, writes.Load(), changes.Load())
	}
	made := hub.Made()
	want := []testkit.Made{{Path: "/pulls", Body: map[string]any{
		"title": "Add, don't subtract", "head": "fix-issue-12", "base": "main", "body": "Fixes #12.",
	}}}
	if diff := cmp.Diff(want, made); diff != "" {
		t.Error(diff)
	}
	log := gitIn(t, bare, "log", "--format=%s", "--reverse", "fix-issue-12")
	if log != "begin\nTest what the issue is about\nFix what the issue is about" {
		t.Errorf("pushed %q", log)
	}
	if _, err := os.Stat(filepath.Join(root, "hooked")); err == nil {
		t.Error("a hook of the workspace ran outside of the sandbox")
	}
	if config, err := os.ReadFile(filepath.Join(root, ".git", "config")); err != nil || strings.Contains(string(config), forgeToken) {
		t.Errorf("%s, %v", config, err)
	}
}

// TestReviewPR checks that the findings of readers are verified one by one, and that a comment approved by a person is
// published, on GitHub and on GitLab.
func TestReviewPR(t *testing.T) {
	hub, lab := &testkit.GitHub{}, &testkit.GitLab{}
	for kind, c := range map[string]struct {
		stand *testkit.Stand
		h     http.Handler
		pull  string
		path  string
	}{
		"GitHub": {&hub.Stand, hub, "#13", "/issues/13/comments"},
		"GitLab": {&lab.Stand, lab, "!13", "/merge_requests/13/notes"},
	} {
		root, _ := hosted(t, c.stand, c.h, nil)
		var reads, verdicts atomic.Int32
		model := played(func(task string, turn int) llm.Parts {
			find := func(problem string) map[string]any {
				return map[string]any{"file": "sum.go", "line": 1, "problem": problem}
			}
			first := func(n *atomic.Int32) {
				if turn == 0 {
					n.Add(1)
				}
			}
			switch {
			case strings.HasPrefix(task, "Review this request"):
				first(&reads)
				if !strings.Contains(task, "+a+b") || !strings.Contains(task, "on sum.go:1:\n  | Why not before?") {
					t.Errorf("the request is missing: %.300s", task)
				}
				return brings(turn, 0, map[string]any{"findings": []any{find("it overflows"), find("it is ugly")}})
			case strings.HasPrefix(task, "Merge these findings"):
				return brings(turn, 0, map[string]any{"findings": []any{find("it overflows"), find("it is ugly")}})
			case strings.HasPrefix(task, "Somebody claims"):
				first(&verdicts)
				return brings(turn, 0, map[string]any{"holds": strings.Contains(task, "it overflows"), "problem": "p", "why": "because"})
			}
			if !strings.Contains(task, `"holds":true`) || !strings.Contains(task, `"holds":false`) {
				t.Errorf("verdicts are missing: %s", task)
			}
			return brings(turn, 0, map[string]any{"comment": "It overflows. " + "ghp_" + strings.Repeat("aB3", 12)})
		})
		_, _, err := flows(t, model, root, "review-pr", []string{"pull=" + c.pull}, app.Options{}, "yes", "1")
		if err != nil || reads.Load() != 3 || verdicts.Load() != 2 {
			t.Fatalf("%s: %v, %d reads, %d verdicts", kind, err, reads.Load(), verdicts.Load())
		}
		made := c.stand.Made()
		if len(made) != 1 || made[0].Path != c.path {
			t.Fatalf("%s: %+v", kind, made)
		}
		body := made[0].Body["body"].(string)
		if !strings.HasPrefix(body, "It overflows. ") || strings.Contains(body, "aB3aB3") || !strings.Contains(body, "report!comment -->") {
			t.Errorf("%s: %q", kind, body)
		}
	}
}

// TestReviewRejected checks that nothing is published that a person has rejected.
func TestReviewRejected(t *testing.T) {
	hub := &testkit.GitHub{}
	root, _ := hosted(t, &hub.Stand, hub, nil)
	model := played(func(_ string, turn int) llm.Parts {
		return brings(turn, 0, map[string]any{"findings": []any{}, "comment": "nothing", "holds": false, "problem": "", "why": ""})
	})
	out, _, err := flows(t, model, root, "review-pr", []string{"pull=ann/shop#13"}, app.Options{}, "yes", "reject")
	if made := hub.Made(); err == nil || len(made) != 0 || !strings.Contains(out, "approved: false") {
		t.Errorf("%v, %q, %+v", err, out, made)
	}
}

// TestReadIssueByName checks that of the agents of a workflow those read issues whose step names the tool, in pieces if
// they like, and no others.
func TestReadIssueByName(t *testing.T) {
	hub := &testkit.GitHub{}
	root, _ := hosted(t, &hub.Stand, hub, nil)
	var asked atomic.Int32
	hub.Fault = func(r *http.Request) *testkit.Fault {
		if r.URL.Path == "/repos/ann/shop/issues/12" {
			asked.Add(1)
		}
		return nil
	}
	model := played(func(_ string, turn int) llm.Parts {
		if turn == 0 {
			return makes("read_issue", map[string]any{"issue": "#12", "max_bytes": 40})
		}
		return llm.Say("Read.")
	})
	flow := file(t, `
name: test
returns: {text: {from: piece.text}}
steps:
  - {id: with, kind: agent, tools: [read_issue], prompt: Read}
  - {id: without, kind: agent, prompt: Read}
  - {id: piece, kind: tool, tool: read_issue, with: {issue: "#12", from: 7, max_bytes: 19}}
`)
	out, _, err := flows(t, model, root, flow, nil, app.Options{}, "yes", "yes")
	want := "text: \n<untrusted source=\"read_issue\">\nissue ann/shop#12, \n[6088 bytes more; go on with from: 26]\n</untrusted>"
	if err != nil || asked.Load() != 2 || out != want {
		t.Errorf("%v, asked %d times, %q", err, asked.Load(), out)
	}
}

// TestGuest checks that the workflow of a guest asks nothing with the tokens of the person whose machine it is.
func TestGuest(t *testing.T) {
	hub := &testkit.GitHub{}
	root, _ := hosted(t, &hub.Stand, hub, nil)
	flow := file(t, `
name: test
steps:
  - {id: issue, kind: tool, tool: read_issue, with: {issue: "#12"}}
`)
	model := played(func(string, int) llm.Parts { return nil })
	_, _, err := flows(t, model, root, flow, nil, app.Options{Guest: true}, "yes")
	if err == nil || !strings.Contains(err.Error(), "GitHub answers 404") || strings.Contains(err.Error(), forgeToken) {
		t.Error(err)
	}
}

// TestStatus checks that a verdict becomes the status of a commit.
func TestStatus(t *testing.T) {
	lab := &testkit.GitLab{}
	root, _ := hosted(t, &lab.Stand, lab, nil)
	commit := gitIn(t, root, "rev-parse", "HEAD")
	flow := file(t, `
name: test
inputs: {commit: {type: string}}
steps:
  - id: judge
    kind: agent
    prompt: Judge
    output: {type: object, properties: {good: {type: boolean}}}
    safe_outputs: {verdict: {kind: status, from: good, to: "${inputs.commit}"}}
`)
	model := played(func(_ string, turn int) llm.Parts { return brings(turn, 0, map[string]any{"good": false}) })
	_, _, err := flows(t, model, root, flow, []string{commit}, app.Options{})
	made := lab.Made()
	want := []testkit.Made{{Path: "/statuses/" + commit, Body: map[string]any{"state": "failed", "name": "inspan judge", "description": ""}}}
	if diff := cmp.Diff(want, made); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// TestNowhereToRelease checks the message of a run whose output can't leave.
func TestNowhereToRelease(t *testing.T) {
	hub := &testkit.GitHub{}
	root, _ := hosted(t, &hub.Stand, hub, nil)
	for kind, c := range map[string]struct{ to, says string }{
		"message":      {"ann", "set url or ntfy under [notify]"},
		"pull_request": {"gone", "there is no branch gone"},
		"comment":      {"https://evil.test/ann/shop/pull/1", "nothing says what https://evil.test is"},
	} {
		model := played(func(_ string, turn int) llm.Parts { return brings(turn, 0, map[string]any{"text": "Hello"}) })
		flow := file(t, `
name: test
steps:
  - id: say
    kind: agent
    prompt: Say hello
    output: {type: object, properties: {text: {type: string}}}
    safe_outputs: {out: {kind: `+kind+`, from: text, to: "`+c.to+`"}}
`)
		_, s, err := flows(t, model, root, flow, nil, app.Options{})
		if err == nil || !strings.Contains(err.Error(), c.says) || len(hub.Made()) != 0 || s.Status().Stopped.Reason != event.ReasonFailed {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
