package console

import (
	"fmt"
	"slices"
	"strings"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/policy"
	"github.com/inspan/inspan/internal/text"
	"github.com/inspan/inspan/internal/words"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Denial is a call that was not made for lack of permission.
type Denial struct {
	Call   string `json:"call"`
	Tool   string `json:"tool"`
	By     string `json:"by"`     // which judge, rule or person
	Reason string `json:"reason"` // why, and what would let it run
}

// Touched is a sensitive place that a call was let through to.
type Touched struct {
	Call string          `json:"call"`
	Tool string          `json:"tool"`
	Kind tool.EffectKind `json:"kind"` // read or write
	Path string          `json:"path"`
	Why  string          `json:"why"` // what makes it sensitive, after "it "
}

// account folds events into what was denied and what was touched. It knows of
// calls nothing but what the events say.
type account struct {
	calls   map[string]llm.Call // as they run, by id
	judged  map[string]event.Judged
	decided map[string]bool // by somebody who was asked
	denials []Denial
	touched []Touched
	changes int // calls that were to change something, and ran
}

func newAccount() *account {
	return &account{calls: map[string]llm.Call{}, judged: map[string]event.Judged{}, decided: map[string]bool{}}
}

// open takes in a call that was judged before the first event.
func (a *account) open(p inspan.Pending) {
	a.calls[p.Call.ID] = p.Call
	a.judged[p.Call.ID] = event.Judged{Call: p.Call.ID, Action: tool.Ask, Reason: p.Reason, Effects: p.Effects}
}

// event takes one event in.
func (a *account) event(e event.Event) {
	switch b := e.Body.(type) {
	case event.Replied:
		for _, c := range b.Parts.Calls() {
			a.calls[c.ID] = c
			delete(a.judged, c.ID)
			delete(a.decided, c.ID)
		}
	case event.Judged:
		a.judged[b.Call] = b
		a.calls[b.Call] = words.Judged(a.calls[b.Call], b)
	case event.Decided:
		a.decided[b.Call] = true
		if j := a.judged[b.Call]; !b.Allow {
			j.By, j.Reason = b.By, b.Reason
			a.judged[b.Call] = j
		}
	case event.Started:
		a.started(b.Call)
	case event.Ended:
		if j := a.judged[b.Call]; b.Outcome == event.OutcomeDenied {
			a.denials = append(a.denials, Denial{Call: b.Call, Tool: a.calls[b.Call].Name, By: j.By, Reason: j.Reason})
		}
	}
}

func (a *account) started(call string) {
	effects := a.judged[call].Effects
	if !tool.ReadOnly(effects) {
		a.changes++
	}
	for _, e := range effects {
		t := Touched{Call: call, Tool: a.calls[call].Name, Kind: e.Kind, Path: e.Path, Why: e.Sensitive}
		if e.Sensitive != "" && !slices.Contains(a.touched, t) {
			a.touched = append(a.touched, t)
		}
	}
}

// nothingDone reports whether calls were to change something, and every one of
// them was denied with nobody asked: then the work can't be done, whatever the
// model says. In mode plan nothing was to be changed.
func (a *account) nothingDone() bool {
	return a.changes == 0 && slices.ContainsFunc(a.denials, func(d Denial) bool {
		return !a.decided[d.Call] && d.By != "mode "+policy.ModePlan && !tool.ReadOnly(a.judged[d.Call].Effects)
	})
}

// mostListed is how many lines the summary has for each kind of thing.
const mostListed = 10

// whatWasDone prints what was denied and what was touched.
func (c *Console) whatWasDone(r Result) {
	var lines []string
	for _, t := range r.Sensitive {
		for _, line := range words.Sensitive([]tool.Effect{{Kind: t.Kind, Path: t.Path, Sensitive: t.Why}}) {
			if !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	c.list("what it did to sensitive places:", lines)
	lines = nil
	for _, d := range r.Denials {
		lines = append(lines, fmt.Sprintf("%s: %s", d.Tool, strings.TrimPrefix(d.Reason+" ("+d.By+")", " ")))
	}
	c.list(text.Count(len(r.Denials), "call")+" denied:", lines)
}

func (c *Console) list(head string, lines []string) {
	if len(lines) == 0 {
		return
	}
	c.Say(c.paint(yellow, head))
	for i, line := range lines {
		if i == mostListed {
			c.Say(c.paint(dim, fmt.Sprintf("  ... %d more", len(lines)-i)))
			return
		}
		c.Say("  " + words.OneLine(line, 300))
	}
}
