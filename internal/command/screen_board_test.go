//go:build linux

package command

import (
	"strings"
	"testing"
)

// TestBoardInATerminal uses the board as a person would: it shows what runs and waits, answers,
// opens a session and comes back.
func TestBoardInATerminal(t *testing.T) {
	h := withoutModel(t)
	id := h.detaches(t, "bash: touch made\nbash: touch other")
	h.does(t, 0, "run", "say: heron")
	s := newTerminal(t, h, 100, 24)
	s.types("inspan board")
	s.shows("› waiting bash: touch made", "done    say: heron", "Enter opens")
	s.keys("y")
	s.shows("? bash asks", "$ touch made", "or say what to do instead")
	s.keys("y")
	soon(t, "the answer to count", func() bool { return h.has("made") })
	s.shows("bash asks: touch other")
	s.keys("Enter")
	s.shows("· session "+id, "$ touch other", "or say what to do instead")
	s.types("n")
	s.shows("■ done")
	s.keys("C-d")
	s.shows("5 done 2", "Enter opens")
	s.keys("q")
	s.shows("continue with: inspan resume "+id, "\n$")
	if h.has("other") {
		t.Error("what was denied was done")
	}
}

// TestBoardRemote uses the board of a server: it answers a question there, follows the run to its
// end, and opens the session.
func TestBoardRemote(t *testing.T) {
	h := withoutModel(t)
	backstage := newTerminal(t, h, 100, 30)
	url := backstage.serves(h, "127.0.0.1:0")
	s := newTerminal(t, h, 100, 24)
	s.joins()
	s.types("inspan run --detach --remote " + url + " 'bash: touch made; echo over'")
	s.shows("\n20") // the id
	s.types("clear; inspan board --remote " + url)
	s.shows("› waiting bash: touch made", "1 waiting 1", "on 127.0.0.1:")
	s.keys("y")
	text := s.shows("? bash asks", "$ touch made; echo over", "or say what to do instead")
	if strings.Contains(text, "p for this project") {
		t.Errorf("an approval holds for more than the session:\n%s", text)
	}
	s.keys("y")
	s.shows("5 done 1", "1 waiting 0")
	s.keys("Enter")
	s.shows("✓ over", "■ done")
	s.keys("C-d")
	s.shows("5 done 1", "Enter opens")
	s.keys("/")
	s.types("over")
	s.shows("on a server only names can be searched")
	s.keys("Escape")
	s.shows("Enter opens")
	s.keys("q")
	s.shows("come back with: inspan attach")
}
