package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/app"
	"github.com/inspan/inspan/tool"
)

// TestHabitsHaveTheirEffect holds that calls in the form of other tool sets do what they mean, in a
// session as a person has it.
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
		if b.Todo != nil {
			todo = b.Todo
		}
	}
	for name, want := range map[string]string{
		"a.py": "x = 2\n", "new/b.py": "b\n", "new/d.py": "made = 1\nkept = 2\n", "twice.py": "first\nsame\nsame\nbetween\nsame\n",
		"n.ipynb": strings.Replace(files["n.ipynb"], "print(1)", "print(2)", 1),
	} {
		if got, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v", name, got, err)
		}
	}
	if len(todo) != 2 || todo[0].State != "done" || todo[1].Text != "two" {
		t.Errorf("the list is %+v", todo)
	}
}
