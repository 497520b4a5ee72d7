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
