package eval

import (
	"fmt"

	"github.com/inspan/inspan/internal/stats"
	"github.com/inspan/inspan/internal/text"
)

// Gated is what a gate says of a candidate. Only a drop that is real at the error rate stops it.
type Gated struct {
	Base      string   `json:"base"`
	Candidate string   `json:"candidate"`
	Pass      bool     `json:"pass"`
	Gain      Figure   `json:"gain"`
	P         float64  `json:"p,omitempty"` // of a drop; held-out tasks show neither that nor the gain
	Alpha     float64  `json:"alpha"`
	Smallest  float64  `json:"detectable"` // drop that it stops with Power
	Power     float64  `json:"power"`
	Tasks     int      `json:"tasks"`
	Says      []string `json:"says"`
}

// Gate checks a candidate for a drop against a base, by an exact one-sided test.
func Gate(base, candidate Run, how Comparing) (Gated, error) {
	how = how.filled()
	how.Looks = 0
	pairs, err := paired(base, candidate)
	if err != nil {
		return Gated{}, err
	}
	c := how.compare(base, candidate, pairs)
	design := c.Design
	design.OneSided = true
	g := Gated{
		Base: c.Base.Config, Candidate: c.Candidate.Config, Gain: c.Gain, Alpha: how.Alpha, Power: how.Power, Tasks: c.Tasks,
		P: stats.NewFlips(pairs.gains()).Below(), Smallest: design.Detectable(how.Power),
	}
	g.Pass = g.P > g.Alpha
	if c.HeldOut { // the same holds as for Blind
		g.Gain, g.P = unknownFigure(), 0
		g.Says = []string{map[bool]string{true: "Passed", false: "Stopped"}[g.Pass] + " on held-out tasks, of which nothing else is shown."}
		return g, nil
	}
	g.say(&c, design)
	return g, nil
}

func (g *Gated) say(c *Comparison, d stats.Design) {
	add := func(format string, args ...any) { g.Says = append(g.Says, fmt.Sprintf(format, args...)) }
	switch {
	case !g.Pass:
		add("Stopped: %s passes fewer tasks than %s, %s (%g %% interval %s), and that is more than chance (p = %.2g).", g.Candidate, g.Base,
			points(g.Gain.Value), 100*(1-g.Alpha), between(g.Gain, points), g.P)
	case g.Gain.Value < 0:
		add("Passed: %s passes fewer tasks than %s, %s (%g %% interval %s), but that may be chance (p = %.2g).", g.Candidate, g.Base,
			points(g.Gain.Value), 100*(1-g.Alpha), between(g.Gain, points), g.P)
	default:
		add("Passed: %s does not pass fewer tasks than %s: %s (%g %% interval %s).", g.Candidate, g.Base, points(g.Gain.Value), 100*(1-g.Alpha),
			between(g.Gain, points))
	}
	add("With %s and %s this gate stops a drop of %s in %s of cases, and one where there is none in at most %g %%.",
		text.Count(g.Tasks, "task"), text.Counted(d.Tries, "try", "tries"), points(g.Smallest)[1:], share(g.Power), 100*g.Alpha)
	if broken := c.Base.Broken + c.Candidate.Broken; broken > 0 {
		add("%s set aside, as the infrastructure failed.", text.Counted(broken, "trial was", "trials were"))
	}
}
