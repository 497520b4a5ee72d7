package eval

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/inspan/inspan/internal/install/config"
)

// mostRows is the limit for a file of rows in bytes.
const mostRows = 256 << 20

// row is a line of a file of tasks: a question with its answer, or a change of a repository, in the form of
// SWE-bench.
type row struct {
	ID       string   `json:"id"`
	Question string   `json:"question"`
	Answer   string   `json:"answer"`
	Match    string   `json:"match"` // regular expression, instead of answer
	Tags     []string `json:"tags"`
	Split    Split    `json:"split"`
	// Assert are conditions as in promptfoo, instead of answer and match.
	Assert []map[string]any `json:"assert"`

	Instance  string `json:"instance_id"`
	Repo      string `json:"repo"`
	Commit    string `json:"base_commit"`
	Statement string `json:"problem_statement"`
	TestPatch string `json:"test_patch"`
	Fails     tests  `json:"FAIL_TO_PASS"`
	Passes    tests  `json:"PASS_TO_PASS"`
	Command   string `json:"test_command"` // our field: runs the tests whose names follow it; empty: python -m pytest
}

// tests are names of tests. SWE-bench writes such a list as a text with JSON in it.
type tests []string

// UnmarshalJSON implements [json.Unmarshaler].
func (l *tests) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		data = []byte(text)
	}
	return json.Unmarshal(data, (*[]string)(l))
}

// readRows reads a file with one row a line.
func (s *Suite) readRows(repos string) error {
	data, err := config.ReadAtMost(s.Path, mostRows)
	if err != nil {
		return err
	}
	s.Digest = textDigest(string(data))
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, mostRows)
	var errs []error
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		t, err := readRow(lines.Bytes(), repos)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %w", s.Path, n, err))
			continue
		}
		if t.ID == "" {
			t.ID = fmt.Sprintf("row-%d", n)
		}
		s.Tasks = append(s.Tasks, t)
	}
	return errors.Join(append(errs, lines.Err())...)
}

func readRow(line []byte, repos string) (*Task, error) {
	var r row
	if err := json.Unmarshal(line, &r); err != nil {
		return nil, err
	}
	t := &Task{ID: named(r.ID), Tags: r.Tags, Split: r.Split, Prompt: r.Question, Digest: textDigest(string(line))}
	switch {
	case r.Instance != "":
		return t, r.change(t, repos)
	case r.Question != "" && len(r.Assert) > 0 && r.Answer == "" && r.Match == "":
		return t, t.assert(r.Assert)
	case r.Question == "" || (r.Answer == "") == (r.Match == ""):
		return nil, errors.New("it is neither a question with one of answer, match and assert, nor a row of SWE-bench with an instance_id")
	}
	t.Check.Answer = r.Answer
	if r.Match != "" {
		var err error
		if t.Check.Match, err = regexp.Compile(r.Match); err != nil {
			return nil, fmt.Errorf("match: %w", err)
		}
	}
	return t, nil
}

// change makes a task of a row of SWE-bench: the named tests must pass once its test_patch is applied, over any
// changes of them by the agent.
func (r *row) change(t *Task, repos string) error {
	if repos == "" {
		return errors.New("it names a repository; say with --repos which folder has its clone")
	}
	if len(r.Fails) == 0 || r.Commit == "" || strings.HasPrefix(r.Commit, "-") {
		return fmt.Errorf("%s: it needs base_commit and FAIL_TO_PASS", r.Instance)
	}
	from := ""
	for _, name := range []string{r.Repo, strings.ReplaceAll(r.Repo, "/", "__"), filepath.Base(r.Repo)} {
		for _, suffix := range []string{"", ".git"} {
			at := filepath.Join(repos, name+suffix)
			if info, err := os.Stat(at); from == "" && filepath.IsLocal(name) && err == nil && info.IsDir() {
				from = at
			}
		}
	}
	if from == "" {
		return fmt.Errorf("%s: there is no clone of %s in %s", r.Instance, r.Repo, repos)
	}
	t.ID, t.Prompt, t.Clone = named(r.Instance), r.Statement, Clone{From: from, Commit: r.Commit}
	command := strings.Fields(r.Command)
	if len(command) == 0 {
		command = []string{"python3", "-m", "pytest", "-q"}
	}
	t.Check = Checker{Patch: r.TestPatch, Commands: [][]string{append(append(command, r.Fails...), r.Passes...)}}
	return nil
}
