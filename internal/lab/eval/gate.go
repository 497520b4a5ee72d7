package eval

import (
	"fmt"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/lab/stats"
)

// GateResult is the result of a gate.
type GateResult string

// The results of a gate.
const (
	GatePassed    GateResult = "passed"
	GateStopped   GateResult = "stopped"   // by a drop that is real at the error rate
	GateUndecided GateResult = "undecided" // these runs could not show a drop; Says has the reasons
)

// Gated is a gate's verdict on a candidate. Only a drop that is real at the error rate stops it, and only runs
// that could have shown one pass it.
type Gated struct {
	Base      string     `json:"base"`
	Candidate string     `json:"candidate"`
	Result    GateResult `json:"result"`
	Pass      bool       `json:"pass"` // the result is GatePassed
	Gain      Figure     `json:"gain"`
	P         float64    `json:"p,omitempty"` // of a drop; held-out tasks show neither that nor the gain
	Alpha     float64    `json:"alpha"`
	Smallest  float64    `json:"detectable,omitempty"` // smallest drop that is stopped with Power; 0: none is
	Power     float64    `json:"power"`
	Tasks     int        `json:"tasks"`
	Says      []string   `json:"says"`
}

// Gate checks a candidate for a drop against a base, by an exact one-sided test.
func Gate(base, candidate Run, how Comparing) (Gated, error) {
	how = how.filled()
	how.Looks = 0
	pairs, err := paired(base, candidate)
	if err != nil {
		return Gated{}, err
	}
	c := how.compare(base, candidate, pairs, 1)
	design := c.Design
	design.OneSided = true
	g := Gated{
		Base: c.Base.Config, Candidate: c.Candidate.Config, Gain: c.Gain, Alpha: how.Alpha, Power: how.Power, Tasks: c.Tasks,
		P: stats.NewFlips(pairs.gains()).Below(), Smallest: design.Detectable(how.Power),
	}
	doubts := c.doubts(design, how.Partial)
	switch {
	case how.unfinished(&c):
		g.Result = GateUndecided
	case g.P <= g.Alpha:
		g.Result = GateStopped
	case len(doubts) > 0:
		g.Result = GateUndecided
	default:
		g.Result, g.Pass = GatePassed, true
	}
	g.say(&c, design, doubts)
	return g, nil
}

// doubts returns the reason why the runs could not show a drop. They reveal nothing about the outcome of held-out
// tasks.
func (c *Comparison) doubts(d stats.Design, partial bool) (out []string) {
	for _, s := range []Side{c.Base, c.Candidate} {
		if s.Missing > 0 && !partial {
			out = append(out, fmt.Sprintf("%s of run %s %s not ended", text.Count(s.Missing, "trial"), s.Run,
				map[bool]string{true: "has", false: "have"}[s.Missing == 1]))
		}
	}
	if c.Uneven {
		out = append(out, "more trials of one side were set aside than chance explains; find the cause first")
	}
	if n := d.Fewest(); d.Tasks < n {
		out = append(out, fmt.Sprintf("with %s not even failing all of them would be more than chance; it takes at least %d",
			text.Count(d.Tasks, "task"), n))
	}
	return out
}

func (g *Gated) say(c *Comparison, d stats.Design, doubts []string) {
	add := func(format string, args ...any) { g.Says = append(g.Says, fmt.Sprintf(format, args...)) }
	for _, doubt := range doubts {
		if g.Result == GateUndecided {
			add("Undecided: %s.", doubt)
		}
	}
	if c.HeldOut { // the same applies as for Blind
		g.Gain, g.P = unknownFigure(), 0
		if g.Result != GateUndecided {
			add("%s on held-out tasks, of which nothing else is shown.", map[bool]string{true: "Passed", false: "Stopped"}[g.Pass])
		}
		return
	}
	g.sayDrop(add)
	stops, _ := promised("this gate stops a drop of %s", "this gate stops no drop", d, g.Smallest, g.Power)
	add("%s. One where there is none it stops in at most %g %%.", stops, 100*g.Alpha)
	if c.Shared > 0 {
		add("%s the same on both sides, so they can't show a drop.", text.Counted(c.Shared, "trial is", "trials are"))
	}
	if broken := c.Base.Broken + c.Candidate.Broken; broken > 0 {
		add("%s set aside, as the infrastructure failed.", text.Counted(broken, "trial was", "trials were"))
	}
}

// sayDrop describes the observed change, and the gate's judgement.
func (g *Gated) sayDrop(add func(string, ...any)) {
	seen := fmt.Sprintf("%s (%g %% interval %s)", points(g.Gain.Value), 100*(1-g.Alpha), between(g.Gain, points))
	switch {
	case g.Result == GateUndecided:
		add("%s against %s: %s.", g.Candidate, g.Base, seen)
	case !g.Pass:
		add("Stopped: %s passes fewer tasks than %s, %s, and that is more than chance (p = %.2g).", g.Candidate, g.Base, seen, g.P)
	case g.Gain.Value < 0:
		add("Passed: %s passes fewer tasks than %s, %s, but that may be chance (p = %.2g).", g.Candidate, g.Base, seen, g.P)
	default:
		add("Passed: %s does not pass fewer tasks than %s: %s.", g.Candidate, g.Base, seen)
	}
}
