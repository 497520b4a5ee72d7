package router_test

import (
	"strings"
	"testing"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/router"
)

// TestComplexityThreshold holds which requests are above the threshold that is usual.
func TestComplexityThreshold(t *testing.T) {
	const threshold = 0.7
	run := func(text string, turns, failed int) []llm.Message {
		messages := []llm.Message{{Role: llm.User, Parts: llm.Say(text)}}
		for i := range turns {
			messages = append(messages,
				llm.Message{Role: llm.Assistant, Parts: llm.Parts{llm.Call{ID: "c", Name: "bash"}}},
				llm.Message{Role: llm.User, Parts: llm.Parts{llm.Result{CallID: "c", Error: i >= turns-failed}}})
		}
		return messages
	}
	for _, tt := range []struct {
		text          string
		turns, failed int
		above         bool
	}{
		{text: "List the files here and show what is in main.go"},
		{text: "Which file holds the version?"},
		{text: "what is the capital of France?"},
		{text: "Format internal/app/app.go"},
		{text: "Fix the typo in README.md"},
		{text: "Rename the variable foo to bar in main.go"},
		{text: "hi"},
		{text: "Say something nice"},
		{text: "Write a haiku about Go"},
		{text: "Add a test for parse"},
		{text: "Run the tests and fix what fails", turns: 1},
		{text: "Add a --json flag to the export command and document it in docs/export.md"},
		{text: "Move parse.go and lex.go into internal/syntax/"},
		{text: "Add these:\n- a flag\n- a test\n- a line in CHANGELOG.md"},
		{text: "Here is what it says:\npanic: runtime error\n\ngoroutine 1 [running]:\nmain.go:12\nPlease fix it.", turns: 1},
		{text: "Run the tests and fix what fails", turns: 9, failed: 2},
		{text: "Why is the build slow?"},
		{text: "Refactor store.go and lease.go so that both use one lock", above: true},
		{text: "Fix what fails in store.go", turns: 12, failed: 3},
		{text: "Fix what fails in store.go", turns: 12, failed: 5, above: true},
		{text: "Debug this, it crashes now and then:\nTraceback (most recent call last)\n  File \"a.py\", line 3", above: true},
		{text: "Design an architecture for the sync service", above: true},
		{text: "Find the race in session.go that makes the test flaky", above: true},
		{text: "Prove that the algorithm in internal/merge/merge.go keeps the invariant, or show why not", above: true},
		{text: "Refactor the scheduler:\n1. no global lock in sched.go\n2. no deadlock between queue.go and pool.go\n3. the same performance\n" +
			"```go\nfunc run()\n```", above: true},
		{text: "Why does it deadlock? " + strings.Repeat("The log says this and that happened. ", 30) +
			"See a.go, b.go, c.go and d.go.\npanic: all asleep", turns: 14, failed: 3, above: true},
	} {
		got, signs := router.Complexity(llm.Request{Messages: run(tt.text, tt.turns, tt.failed)})
		if tt.above != (got >= threshold) {
			t.Errorf("%.3f, threshold %v: %q (%s)", got, threshold, tt.text, signs)
		}
	}
}

// TestComplexitySigns holds what is counted, where it is easy to miscount.
func TestComplexitySigns(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "0 words, 0 files",
		"one":                                 "1 word, 0 files",
		"See main.go, ./run.sh and ~/x.":      "5 words, 3 files",
		"and/or e.g. v1.2.3 http://x.com/a/b": "4 words, 0 files",
		"a/b/c internal/ /etc \"x.tar.gz\"":   "4 words, 4 files",
		"Why? WHY! why...":                    "3 words, 0 files, why",
		"What   is it, and where\nis that":    "7 words, 0 files, what is, where is",
		"trace, embrace the terrace":          "4 words, 0 files",
		"```\na\n```\nand ```b``` and ```":    "7 words, 0 files, 2 code blocks",
		"1. a\n 2) b\n-c\n* d\n3 e":           "9 words, 0 files, 3 list lines",
		"main.go:12: a.go:3:7 10:30 x:":       "4 words, 2 files",
		"goroutine 1 [running]:":              "3 words, 0 files, a stack trace",
	} {
		_, got := router.Complexity(say(text))
		if got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func FuzzComplexity(f *testing.F) {
	f.Add("Refactor a.go\n1. x ```")
	f.Add("\x00 \xff/../ . - ~/ ://")
	f.Fuzz(func(t *testing.T, text string) {
		got, signs := router.Complexity(say(text))
		if got < 0 || got > 1 || signs == "" {
			t.Errorf("%q: %v, %q", text, got, signs)
		}
	})
}
