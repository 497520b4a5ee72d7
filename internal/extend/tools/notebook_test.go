package tools_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

const someNotebook = `{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "aaaa1111",
   "metadata": {"tags": ["keep"]},
   "source": [
    "# Größe\n",
    "of <b>things</b>"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 7,
   "id": "bbbb2222",
   "metadata": {},
   "outputs": [
    {
     "name": "stdout",
     "output_type": "stream",
     "text": [
      "41\n"
     ]
    }
   ],
   "source": [
    "print(41)"
   ]
  }
 ],
 "metadata": {
  "kernelspec": {"name": "python3", "display_name": "Python 3"},
  "odd":   1e3
 },
 "nbformat": 4,
 "nbformat_minor": 5
}
`

// TestNotebook checks that a change touches the cell it is about and nothing else.
func TestNotebook(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		args  args
		gone  []string // parts of the text that are replaced, in order
		fresh []string // by these
	}{
		{
			"replace",
			args{"action": "replace", "cell": 2, "source": "x = \"<a>\"\nprint(x)"},
			[]string{
				"\"execution_count\": 7",
				"[\n    {\n     \"name\": \"stdout\",\n     \"output_type\": \"stream\",\n     \"text\": [\n      \"41\\n\"\n     ]\n    }\n   ]",
				"    \"print(41)\"",
			},
			[]string{"\"execution_count\": null", "[]", "    \"x = \\\"<a>\\\"\\n\",\n    \"print(x)\""},
		},
		{
			"replace text",
			args{"action": "replace", "cell": 1, "source": "# So"},
			[]string{"    \"# Größe\\n\",\n    \"of <b>things</b>\""},
			[]string{"    \"# So\""},
		},
		{"delete the first", args{"action": "delete", "cell": 1}, []string{someNotebook[strings.Index(someNotebook,
			"{\n   \"cell_type\": \"markdown\""):strings.Index(someNotebook, "{\n   \"cell_type\": \"code\"")]}, []string{""}},
		{"delete the last", args{"action": "delete", "cell": 2}, []string{someNotebook[strings.Index(someNotebook,
			",\n  {\n   \"cell_type\": \"code\""):strings.Index(someNotebook, "\n ],")]}, []string{""}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSession(t)
			s.put("n.ipynb", someNotebook)
			s.run("notebook_edit", args{"path": "n.ipynb", "action": "show"})
			tc.args["path"] = "n.ipynb"
			s.run("notebook_edit", tc.args)
			want := someNotebook
			for i, old := range tc.gone {
				if !strings.Contains(want, old) {
					t.Fatalf("the test has it wrong: %q", old)
				}
				want = strings.Replace(want, old, tc.fresh[i], 1)
			}
			s.has("n.ipynb", want)
		})
	}
}

func TestNotebookInsert(t *testing.T) {
	t.Parallel()
	for cell, before := range map[int]string{1: "# Größe", 2: "print(41)", 3: ""} {
		s := newSession(t)
		s.put("n.ipynb", someNotebook)
		s.run("notebook_edit", args{"path": "n.ipynb", "action": "show"})
		s.run("notebook_edit", args{"path": "n.ipynb", "action": "insert", "cell": cell, "source": "NEW = 1\n"})
		text := s.run("notebook_edit", args{"path": "n.ipynb", "action": "show"})
		_, after, _ := strings.Cut(text, "(code)\nNEW = 1\n\n")
		if _, next, _ := strings.Cut(after, ")\n"); before != "" && !strings.HasPrefix(next, before) || before == "" && after != "[3 cells]" {
			t.Errorf("cell %d: %s", cell, text)
		}
		raw, err := os.ReadFile(s.path("n.ipynb"))
		if err != nil {
			t.Fatal(err)
		}
		var nb struct{ Cells []map[string]any }
		if err := json.Unmarshal(raw, &nb); err != nil {
			t.Fatal(err)
		}
		fresh := nb.Cells[cell-1]
		if id, _ := fresh["id"].(string); len(id) != 8 || fresh["execution_count"] != nil || len(fresh) != 6 {
			t.Errorf("cell %d: %v", cell, fresh)
		}
	}
}

// TestNotebookOfOthers checks that we write notebooks as Jupyter itself would, if Jupyter's library is here.
func TestNotebookOfOthers(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil || exec.CommandContext(t.Context(), python, "-c", "import nbformat").Run() != nil {
		t.Skip("python3 with nbformat is not here")
	}
	s := newSession(t)
	s.put("n.ipynb", someNotebook)
	s.run("notebook_edit", args{"path": "n.ipynb", "action": "show"})
	s.run("notebook_edit", args{"path": "n.ipynb", "action": "insert", "cell": 2, "source": "x\n", "type": "raw"})
	if out, err := exec.CommandContext(t.Context(), python, "-c", "import nbformat,sys; nbformat.validate(nbformat.read(sys.argv[1], 4))",
		s.path("n.ipynb")).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestNotebookOnOneLine(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	s.put("n.ipynb", `{"nbformat":4,"nbformat_minor":4,"cells":[],"metadata":{}}`)
	s.run("notebook_edit", args{"path": "n.ipynb", "action": "show"})
	s.run("notebook_edit", args{"path": "n.ipynb", "action": "insert", "cell": 1, "source": "a", "type": "markdown"})
	s.run("notebook_edit", args{"path": "n.ipynb", "action": "replace", "cell": 1, "source": "b", "type": "raw"})
	s.has("n.ipynb", `{"nbformat":4,"nbformat_minor":4,"cells":[{"cell_type":"raw","metadata":{},"source":["b"]}],"metadata":{}}`)
	s.run("notebook_edit", args{"path": "n.ipynb", "action": "delete", "cell": 1})
	s.has("n.ipynb", `{"nbformat":4,"nbformat_minor":4,"cells":[],"metadata":{}}`)
}

func TestNotebookRefuses(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	for _, tc := range []struct {
		content string
		args    args
		want    string
	}{
		{someNotebook, args{"action": "delete", "cell": 3}, "there is no cell 3; the notebook has 2 cells"},
		{someNotebook, args{"action": "insert", "cell": 4}, "there is no cell 4"},
		{someNotebook, args{"action": "replace", "source": "x"}, "there is no cell 0"},
		{someNotebook, args{"action": "move", "cell": 1}, `action: "move" is none of`},
		{someNotebook, args{"action": "insert", "cell": 1, "type": "sql"}, `type: "sql" is none of`},
		{someNotebook, args{"action": "replace", "cell": 2, "source": "print(41)", "type": "code"}, ""},
		{"x", args{"action": "show"}, "not a notebook"},
		{`{"nbformat":3,"worksheets":[]}`, args{"action": "show"}, "not a notebook of format 4"},
		{`{"nbformat":4,"cells":{}}`, args{"action": "show"}, "cells"},
		{`{"nbformat":4,"cells":[1]}`, args{"action": "show"}, "cell 1"},
		{`{"nbformat":4,"cells":[{}]}`, args{"action": "show"}, "cell 1 has no type"},
	} {
		s.put("n.ipynb", tc.content)
		s.run("read_file", args{"path": "n.ipynb"})
		tc.args["path"] = "n.ipynb"
		if tc.want == "" {
			s.run("notebook_edit", tc.args)
			continue
		}
		s.fails("notebook_edit", tc.args, tc.want)
		s.has("n.ipynb", tc.content)
	}
}
