package tui

import (
	"fmt"
	"slices"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// outbox holds what the person has sent and the session does not have yet.
type outbox struct {
	held  []event.Body // inputs that wait for the session to open, or for the run to end
	mine  []posted     // inputs that were sent and not seen yet
	posts int
	// Decisions that the session does not have yet: sent, or collected until all waiting calls are decided.
	decided []event.Body
	asked   []uint64 // messages that the person has taken back, before the log says so
}

// posted is an input of ours on its way into the log.
type posted struct {
	n    int
	kind string // of the event
	what string // what happens to it, in words
	text string
	late time.Time // when it begins to be shown
	back bool      // the person has taken it back
}

const (
	sending = "sending" // begins a run
	queued  = "queued"  // waits for the end of the run
)

// next numbers an input, and records it as on its way if it is the person's.
func (o *outbox) next(body event.Body, text string) input {
	o.posts++
	_, steer := body.(event.Steered)
	if said, ok := body.(event.Said); ok && said.By == "" || steer {
		what := map[bool]string{true: "steering", false: queued}[steer]
		o.mine = append(o.mine, posted{n: o.posts, kind: body.Kind(), what: what, text: words.Hidden(text)})
	}
	return input{n: o.posts, body: body}
}

// recordBegin records the words among inputs that begin a run. They are shown if that takes long.
func (o *outbox) recordBegin(inputs []event.Body, now time.Time) {
	for _, body := range inputs {
		var parts llm.Parts
		switch b := body.(type) {
		case event.Said:
			if b.By == "" {
				parts = b.Parts
			}
		case event.Steered:
			parts = b.Parts
		}
		text := words.Hidden(transcript.Spoken(parts))
		if text != "" && !slices.ContainsFunc(o.mine, func(p posted) bool { return p.what == sending && p.text == text }) {
			o.mine = append(o.mine, posted{kind: body.Kind(), what: sending, text: text, late: now.Add(tellAfter)})
		}
	}
}

// takeUnsent removes and returns the words that were to begin a run.
func (o *outbox) takeUnsent() (texts []string) {
	o.mine = slices.DeleteFunc(o.mine, func(p posted) bool {
		if p.what == sending {
			texts = append(texts, p.text)
		}
		return p.what == sending
	})
	return texts
}

// hasUnderway reports whether words on their way wait for the end of the run.
func (o *outbox) hasUnderway() bool { return slices.ContainsFunc(o.mine, isUnderway) }

func isUnderway(p posted) bool { return p.what == queued && !p.back }

// onSeen removes an input of ours that has come back. If the person has taken it back meanwhile, it is about to
// be withdrawn.
func (o *outbox) onSeen(body event.Body, by string, seq uint64) {
	if by != "" {
		return
	}
	if i := slices.IndexFunc(o.mine, func(p posted) bool { return p.kind == body.Kind() }); i >= 0 {
		if o.mine[i].back {
			o.asked = append(o.asked, seq)
		}
		o.mine = slices.Delete(o.mine, i, i+1)
	}
}

// takeLost removes an input that did not arrive, and reports whether it was one of the person's messages.
func (o *outbox) takeLost(n int) (posted, bool) {
	i := slices.IndexFunc(o.mine, func(p posted) bool { return p.n == n })
	if i < 0 {
		return posted{}, false
	}
	p := o.mine[i]
	o.mine = slices.Delete(o.mine, i, i+1)
	return p, true
}

// undecide takes back the decision on a call, and reports whether there was one.
func (o *outbox) undecide(call string) bool {
	n := len(o.decided)
	o.decided = slices.DeleteFunc(o.decided, func(b event.Body) bool { d, ok := b.(event.Decided); return ok && d.Call == call })
	return len(o.decided) < n
}

// forget drops what was on its way to a session that is no longer open.
func (o *outbox) forget() { o.mine, o.decided, o.asked = nil, nil, nil }

// takeBackHeld takes back and returns the words that were held back.
func (o *outbox) takeBackHeld() (back []string) {
	o.held = slices.DeleteFunc(o.held, func(b event.Body) bool {
		said, ok := b.(event.Said)
		if ok && len(said.Parts) > 0 && said.By == "" {
			back = append(back, transcript.Spoken(said.Parts))
			return true
		}
		return false
	})
	return back
}

// release returns the text that was held back.
func (o *outbox) release() []event.Body {
	held := o.held
	o.held = nil
	return held
}

// mode returns the mode that the session is about to get; empty if it keeps its mode.
func (o *outbox) mode() tool.Mode { return switchedTo(o.held) }

// switchedTo returns the mode that inputs switch a session to; empty if none.
func switchedTo(inputs []event.Body) tool.Mode {
	for _, b := range slices.Backward(inputs) {
		if s, ok := b.(event.Switched); ok && s.Mode != "" {
			return s.Mode
		}
	}
	return ""
}

// effort returns the effort that the session is about to get; empty if it keeps its effort.
func (o *outbox) effort() string {
	for _, b := range slices.Backward(o.held) {
		if s, ok := b.(event.Switched); ok && s.Effort != "" {
			return s.Effort
		}
	}
	return ""
}

// pendingLines returns lines for the inputs that the model has not seen.
func (o *outbox) pendingLines(l look, v *view, now time.Time) []string {
	var out []string
	add := func(what, text string) {
		out = append(out, l.paint(dim, "  ↳ "+what+": "+words.OneLine(text, l.width-16)))
	}
	for _, s := range v.Now.Steered {
		if s.Origin == event.OriginCommand {
			add("for the model", words.OwnCommand(s.Text))
			continue
		}
		if s.By == words.NamedFiles {
			add("for the model", words.Names(s.Text))
			continue
		}
		add("steering", s.Text)
	}
	for _, s := range v.Queued() {
		if !slices.Contains(o.asked, s.Seq) {
			add("queued", s.Text)
		}
	}
	for _, b := range o.held {
		if said, ok := b.(event.Said); ok && len(said.Parts) > 0 {
			add("queued", words.Hidden(transcript.Spoken(said.Parts)))
		}
	}
	for _, p := range o.mine {
		if !now.Before(p.late) && !p.back {
			add(p.what, p.text)
		}
	}
	if more := len(out) - mostPending; more > 0 {
		out = append(out[:mostPending], l.paint(dim, fmt.Sprintf("  ↳ and %d more", more)))
	}
	return out
}
