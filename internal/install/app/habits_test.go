package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/testkit/anthropictest"
	"github.com/inspan/inspan/internal/testkit/openaitest"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// TestHabitsHaveTheirEffect checks that calls in the form of other tool sets do what they mean, in a session as a
// person has it.
func TestHabitsHaveTheirEffect(t *testing.T) {
	a, root := load(t, ""), t.TempDir()
	files := map[string]string{
		"a.py": "x = 1\n", "twice.py": "same\nsame\nsame\n",
		"n.ipynb": `{"cells":[{"cell_type":"code","execution_count":null,"id":"c1","metadata":{},"outputs":[],"source":["print(1)"]}],` +
			`"metadata":{},"nbformat":4,"nbformat_minor":5}`,
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := a.Host(app.Options{Model: "script", Mode: "yolo"}, func(string) {}).New(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var todo []tool.Todo
	said := ""
	for e, err := range s.Run(t.Context(), event.Say(strings.Join([]string{
		`call: multi_tool_use.parallel {"tool_uses":[{"recipient_name":"functions.read_file","parameters":{"path":"n.ipynb"}},` +
			`{"recipient_name":"read_file","parameters":{"path":"twice.py"}}]}`,
		`call: bash {"command":"apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.py\n@@\n-x = 1\n+x = 2\n*** Add File: new/b.py\n+b\n*** End Patch\nEOF"}`,
		`call: str_replace_based_edit_tool {"command":"insert","path":"twice.py","insert_line":2,"insert_text":"between\n"}`,
		`call: str_replace_based_edit_tool {"command":"insert","path":"twice.py","insert_line":0,"insert_text":"first"}`,
		`call: Edit {"file_path":"c.py","old_string":"","new_string":"made = 1\nkept = 1\n"}`,
		`call: functions.Edit {"file_path":"c.py","old_string":"made = 1","new_string":"made = 2"}`,
		`call: str_replace_editor {"command":"undo_edit","path":"c.py"}`,
		`call: apply_patch {"input":"*** Begin Patch\n*** Update File: c.py\n*** Move to: new/d.py\n@@\n-kept = 1\n+kept = 2\n*** End Patch"}`,
		`call: bash {"command":"mkdir sub; echo one > sub/m.txt; echo one > m.txt"}`,
		`call: bash {"command":"cd sub && apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: m.txt\n*** Move to: n.txt\n@@\n-one\n+two\n*** End Patch\nEOF"}`,
		`call: multi_tool_use.parallel {"tool_uses":[{"recipient_name":"functions.bash","parameters":{"command":"exit 3"}},` +
			`{"recipient_name":"functions.bash","parameters":{"command":"echo 12 passed; exit 1"}}]}`,
		`call: NotebookEdit {"notebook_path":"n.ipynb","cell_id":"c1","new_source":"print(2)"}`,
		`call: TaskCreate {"subject":"one","description":"d"}`,
		`call: TaskCreate {"subject":"two","description":"d"}`,
		`call: TaskUpdate {"taskId":"1","status":"completed"}`,
	}, "\n"))) {
		if err != nil {
			t.Fatal(err)
		}
		b, is := e.Body.(event.Ended)
		if is && b.Outcome != event.OutcomeOK {
			t.Errorf("%s: %s", b.Outcome, b.Parts.Text())
		}
		if is && b.Parent == "" {
			said += b.Parts.Text()
		}
		if b.Todo != nil {
			todo = b.Todo
		}
	}
	for name, want := range map[string]string{
		"a.py": "x = 2\n", "new/b.py": "b\n", "new/d.py": "made = 1\nkept = 2\n", "sub/n.txt": "two\n", "m.txt": "one\n",
		"twice.py": "first\nsame\nsame\nbetween\nsame\n",
		"n.ipynb":  strings.Replace(files["n.ipynb"], "print(1)", "print(2)", 1),
	} {
		if got, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v", name, got, err)
		}
	}
	if !strings.Contains(said, "[1: bash]\n[exit code 3]") || !strings.Contains(said, "12 passed\n[exit code 1]") {
		t.Errorf("what calls made together have brought: %s", said)
	}
	if len(todo) != 2 || todo[0].State != "done" || todo[1].Text != "two" {
		t.Errorf("the list is %+v", todo)
	}
}

// TestModelsThatPatch checks that models which are trained to change files by patches are shown apply_patch in the
// place of edit_file, unless a profile says otherwise, and that the log has calls of ours.
func TestModelsThatPatch(t *testing.T) {
	for profile, shows := range map[string]string{"": "apply_patch", "[[profiles]]\nmatch='*'\nedit='replace'\n": "edit_file"} {
		var offered []string
		answer := func(_ *http.Request, body []byte) openaitest.Answer {
			var req struct {
				Tools []struct{ Function struct{ Name string } }
			}
			if err := json.Unmarshal(body, &req); err != nil {
				t.Error(err)
			}
			if offered != nil {
				return openaitest.Answer{Parts: llm.Say("done")}
			}
			for _, one := range req.Tools {
				offered = append(offered, one.Function.Name)
			}
			patch := `{"input":"*** Begin Patch\n*** Update File: a.py\n@@ def b():\n-    x = 1\n+    x = 2\n*** Add File: new.py\n+b\n*** End Patch"}`
			return openaitest.Answer{Parts: llm.Parts{llm.Call{ID: "call_1", Name: "apply_patch", Args: json.RawMessage(patch)}}, Stop: llm.StopCalls}
		}
		a := load(t, fmt.Sprintf("%s[providers.mine]\nkind='openai'\nbase_url='%s'\nmodels.'gpt-6-sol'.window=200000\n", profile,
			openaitest.Start(t, &openaitest.Server{Answer: answer})))
		root := t.TempDir()
		if err := os.WriteFile(filepath.Join(root, "a.py"), []byte("def a():\n    x = 1\n\ndef b():\n    x = 1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := a.Host(app.Options{Model: "mine/gpt-6-sol", Mode: "edit"}, func(string) {}).New(t.Context(), root)
		if err != nil {
			t.Fatal(err)
		}
		var ran []string
		for e, err := range s.Run(t.Context(), event.Say("go")) {
			if err != nil {
				t.Fatal(err)
			}
			if b, is := e.Body.(event.Judged); is {
				ran = append(ran, b.Tool)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		for _, name := range []string{"apply_patch", "edit_file"} {
			if slices.Contains(offered, name) != (name == shows) {
				t.Errorf("%q: the model is told of %q", profile, offered)
			}
		}
		if want := []string{"several_calls", "edit_file", "write_file"}; !slices.Equal(ran, want) {
			t.Errorf("ran %q, want %q", ran, want)
		}
		for name, want := range map[string]string{"a.py": "def a():\n    x = 1\n\ndef b():\n    x = 2\n", "new.py": "b\n"} {
			if got, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(got) != want {
				t.Errorf("%s holds %q, %v", name, got, err)
			}
		}
	}
}

// TestUndoGoesBack checks that undo_edit undoes one change of a file after the other, up to the file itself if the
// session has made it, and says when there is no more.
func TestUndoGoesBack(t *testing.T) {
	a, root := load(t, ""), t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "old"), []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	edit := func(path, from, to string) string {
		return `str_replace_editor {"command":"str_replace","path":"` + path + `","old_str":"` + from + `","new_str":"` + to + `"}`
	}
	undo := func(path string) string { return `str_replace_editor {"command":"undo_edit","path":"` + path + `"}` }
	read := func(path string) string { return `read_file {"path":"` + path + `"}` }
	steps := []struct{ call, says string }{
		{edit("old", "one", "two"), "1 replacement"},
		{edit("old", "two", "three"), "1 replacement"},
		{undo("old"), "taken back"},
		{read("old"), "two"},
		{edit("old", "two", "four"), "1 replacement"},
		{undo("old"), "taken back"},
		{undo("old"), "taken back"},
		{read("old"), "one"},
		{undo("old"), "there is no more to undo"},
		{`str_replace_editor {"command":"create","path":"new","file_text":"a\n"}`, "created"},
		{edit("new", "a", "b"), "1 replacement"},
		{undo("new"), "taken back"},
		{read("new"), "a"},
		{undo("new"), "deleted new"},
		{read("new"), "new"},
		{`write_file {"path":"old","content":"all new\n"}`, "replaced"},
		{undo("old"), "replaced all of it"},
	}
	var calls []string
	for _, s := range steps {
		calls = append(calls, s.call)
	}
	s, err := a.Host(app.Options{Model: "script", Mode: "yolo"}, func(string) {}).New(t.Context(), root)
	for i, e := range results(t, s, err, calls...) {
		if said := e.Parts.Text(); !strings.Contains(said, steps[i].says) {
			t.Errorf("%d: %s says %q, not %q", i, steps[i].call, said, steps[i].says)
		}
	}
	if got, err := os.ReadFile(filepath.Join(root, "old")); string(got) != "all new\n" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := os.Stat(filepath.Join(root, "new")); err == nil {
		t.Error("what was made is there")
	}
}

// TestModelsWithAnEditor checks that a profile can show a model the type of editor that its vendor has, in the place of
// edit_file and write_file, and that the log has calls of ours.
func TestModelsWithAnEditor(t *testing.T) {
	const own = `{"type":"text_editor_20250728","name":"str_replace_based_edit_tool"`
	calls := []string{
		`{"command":"view","path":"."}`, `{"command":"view","path":"a.py"}`, `{"command":"str_replace","path":"a.py","old_str":"x = 1","new_str":"x = 2"}`,
		`{"command":"insert","path":"a.py","insert_line":1,"insert_text":"y = 3\n"}`, `{"command":"create","path":"new/b.py","file_text":"b\n"}`,
	}
	for edit, shown := range map[string]bool{"editor": true, "replace": false} {
		asked := 0
		answer := func(_ *http.Request, body []byte) anthropictest.Answer {
			if has := strings.Contains(string(body), own); has != shown || strings.Contains(string(body), `"name":"edit_file"`) == shown {
				t.Errorf("%s: the model is told of the vendor's editor: %v", edit, has)
			}
			if asked++; asked > len(calls) || !shown {
				return anthropictest.Answer{Parts: llm.Say("done")}
			}
			call := llm.Call{ID: fmt.Sprintf("toolu_%d", asked), Name: "str_replace_based_edit_tool", Args: json.RawMessage(calls[asked-1])}
			return anthropictest.Answer{Parts: llm.Parts{call}, Stop: llm.StopCalls}
		}
		a := load(t, fmt.Sprintf("[[profiles]]\nmatch='*'\nedit='%s'\n[providers.mine]\nkind='anthropic'\nbase_url='%s'\nkey_env='MINE_KEY'\n"+
			"models.'claude-x'.window=200000\n", edit, anthropictest.Start(t, &anthropictest.Server{Answer: answer})), "MINE_KEY")
		root := t.TempDir()
		if err := os.WriteFile(filepath.Join(root, "a.py"), []byte("x = 1\nz = 1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := a.Host(app.Options{Model: "mine/claude-x", Mode: "edit"}, func(string) {}).New(t.Context(), root)
		if err != nil {
			t.Fatal(err)
		}
		var ran []string
		for e, err := range s.Run(t.Context(), event.Say("go")) {
			if err != nil {
				t.Fatal(err)
			}
			switch b := e.Body.(type) {
			case event.Judged:
				ran = append(ran, b.Tool)
			case event.Ended:
				if b.Outcome != event.OutcomeOK {
					t.Errorf("%s: %s", b.Outcome, b.Parts.Text())
				}
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if !shown {
			continue
		}
		if want := []string{"list_files", "read_file", "edit_file", "edit_file", "write_file"}; !slices.Equal(ran, want) {
			t.Errorf("ran %q, want %q", ran, want)
		}
		for name, want := range map[string]string{"a.py": "x = 2\ny = 3\nz = 1\n", "new/b.py": "b\n"} {
			if got, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(got) != want {
				t.Errorf("%s holds %q, %v", name, got, err)
			}
		}
	}
}
