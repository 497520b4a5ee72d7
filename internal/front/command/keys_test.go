//go:build linux

package command

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/testkit/anthropictest"
	"github.com/inspan/inspan/llm"
)

// restored holds that the terminal edits lines and echoes.
func (s *terminal) restored() {
	s.t.Helper()
	s.Clears()
	s.Types("stty -a | grep -o '[-]*icanon'; stty -a | grep -ow '[-]*echo'")
	s.Shows("\nicanon\necho\n")
}

// TestKeysAnswer has single keys answer the questions of run and attach at a terminal, and other
// text wait for Enter. The terminal is as it was afterwards, however the command ends.
func TestKeysAnswer(t *testing.T) {
	t.Parallel()
	h := withoutModel(t)
	s := newTerminal(t, h, 160, 50)
	run := func(commands ...string) {
		t.Helper()
		s.Clears()
		s.Types(`inspan run "$(printf 'bash: touch ` + strings.Join(commands, `\nbash: touch `) + `')"`)
	}
	second := func() {
		t.Helper()
		testkit.WaitFor(t, "the second question", func() bool { return strings.Count(s.All(), "what to do instead:") == 2 }, s.All)
	}
	run("one", "two")
	s.Shows("$ touch one", "what to do instead:")
	s.Keys("y")
	s.Shows("✓", "$ touch two")
	if !h.has("one") {
		t.Fatal("y did not act at once")
	}
	second()
	s.Keys("n")
	s.Shows("Denied by the user.", "done ·")
	s.restored()

	// Text is edited and sent by Enter; a key for longer waits for it too.
	run("three", "four")
	s.Shows("$ touch three", "what to do instead:")
	s.Writes("do it in bö")
	s.Shows("instead: do it in bö")
	s.Keys("BSpace", "BSpace", "c", "Left", "Enter")
	s.Shows("Denied by the user: do it in c", "$ touch four")
	second()
	s.Keys("s")
	s.Shows("instead: s")
	if h.has("four") {
		t.Error("s did not wait for Enter")
	}
	s.Keys("Enter")
	s.Shows("✓", "done ·")

	// Ctrl-C at a question, and the end of input.
	for _, key := range []string{"C-c", "C-d"} {
		run("five")
		s.Shows("$ touch five", "what to do instead:")
		s.Keys(key)
		s.Shows("cancelled ·")
		s.restored()
	}
}

// TestKeyBeforeAQuestion presses a key while the model still writes the call that is asked about. No one can have
// read the question then, so the key does not answer it.
func TestKeyBeforeAQuestion(t *testing.T) {
	t.Parallel()
	asked, typed := make(chan struct{}, 9), make(chan struct{})
	vendor := anthropictest.Start(t, &anthropictest.Server{Answer: func(_ *http.Request, body []byte) anthropictest.Answer {
		if bytes.Contains(body, []byte(`"tool_result"`)) {
			return anthropictest.Answer{Parts: llm.Say("Good.")}
		}
		asked <- struct{}{}
		<-typed
		return anthropictest.Answer{Parts: llm.Parts{callOf("one", "bash", map[string]any{"command": "touch one"})}}
	}})
	h := newHome(t, vendor)
	s := newTerminal(t, h, 160, 50)
	s.Types("inspan run go")
	testkit.Receive(t, "the request", asked)
	s.Writes("y")
	s.Shows("\ny")
	close(typed)
	s.Shows("$ touch one", "(dropped what was typed before the question)", "what to do instead:")
	if h.has("one") {
		t.Fatal("a key that was pressed before the question was shown has answered it")
	}
	s.Keys("n")
	s.Shows("Denied by the user.", "done ·")
	s.restored()
}

// TestKeysInAttach answers by a key from a second terminal. What is typed between questions steers,
// and the rest of a word that the key began does not.
func TestKeysInAttach(t *testing.T) {
	t.Parallel()
	h := withoutModel(t)
	id := h.detaches(t, "bash: touch one\nbash: touch two")
	h.asks(t, id)
	s := newTerminal(t, h, 160, 50)
	s.Types("inspan attach " + id)
	s.Shows("$ touch one", "what to do instead:")
	s.Keys("y", "e", "s", "Enter")
	s.Shows("$ touch two")
	testkit.WaitFor(t, "the second question", func() bool { return strings.Count(s.All(), "what to do instead:") == 2 }, s.All)
	s.Keys("n")
	s.Shows("Denied by the user.", "— done")
	if out := s.Shows("— done"); strings.Contains(out, "told the model") || !h.has("one") || h.has("two") {
		t.Errorf("the keys did something else:\n%s", out)
	}
	s.restored()
}

// TestKeysRemote has a person at the prompt of an open task of a server: Ctrl-C interrupts a run and leaves an idle
// task open, which is then closed.
func TestKeysRemote(t *testing.T) {
	t.Parallel()
	h := withoutModel(t)
	s := newTerminal(t, h, 160, 50)
	url, _ := h.serves(t, "--model", "script", "--mode", "ask", "--listen", "127.0.0.1:0")
	s.Types("R='--remote " + url + "'; R=\"$R --token-file $INSPAN_STATE_DIR/server.token\"")
	s.Clears()
	s.Types("inspan --plain $R 'bash: touch one; sleep 4099'")
	s.Shows("Ctrl-D leaves the task open", "$ touch one", "2 Yes, and don't ask again for `touch *` in this session (s)", "3 No (n)")
	s.Keys("y")
	s.Shows("▸ bash touch one")
	s.Keys("C-c")
	s.Shows("· interrupting; Ctrl-C leaves", "— cancelled", "the agent is idle")
	s.Types("/help")
	s.Shows("/close ")
	s.Keys("C-c")
	s.Shows("stays open; come back with: inspan attach --remote http://127.0.0.1:", "\nclose it with: inspan stop --remote http://127.0.0.1:")
	s.Clears()
	s.Types("inspan ps $R")
	if out := s.Shows(" idle "); strings.Contains(out, "PID") {
		t.Error(out)
	}

	// Text typed when the task was closed from elsewhere is not a command of the shell.
	s.Prompts()
	s.Types("ID=$(inspan ps $R | tail -1 | cut -d' ' -f1)")
	s.Clears()
	s.Types("(until test -e go; do sleep 0.05; done; inspan stop $R $ID >stopped) & clear; inspan attach --plain $R $ID")
	s.Shows("the agent is idle")
	s.Writes("touch typed")
	s.Shows("touch typed")
	if err := os.WriteFile(filepath.Join(h.work, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.Shows("· the task is over")
	s.Keys("Enter")
	s.Clears()
	s.Types("cat stopped; inspan ps $R")
	s.Shows(": closed", "start one with: inspan run --remote http://127.0.0.1:")
	if h.has("typed") {
		t.Error("the shell got what was typed for the agent")
	}
	s.restored()
}
