//go:build unix

package hook_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/extend/hook"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// TestExitCodes checks the meaning of each exit code at each moment, in both protocols.
func TestExitCodes(t *testing.T) {
	object := map[tool.Moment]string{
		tool.SessionStart:  "",
		tool.SessionEnd:    "",
		tool.PromptSaid:    "deny reason=why not",
		tool.BeforeCall:    "deny reason=why not",
		tool.AfterCall:     "text=why not",
		tool.BeforeCompact: "deny reason=why not",
		tool.AfterCompact:  "",
		tool.RunStop:       "text=why not",
		tool.AgentStart:    "",
		tool.AgentStop:     "text=why not",
		tool.TeammateIdle:  "text=why not",
		tool.TaskCompleted: "deny reason=why not",
	}
	plain := map[bool][]tool.Moment{
		false: {tool.SessionStart, tool.PromptSaid},
		true:  {tool.SessionStart, tool.PromptSaid, tool.BeforeCompact},
	}
	for _, m := range tool.Moments() {
		for _, claude := range []bool{false, true} {
			t.Run(string(m)+strconv.FormatBool(claude), func(t *testing.T) {
				said := ""
				for _, p := range plain[claude] {
					if p == m {
						said = "text=said"
					}
				}
				told := []string{"why not"}
				if object[m] != "" {
					told = nil
				}
				for _, tc := range []struct {
					command string
					want    string
					told    []string
				}{
					{"exit 0", "", nil},
					{"echo said; echo ignored >&2", said, nil},
					{"echo no; echo why not >&2; exit 2", object[m], told},
					{
						"echo no; echo first >&2; echo second | tr c k >&2; exit 1", "",
						[]string{"hook echo no;", "failed at " + string(m), "exit code 1: first"},
					},
					{"exit 3", "", []string{"exit code 3"}},
					{"kill -9 $$", "", []string{"exit code 137"}},
					{"no-such-program-here", "", []string{"exit code 127", "not found"}},
				} {
					s, w := set(t, hook.Config{On: m, Command: tc.command, Claude: claude})
					if got := brief(must(t, s, at(m, s.Env))); got != tc.want {
						t.Errorf("%s: got %q, want %q", tc.command, got, tc.want)
					}
					warned := w.take()
					has(t, tc.command, warned, tc.told...)
					if strings.Contains(warned, "sekond") {
						t.Errorf("%s: more than one line is told: %q", tc.command, warned)
					}
				}
			})
		}
	}
}

func TestNoReason(t *testing.T) {
	for _, m := range []tool.Moment{tool.BeforeCall, tool.RunStop} {
		s, _ := set(t, hook.Config{On: m, Command: "exit 2"})
		has(t, string(m), brief(must(t, s, at(m, s.Env))), "gave no reason")
	}
}

func TestAnswers(t *testing.T) {
	for _, tc := range []struct {
		on     tool.Moment
		answer string
		want   string
		failed string
	}{
		{tool.BeforeCall, `{}`, "", ""},
		{tool.BeforeCall, ` {"action":"allow","reason":"fine"}` + "\n", "allow reason=fine", ""},
		{tool.BeforeCall, `{"action":"ask","reason":"sure?","text":"note"}`, "ask reason=sure? text=note", ""},
		{tool.BeforeCall, `{"action":"deny"}`, "deny reason=the hook gave no reason", ""},
		{
			tool.BeforeCall, `{"args":{"command":"ls -l","timeout":12345678901234567890}}`,
			`args={"command":"ls -l","timeout":12345678901234567890}`, "",
		},
		{tool.BeforeCall, `{"args":{ "command" : "ls" }}`, "", ""},
		{tool.BeforeCall, `{"args":null}`, "", ""},
		{tool.BeforeCall, `{"args":["ls"]}`, "", "not an object"},
		{tool.BeforeCall, `{"acton":"deny"}`, "", `did you mean "action"?`},
		{tool.BeforeCall, `{"Action":"deny"}`, "", `did you mean "action"?`},
		{tool.BeforeCall, `{"action":"block"}`, "", `action "block"`},
		{tool.BeforeCall, `{"result":"x"}`, "", `"result", which has no meaning at before_call`},
		{tool.BeforeCall, `{"action":1}`, "", "has the wrong form"},
		{tool.BeforeCall, `{"action":"deny"} {}`, "", "more than one"},
		{tool.BeforeCall, `{"action":"deny"`, "", "not JSON"},
		{tool.AfterCall, `{"result":"other","text":"also"}`, "text=also result=other", ""},
		{tool.AfterCall, `{"result":""}`, "result=", ""},
		{tool.AfterCall, `{"action":"deny"}`, "", `"action", which has no meaning`},
		{tool.PromptSaid, `{"action":"deny","reason":"no"}`, "deny reason=no", ""},
		{tool.PromptSaid, `{"action":"ask"}`, "", `action "ask"`},
		{tool.PromptSaid, `{"text":"a\u001b[31mb\u0007"}`, "text=ab", ""},
		{tool.PromptSaid, `[1]`, "text=[1]", ""},
		{tool.BeforeCompact, `{"text":"keep names"}`, "text=keep names", ""},
		{tool.BeforeCompact, `{"action":"deny","reason":"later"}`, "deny reason=later", ""},
		{tool.RunStop, `{"text":"go on"}`, "text=go on", ""},
		{tool.RunStop, `{"action":"deny"}`, "", "has no meaning at stop"},
		{tool.SessionEnd, `{"text":"bye"}`, "", "has no meaning at session_end"},
		{tool.AgentStart, `{"text":"careful"}`, "text=careful", ""},
	} {
		s, w := set(t, hook.Config{On: tc.on, Command: "cat answer"})
		write(t, s.Env.Root, "answer", tc.answer)
		if got := brief(must(t, s, at(tc.on, s.Env))); got != tc.want {
			t.Errorf("%s %s: got %q, want %q", tc.on, tc.answer, got, tc.want)
		}
		if warned := w.take(); tc.failed == "" {
			has(t, tc.answer, warned)
		} else {
			has(t, tc.answer, warned, tc.failed)
		}
	}
}

// TestTold checks the JSON that hooks get.
func TestTold(t *testing.T) {
	s, w := set(t)
	root := s.Env.Root
	for _, m := range tool.Moments() {
		s.Hooks = append(s.Hooks, hook.Config{On: m, Command: "cat > told; pwd > where; exec 1>&-; [ ! -e /dev/fd/3 ]"})
	}
	exit := 3
	after := call(tool.AfterCall, s.Env, "bash", `{"command":"a && b <c"}`)
	after.Result.Exit, after.Failed = &exit, "it broke"
	before := call(tool.BeforeCall, s.Env, "bash", `{"command":"ls"}`)
	before.Effects = []tool.Effect{{Kind: tool.Execute, Text: "ls", Class: tool.ProvenRead}}
	head := func(m string) string {
		return `{"version":1,"moment":"` + m + `","session":"s1","root":"` + root + `","mode":"ask"`
	}
	for _, tc := range []struct {
		point tool.Point
		want  string
	}{
		{tool.Point{Moment: tool.SessionStart, Why: "new"}, head("session_start") + `,"why":"new"}`},
		{tool.Point{Moment: tool.SessionEnd}, head("session_end") + `}`},
		{tool.Point{Moment: tool.PromptSaid, Text: "do <it>"}, head("prompt") + `,"text":"do <it>"}`},
		{before, head("before_call") + `,"cwd":"` + root +
			`","call":"c1","tool":"bash","args":{"command":"ls"},"effects":[{"kind":"execute","text":"ls","class":"read"}]}`},
		{after, head("after_call") + `,"cwd":"` + root +
			`","call":"c1","tool":"bash","args":{"command":"a && b <c"},"result":"brought","exit":3,"failed":"it broke"}`},
		{tool.Point{Moment: tool.RunStop, Text: "done", Why: "done", Rounds: 2}, head("stop") + `,"text":"done","why":"done","rounds":2}`},
	} {
		tc.point.Session, tc.point.Root, tc.point.Mode = "s1", root, "ask"
		must(t, s, tc.point)
		if diff := cmp.Diff(tc.want+"\n", read(t, root, "told")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.point.Moment, diff)
		}
		if where := read(t, root, "where"); where != root+"\n" {
			t.Errorf("it ran in %q", where)
		}
	}
	has(t, "warnings", w.take())
}

func TestHooksRunInOrder(t *testing.T) {
	s, w := set(
		t,
		hook.Config{On: tool.BeforeCall, Command: `cat > 1; echo '{"action":"allow","reason":"r1","args":{"command":"one"},"text":"t1"}'`},
		hook.Config{On: tool.BeforeCall, Command: `cat > 2; echo '{"action":"ask","reason":"r2","args":{"command":"two"},"text":"t2"}'`},
		hook.Config{On: tool.BeforeCall, Command: `cat > 3; echo '{"action":"allow","reason":"r3"}'`, Source: "settings"},
	)
	var seen tool.Point
	s.Funcs = []hook.Func{{Match: "bash", Run: func(_ context.Context, p tool.Point) (tool.Outcome, error) {
		seen = p
		return tool.Outcome{}, nil
	}}}
	p := at(tool.BeforeCall, s.Env)
	p.Effects = []tool.Effect{{Kind: tool.Read, Path: "/w"}}
	out := must(t, s, p)
	if got, want := brief(out), `ask reason=r2 args={"command":"two"} text=t1`+"\n\n"+"t2"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	has(t, "who", out.By, "hook cat > 2;")
	has(t, "second", read(t, s.Env.Root, "2"), `"args":{"command":"one"}`, `"effects":[{"kind":"external"`)
	if string(seen.Call.Args) != `{"command":"two"}` || string(p.Call.Args) != `{"command":"ls"}` {
		t.Errorf("the function saw %s, the caller now has %s", seen.Call.Args, p.Call.Args)
	}
	has(t, "warnings", w.take())

	// One that denies is the last.
	s, _ = set(
		t,
		hook.Config{On: tool.BeforeCall, Command: `echo '{"action":"allow"}'`},
		hook.Config{On: tool.BeforeCall, Command: `echo no >&2; exit 2`, Source: "the settings"},
		hook.Config{On: tool.BeforeCall, Command: `touch ran`},
	)
	out = must(t, s, at(tool.BeforeCall, s.Env))
	if got := brief(out); got != "deny reason=no" || out.By != "hook echo no >&2; exit 2 of the settings" {
		t.Errorf("got %q by %q", got, out.By)
	}
	if _, err := os.Stat(filepath.Join(s.Env.Root, "ran")); err == nil {
		t.Error("a hook ran after one that denied")
	}
}

// TestFirstOfEquals holds whose reason counts where two want the same.
func TestFirstOfEquals(t *testing.T) {
	s, _ := set(
		t,
		hook.Config{On: tool.BeforeCall, Command: `echo '{"action":"ask","reason":"first"}'`},
		hook.Config{On: tool.BeforeCall, Command: `echo '{"action":"ask","reason":"second"}'`},
	)
	if got := brief(must(t, s, at(tool.BeforeCall, s.Env))); got != "ask reason=first" {
		t.Errorf("got %q", got)
	}
}

// TestOddRoot checks that no name of a folder can be a command.
func TestOddRoot(t *testing.T) {
	odd := filepath.Join(t.TempDir(), "it's; $(touch x)\n `y`")
	write(t, odd, "f", "")
	env, err := sandbox.Local(odd, nil, sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &hook.Set{Env: env, Hooks: []hook.Config{
		{
			On: tool.PromptSaid, Claude: true, PluginRoot: odd + "/'p",
			Command: `printf '%s|%s|%s' "$CLAUDE_PROJECT_DIR" "$CLAUDE_PLUGIN_ROOT" "$PWD"`,
		},
	}}
	if got, want := must(t, s, tool.Point{Moment: tool.PromptSaid}).Text, odd+"|"+odd+"/'p|"+odd; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestResultsAreReplacedInTurn(t *testing.T) {
	s, _ := set(
		t,
		hook.Config{On: tool.AfterCall, Command: `echo '{"result":"first"}'`},
		hook.Config{On: tool.AfterCall, Command: `grep -q '"result":"first"' && echo '{"result":"second"}'`},
	)
	p := at(tool.AfterCall, s.Env)
	out := must(t, s, p)
	if got := brief(out); got != "result=second" {
		t.Errorf("got %q", got)
	}
	if out.Result.Cwd != "/elsewhere" || p.Result.Parts.Text() != "brought" {
		t.Errorf("the result lost what was done: %+v, or the caller's changed: %+v", out.Result, p.Result)
	}
	p.Result = nil
	if got := brief(must(t, s, p)); got != "result=second" {
		t.Errorf("without a result: got %q", got)
	}
}

func TestOnFailure(t *testing.T) {
	for _, m := range []tool.Moment{tool.BeforeCall, tool.PromptSaid} {
		for _, c := range []hook.Config{
			{Command: "echo lost >&2; exit 1"},
			{Command: "sleep 60", Timeout: 50 * time.Millisecond},
			{Command: `echo '{"nonsense":1}'`},
			{Command: "true", Match: "/(/"},
			{URL: "https://hooks.example.com"},
		} {
			c.On, c.OnFailure = m, hook.Deny
			s, w := set(t, c)
			out := must(t, s, at(m, s.Env))
			if out.Action != tool.Deny || !strings.HasPrefix(out.Reason, "it failed, and nothing passes without it: ") ||
				!strings.HasPrefix(out.By, "hook ") {
				t.Errorf("%s %q: %+v", m, c.Command, out)
			}
			has(t, c.Command, w.take())
		}
	}
}

// TestWithoutWarn checks that failures are errors where an error stops nothing.
func TestWithoutWarn(t *testing.T) {
	for _, m := range tool.Moments() {
		s := &hook.Set{Env: local(t), Hooks: []hook.Config{{On: m, Command: "exit 1"}, {On: m, Command: "touch ran"}}}
		_, err := s.At(t.Context(), at(m, s.Env))
		if (err == nil) != (m == tool.BeforeCall) {
			t.Errorf("%s: error %v", m, err)
		}
		read(t, s.Env.Root, "ran")
	}
}

// TestTimeout checks that nothing is left of a hook that takes too long.
func TestTimeout(t *testing.T) {
	s, w := set(t, hook.Config{
		On: tool.RunStop, Command: "sleep 300 & echo $! > child; echo $$ > self; wait",
		Timeout: 3 * time.Second,
	})
	if got := brief(must(t, s, at(tool.RunStop, s.Env))); got != "" {
		t.Errorf("got %q", got)
	}
	has(t, "warning", w.take(), "it did not end within 3s")
	for _, name := range []string{"self", "child"} {
		gone(t, name, pid(t, s.Env.Root, name))
	}
}

func pid(t *testing.T, dir, name string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(read(t, dir, name)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// gone waits until a process has ended, or is only waiting to be collected.
func gone(t *testing.T, name string, pid int) {
	t.Helper()
	testkit.WaitFor(t, fmt.Sprintf("%s (%d) to end", name, pid), func() bool {
		if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
			return true
		}
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return err == nil && strings.Contains(string(stat), ") Z ")
	})
}

func TestCancelled(t *testing.T) {
	s, w := set(t, hook.Config{On: tool.BeforeCall, Command: "touch started; sleep 300", OnFailure: hook.Deny},
		hook.Config{On: tool.BeforeCall, Command: "touch ran"})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		testkit.Poll(testkit.Patience, func() bool {
			_, err := os.Stat(filepath.Join(s.Env.Root, "started"))
			return err == nil
		})
	}()
	out, err := s.At(ctx, at(tool.BeforeCall, s.Env))
	if !errors.Is(err, context.Canceled) || brief(out) != "" {
		t.Errorf("got %q, %v", brief(out), err)
	}
	if _, err := os.Stat(filepath.Join(s.Env.Root, "ran")); err == nil {
		t.Error("the next hook ran")
	}
	has(t, "warnings", w.take())
}

func TestOutputs(t *testing.T) {
	const flood = "head -c 20000000 /dev/zero | tr '\\0' "
	for _, tc := range []struct {
		name, command string
		on            tool.Moment
		want          []string
		most          int
		told          []string
	}{
		{"a flood of text", flood + "a", tool.PromptSaid, []string{"text=aaaa", "aaaa\n[the rest is cut"}, 66 << 10, nil},
		{"a flood of JSON", "echo '{\"text\":\"'; " + flood + "a; echo '\"}'", tool.PromptSaid, nil, 0, []string{"more than 64 KiB"}},
		{"a flood of reasons", flood + "b >&2; exit 2", tool.BeforeCall, []string{"deny reason=bbbb", "[the rest is cut"}, 66 << 10, nil},
		{"a flood that fails", flood + "b >&2; exit 1", tool.BeforeCall, nil, 0, []string{"exit code 1: bbb"}},
		{"a flood where it means nothing", flood + "a", tool.AfterCall, nil, 0, nil},
		{"not UTF-8", `printf 'a\377\300b'`, tool.PromptSaid, []string{"text=a\ufffdb"}, 20, nil},
		{"not UTF-8 in a reason", `printf 'a\377b' >&2; exit 2`, tool.RunStop, []string{"text=a\ufffdb"}, 20, nil},
		{"not UTF-8 in JSON", `printf '{"text":"a\377b"}'`, tool.PromptSaid, []string{"text=a\ufffdb"}, 20, nil},
		{
			"terminal sequences", `printf '\033[1;31mred\033[0m\r\n\ttab \033]0;x\007 \000'`,
			tool.SessionStart,
			[]string{"text=red\n\ttab ]0;x"},
			30, nil,
		},
		{"bytes", "head -c 3000 /dev/urandom | tr -d '{' | sed '1s/^/x/'", tool.SessionStart, []string{"text=x"}, 10000, nil},
		{"nothing", ":", tool.SessionStart, nil, 0, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, w := set(t, hook.Config{On: tc.on, Command: tc.command})
			p := at(tc.on, s.Env)
			p.Text = strings.Repeat("nobody reads this. ", 20_000)
			got := brief(must(t, s, p))
			has(t, "outcome", got, tc.want...)
			if tc.want != nil && len(got) > tc.most {
				t.Errorf("it has %d bytes", len(got))
			}
			warned := w.take()
			has(t, "told", warned, tc.told...)
			if len(warned) > 500 {
				t.Errorf("people are told %d bytes", len(warned))
			}
		})
	}
}

// TestLeftBehind checks that a hook can leave a process behind, as those do that play a sound.
func TestLeftBehind(t *testing.T) {
	s, w := set(t, hook.Config{
		On: tool.SessionStart, Command: "sleep 100 >/dev/null 2>&1 & echo $! > child; echo done",
		Timeout: 30 * time.Second,
	})
	if got := brief(must(t, s, at(tool.SessionStart, s.Env))); got != "text=done" {
		t.Errorf("got %q", got)
	}
	child := pid(t, s.Env.Root, "child")
	if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
		t.Errorf("it is gone: %v", err)
	}
	has(t, "warnings", w.take())
}

func TestWithoutMeans(t *testing.T) {
	w := &warnings{}
	s := &hook.Set{Warn: w.add, Hooks: []hook.Config{
		{On: tool.RunStop, Command: "true"},
		{On: tool.RunStop, URL: "https://hooks.example.com"},
	}}
	must(t, s, tool.Point{Moment: tool.RunStop})
	has(t, "told", w.take(), "this host can't start processes", "this host can't reach servers")
}

func TestFuncs(t *testing.T) {
	said := func(text string) func(context.Context, tool.Point) (tool.Outcome, error) {
		return func(context.Context, tool.Point) (tool.Outcome, error) { return tool.Outcome{Text: text}, nil }
	}
	broken := errors.New("broken")
	s := &hook.Set{Funcs: []hook.Func{
		{Run: said("all")},
		{On: []tool.Moment{tool.RunStop, tool.AfterCall}, Run: said("two")},
		{On: []tool.Moment{tool.AfterCall}, Match: "read_*", Run: said("never")},
		{On: []tool.Moment{tool.RunStop}, Run: func(context.Context, tool.Point) (tool.Outcome, error) { return tool.Outcome{}, broken }},
		{On: []tool.Moment{tool.RunStop}, Run: func(context.Context, tool.Point) (tool.Outcome, error) { panic("fell over") }},
		{On: []tool.Moment{tool.RunStop}, Run: said("last")},
	}}
	env := tool.Env{}
	for m, want := range map[tool.Moment]string{tool.SessionStart: "text=all", tool.AfterCall: "text=all\n\ntwo"} {
		if got := brief(must(t, s, at(m, env))); got != want {
			t.Errorf("%s: got %q, want %q", m, got, want)
		}
	}
	out, err := s.At(t.Context(), tool.Point{Moment: tool.RunStop})
	if brief(out) != "text=all\n\ntwo\n\nlast" || !errors.Is(err, broken) || !strings.Contains(err.Error(), "fell over") || out.By != "hook" {
		t.Errorf("got %+v, %v", out, err)
	}
	s = &hook.Set{Funcs: []hook.Func{
		{Run: func(context.Context, tool.Point) (tool.Outcome, error) { return tool.Outcome{}, broken }},
		{Run: said("never")},
	}}
	if out, err := s.At(t.Context(), at(tool.BeforeCall, env)); !errors.Is(err, broken) || out.Text != "" {
		t.Errorf("got %+v, %v", out, err)
	}
}

func TestNoHooks(t *testing.T) {
	var s hook.Set
	for _, m := range tool.Moments() {
		if got := must(t, &s, at(m, tool.Env{})); brief(got) != "" || got.By != "" {
			t.Errorf("%s: %+v", m, got)
		}
	}
	closed(t, &s)
}

func TestBackground(t *testing.T) {
	s, w := set(
		t,
		hook.Config{
			On: tool.AfterCall, Background: true,
			Command: `cat > told; until [ -e go ]; do sleep 0.01; done; echo '{"result":"late"}'; touch ran`,
		},
		hook.Config{On: tool.AfterCall, Background: true, Command: "echo sorry >&2; exit 1"},
	)
	p := at(tool.AfterCall, s.Env)
	if got := brief(must(t, s, p)); got != "" {
		t.Errorf("got %q", got)
	}
	p.Result.Parts = append(p.Result.Parts[:0], llm.Text{Text: "changed"}) // as callers may
	write(t, s.Env.Root, "go", "")
	closed(t, s)
	read(t, s.Env.Root, "ran")
	has(t, "told", w.take(), "exit code 1: sorry")

	s, w = set(t, hook.Config{On: tool.RunStop, Background: true, Command: "echo $$ > self; sleep 300"})
	must(t, s, at(tool.RunStop, s.Env))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s.Close(ctx)
	if _, err := os.Stat(filepath.Join(s.Env.Root, "self")); err == nil {
		gone(t, "self", pid(t, s.Env.Root, "self"))
	}
	has(t, "told", w.take())
}

func TestConcurrency(t *testing.T) {
	s, w := set(
		t,
		hook.Config{On: tool.BeforeCall, Match: "/^b/", Command: `echo '{"args":{"command":"two"},"text":"a"}'`},
		hook.Config{On: tool.BeforeCall, Background: true, Command: "true"},
		hook.Config{On: tool.BeforeCall, Command: "exit 1"},
	)
	p := at(tool.BeforeCall, s.Env)
	var wait sync.WaitGroup
	for range 16 {
		wait.Go(func() {
			out, err := s.At(t.Context(), p)
			if got := brief(out); err != nil || got != `args={"command":"two"} text=a` {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	wait.Wait()
	closed(t, s)
	if n := strings.Count(w.take(), "exit code 1"); n != 16 {
		t.Errorf("told %d times", n)
	}
}
