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
	"time"

	"github.com/inspan/inspan"
)

var updateScreen = flag.Bool("update", false, "write the screen in docs/TERMINAL.md anew")

// terminal is a real one: tmux, with the command in it.
type terminal struct {
	t      *testing.T
	socket string
}

// newTerminal opens one of a size with a shell in it.
func newTerminal(t *testing.T, h home, width, height int) *terminal {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		fmt.Fprintln(os.Stderr, "SKIPPED the tests in a real terminal: tmux is not installed (apt-get install tmux)")
		t.Skip("tmux is not installed")
	}
	s := &terminal{t, filepath.Join(t.TempDir(), "tmux")}
	shell := fmt.Sprintf("cd %s && exec env -i HOME=%s PATH=%s:$PATH TERM=screen-256color LANG=C.UTF-8 PS1='$ ' INSPAN_STATE_DIR=%s "+
		"INSPAN_CONFIG_DIR=%s sh",
		h.work, h.dir, filepath.Dir(h.bin), filepath.Join(h.dir, "state"), filepath.Join(h.dir, "config"))
	s.tmux("-f", "/dev/null", "new-session", "-d", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height), shell)
	t.Cleanup(s.end)
	return s
}

// end ends what runs in the terminal, and waits a while for it: it may write into the folder of the test
// until then.
func (s *terminal) end() {
	tmux := func(args ...string) []byte {
		out, _ := exec.Command("tmux", append([]string{"-S", s.socket}, args...)...).Output()
		return out
	}
	shells := strings.Fields(string(tmux("list-panes", "-a", "-F", "#{pane_pid}")))
	tmux("kill-server")
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(10 * time.Second)
	for _, shell := range shells {
		_ = exec.Command("pkill", "-s", shell).Run() // what runs in the background hears nothing of the terminal's end
		for exec.Command("pgrep", "-s", shell).Run() == nil {
			select {
			case <-tick.C:
			case <-late:
				return
			}
		}
	}
}

func (s *terminal) tmux(args ...string) string {
	s.t.Helper()
	out, err := exec.CommandContext(s.t.Context(), "tmux", append([]string{"-S", s.socket}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %s: %v\n%s", args[0], err, out)
	}
	return string(out)
}

// keys presses keys, one after another.
func (s *terminal) keys(keys ...string) {
	s.t.Helper()
	s.tmux(append([]string{"send-keys"}, keys...)...)
}

// types writes text and sends it.
func (s *terminal) types(text string) {
	s.t.Helper()
	s.tmux("send-keys", "-l", text)
	s.keys("Enter")
}

// shows waits until the screen, with what has scrolled off, holds all texts.
func (s *terminal) shows(texts ...string) string {
	s.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	late := time.After(30 * time.Second)
	for {
		screen, missing := s.tmux("capture-pane", "-p", "-S", "-200"), ""
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				missing = text
			}
		}
		if missing == "" {
			return screen
		}
		select {
		case <-tick.C:
		case <-late:
			s.t.Fatalf("the screen never shows %q:\n%s", missing, screen)
		}
	}
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

// TestInATerminal drives the interactive front end as a person would: it is typed
// to, asks, is answered, interrupted, resized, killed and resumed.
func TestInATerminal(t *testing.T) {
	h := withoutModel(t)
	s := newTerminal(t, h, 80, 24)
	s.types("inspan")
	s.shows("say what to do", "script/commands · ask")
	if entries, err := os.ReadDir(filepath.Join(h.dir, "state", "sessions")); err == nil && len(entries) > 0 {
		t.Error("there is a session although nothing was said")
	}

	s.types("bash: echo some; touch made")
	s.shows("? bash asks", "$ echo some; touch made", "y yes, once", "or say what to do instead")
	if _, err := os.Stat(filepath.Join(h.work, "made")); err == nil {
		t.Error("the command ran before it was allowed")
	}
	s.keys("y") // it counts without Enter
	s.shows("✓ some", "■ done")
	if _, err := os.Stat(filepath.Join(h.work, "made")); err != nil {
		t.Error(err)
	}

	s.types("bash: rm made")
	s.shows("$ rm made", "or say what to do instead")
	s.types("please keep it")
	s.shows("please keep it", "Denied by")
	s.types("bash: echo on > other")
	s.shows("$ echo on > other", "or say what to do instead")
	s.types("yes")
	s.types("bash: wc -c other; exit 4")
	s.shows("3 other", "✗ exit 4")

	s.keys("BTab")
	s.shows("script/commands · edit")
	s.types(`call: ask_user {"question":"Which bird?","options":["heron","egret"]}`)
	s.shows("Which bird?", "2 egret", "your answer")
	s.tmux("resize-window", "-x", "40", "-y", "12")
	s.types("2")
	s.shows("The person answers: egret")
	s.tmux("resize-window", "-x", "100", "-y", "30")

	s.types("/mode auto")
	s.shows("script/commands · auto")
	s.types("bash: sleep 60")
	s.shows("▸ bash sleep 60")
	s.keys("Escape")
	s.shows("cancelled")
	s.types("/nonsense")
	s.shows("unknown command /nonsense")
	s.keys("C-u")

	// Pull the plug.
	s.types("bash: touch begun; sleep 61")
	s.shows("▸ bash touch begun; sleep 61")
	out, err := exec.CommandContext(t.Context(), "pgrep", "-P", strings.TrimSpace(s.tmux("list-panes", "-F", "#{pane_pid}"))).Output()
	if err != nil {
		t.Fatalf("the program can't be found: %v", err)
	}
	if err := exec.CommandContext(t.Context(), "kill", "-9", strings.TrimSpace(string(out))).Run(); err != nil {
		t.Fatal(err)
	}
	s.shows("Killed")
	s.tmux("send-keys", "-l", "stty sane; clear; inspan --continue")
	s.keys("C-j") // the killed program has left the terminal as it was
	s.shows("bash touch begun; sleep 61", "script/commands · auto")
	s.types("/continue")
	s.shows("utcome unknown")
	s.keys("C-d")
	s.shows("continue with: inspan resume ")
}

// TestFirstMessage begins with a message, and continues a session that is named.
func TestFirstMessage(t *testing.T) {
	s := newTerminal(t, withoutModel(t), 80, 24)
	s.types("inspan 'say: good morning'")
	s.shows("› say: good morning", "■ done")
	s.keys("C-d")
	id := regexp.MustCompile(`inspan resume (\S+)`).FindStringSubmatch(s.shows("continue with: inspan resume "))[1]
	for i, again := range []string{"-r ", "resume "} {
		s.types(fmt.Sprintf("echo round $((%d*10)); inspan %s%s", i+7, again, id))
		opened := func(screen string) bool {
			_, now, _ := strings.Cut(screen, fmt.Sprintf("round %d0\n", i+7)) // above is the end of the one before
			return strings.Contains(now, "› say: good morning") && strings.Contains(now, "say what to do")
		}
		soon(t, "the session to open", func() bool { return opened(s.shows("")) })
		s.keys("C-d")
		soon(t, "it to end", func() bool { return strings.Count(s.shows(""), "\ncontinue with: inspan resume "+id) == i+2 })
	}
}

// TestGoodbye leaves a session that takes its time to close: by a hook, and by a server that ends only
// when it is told to. The last lines come when all is closed, and what is typed before is for the shell.
func TestGoodbye(t *testing.T) {
	h := withoutModel(t)
	held, warm := filepath.Join(h.dir, "held"), filepath.Join(h.dir, "warm")
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
	s.types("inspan 'say: good morning'")
	s.shows("› say: good morning", "■ done")
	soon(t, "the server to start", func() bool { _, err := os.Stat(warm); return err == nil })
	s.keys("C-d")
	s.shows("closing the session; Ctrl-C ends inspan at once")
	s.types("echo he''ard")
	if err := os.WriteFile(held, []byte("{}"), 0o600); err != nil { // the hook has its answer
		t.Fatal(err)
	}
	s.shows("continue with: inspan resume ")
	if _, err := os.Stat(warm); err == nil {
		t.Error("the server is still there when all is said to be over")
	}
	s.types("echo al''so")
	s.shows("heard", "also")
}

// TestScreenInDocs keeps the screen that docs/TERMINAL.md shows equal to the real one.
func TestScreenInDocs(t *testing.T) {
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
	s.types("clear; inspan")
	s.shows("say what to do")
	for _, line := range []string{
		`call: todo {"items":[{"text":"look for the bug","state":"done"},{"text":"mend it","state":"doing"},{"text":"run the ` +
			`tests","state":"open"}]}`,
		`read: cart.go`,
		`say: The comment says ten or more, the code says more than ten.`,
		`call: edit_file {"path":"cart.go","edits":[{"old_string":"n > 10","new_string":"n >= 10"}]}`,
	} {
		s.tmux("send-keys", "-l", line)
		s.keys("C-j")
	}
	s.keys("Enter")
	screen := s.shows("edit_file asks", "yes, once", "or say what to do instead")
	_, screen, _ = strings.Cut(screen, "▸ todo")
	screen = "▸ todo" + regexp.MustCompile(` +\n`).ReplaceAllString(screen, "\n")
	screen = strings.ReplaceAll(screen, h.work, "/home/ann/shop")
	// How much of the window is used depends on how long that path is, too.
	screen = regexp.MustCompile(`\d+% of 200k`).ReplaceAllString(screen, "5% of 200k")
	block := "<!-- screen -->\n```\n" + strings.TrimSpace(screen) + "\n```\n<!-- /screen -->"
	page, err := os.ReadFile("../../docs/TERMINAL.md")
	if err != nil {
		t.Fatal(err)
	}
	now := regexp.MustCompile(`(?s)<!-- screen -->.*<!-- /screen -->`)
	if *updateScreen {
		if err := os.WriteFile("../../docs/TERMINAL.md", now.ReplaceAllLiteral(page, []byte(block)), 0o644); err != nil {
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
