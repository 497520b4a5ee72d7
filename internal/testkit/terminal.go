package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Terminal is a real terminal: tmux with a shell in it. Wait until the program is ready before you press a key:
// the shell drops input from before its start, and a program may misinterpret it.
type Terminal struct {
	t      testing.TB
	socket string
}

// OpenTerminal opens a terminal of a size, with sh in a folder. The shell has only these variables, and waits
// with the prompt "$ ". Everything in the terminal ends with the test, which is skipped if there is no tmux.
func OpenTerminal(t testing.TB, width, height int, dir string, env ...string) *Terminal {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		fmt.Fprintln(os.Stderr, "SKIPPED the tests in a real terminal: tmux is not installed (apt-get install tmux)")
		t.Skip("tmux is not installed")
	}
	s := &Terminal{t, filepath.Join(t.TempDir(), "tmux")}
	shell := []string{"env", "-i", "TERM=screen-256color", "LANG=C.UTF-8", "PS1=$ "}
	shell = append(append(shell, env...), "sh")
	open := []string{"-f", "/dev/null", "new-session", "-d", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height), "-c", dir}
	s.Tmux(append(open, shell...)...)
	t.Cleanup(s.end)
	s.Prompts()
	return s
}

// Tmux runs a command of tmux, and returns its output.
func (s *Terminal) Tmux(args ...string) string {
	s.t.Helper()
	out, err := exec.CommandContext(s.t.Context(), "tmux", append([]string{"-S", s.socket}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %s: %v\n%s", args[0], err, out)
	}
	return string(out)
}

// Keys presses keys, one after another.
func (s *Terminal) Keys(keys ...string) {
	s.t.Helper()
	s.Tmux(append([]string{"send-keys"}, keys...)...)
}

// Types writes text and sends it.
func (s *Terminal) Types(text string) {
	s.t.Helper()
	s.Writes(text)
	s.Keys("Enter")
}

// Writes writes text without sending it.
func (s *Terminal) Writes(text string) {
	s.t.Helper()
	s.Tmux("send-keys", "-l", text)
}

// Screen returns the content of the screen.
func (s *Terminal) Screen() string {
	s.t.Helper()
	return s.Tmux("capture-pane", "-p")
}

// All returns the content of the screen and the lines that have scrolled off.
func (s *Terminal) All() string {
	s.t.Helper()
	return s.Tmux("capture-pane", "-p", "-S", "-200")
}

// Shows waits until [Terminal.All] contains all texts, and returns it.
func (s *Terminal) Shows(texts ...string) (screen string) {
	s.t.Helper()
	WaitFor(s.t, fmt.Sprintf("%q on the screen", texts), func() bool {
		screen = s.All()
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				return false
			}
		}
		return true
	}, func() string { return screen })
	return screen
}

// Prompts waits until the shell waits for a command.
func (s *Terminal) Prompts() {
	s.t.Helper()
	WaitFor(s.t, "the shell's prompt", func() bool {
		screen := strings.TrimSpace(s.Screen())
		last := screen[strings.LastIndexByte(screen, '\n')+1:]
		return last != "" && strings.Trim(last, "$ ") == "" // Enter is not shown that a program left to the shell
	}, s.All)
}

// Clears waits for the prompt of the shell and empties the screen, so that no earlier text is found on it.
func (s *Terminal) Clears() {
	s.t.Helper()
	s.Prompts()
	s.Types("clear")
	WaitFor(s.t, "an empty screen", func() bool {
		s.Tmux("clear-history")
		return strings.TrimSpace(s.All()) == "$"
	}, s.All)
}

// end ends the programs in the terminal, and waits for them: they may write into the folder of the test until
// then.
func (s *Terminal) end() {
	tmux := func(args ...string) []byte {
		out, _ := exec.Command("tmux", append([]string{"-S", s.socket}, args...)...).Output()
		return out
	}
	shells := strings.Fields(string(tmux("list-panes", "-a", "-F", "#{pane_pid}")))
	tmux("kill-server")
	for _, shell := range shells {
		_ = exec.Command("pkill", "-s", shell).Run() // background processes don't notice the terminal's end
		WaitFor(s.t, "all that ran in the terminal to end", func() bool { return exec.Command("pgrep", "-r", "DIRST", "-s", shell).Run() != nil })
	}
}
