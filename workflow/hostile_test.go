package workflow_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/workflow"
)

// mostTime is how long any file may take, with room for a busy machine.
const mostTime = time.Minute

// TestHostileFiles checks that files made to be slow are handled quickly, and that errors about them stay short.
func TestHostileFiles(t *testing.T) {
	const room = 250 << 10
	tool := func(value string) string {
		return "name: a\nsteps:\n  - id: a\n    kind: tool\n    tool: x\n    with:\n      v: " + value
	}
	for want, text := range map[string]string{
		"exceeded max depth":                 tool(strings.Repeat("[", room)),
		"too much within each other":         tool(strings.Repeat("[", 9000) + strings.Repeat("]", 9000)),
		"it is a list":                       strings.Repeat("- ", 200) + "a",
		"max depth of 10000":                 strings.Repeat("? ", room/2),
		"a.yaml:130001: name: it is missing": strings.Repeat("#\n", 130_000) + "steps: [{id: a, kind: run, run: make}]",
		"more than 500 steps":                "name: a\nsteps:\n" + numbered(501, "  - {id: s%d, kind: run, run: make}\n"),
		"k0: there is no such field":         numbered(20_000, "k%d: 1\n"),
		"b: *a is an alias":                  "a: &a [x]\n" + strings.Repeat("b: *a\n", room/6),
		"too many values":                    tool("[" + strings.Repeat("a,", room/2) + "]"),
		"the file has":                       tool(strings.Repeat("a", room*2)),
		"is not a name":                      "name: " + strings.Repeat("a", room) + "\nsteps: [{id: a, kind: run, run: make}]",
		"is not a value":                     "name: a\nsteps: [{id: a, kind: agent, prompt: '" + strings.Repeat("${b}", room/4) + "'}]",
		"the step needs t498": "name: a\nsteps:\n  - {id: s, kind: run, run: make, needs: [t498]}\n" +
			numbered(499, "  - {id: t%d, kind: run, run: make}\n"),
	} {
		start := time.Now()
		_, err := workflow.Parse("a.yaml", []byte(text), nil)
		if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 100_000 {
			t.Errorf("want %q, got %.300v", want, err)
		}
		if took := time.Since(start); took > mostTime {
			t.Errorf("%s took %v", want, took)
		}
	}
}

func numbered(n int, form string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, form, i)
	}
	return b.String()
}

// TestManyUses checks that files which use each other as often as they can are checked in no time.
func TestManyUses(t *testing.T) {
	each := func(name string) (string, []byte, error) { // uses the next 500 times, for five levels
		n := 0
		_, err := fmt.Sscanf(name, "w%d", &n)
		if n == 5 {
			return name, []byte("name: w5\nsteps: [{id: a, kind: run, run: make}]\n"), err
		}
		form := fmt.Sprintf("  - {id: s%%d, kind: workflow, use: w%d}\n", n+1)
		return name, []byte(fmt.Sprintf("name: %s\nreturns: {all: {from: s499}}\nsteps:\n", name) + numbered(500, form)), err
	}
	_, first, _ := each("w1")
	if _, err := workflow.Parse("w1.yaml", first, each); err != nil {
		t.Error(err)
	}
	others := func(name string) (string, []byte, error) { // uses 40 others, each of which does too
		return name, []byte(fmt.Sprintf("name: %s\nsteps:\n", name) + numbered(40, "  - {id: s%d, kind: workflow, use: "+name+"-%[1]d}\n")), nil
	}
	_, first, _ = others("x")
	if _, err := workflow.Parse("x.yaml", first, others); err == nil || !strings.Contains(err.Error(), "more than 50 uses") {
		t.Errorf("%.300v", err)
	}
}

// TestCheckOfGo checks that workflows which are made in Go are checked with all that they use.
func TestCheckOfGo(t *testing.T) {
	good := func() *workflow.Workflow {
		return &workflow.Workflow{Name: "a", Steps: []workflow.Step{{ID: "a", Kind: workflow.KindRun, Run: "make"}}}
	}
	for want, change := range map[string]func(w *workflow.Workflow){
		"":                           func(*workflow.Workflow) {},
		"steps: there are none":      func(w *workflow.Workflow) { w.Steps = nil },
		`there is no kind "nothing"`: func(w *workflow.Workflow) { w.Steps[0].Kind = "nothing" },
		"inputs.a: it is empty":      func(w *workflow.Workflow) { w.Inputs = map[string]*workflow.Schema{"a": nil} },
		"steps.a.steps: there are none": func(w *workflow.Workflow) {
			w.Steps[0] = workflow.Step{ID: "a", Kind: workflow.KindEach, Over: []any{1}}
		},
		"included.b: name: \"\" is not a name": func(w *workflow.Workflow) {
			w.Included = map[string]*workflow.Workflow{"b": {Steps: w.Steps}}
		},
		`there is no workflow "b"`: func(w *workflow.Workflow) {
			w.Steps[0] = workflow.Step{ID: "a", Kind: workflow.KindWorkflow, Use: "b"}
		},
		"too many workflows within workflows": func(w *workflow.Workflow) {
			w.Included = map[string]*workflow.Workflow{"a": w}
		},
	} {
		w := good()
		change(w)
		err := w.Check()
		var problems workflow.Problems
		if (want == "") != (err == nil) || want != "" && (!errors.As(err, &problems) || !strings.Contains(err.Error(), want)) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// FuzzParse checks that no file ends the program or takes long, and that one which is accepted says the same after
// JSON.
func FuzzParse(f *testing.F) {
	for _, folder := range []string{"good", "bad", "used"} {
		for _, data := range files(f, folder) {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		start := time.Now()
		w, err := workflow.Parse("a.yaml", data, used)
		if took := time.Since(start); took > mostTime {
			t.Errorf("it took %v", took)
		}
		var problems workflow.Problems
		switch {
		case err == nil:
			same(t, w)
		case !errors.As(err, &problems) || len(problems) == 0:
			t.Errorf("%v is no list of problems", err)
		default:
			for _, p := range problems {
				if p.Line < 1 || p.File != "a.yaml" || p.What == "" || p.Remedy == "" {
					t.Errorf("it says neither where nor what to do: %v", p)
				}
			}
		}
	})
}
