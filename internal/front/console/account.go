package console

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/tool"
)

// Denial is a call that was not made for lack of permission.
type Denial struct {
	Call   string `json:"call"`
	Tool   string `json:"tool"`
	By     string `json:"by"`     // the judge, rule or person that denied it
	Reason string `json:"reason"` // why, and what would let it run
	// Allow are flags that together would let it run, if there are any.
	Allow []string `json:"allow,omitempty"`

	args json.RawMessage
}

// Touched is a sensitive place that a call was allowed to reach.
type Touched struct {
	Call string          `json:"call"`
	Tool string          `json:"tool"`
	Kind tool.EffectKind `json:"kind"` // read or write
	Path string          `json:"path"`
	Why  string          `json:"why"` // why it is sensitive, to follow "it "
}

// account records denials and sensitive places.
type account struct {
	denials []Denial
	ways    []string       // flags that would allow denied calls, and open what the sandbox closed
	fetched map[string]int // requests to package registries, by host
	touched []Touched
	changes int  // calls that should change something, and ran
	barred  bool // such a call was denied without anyone being asked
}

// onCall records the outcome of a call.
func (a *account) onCall(c *transcript.Call) {
	switch {
	case c.State == transcript.Running && c.Latest == "":
		if !tool.ReadOnly(c.Effects()) {
			a.changes++
		}
		for _, e := range c.Effects() {
			t := Touched{Call: c.Call.ID, Tool: c.Call.Name, Kind: e.Kind, Path: e.Path, Why: e.Sensitive}
			if e.Sensitive != "" && !slices.Contains(a.touched, t) {
				a.touched = append(a.touched, t)
			}
		}
	case c.State == transcript.Over && c.Ended.Outcome != event.OutcomeDenied:
		a.addFlag(c.Ended.Ways)
		for host, n := range c.Ended.Fetched {
			if a.fetched == nil {
				a.fetched = map[string]int{}
			}
			a.fetched[host] += n
		}
	case c.State == transcript.Over:
		by, reason := c.DeniedBy()
		d := Denial{Call: c.Call.ID, Tool: c.Call.Name, By: by, Reason: reason, args: c.Call.Args}
		if c.Judged != nil {
			d.Allow = c.Judged.Ways
		}
		a.denials = append(a.denials, d)
		a.addFlag(d.Allow)
		// In mode plan nothing should be changed.
		a.barred = a.barred || c.Decided == nil && by != "mode "+string(tool.ModePlan) && !tool.ReadOnly(c.Effects())
	}
}

// addFlag records flags, each once.
func (a *account) addFlag(flags []string) {
	for _, f := range flags {
		if !slices.Contains(a.ways, f) {
			a.ways = append(a.ways, f)
		}
	}
}

// deniedEverything reports whether calls should have changed something, and all of them were denied without anyone
// being asked: then the work can't be done, whatever the model says.
func (a *account) deniedEverything() bool { return a.changes == 0 && a.barred }

// mostListed is how many lines of each kind the summary has.
const mostListed = 10

// printEffects prints denials and sensitive places.
func (c *Console) printEffects(r Result) {
	var lines []string
	for _, t := range r.Sensitive {
		for _, line := range words.Sensitive([]tool.Effect{{Kind: t.Kind, Path: t.Path, Sensitive: t.Why}}) {
			if !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	c.list("access to sensitive places:", lines)
	lines = nil
	for _, d := range r.Denials {
		why := "by " + d.By
		if d.Reason != "" {
			why = d.Reason + " (" + d.By + ")"
		}
		lines = append(lines, d.Tool+": "+why)
	}
	c.list(text.Count(len(r.Denials), "call")+" denied:", lines)
	if len(r.Fetched) > 0 {
		var from []string
		for _, host := range slices.Sorted(maps.Keys(r.Fetched)) {
			from = append(from, fmt.Sprintf("%s (%s)", words.OneLine(host, 100), text.Count(r.Fetched[host], "request")))
		}
		c.Say("fetched from package registries: " + strings.Join(from, ", "))
	}
	if len(r.Allow) > 0 {
		c.Say(c.paint(yellow, "to allow just this, add: ") + strings.Join(r.Allow, " "))
	}
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
