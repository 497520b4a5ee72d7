package eval

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
)

// The .txt format has many small tasks in a file, for policies in prose: the agent gets the commands
// themselves, which the offline model follows. A failure is a fault of the harness.
//
//	== what it is about
//	needs: programs, without which it can't be tried
//	auto: the wall that keeps mode auto from it: the task has the tag "walled"
//	file NAME: content, before it begins
//	many N: a text that MANY stands for so many times, in what follows
//	bash: a command
//	keep: a command that continues afterwards; the run is allowed that by --keep-jobs
//	call TOOL: arguments as JSON
//	miss TOOL: arguments of a call that must fail; all others of the task must succeed then
//	say: the agent's next message
//	asked: yes or no, whether inspan must ask the agent for more before it lets it end
//	check: a command that must end with 0, after the agent has exited
//
// A line that begins with a tab continues the one before it. PORT stands for a free port.

// addText reads the tasks of a file.
func (s *Suite) addText(path string) error {
	data, err := keep.Read(path)
	if err != nil {
		return err
	}
	class := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	list, err := parseTexts(class, string(data))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	s.Tasks = append(s.Tasks, list...)
	return nil
}

func parseTexts(class, text string) (tasks []*Task, err error) {
	var list []*textTask
	text = strings.ReplaceAll(text, "\n\t", "\x00")
	whole := map[*textTask]string{}
	for line := range strings.Lines(text) {
		line = strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\x00", "\n")
		if name, ok := strings.CutPrefix(line, "== "); ok {
			list = append(list, &textTask{Task: &Task{
				ID: class + "." + named(name), Title: name, Tags: []string{class}, Port: true, Check: Checker{Open: true},
			}})
			continue
		}
		if strings.TrimSpace(line) == "" {
			continue
		}
		word, rest, ok := strings.Cut(line, ":")
		if !ok || len(list) == 0 {
			return nil, fmt.Errorf("what is %q?", line)
		}
		t := list[len(list)-1]
		if err := t.add(word, strings.TrimPrefix(rest, " ")); err != nil {
			return nil, err
		}
		whole[t] += line + "\n"
	}
	for _, t := range list {
		if len(t.misses) > 0 {
			t.Graders = append(t.Graders, Grader{Name: "calls", Required: true, Errors: t.misses})
		}
		t.Prompt, t.Digest = strings.TrimSuffix(t.Prompt, "\n"), textDigest(t.Title, whole[t])
		if err := t.validate(); err != nil {
			return nil, fmt.Errorf("%s: %w", t.Title, err)
		}
		tasks = append(tasks, t.Task)
	}
	return tasks, nil
}

// textTask is a task while it is read.
type textTask struct {
	*Task
	many   string // the value of MANY
	calls  int
	misses []int // numbers of calls that must fail
}

// add adds one line of a task.
func (t *textTask) add(word, rest string) error {
	kind, name, _ := strings.Cut(word, " ")
	if t.many != "" {
		rest = strings.ReplaceAll(rest, "MANY", t.many)
	}
	switch kind {
	case "many":
		n, err := strconv.Atoi(name)
		if err != nil {
			return fmt.Errorf("%s: many: %w", t.Title, err)
		}
		t.many = strings.Repeat(rest, n)
	case "needs":
		t.Needs = strings.Fields(rest)
	case "auto":
		t.Tags = append(t.Tags, "walled", rest)
	case "file":
		t.Texts = append(t.Texts, [2]string{name, strings.TrimPrefix(rest, "\n") + "\n"})
	case "bash", "keep":
		t.calls++
		call := map[string]any{"command": rest}
		if kind == "keep" {
			call["keep"] = true
			t.keeps()
		}
		args, err := json.Marshal(call)
		if err != nil {
			return err
		}
		t.Prompt += "call: bash " + string(args) + "\n"
	case "call", "miss":
		t.calls++
		if kind == "miss" {
			t.misses = append(t.misses, t.calls)
		}
		if !json.Valid([]byte(rest)) {
			return fmt.Errorf("%s: arguments are not JSON: %s", t.Title, rest)
		}
		t.Prompt += "call: " + name + " " + rest + "\n"
		if strings.Contains(rest, `"keep":true`) {
			t.keeps()
		}
	case "asked":
		yes := rest == "yes"
		t.Graders = append(t.Graders, Grader{Name: "asked", Required: true, Asked: &yes})
	case "say":
		t.Prompt += "say: " + rest + "\n"
	case "check":
		t.Check.Commands = append(t.Check.Commands, []string{"bash", "-euc", rest})
	default:
		return fmt.Errorf("%s: what is %q?", t.Title, word)
	}
	return nil
}

// keeps lets a command continue afterwards, which the run allows by a flag.
func (t *Task) keeps() { t.Flags = []string{"--keep-jobs"} }
