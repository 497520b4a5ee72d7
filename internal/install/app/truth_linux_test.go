package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// How the session of a world has come to where it is looked at.
const (
	isNew      = "new"
	isResumed  = "resumed"
	isKilled   = "killed"
	isForked   = "forked"
	isSubagent = "subagent"
)

// world is one way in which a model can meet the harness.
type world struct {
	t          *testing.T
	mode       tool.Mode
	how        string
	unattended bool
	container  bool // by the preset
	root, out  string
	sleeper    string // seconds of the job that is left running, which nothing else sleeps

	sentences []string // that the model is told, the system prompt's first
	facts     string
	met       []met // what came of the calls of the probes, in their order
}

// met is the result of a call.
type met struct {
	event.Ended
	asked bool
	text  string
}

func (m met) ok() bool     { return m.Outcome == event.OutcomeOK }
func (m met) denied() bool { return m.Outcome == event.OutcomeDenied }

func (w *world) String() string {
	name := string(w.mode) + " " + w.how
	if w.unattended {
		name += " unattended"
	}
	if w.container {
		name += " container"
	}
	return name
}

// worlds are all that there are: make test walks each mode, each state and the preset once or twice.
func worlds() (out []*world) {
	n := 0
	for _, how := range []string{isNew, isResumed, isKilled, isForked, isSubagent} {
		for _, unattended := range []bool{false, true} {
			for _, mode := range tool.Modes() {
				n++
				out = append(out, &world{mode: mode, how: how, unattended: unattended, sleeper: strconv.Itoa(70_000*os.Getpid()%900_000 + n)})
			}
		}
		n++
		out = append(out, &world{mode: tool.ModeYolo, how: how, unattended: true, container: true, sleeper: strconv.Itoa(70_000*os.Getpid()%900_000 + n)})
	}
	if testing.Short() {
		i := 0
		out = slices.DeleteFunc(out, func(*world) bool { i++; return i%6 != 0 && i != 11 })
	}
	return out
}

// install is the set-up of the person in a world.
func (w *world) install() *app.App {
	a := boxing(w.t, "mode = 'ask'\n")
	if w.container {
		w.t.Setenv("INSPAN_PRESET", "container")
		var err error
		if a, err = app.Load("/proc/self/exe"); err != nil {
			w.t.Fatal(err)
		}
	}
	return a
}

// host has a person approve every question, if there is one.
func (w *world) host(a *app.App, first bool) *inspan.Host {
	o := app.Options{Unattended: w.unattended}
	if first {
		o.Model = "script"
		if !w.container {
			o.Mode = w.mode
		}
	}
	host := a.Host(o, func(string) {})
	agent := host.Agent
	host.Agent = func(ctx context.Context, at inspan.SessionSpec) (*inspan.Agent, error) {
		made, err := agent(ctx, at)
		if err == nil && !w.unattended {
			made.Approve = func(context.Context, inspan.Pending) (bool, error) { return true, nil }
		}
		return made, err
	}
	return host
}

// say has a session answer.
func (w *world) say(s *inspan.Session, text string) {
	w.t.Helper()
	for e, err := range s.Run(w.t.Context(), event.Say(text)) {
		if err != nil {
			w.t.Fatal(err)
		}
		if f, failed := e.Body.(event.Failed); failed {
			w.t.Fatal(f.Message)
		}
	}
}

// visit has a session come to its state, make the calls of all probes there, and end.
func (w *world) visit(t *testing.T) {
	w.t = t
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w.root = filepath.Join(top, "workspace")
	caches, err := os.UserCacheDir() // a place of the person's that is no folder for temporary files
	if err == nil {
		err = os.MkdirAll(caches, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	if w.out, err = os.MkdirTemp(caches, "inspan-test-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(w.out) })
	for name, text := range map[string]string{
		"workspace/seen.txt": "seen\nseen too\n", "workspace/sub/other.txt": "other\n", "workspace/do.sh": "echo did > did\n",
		"workspace/.gitignore": "left-out\n", "workspace/left-out": "left out\n", "workspace/go.mod": "module x\n",
	} {
		path := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var calls []string
	for _, p := range probes() {
		for _, c := range p.calls {
			calls = append(calls, "call: "+strings.NewReplacer("OUT", w.out, "SLEEPER", w.sleeper).Replace(c))
		}
	}
	a := w.install()
	host := w.host(a, true)
	s, err := host.New(t.Context(), w.root)
	if err != nil {
		t.Fatal(err)
	}
	text, target := strings.Join(calls, "\n"), s.ID()
	switch w.how {
	case isResumed, isForked:
		w.say(s, "say: hi")
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		host = w.host(w.again(), false)
		if w.how == isResumed {
			s, err = host.Open(t.Context(), target)
		} else {
			s, err = host.Fork(t.Context(), target, 0)
		}
	case isKilled:
		s, host = w.kill(s)
	case isSubagent:
		args, err := json.Marshal(map[string]string{"task": text})
		if err != nil {
			t.Fatal(err)
		}
		text = "call: spawn_agent " + string(args)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.say(s, text)
	if target = s.ID(); w.how == isSubagent {
		list := s.Status().Children
		if len(list) != 1 {
			t.Fatalf("%d agents", len(list))
		}
		target = list[0].Child
	}
	s.Shutdown()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	w.read(host, target, len(calls))
}

// again is the installation as another process finds it.
func (w *world) again() *app.App {
	w.t.Helper()
	a, err := app.Load("/proc/self/exe")
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// kill leaves a session like kill -9 in the middle of a call, which the next driver repeats as it only reads, and opens
// the state on the disk.
func (w *world) kill(s *inspan.Session) (*inspan.Session, *inspan.Host) {
	w.t.Helper()
	ctx, stop := context.WithCancel(w.t.Context())
	defer stop()
	state := os.Getenv("INSPAN_STATE_DIR")
	left := filepath.Join(w.t.TempDir(), "state")
	for e, err := range s.Run(ctx, event.Say(`call: bash {"command":"sleep 1"}`)) {
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			w.t.Fatal(err)
		}
		if _, runs := e.Body.(event.Started); runs {
			w.copyFiles(state, left)
			stop()
		}
	}
	if err := s.Close(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Setenv("INSPAN_STATE_DIR", left)
	host := w.host(w.again(), false)
	again, err := host.Open(w.t.Context(), s.ID())
	if err != nil {
		w.t.Fatal(err)
	}
	return again, host
}

// copyFiles copies the content of a folder, except pipes and sockets.
func (w *world) copyFiles(from, to string) {
	w.t.Helper()
	err := filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		at := filepath.Join(to, strings.TrimPrefix(path, from))
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return os.MkdirAll(at, 0o700)
		case !d.Type().IsRegular():
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(at, data, 0o600)
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// read takes from the log of a session the texts for the model and the results of the last calls.
func (w *world) read(host *inspan.Host, id string, calls int) {
	w.t.Helper()
	by := map[string]*met{}
	var order []*met
	var tools []llm.ToolSpec
	told := 0
	for e, err := range host.Events(w.t.Context(), id) {
		if err != nil {
			w.t.Fatal(err)
		}
		switch b := e.Body.(type) {
		case event.Added:
			w.sentences = append(w.sentences, sentences(b.Text)...)
			if b.Source == "environment" {
				w.facts = b.Text
			}
		case event.Switched:
			if b.Tools != nil {
				tools = b.Tools
				told++
			}
		case event.Replied:
			for _, c := range b.Parts.Calls() {
				by[c.ID] = &met{}
				order = append(order, by[c.ID])
			}
		case event.Waiting:
			if m := by[b.Call]; m != nil {
				m.asked = true
			}
		case event.Ended:
			if m := by[b.Call]; m != nil && !b.Again {
				m.Ended, m.text = b, b.Parts.Text()
			}
		}
	}
	if told != 1 {
		w.t.Errorf("the model is told of tools %d times", told)
	}
	if len(order) < calls {
		w.t.Fatalf("%d calls of %d", len(order), calls)
	}
	for _, m := range order[len(order)-calls:] {
		w.met = append(w.met, *m)
	}
	for _, spec := range tools {
		for _, s := range sentences(spec.Description) {
			w.sentences = append(w.sentences, spec.Name+": "+s)
		}
		w.sentences = append(w.sentences, described(w.t, spec.Name, spec.Schema)...)
	}
}

// sentences are those of a text, each line for itself.
func sentences(text string) (out []string) {
	for line := range strings.Lines(wrapped.ReplaceAllString(text, " $1")) {
		line = strings.TrimLeft(strings.TrimSpace(line), "- ")
		for {
			at := sentenceEnd.FindStringIndex(line)
			if at == nil {
				break
			}
			out, line = append(out, line[:at[0]+1]), line[at[1]-1:]
		}
		if line != "" && !strings.HasSuffix(line, ":") {
			out = append(out, line)
		}
	}
	return out
}

// wrapped is a line break inside a sentence.
var wrapped = regexp.MustCompile(`\n *([a-z])`)

var sentenceEnd = regexp.MustCompile("[.;)] [A-Z`]")

// described are the descriptions of arguments in a schema.
func described(t *testing.T, at string, schema json.RawMessage) (out []string) {
	var one struct {
		Description string
		Properties  map[string]json.RawMessage
		Items       json.RawMessage
	}
	if err := json.Unmarshal(schema, &one); err != nil {
		t.Fatal(err)
	}
	if one.Description != "" {
		out = append(out, at+": "+one.Description)
	}
	for name, of := range one.Properties {
		out = append(out, described(t, at+"."+name, of)...)
	}
	if one.Items != nil {
		out = append(out, described(t, at+"[]", one.Items)...)
	}
	return out
}

// TestTruths compares every sentence that a model reads, in every way in which it can meet the harness, with what then
// happens: each has a row that names the probe, made in each of these ways, or the test that checks it.
func TestTruths(t *testing.T) {
	known := tests(t)
	used, missing := map[string]bool{}, map[string]bool{}
	count, list := 0, worlds()
	for _, w := range list {
		t.Run(w.String(), func(t *testing.T) {
			w.visit(t)
			at := 0
			for _, p := range probes() {
				p.check(w, w.met[at:at+len(p.calls)])
				at += len(p.calls)
			}
		})
		for _, s := range w.sentences {
			count++
			row := rowOf(s)
			if used[row] = true; row == "" {
				missing[s] = true
			}
		}
	}
	for s := range missing {
		t.Errorf("nothing proves %q: add a row to truths", s)
	}
	for row, proofs := range truths() {
		if !used[row] && !testing.Short() {
			t.Errorf("nothing says %q any more", row)
		}
		for _, name := range strings.Fields(proofs) {
			probe := slices.ContainsFunc(probes(), func(p probe) bool { return p.name == name })
			if !probe && !known[name] && name != "advice" {
				t.Errorf("%q: there is no probe and no test %s", row, name)
			}
		}
	}
	t.Logf("%d sentences with a row, in %d worlds: %d comparisons", len(used), len(list), count)
}

// rowOf is the row of a sentence: itself, or a beginning of it that ends in *.
func rowOf(sentence string) string {
	best := ""
	for row := range truths() {
		if row == sentence {
			return row
		}
		if head, open := strings.CutSuffix(row, "*"); open && strings.HasPrefix(sentence, head) && len(row) > len(best) {
			best = row
		}
	}
	return best
}

// tests are the names of all tests of the repository.
func tests(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	err := filepath.WalkDir(filepath.Join("..", "..", ".."), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		for _, m := range testName.FindAllSubmatch(data, -1) {
			out[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var testName = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// probe is a few calls that are made in every world, and their required results.
type probe struct {
	name  string
	calls []string
	check func(w *world, m []met)
}

// wrong returns the differences from what the model reads.
func (w *world) wrong(name string, m met, format string, args ...any) {
	w.t.Helper()
	w.t.Errorf("%s: %s: %s (asked %v): %q", name, fmt.Sprintf(format, args...), m.Outcome, m.asked, m.text)
}

// may holds how a call was judged that needs a yes unless it is free, and never gets one in some modes, and reports
// whether it ran.
func (w *world) may(name string, m met, free, never bool) bool {
	w.t.Helper()
	switch {
	case free && (m.asked || m.denied()):
		w.wrong(name, m, "it needs no yes")
	case never && (m.asked || !m.denied()):
		w.wrong(name, m, "it may never be")
	case !free && !never && w.unattended && (m.asked || !m.denied()):
		w.wrong(name, m, "nobody is there to say yes")
	case !free && !never && !w.unattended && (!m.asked || m.denied()):
		w.wrong(name, m, "a person is to be asked, and has said yes")
	}
	return m.ok()
}

// sleeping is the process that sleeps so many seconds; 0 if there is none.
func sleeping(arg string) (pid int) {
	list, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range list {
		line, _ := os.ReadFile(path)
		if string(line) == "sleep\x00"+arg+"\x00" {
			pid, _ = strconv.Atoi(filepath.Base(filepath.Dir(path)))
		}
	}
	return pid
}

func probes() []probe {
	return []probe{
		{"reading", []string{`read_file {"path":"seen.txt"}`, `bash {"command":"cat seen.txt; ls sub"}`, `search_files {"pattern":"seen"}`, `list_files {}`, `find_files {"pattern":"*.txt"}`}, func(w *world, m []met) {
			for i, says := range []string{"     1\tseen", "seen too\nother.txt", "seen.txt", "sub/", "seen.txt"} {
				if w.may("reading", m[i], true, false); !strings.Contains(m[i].text, strings.TrimLeft(says, " ")) {
					w.wrong("reading", m[i], "it does not say %q", says)
				}
				if i > 2 && strings.Contains(m[i].text, "left-out") {
					w.wrong("reading", m[i], "it shows what is ignored")
				}
			}
		}},
		{"writing", []string{`write_file {"path":"new/made.txt","content":"one\ntwo\n"}`, `edit_file {"path":"seen.txt","old_string":"seen","new_string":"x"}`, `edit_file {"path":"seen.txt","old_string":"seen too","new_string":"seen two"}`}, func(w *world, m []met) {
			free, never := w.mode == tool.ModeEdit || w.mode == tool.ModeAuto || w.mode == tool.ModeYolo, w.mode == tool.ModePlan
			made := w.may("writing", m[0], free, never)
			if got, err := os.ReadFile(filepath.Join(w.root, "new/made.txt")); (err == nil && string(got) == "one\ntwo\n") != made {
				w.wrong("writing", m[0], "the file holds %q", got)
			}
			if m[1].ok() {
				w.wrong("writing", m[1], "two matches are replaced")
			}
			w.may("writing", m[2], free, never)
		}},
		{"commands", []string{`bash {"command":"sh do.sh; ls did"}`, `bash {"command":"sh -c 'd=OUT; echo x > $d/made'; true"}`, `bash {"command":"sh -c 'echo x > /tmp/SLEEPER.truth'; ls /tmp/SLEEPER.truth"}`}, func(w *world, m []met) {
			free, never := w.mode == tool.ModeAuto || w.mode == tool.ModeYolo, w.mode == tool.ModePlan
			for i := range m {
				w.may("commands", m[i], free, never)
			}
			if _, err := os.Stat(filepath.Join(w.out, "made")); (err == nil) != (w.mode == tool.ModeYolo) {
				w.wrong("commands", m[1], "what a command writes elsewhere is there: %v", err == nil)
			}
			at := "/tmp/" + w.sleeper + ".truth"
			if _, err := os.Stat(at); (err == nil) != m[2].ok() {
				w.wrong("commands", m[2], "what a command says it writes in /tmp is there afterwards: %v", err == nil)
			}
			_ = os.Remove(at)
		}},
		{"outside", []string{`bash {"command":"sh -c 'echo x > OUT/approved'","outside":true}`, `bash {"command":"sh -c true","network":["example.com"]}`, `write_file {"path":"OUT/written","content":"x"}`}, func(w *world, m []met) {
			for i := range m {
				w.may("outside", m[i], w.mode == tool.ModeYolo, w.mode == tool.ModePlan)
			}
			if told := w.says("bash: A person then decides; do not try to get around it."); told != m[0].asked {
				w.wrong("outside", m[0], "the model is told that a person decides: %v", told)
			}
			boxed := slices.ContainsFunc(w.sentences, func(s string) bool { return strings.HasPrefix(s, "bash: Commands run in a sandbox: they write") })
			if boxed == (w.mode == tool.ModeYolo || w.mode == tool.ModePlan) {
				w.wrong("outside", m[0], "the model is told of a sandbox to write in: %v", boxed)
			}
			if _, err := os.Stat(filepath.Join(w.out, "approved")); (err == nil) != m[0].ok() {
				w.wrong("outside", m[0], "the file is there: %v", err == nil)
			}
		}},
		{"shell", []string{`bash {"command":"cd sub; cat; pwd"}`, `bash {"command":"ls"}`, `bash {"command":"cd ..; ls none"}`, `bash {"command":"export TRUTH=told"}`, `bash {"command":"echo $TRUTH"}`}, func(w *world, m []met) {
			if w.may("shell", m[0], true, false); !strings.Contains(m[0].text, w.root+"/sub\n[exit code 0]\n[now in ") {
				w.wrong("shell", m[0], "the last lines are not the exit code and the directory")
			}
			if !strings.Contains(m[1].text, "other.txt\n[exit code 0]") {
				w.wrong("shell", m[1], "the directory did not stay, or is told again")
			}
			if m[2].Exit == nil || *m[2].Exit == 0 {
				w.wrong("shell", m[2], "the exit code is not told")
			}
			set := w.may("shell", m[3], w.mode == tool.ModeAuto || w.mode == tool.ModeYolo, w.mode == tool.ModePlan)
			if strings.Contains(m[4].text, "told") != set {
				w.wrong("shell", m[4], "the variable was set: %v", set)
			}
		}},
		{"terminal", []string{`bash {"command":"stty size; tty","tty":true}`, `bash {"command":"stty size; tty"}`}, func(w *world, m []met) {
			free, never := w.mode == tool.ModeAuto || w.mode == tool.ModeYolo, w.mode == tool.ModePlan
			if w.may("terminal", m[0], free, never) && !strings.Contains(m[0].text, "40 120") {
				w.wrong("terminal", m[0], "it is no terminal of 120x40")
			}
			if m[1].ok() && strings.Contains(m[1].text, "40 120") {
				w.wrong("terminal", m[1], "there is one")
			}
		}},
		{"output", []string{`bash {"command":"seq 40000"}`}, func(w *world, m []met) {
			w.may("output", m[0], true, false)
			for _, says := range []string{"1\n2\n", "39999\n40000\n", "blob:sha256-"} {
				if !strings.Contains(m[0].text, says) {
					w.wrong("output", m[0], "it does not show %q", says)
				}
			}
		}},
		{"jobs", []string{
			`bash {"command":"sleep 3; echo later","timeout":1}`, `jobs {"action":"wait","seconds":20}`, `bash {"command":"sleep SLEEPER","background":true}`,
			`jobs {"action":"list"}`, `bash {"command":"sleep 60","background":true}`, `jobs {"action":"kill","id":"3"}`,
		}, func(w *world, m []met) {
			if w.may("jobs", m[0], true, false); !strings.Contains(m[0].text, "still running as job 1") {
				w.wrong("jobs", m[0], "it does not go on as a job")
			}
			if !strings.Contains(m[0].text+m[1].text, "later") { // it may end just when it becomes a job
				w.wrong("jobs", m[1], "its output is gone")
			}
			for i, says := range map[int]string{3: "sleep " + w.sleeper, 5: "job 3 ended"} {
				if !strings.Contains(m[i].text, says) {
					w.wrong("jobs", m[i], "it does not say %q", says)
				}
			}
			goesOn := w.says("jobs: What still runs when the session ends goes on; end what nobody needs.")
			if ends := w.says("jobs: At the end of the session jobs end.") || w.says("jobs: At the end of the session jobs end, unless they are kept."); ends == goesOn {
				w.wrong("jobs", m[2], "the model is told that they end: %v, and that they go on: %v", ends, goesOn)
			}
			testkit.Poll(testkit.Patience, func() bool { return goesOn || sleeping(w.sleeper) == 0 })
			pid := sleeping(w.sleeper)
			if pid > 0 {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			if (pid > 0) != goesOn {
				w.wrong("jobs", m[2], "the job is there after the session: %v", pid > 0)
			}
		}},
		{"others", []string{`tool_search {"query":"delete_file"}`, `call_tool {"name":"delete_file","arguments":{"path":"none"}}`, `history {"words":"tool_search"}`, `todo {"items":[{"text":"a","state":"doing"}]}`}, func(w *world, m []met) {
			for i, says := range map[int]string{0: "delete_file", 2: "tool_search", 3: "1 doing"} {
				if w.may("others", m[i], true, false); !strings.Contains(m[i].text, says) {
					w.wrong("others", m[i], "it does not say %q", says)
				}
			}
		}},
		{"facts", nil, func(w *world, _ []met) {
			fact := func(name string) string {
				_, rest, _ := strings.Cut(w.facts, "\n- "+name+": ")
				line, _, _ := strings.Cut(rest, "\n")
				return line
			}
			if got := fact("workspace"); got != w.root {
				w.t.Errorf("the workspace is %s, not %q", w.root, got)
			}
			if got := fact("date"); got != time.Now().Format("Monday, 2 January 2006") {
				w.t.Errorf("today is not %s", got)
			}
			if got := fact("tests"); got != "probably go test ./..." {
				w.t.Errorf("the tests are %q", got)
			}
			if got := fact("permissions"); !strings.HasPrefix(got, "mode "+string(w.mode)) {
				w.t.Errorf("the mode is %s, not %q", w.mode, got)
			}
			want := map[bool]string{false: "200 turns"}[w.container]
			if w.how == isSubagent {
				want = "40 turns, 30 minutes"
			}
			if limits := fact("limits of a run"); limits != want {
				w.t.Errorf("the limits are %q", limits)
			}
			if got := strings.Contains(w.facts, "\n- nobody is there to answer"); got != w.unattended {
				w.t.Errorf("nobody is there: %v", got)
			}
			asks := slices.ContainsFunc(w.sentences, func(s string) bool { return strings.HasPrefix(s, "ask_user: ") })
			if asks == w.unattended {
				w.t.Errorf("it can ask a person: %v", asks)
			}
			for name := range strings.SplitSeq(fact("tools"), ", ") {
				if name, _, _ = strings.Cut(name, " "); name != "" && found(name) == "" {
					w.t.Errorf("there is no %s", name)
				}
			}
		}},
	}
}

// found is where a program lies; empty means nowhere.
func found(name string) string {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && !info.IsDir() {
			return dir
		}
	}
	return ""
}

// says reports whether the model reads a sentence.
func (w *world) says(sentence string) bool { return slices.Contains(w.sentences, sentence) }
