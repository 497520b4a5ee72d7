// Package trials holds inspan against work that people do in a shell: tasks that a scripted
// policy solves through the real tools, checked after the program has exited; mistakes that
// models have the habit of; and policies that are lazy. A failure here is a fault of the
// harness, because no model takes part. In mode yolo all tasks that can run here must pass,
// in auto 95 of 100.
//
// A task is written down in testdata/tasks, in files by class:
//
//	== what it is about
//	needs: programs, without which it is skipped
//	auto: the wall that keeps mode auto from it; without this line auto must pass
//	file NAME: content, before it begins
//	bash: a command
//	keep: a command that is to go on afterwards; the run is allowed that by --keep-jobs
//	call TOOL: arguments as JSON
//	check: a command that must end with 0, after the program has exited
//
// A line that begins with a tab continues the one before it. PORT stands for a number that
// is free.
package trials

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// task is one thing to do, with the way to do it and what must be so afterwards.
type task struct {
	class, name string
	needs       []string
	wall        string // that keeps mode auto from it; empty: none does
	keeps       bool   // something is to go on afterwards, which whoever runs it allows
	files       [][2]string
	steps       []string // commands of the scripted model
	checks      []string
}

// tasks reads all of them.
func tasks(t testing.TB) []task {
	t.Helper()
	paths, err := filepath.Glob("testdata/tasks/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatal("there are no tasks", err)
	}
	var all []task
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		list, err := parse(strings.TrimSuffix(filepath.Base(path), ".txt"), string(data))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, list...)
	}
	return all
}

func parse(class, text string) (list []task, err error) {
	text = strings.ReplaceAll(text, "\n\t", "\x00")
	for line := range strings.Lines(text) {
		line = strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\x00", "\n")
		if name, ok := strings.CutPrefix(line, "== "); ok {
			list = append(list, task{class: class, name: name})
			continue
		}
		if strings.TrimSpace(line) == "" {
			continue
		}
		word, rest, ok := strings.Cut(line, ":")
		if !ok || len(list) == 0 {
			return nil, fmt.Errorf("what is %q?", line)
		}
		if err := list[len(list)-1].add(word, strings.TrimPrefix(rest, " ")); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (k *task) add(word, rest string) error {
	kind, name, _ := strings.Cut(word, " ")
	switch kind {
	case "needs":
		k.needs = strings.Fields(rest)
	case "auto":
		k.wall = rest
	case "file":
		k.files = append(k.files, [2]string{name, strings.TrimPrefix(rest, "\n") + "\n"})
	case "bash", "keep":
		call := map[string]any{"command": rest}
		if kind == "keep" {
			call["keep"], k.keeps = true, true
		}
		args, err := json.Marshal(call)
		if err != nil {
			return err
		}
		k.steps = append(k.steps, "call: bash "+string(args))
	case "call":
		if !json.Valid([]byte(rest)) {
			return fmt.Errorf("%s: arguments are not JSON: %s", k.name, rest)
		}
		k.steps = append(k.steps, "call: "+name+" "+rest)
		k.keeps = k.keeps || strings.Contains(rest, `"keep":true`)
	case "check":
		k.checks = append(k.checks, rest)
	default:
		return fmt.Errorf("%s: what is %q?", k.name, word)
	}
	return nil
}
