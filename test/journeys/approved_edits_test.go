package journeys_test

// A person approves exactly what was shown.

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

// desk is a folder with files that an agent with the real tools edits.
type desk struct {
	*testing.T
	root string
	*inspan.Agent
	log event.Log
}

func newDesk(t *testing.T, replies ...string) *desk {
	t.Helper()
	d := &desk{T: t, root: t.TempDir(), log: event.NewMemory("s")}
	env, err := sandbox.Local(d.root, &memoryBlobs{}, sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d.Agent = &inspan.Agent{Model: scripted(t, append(replies, "Done.")...), Env: env, Tools: core("edit_file", "edit_lines", "write_file", "read_file")}
	d.write("a", "one\ntwo\nthree\n")
	d.write("b", "one\n")
	return d
}

func (d *desk) write(name, content string) {
	d.Helper()
	if err := os.WriteFile(filepath.Join(d.root, name), []byte(content), 0o600); err != nil {
		d.Fatal(err)
	}
}

func (d *desk) read(name string) string {
	raw, err := os.ReadFile(filepath.Join(d.root, name))
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// drive drives the session as another process would that has only the log.
func (d *desk) drive(inputs ...event.Body) inspan.Status {
	d.Helper()
	s := open(d.T, d.Agent, d.log)
	collect(d.T, s.Run(d.Context(), inputs...))
	return s.Status()
}

// ends are the texts of the calls that have ended, in order.
func (d *desk) ends() (out []string) {
	for _, end := range bodiesOf[event.Ended](collect(d.T, d.log.Read(d.Context(), 0))) {
		out = append(out, string(end.Outcome)+": "+end.Parts.Text())
	}
	return out
}

func edits(path, from, to string) string {
	return fmt.Sprintf(`call: edit_file {"path":%q,"edits":[{"old_string":%q,"new_string":%q}]}`, path, from, to)
}

// TestEditIsWhatWasShown checks that an edit which a person was asked about changes the file as they saw it, or as
// other edits have left it that they were shown for the same file, and no other.
func TestEditIsWhatWasShown(t *testing.T) {
	const gone = "changed after the person was shown it, so nothing was written; read it again"
	huge := strings.Repeat("a line of a file of which no difference is shown\n", 100_000)
	for name, tc := range map[string]struct {
		calls string
		meant func(d *desk)
		a     string
		fails int // of the calls, with gone
	}{
		"as shown":        {edits("a", "two", "2"), nil, "one\n2\nthree\n", 0},
		"changed":         {edits("a", "two", "2"), func(d *desk) { d.write("a", "zero\ntwo\n") }, "zero\ntwo\n", 1},
		"at its end":      {edits("a", "two", "2"), func(d *desk) { d.write("a", "one\ntwo\nthree\nfour\n") }, "one\ntwo\nthree\nfour\n", 1},
		"and back":        {edits("a", "two", "2"), func(d *desk) { d.write("a", "x"); d.write("a", "one\ntwo\nthree\n") }, "one\n2\nthree\n", 0},
		"another file":    {edits("a", "two", "2"), func(d *desk) { d.write("b", "x") }, "one\n2\nthree\n", 0},
		"two":             {edits("a", "two", "2") + "\n" + edits("a", "one", "1"), nil, "1\n2\nthree\n", 0},
		"two and changed": {edits("a", "two", "2") + "\n" + edits("a", "one", "1"), func(d *desk) { d.write("a", "one\ntwo\n") }, "one\ntwo\n", 2},
		"to fit": { // the first call may make the second fit, so that is asked about too
			edits("b", "one", "1") + "\n" + edits("a", "four", "4"), func(d *desk) { d.write("a", "four\n") }, "four\n", 1,
		},
		"huge": {
			edits("a", "two", "2"), func(d *desk) { d.write("a", "two\n"+huge+"four\n") }, "two\n" + huge + "four\n", 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, tc.calls)
			if name == "huge" {
				d.write("a", "two\n"+huge)
			}
			var answers []event.Body
			for _, p := range d.drive(said("go")).Waiting {
				answers = append(answers, event.Decided{Call: p.Call.ID, Question: p.Question, Allow: true, By: "ann"})
			}
			if len(answers) != strings.Count(tc.calls, "call: ") {
				t.Fatalf("asked %d times", len(answers))
			}
			if tc.meant != nil {
				tc.meant(d)
			}
			d.drive(answers...)
			if got := d.read("a"); got != tc.a {
				t.Errorf("the file holds %.200q", got)
			}
			failed := 0
			for _, end := range d.ends() {
				if strings.HasPrefix(end, "failed: ") && strings.Contains(end, gone) {
					failed++
				}
			}
			if failed != tc.fails {
				t.Errorf("%d have failed: %q", failed, d.ends())
			}
		})
	}
}

// TestOthersLeaveWhatNobodyWasShown checks that a call that ran unasked, and a command whose changes were not shown,
// leave a file in a state that no approval covers.
func TestOthersLeaveWhatNobodyWasShown(t *testing.T) {
	d := newDesk(t, edits("a", "two", "2")+"\ncall: command {}")
	command := tool.New("command", "Appends.", func(_ context.Context, c *tool.Call, _ struct{}) (tool.Result, error) {
		d.write("a", "one\ntwo\nthree\nand more\n")
		r := tool.Text("appended")
		r.Files = []tool.File{{Path: filepath.Join(c.Env.Root, "a"), Digest: tool.Digest([]byte(d.read("a"))), Written: true}}
		return r, nil
	})
	command.Effects = tool.NoEffects
	d.Tools = append(d.Tools, command)
	w := d.drive(said("go")).Waiting
	if len(w) != 1 || d.read("a") != "one\ntwo\nthree\nand more\n" {
		t.Fatalf("asked %+v: %q", w, d.ends())
	}
	d.drive(event.Decided{Call: w[0].Call.ID, Question: w[0].Question, Allow: true})
	if ends := d.ends(); d.read("a") != "one\ntwo\nthree\nand more\n" || !strings.Contains(ends[len(ends)-1], "changed after the person was shown it") {
		t.Errorf("%q: %q", d.read("a"), ends)
	}
}

// TestModeEditsWhatIsThere checks that a call that the mode allowed, without a person, is not held to a preview.
func TestModeEditsWhatIsThere(t *testing.T) {
	d := newDesk(t, edits("a", "two", "2"))
	d.drive(said("go"))
	d.write("a", "two\n")
	if d.drive(event.Switched{Mode: tool.ModeEdit}); d.read("a") != "2\n" {
		t.Errorf("%q: %q", d.read("a"), d.ends())
	}
}

// TestSetIsWhatWasShown checks that of a set an edit whose file has changed is asked about again, because it would
// be by then, and that edits of one file are made one after the other.
func TestSetIsWhatWasShown(t *testing.T) {
	d := newDesk(t, "call: fill {}")
	edit := func(path, from, to string) string {
		_, args, _ := strings.Cut(edits(path, from, to), "edit_file ")
		return args
	}
	d.Tools = append(d.Tools, testkit.Fill("edit_file", edit("a", "one", "1"), edit("a", "two", "2"), edit("b", "one", "1")))
	set := inspan.Sets(d.drive(said("go")).Questions())
	if len(set) != 1 || len(set[0].Set) != 3 {
		t.Fatalf("asked %+v", set)
	}
	d.write("b", "zero\none\n")
	w := d.drive(event.Decided{Call: set[0].ID(), Allow: true}).Waiting
	if len(w) != 1 || !strings.Contains(w[0].Preview, " zero\n-one\n+1\n") || d.read("a") != "1\n2\nthree\n" || d.read("b") != "zero\none\n" {
		t.Fatalf("asked %+v, %q, %q: %q", w, d.read("a"), d.read("b"), d.ends())
	}
	if d.drive(event.Decided{Call: w[0].Call.ID, Allow: true}); d.read("b") != "zero\n1\n" {
		t.Errorf("%q: %q", d.read("b"), d.ends())
	}
}

// opens counts the opened files.
type opens struct {
	tool.Files
	n *int
}

// Open implements [tool.Files].
func (o opens) Open(ctx context.Context, path string) (fs.File, error) {
	*o.n++
	return o.Files.Open(ctx, path)
}

// TestUnaskedEditsReadOnce checks that a call without a question opens its file once.
func TestUnaskedEditsReadOnce(t *testing.T) {
	d, n := newDesk(t, edits("a", "two", "2")), 0
	d.Mode, d.Env.Files = tool.ModeEdit, opens{d.Env.Files, &n}
	if d.drive(said("go")); n != 1 || d.read("a") != "one\n2\nthree\n" {
		t.Errorf("opened %d times: %q", n, d.ends())
	}
}

// TestDryRun checks that an edit that can't apply fails at once without a question. It still asks if an earlier call of
// the reply may make it apply, or if its failure could reveal text that the agent may not read.
func TestDryRun(t *testing.T) {
	d := newDesk(t, edits("a", "none", "2"))
	if st := d.drive(event.Say("go")); len(st.Waiting) > 0 || st.Stopped == nil {
		t.Errorf("waiting %+v, stopped %+v", st.Waiting, st.Stopped)
	}
	if ends := d.ends(); len(ends) != 1 || !strings.HasPrefix(ends[0], "invalid: edit 1 of 1 in a: ") {
		t.Errorf("%q", ends)
	}

	d = newDesk(t, edits("a", "one", "1")+"\n"+edits("a", "1", "uno"))
	if st := d.drive(event.Say("go")); len(st.Waiting) != 2 {
		t.Fatalf("waiting %+v", st.Waiting)
	}
	for _, w := range d.drive().Waiting {
		d.drive(event.Decided{Call: w.Call.ID, Question: w.Question, Allow: true, By: "the user"})
	}
	if got := d.read("a"); got != "uno\ntwo\nthree\n" {
		t.Errorf("%q: %q", got, d.ends())
	}

	d = newDesk(t, edits(".env", "none", "x"))
	d.write(".env", "PASSWORD=hunter2\n")
	if st := d.drive(event.Say("go")); len(st.Waiting) != 1 || len(d.ends()) > 0 {
		t.Errorf("waiting %+v, ended %q", st.Waiting, d.ends())
	}
}

// TestPersonsArguments checks that a person may change a call before it runs: the new arguments are judged again, have
// a question of their own, and are in the log as the person's. The original call never runs.
func TestPersonsArguments(t *testing.T) {
	ask := func(t *testing.T) (*desk, inspan.Pending) {
		d := newDesk(t, `call: write_file {"path":"c","content":"the model's"}`)
		st := d.drive(event.Say("go"))
		if len(st.Waiting) != 1 {
			t.Fatalf("waiting %+v", st.Waiting)
		}
		return d, st.Waiting[0]
	}
	change := func(w inspan.Pending, args string) event.Decided {
		return event.Decided{Call: w.Call.ID, Question: w.Question, By: "the user", Args: []byte(args)}
	}
	yes := func(w inspan.Pending) event.Decided {
		return event.Decided{Call: w.Call.ID, Question: w.Question, Allow: true, By: "the user"}
	}

	d, first := ask(t)
	st := d.drive(change(first, `{"path":"p","content":"the person's"}`))
	if len(st.Waiting) != 1 || st.Waiting[0].Question == first.Question || !strings.Contains(st.Waiting[0].Preview, "+the person's") {
		t.Fatalf("waiting %+v", st.Waiting)
	}
	second := st.Waiting[0]
	if st := d.drive(yes(first)); len(st.Waiting) != 1 || d.read("p") == "the person's" {
		t.Fatalf("the answer to the first question counts for the second: %q", d.ends())
	}
	d.drive(yes(second))
	if d.read("p") != "the person's" || d.read("c") == "the model's" {
		t.Errorf("p %q, c %q", d.read("p"), d.read("c"))
	}
	told := false
	for _, j := range bodiesOf[event.Judged](collect(t, d.log.Read(t.Context(), 0))) {
		told = told || strings.Contains(j.Text, "The user changed the arguments of your call") && strings.Contains(j.Text, "the person's")
	}
	if !told {
		t.Error("the model is not told")
	}

	d, first = ask(t)
	st = d.drive(change(first, `{"path":"q","content":"x"}`)) // what the first could be allowed for is not offered any more
	if len(st.Waiting) != 1 || strings.Join(st.Waiting[0].Rules, " ") != "write(q)" || !strings.HasSuffix(st.Waiting[0].Reason, "/q") {
		t.Errorf("waiting %+v", st.Waiting)
	}

	d, first = ask(t)
	d.drive(change(first, `{"path":7}`))
	if ends := d.ends(); len(ends) != 1 || !strings.HasPrefix(ends[0], "invalid: ") || d.read("c") == "the model's" {
		t.Errorf("%q", ends)
	}
}
