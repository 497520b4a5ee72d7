//go:build linux

package main

import (
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
