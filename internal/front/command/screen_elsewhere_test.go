//go:build linux

package command

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/testkit"
)

// TestAnsweredFromElsewhere has the interactive front end and other processes at one session.
// While a question is open on the screen, the session is held: others see it, and their answer
// closes the question without a key.
func TestAnsweredFromElsewhere(t *testing.T) {
	t.Parallel()
	h := withoutModel(t)
	s := newTerminal(t, h, 100, 24)
	s.Types("inspan")
	s.Shows("say what to do")
	s.Types("bash: touch first\nbash: touch second")
	s.Shows("? bash asks", "$ touch first", "or say what to do instead")
	id := h.runs(t)[0].ID
	h.asks(t, id)
	for _, p := range h.waiting(t, id) {
		h.does(t, 0, "send", "--allow", p.Call.ID, id)
	}
	s.Shows("answered by inspan send: bash is allowed", "? bash asks", "$ touch second")
	h.asks(t, id)
	s.Keys("C-d")
	s.Shows("continue with: inspan resume " + id)
	if out := h.does(t, 0, "ps", "--json"); strings.TrimSpace(out) != "[]" || len(h.waiting(t, id)) != 1 {
		t.Errorf("who leaves holds the session, or answers: %s", out)
	}

	s.Clears()
	s.Types("inspan --continue")
	s.Shows("? bash asks", "$ touch second")
	h.asks(t, id)
	for _, p := range h.waiting(t, id) {
		h.does(t, 0, "send", "--deny", p.Call.ID, id, "not this one")
	}
	s.Shows("answered by inspan send: bash is denied", "■ done")
	s.Keys("C-d")
	if !h.has("first") || h.has("second") {
		t.Error("the answers were not kept to")
	}
}

// TestOpenedWhileDriven opens a session in the interactive front end that another process drives.
func TestOpenedWhileDriven(t *testing.T) {
	t.Parallel()
	h := withoutModel(t)
	id := h.detaches(t, "bash: touch made")
	h.asks(t, id)
	s := newTerminal(t, h, 100, 24)
	s.Types("inspan --resume=" + id)
	s.Shows("? bash asks", "drives this session; join it: inspan attach "+id)
	s.Shows("or say what to do instead")
	s.Types("y")
	s.Shows("✓", "■ done")
	s.idles()
	if !h.has("made") {
		t.Error("the answer did not reach the process that drives the session")
	}

	id = h.detaches(t, "bash: touch other")
	pid := h.asks(t, id)
	s.Types("/resume " + id)
	s.Shows("$ touch other", "drives this session; join it: inspan attach "+id, "or say what to do instead")
	if err := exec.CommandContext(t.Context(), "kill", "-9", fmt.Sprint(pid)).Run(); err != nil {
		t.Fatal(err)
	}
	testkit.WaitFor(t, "the question to be held by who shows it", func() bool { return h.asks(t, id) != pid })
	again := time.Now() // no answer counts while the box is put anew, and keys close after each other are words
	testkit.WaitFor(t, "the answer to count", func() bool {
		if now := time.Now(); now.After(again) && strings.Contains(s.Screen(), "or say what to do instead") {
			s.Keys("y")
			again = now.Add(3 * time.Second)
		}
		return h.has("other")
	}, s.Screen, func() string {
		raw, err := os.ReadFile(filepath.Join(h.store().Dir, id, "log.jsonl"))
		return fmt.Sprint(string(raw), err)
	})
	s.Keys("C-d")
}
