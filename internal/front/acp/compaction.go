package acp

import (
	"fmt"

	wire "github.com/coder/acp-go-sdk"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/internal/view/words"
)

// showsCompaction reports whether an event belongs to a compaction and the client can show compactions.
func (v *view) showsCompaction(body event.Body) bool {
	_, more := v.session.agent.capabilities()
	switch b := body.(type) {
	case event.Progress:
		return more.compactions() && b.Call == "" && b.Text == loop.Compacting
	case event.Compacted, event.Kept:
		return more.compactions()
	}
	return false
}

// compacts reports the progress of a compaction. Past compactions are replayed like the rest of the
// conversation.
func (v *view) compacts(e event.Event, n *transcript.Note) {
	if !v.showsCompaction(n.Of) {
		return
	}
	if _, begins := n.Of.(event.Progress); begins {
		v.shrinks = fmt.Sprintf("from-%d", v.fold.Seq)
		v.compaction("in_progress", "", "")
		return
	}
	if v.shrinks == "" {
		v.shrinks = fmt.Sprintf("at-%d", e.Seq)
	}
	switch b := n.Of.(type) {
	case event.Compacted:
		v.compaction("completed", n.Text, "")
	case event.Kept:
		v.compaction("failed", "", b.Reason)
	}
}

// compaction reports the state of the present compaction.
func (v *view) compaction(status, summary, problem string) {
	u := compaction{SessionUpdate: "compaction_update", ID: v.shrinks, Status: status, Error: words.OneLine(problem, 1000)}
	if summary != "" {
		u.Summary = []wire.ContentBlock{wire.TextBlock(summary)}
	}
	if status != "in_progress" {
		v.shrinks = ""
	}
	if !v.quiet {
		v.session.agent.notify(wire.ClientMethodSessionUpdate, rawUpdate{v.session.id, u})
	}
}
