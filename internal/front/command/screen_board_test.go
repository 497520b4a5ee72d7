//go:build linux

package command

import (
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/testkit"
)

// TestBoardInATerminal uses the board as a person would: it shows running and waiting sessions, answers, opens a
// session and returns.
func TestBoardInATerminal(t *testing.T) {
	t.Parallel()
	h := withoutModel(t)
	id := h.detaches(t, "bash: touch made\nbash: touch other")
	h.does(t, 0, "run", "say: heron")
	s := newTerminal(t, h, 100, 24)
	s.Types("inspan board")
	s.Shows("› waiting bash: touch made", "done    say: heron", "Enter opens", "bash asks: touch")
	s.Keys("y")
	s.Shows("? bash asks", "$ touch made", "or say what to do instead")
	s.Keys("y")
	testkit.WaitFor(t, "the answer to count", func() bool { return h.has("made") }, s.Screen)
	s.Shows("bash asks: touch other")
	s.Keys("Enter")
	s.Shows("· session "+id, "$ touch other", "or say what to do instead")
	s.Types("n")
	s.Shows("■ done")
	s.Keys("C-d")
	s.Shows("5 done 2", "Enter opens")
	s.Keys("q")
	s.Shows("continue with: inspan resume "+id, "\n$")
	if h.has("other") {
		t.Error("what was denied was done")
	}
}

// TestBoardRemote uses the board of a server: it answers a question there, follows the run to its
// end, and opens the session.
func TestBoardRemote(t *testing.T) {
	t.Parallel()
	h := withoutModel(t)
	url, _ := h.serves(t, "--model", "script", "--mode", "ask", "--listen", "127.0.0.1:0")
	s := newTerminal(t, h, 100, 24)
	s.joins()
	s.Types("inspan run --detach --remote " + url + " 'bash: touch made; echo over'")
	s.Shows("\n20") // the id
	s.Clears()
	s.Types("inspan board --remote " + url)
	s.Shows("› waiting bash: touch made", "1 waiting 1", "on 127.0.0.1:", "bash asks: touch") // the session has been read
	s.Keys("y")
	text := s.Shows("? bash asks", "$ touch made; echo over", "or say what to do instead")
	if strings.Contains(text, "p for this project") {
		t.Errorf("an approval holds for more than the session:\n%s", text)
	}
	s.Keys("y")
	s.Shows("5 done 1", "1 waiting 0")
	s.Keys("Enter")
	s.Shows("✓ over", "■ done")
	s.Keys("C-d")
	s.Shows("5 done 1", "Enter opens")
	s.Keys("/")
	s.Types("over")
	s.Shows("on a server only names can be searched")
	s.Keys("Escape")
	s.Shows("Enter opens")
	s.Keys("q")
	s.Shows("come back with: inspan attach")
}
