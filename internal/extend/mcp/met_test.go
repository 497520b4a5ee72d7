package mcp_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/extend/mcp"
)

// TestASilentServerIsWaitedForOnce checks that a server that does not answer costs one run its patience, and none
// after it until it is another or has answered.
func TestASilentServerIsWaitedForOnce(t *testing.T) {
	t.Parallel()
	pins := mcp.Pins{Dir: t.TempDir()}
	silent := mcp.Server{Name: "own", Command: []string{"sleep", "1000"}, Source: mcp.User}
	meet := func(s mcp.Server) (told string, h *house) {
		h = newHouse(t, s)
		h.Pins = pins
		h.Start()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		h.Meet(ctx, func(names []string) { told = strings.Join(names, " ") })
		return told, h
	}
	if told, h := meet(silent); told != "own" || h.status("own").State != mcp.Connecting ||
		!strings.Contains(h.status("own").Why, "did not answer") {
		t.Errorf("it was waited for as %q, and is %+v", told, h.status("own"))
	}
	if told, _ := meet(silent); told != "" {
		t.Error("it was waited for again")
	}
	other := silent
	other.Command = []string{"sleep", "1001"}
	if told, _ := meet(other); told == "" {
		t.Error("another command was not waited for")
	}
	_, h := meet(self(t, "own", "honest"))
	h.until("the server", func() bool { return h.status("own").State == mcp.Ready })
	if told, _ := meet(silent); told != "" {
		t.Error("a server that is known was waited for")
	}
}

// TestSilenceIsKept checks that a server that had its full time counts as silent even if nothing waited for it.
func TestSilenceIsKept(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mcp.Server{Name: "own", Command: []string{"sleep", "1000"}, Source: mcp.User})
	h.Pins, h.Patience = mcp.Pins{Dir: t.TempDir()}, 50*time.Millisecond
	h.begin("own", mcp.Failed)
	next := newHouse(t, h.Servers...)
	next.Pins = h.Pins
	next.Start()
	next.Meet(t.Context(), func(names []string) { t.Errorf("%q are waited for", names) })
}
