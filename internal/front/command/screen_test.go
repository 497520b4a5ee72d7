package command

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/testkit"
)

var updateScreen = flag.Bool("update", false, "write the screen in docs/TERMINAL.md anew")

// terminal is one in which a person works in a home.
type terminal struct {
	*testkit.Terminal
	t *testing.T
}

// newTerminal opens one of a size with a shell in it.
func newTerminal(t *testing.T, h home, width, height int) *terminal {
	t.Helper()
	return &terminal{testkit.OpenTerminal(t, width, height, h.work, "HOME="+h.dir, "PATH="+filepath.Dir(h.bin)+":"+os.Getenv("PATH"),
		"INSPAN_STATE_DIR="+filepath.Join(h.dir, "state"), "INSPAN_CONFIG_DIR="+filepath.Join(h.dir, "config")), t}
}

// idles waits until the interactive front end runs nothing and accepts a new task: text typed earlier steers the run.
func (s *terminal) idles() {
	s.t.Helper()
	testkit.WaitFor(s.t, "the prompt of the front end", func() bool { return strings.Contains(s.Screen(), "› say what to do") }, s.Screen)
}

// withoutModel makes settings that name the scripted model.
func withoutModel(t testing.TB) home {
	t.Helper()
	h := newHome(t, "http://unused.invalid")
	if err := os.WriteFile(filepath.Join(h.dir, "config", "config.toml"), []byte("model = \"script/commands\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return h
}

// TestDumbTerminal checks that nothing but lines is written to a terminal that knows no more, and that the front end
// says so instead of drawing there.
func TestDumbTerminal(t *testing.T) {
	t.Parallel()
	h := withoutModel(t)
	s := newTerminal(t, h, 80, 24)
	raw := filepath.Join(h.dir, "raw")
	s.Tmux("pipe-pane", "cat >"+raw)
	s.Types(`export TERM=dumb; printf 'beg''in\n'; inspan 'bash: touch made; echo birds'; inspan; printf 'en''d\n'`)
	s.Shows("bash asks", "1 Yes (y)")
	s.Types("y")
	s.Shows("birds", "can only print lines (TERM=dumb); use: inspan -p", "end")
	s.Types(`TERM= inspan; TERM=unknown inspan; TERM= inspan run 'echo swans'; printf 'en''d2\n'`)
	s.Shows("(TERM=); use", "(TERM=unknown); use", "swans", "end2")
	var part string
	testkit.WaitFor(t, "what was written", func() bool {
		data, _ := os.ReadFile(raw)
		_, part, _ = strings.Cut(string(data), "\nbegin")
		return strings.Contains(part, "\nend2")
	})
	part, _, _ = strings.Cut(part, "\nend2")
	if strings.Contains(part, "\x1b") || !h.has("made") {
		t.Errorf("written: %q", part)
	}
}

// TestInATerminal drives the interactive front end as a person would: it is typed
// to, asks, is answered, interrupted, resized, killed and resumed.
func TestInATerminal(t *testing.T) {
	t.Parallel()
	h := withoutModel(t)
	s := newTerminal(t, h, 80, 24)
	s.Types("inspan")
	s.Shows("say what to do", "script/commands · ask")
	if entries, err := os.ReadDir(filepath.Join(h.dir, "state", "sessions")); err == nil && len(entries) > 0 {
		t.Error("there is a session although nothing was said")
	}

	s.Types("bash: echo some; touch made")
	s.Shows("? bash asks", "$ echo some; touch made", "1 Yes (y)", "or say what to do instead")
	if _, err := os.Stat(filepath.Join(h.work, "made")); err == nil {
		t.Error("the command ran before it was allowed")
	}
	s.Keys("y") // it counts without Enter
	s.Shows("✓ some", "■ done")
	if _, err := os.Stat(filepath.Join(h.work, "made")); err != nil {
		t.Error(err)
	}

	s.idles()
	s.Types("bash: rm made")
	s.Shows("$ rm made", "or say what to do instead")
	s.Types("please keep it")
	s.Shows("please keep it", "Denied by")
	s.idles()
	s.Types("bash: echo on > other")
	s.Shows("$ echo on > other", "or say what to do instead")
	s.Types("yes")
	testkit.WaitFor(t, "the command to run", func() bool { return h.has("other") }, s.Screen)
	s.idles()
	s.Types("bash: wc -c other; exit 4")
	s.Shows("3 other", "✗ exit 4")
	s.idles()

	s.Keys("BTab")
	s.Shows("script/commands · edit")
	s.Types(`call: ask_user {"question":"Which bird?","options":["heron","egret"]}`)
	s.Shows("Which bird?", "2 egret", "your answer")
	s.Tmux("resize-window", "-x", "40", "-y", "12")
	s.Types("2")
	s.Shows("The person answers: egret")
	s.idles()
	s.Tmux("resize-window", "-x", "100", "-y", "30")

	s.Types("/mode auto")
	s.Shows("script/commands · auto")
	s.Types("bash: sleep 60")
	s.Shows("▸ bash sleep 60")
	s.Keys("Escape")
	s.Shows("cancelled")
	s.idles()
	s.Types("/nonsense")
	s.Shows("unknown command /nonsense")
	s.Keys("C-u")
	s.idles()

	// Pull the plug.
	s.Types("bash: touch begun; sleep 61")
	s.Shows("▸ bash touch begun; sleep 61")
	out, err := exec.CommandContext(t.Context(), "pgrep", "-P", strings.TrimSpace(s.Tmux("list-panes", "-F", "#{pane_pid}"))).Output()
	if err != nil {
		t.Fatalf("the program can't be found: %v", err)
	}
	if err := exec.CommandContext(t.Context(), "kill", "-9", strings.TrimSpace(string(out))).Run(); err != nil {
		t.Fatal(err)
	}
	s.Shows("Killed")
	s.Writes("stty sane; clear; inspan --continue")
	s.Keys("C-j") // the killed program has left the terminal as it was
	s.Shows("bash touch begun; sleep 61", "script/commands · auto")
	s.Types("/continue")
	s.Shows("utcome unknown")
	s.Keys("C-d")
	s.Shows("continue with: inspan resume ")
}

// TestFirstMessage begins with a message, and continues a session that is named.
func TestFirstMessage(t *testing.T) {
	t.Parallel()
	s := newTerminal(t, withoutModel(t), 80, 24)
	s.Types("inspan 'say: good morning'")
	s.Shows("› say: good morning", "■ done")
	s.idles()
	s.Keys("C-d")
	id := regexp.MustCompile(`inspan resume (\S+)`).FindStringSubmatch(s.Shows("continue with: inspan resume "))[1]
	s.Prompts()
	for i, again := range []string{"-r ", "resume "} {
		s.Types(fmt.Sprintf("echo round $((%d*10)); inspan %s%s", i+7, again, id))
		opened := func(screen string) bool {
			_, now, _ := strings.Cut(screen, fmt.Sprintf("round %d0\n", i+7)) // above is the end of the one before
			return strings.Contains(now, "› say: good morning") && strings.Contains(now, "say what to do")
		}
		testkit.WaitFor(t, "the session to open", func() bool { return opened(s.All()) }, s.All)
		s.Keys("C-d")
		testkit.WaitFor(t, "it to end", func() bool { return strings.Count(s.All(), "\ncontinue with: inspan resume "+id) == i+2 }, s.All)
		s.Prompts()
	}
}

// TestGoodbye leaves a session that closes slowly: because of a hook, and of a server that ends only on request. The
// last lines come when everything is closed, and text typed before is for the shell.
func TestGoodbye(t *testing.T) {
	t.Parallel()
	h := withoutModel(t)
	held, warm := filepath.Join(h.work, "held"), filepath.Join(h.dir, "warm") // the hook sees the workspace
	if err := exec.CommandContext(t.Context(), "mkfifo", held).Run(); err != nil {
		t.Fatal(err)
	}
	settings := fmt.Sprintf(`model = "script/commands"
[[hook]]
on = "session_end"
command = "cat %s"
[mcp.servers.bird]
command = ["sh", "-c", "trap 'rm %s' TERM; touch %[2]s; %s mcp serve; cat %[1]s"]
no_sandbox = true
`, held, warm, h.bin)
	if err := os.WriteFile(filepath.Join(h.dir, "config", "config.toml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newTerminal(t, h, 80, 24)
	s.Types("inspan 'say: good morning'")
	s.Shows("› say: good morning", "■ done")
	testkit.WaitFor(t, "the server to start", func() bool { _, err := os.Stat(warm); return err == nil })
	s.Keys("C-d")
	s.Shows("closing the session; Ctrl-C ends inspan at once")
	s.Types("echo he''ard")
	if err := os.WriteFile(held, []byte("{}"), 0o600); err != nil { // the hook has its answer
		t.Fatal(err)
	}
	s.Shows("continue with: inspan resume ")
	if _, err := os.Stat(warm); err == nil {
		t.Error("the server is still there when all is said to be over")
	}
	s.Types("echo al''so")
	s.Shows("heard", "also")
}

// TestScreenInDocs keeps the screen that docs/TERMINAL.md shows equal to the real one.
func TestScreenInDocs(t *testing.T) {
	t.Parallel()
	h := withoutModel(t)
	for name, text := range map[string]string{
		"cart.go":      "package shop\n\nfunc Total(n int) int {\n\tif n > 10 {\n\t\treturn n * 9\n\t}\n\treturn n * 10\n}\n",
		"cart_test.go": "package shop\n",
	} {
		if err := os.WriteFile(filepath.Join(h.work, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := newTerminal(t, h, 88, 34)
	s.Types("clear; inspan")
	s.Shows("say what to do")
	for _, line := range []string{
		`call: todo {"items":[{"text":"look for the bug","state":"done"},{"text":"mend it","state":"doing"},{"text":"run the ` +
			`tests","state":"open"}]}`,
		`read: cart.go`,
		`say: The comment says ten or more, the code says more than ten.`,
		`call: edit_file {"path":"cart.go","edits":[{"old_string":"n > 10","new_string":"n >= 10"}]}`,
	} {
		s.Writes(line)
		s.Keys("C-j")
	}
	s.Keys("Enter")
	screen := s.Shows("edit_file asks", "1 Yes (y)", "or say what to do instead")
	_, screen, _ = strings.Cut(screen, "▸ todo")
	screen = "▸ todo" + regexp.MustCompile(` +\n`).ReplaceAllString(screen, "\n")
	screen = strings.ReplaceAll(screen, h.work, "/home/ann/shop")
	// How much of the window is used depends on how long that path is, too.
	screen = regexp.MustCompile(`\d+% of 200k`).ReplaceAllString(screen, "5% of 200k")
	block := "<!-- screen -->\n```\n" + strings.TrimSpace(screen) + "\n```\n<!-- /screen -->"
	page, err := os.ReadFile("../../../docs/TERMINAL.md")
	if err != nil {
		t.Fatal(err)
	}
	now := regexp.MustCompile(`(?s)<!-- screen -->.*<!-- /screen -->`)
	if *updateScreen {
		if err := os.WriteFile("../../../docs/TERMINAL.md", now.ReplaceAllLiteral(page, []byte(block)), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if found := now.FindString(string(page)); found != block {
		t.Errorf("docs/TERMINAL.md shows\n%s\nand it is\n%s", found, block)
	}
}

// waiting are the questions of a session.
func (h home) waiting(t *testing.T, id string) []inspan.Pending {
	t.Helper()
	w, err := (&inspan.Host{Dir: h.store().Dir}).Watch(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	st := w.Status()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return st.Waiting
}

// TestScreenEditsACommand has a person change a command before it runs, with a key, and add a note to a yes. What
// they changed is asked about before it runs.
func TestScreenEditsACommand(t *testing.T) {
	t.Parallel()
	h := withoutModel(t)
	s := newTerminal(t, h, 80, 24)
	s.Types("inspan --model script --mode ask 'bash: touch one'")
	s.Shows("$ touch one", "6 Edit the command first (e)", "or say what to do instead")
	s.Keys("e")
	s.Shows("› touch one")
	s.Keys("BSpace", "BSpace", "BSpace")
	s.Writes("two")
	s.Shows("› touch two")
	s.Keys("Enter")
	s.Shows("$ touch two", "changes ", "1 Yes (y)", "or say what to do instead")
	if h.has("two") {
		t.Error("it ran before it was judged")
	}
	s.Keys("Tab")
	s.Shows("yes, and tell it:")
	s.Writes("mind the tests")
	s.Keys("Enter")
	s.Shows("▸ bash touch two", "› mind the tests", "■ done")
	if !h.has("two") || h.has("one") {
		t.Error("another command ran")
	}
}

// TestScreenBackground has Ctrl-B send the running command to the background, where it continues as a job.
func TestScreenBackground(t *testing.T) {
	t.Parallel()
	h := withoutModel(t)
	s := newTerminal(t, h, 80, 24)
	s.Types("inspan --model script --mode auto 'bash: echo begun; sleep 4073'")
	s.Shows("▸ bash echo begun; sleep 4073", "\n    begun\n")
	s.Keys("C-b")
	s.Shows("since the user sent it to the background", "■ done")
	s.Types("/jobs kill 1")
	s.Shows("job 1 killed")
}
