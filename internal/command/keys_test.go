//go:build linux

package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// clears empties the screen, so that nothing earlier is found on it.
func (s *terminal) clears() {
	s.t.Helper()
	soon(s.t, "a shell that waits", func() bool {
		return strings.HasSuffix("\n"+strings.TrimSpace(s.tmux("capture-pane", "-p")), "\n$")
	})
	s.types("clear")
	soon(s.t, "an empty screen", func() bool {
		s.tmux("clear-history")
		return strings.TrimSpace(s.tmux("capture-pane", "-p", "-S", "-200")) == "$"
	})
}

// restored holds that the terminal edits lines and echoes.
func (s *terminal) restored() {
	s.t.Helper()
	s.clears()
	s.types("stty -a | grep -o '[-]*icanon'; stty -a | grep -ow '[-]*echo'")
	s.shows("\nicanon\necho\n")
}

// TestKeysAnswer has single keys answer the questions of run and attach at a terminal, and other
// text wait for Enter. The terminal is as it was afterwards, however the command ends.
func TestKeysAnswer(t *testing.T) {
	h := withoutModel(t)
	s := newTerminal(t, h, 160, 50)
	run := func(commands ...string) {
		t.Helper()
		s.clears()
		s.types(`inspan run "$(printf 'bash: touch ` + strings.Join(commands, `\nbash: touch `) + `')"`)
	}
	run("one", "two")
	s.shows("$ touch one")
	s.tmux("send-keys", "-l", "y") // at once: nobody can have read it
	s.keys("Enter")
	s.shows("(dropped what was typed before the question)", "what to do instead:")
	if h.has("one") {
		t.Fatal("a key that was pressed before the question was shown has answered it")
	}
	s.keys("y")
	s.shows("✓", "$ touch two")
	if !h.has("one") {
		t.Fatal("y did not act at once")
	}
	soon(t, "the second question", func() bool { return strings.Count(s.shows("instead:"), "what to do instead:") == 2 })
	s.keys("n")
	s.shows("Denied by the user.", "done ·")
	s.restored()

	// Text is edited and sent by Enter; a key for longer waits for it too.
	run("three", "four")
	s.shows("$ touch three", "what to do instead:")
	s.tmux("send-keys", "-l", "do it in bö")
	s.shows("instead: do it in bö")
	s.keys("BSpace", "BSpace", "c", "Left", "Enter")
	s.shows("Denied by the user: do it in c", "$ touch four")
	soon(t, "the second question", func() bool { return strings.Count(s.shows("instead:"), "what to do instead:") == 2 })
	s.keys("s")
	s.shows("instead: s")
	if h.has("four") {
		t.Error("s did not wait for Enter")
	}
	s.keys("Enter")
	s.shows("✓", "done ·")

	// Ctrl-C at a question, and the end of input.
	for _, key := range []string{"C-c", "C-d"} {
		run("five")
		s.shows("$ touch five", "what to do instead:")
		s.keys(key)
		s.shows("cancelled ·")
		s.restored()
	}
}

// TestKeysInAttach answers by a key from a second terminal. What is typed between questions steers,
// and the rest of a word that the key began does not.
func TestKeysInAttach(t *testing.T) {
	h := withoutModel(t)
	id := h.detaches(t, "bash: touch one\nbash: touch two")
	h.asks(t, id)
	s := newTerminal(t, h, 160, 50)
	s.types("inspan attach " + id)
	s.shows("$ touch one", "what to do instead:")
	s.keys("y", "e", "s", "Enter")
	s.shows("$ touch two")
	soon(t, "the second question", func() bool { return strings.Count(s.shows("instead:"), "what to do instead:") == 2 })
	s.keys("n")
	s.shows("Denied by the user.", "— done")
	if out := s.shows("— done"); strings.Contains(out, "told the model") || !h.has("one") || h.has("two") {
		t.Errorf("the keys did something else:\n%s", out)
	}
	s.restored()
}

// TestKeysRemote has somebody at the prompt of an open task of a server: Ctrl-C interrupts a run and
// leaves an idle task open, which is then closed.
func TestKeysRemote(t *testing.T) {
	h := withoutModel(t)
	s := newTerminal(t, h, 160, 50)
	s.types("inspan serve --model script --mode ask --listen 127.0.0.1:0 </dev/null >served 2>&1 & SERVER=$!")
	s.types("until grep -q 'serving tasks at' served; do sleep 0.05; done")
	s.clears()
	s.types(`R="--remote $(sed -n 's/.*serving tasks at \(http[^;]*\)\/;.*/\1/p' served) --token-file $INSPAN_STATE_DIR/server.token"`)
	s.clears()
	s.types("inspan --plain $R 'bash: touch one; sleep 4099'")
	s.shows("Ctrl-D leaves the task open", "$ touch one", "Allow it? [y]es, [s]ession, [n]o, or")
	s.keys("y")
	s.shows("▸ bash touch one")
	s.keys("C-c")
	s.shows("· interrupting; Ctrl-C leaves", "— cancelled", "the agent is idle")
	s.types("/help")
	s.shows("/close ")
	s.keys("C-c")
	s.shows("stays open; come back with: inspan attach --remote http://127.0.0.1:", "\nclose it with: inspan stop --remote http://127.0.0.1:")
	s.clears()
	s.types("inspan ps $R")
	if out := s.shows(" idle "); strings.Contains(out, "PID") {
		t.Error(out)
	}

	// What was typed when the task was closed from elsewhere is no command of the shell.
	s.types("ID=$(inspan ps $R | tail -1 | cut -d' ' -f1)")
	s.clears()
	s.types("(until test -e go; do sleep 0.05; done; inspan stop $R $ID >stopped) & clear; inspan attach --plain $R $ID")
	s.shows("the agent is idle")
	s.tmux("send-keys", "-l", "touch typed")
	if err := os.WriteFile(filepath.Join(h.work, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.shows("· the task is over")
	s.keys("Enter")
	s.clears()
	s.types("cat stopped; inspan ps $R")
	s.shows(": closed", "start one with: inspan run --remote http://127.0.0.1:")
	if h.has("typed") {
		t.Error("the shell got what was typed for the agent")
	}
	s.types("kill $SERVER; wait")
	s.restored()
}
