package eval

import (
	"fmt"
	"math"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/lab/stats"
)

// Says is a comparison in words, for a reader without knowledge of statistics.
type Says struct {
	Known   []string `json:"known"`
	Unknown []string `json:"unknown"`
}

func (s *Says) known(format string, args ...any) {
	s.Known = append(s.Known, fmt.Sprintf(format, args...))
}

func (s *Says) unknown(format string, args ...any) {
	s.Unknown = append(s.Unknown, fmt.Sprintf(format, args...))
}

func inWords(c *Comparison, candidates int) Says {
	var s Says
	s.known("Over %s that both have, %s passes %s and %s %s: %s (%g %% interval %s).", text.Count(c.Tasks, "task"),
		c.Candidate.Config, percent(c.Candidate.Passed.Value), c.Base.Config, percent(c.Base.Passed.Value),
		points(c.Gain.Value), 100*(1-c.Alpha), between(c.Gain, points))
	c.sayVerdict(&s, candidates)
	c.sayPower(&s)
	if c.Cost != nil {
		c.Cost.say(&s, "costs", func(x float64) string { return fmt.Sprintf("$%.4g", x) })
	} else {
		s.unknown("The price of some trials is not known, so costs are not compared.")
	}
	c.Tokens.say(&s, "takes", func(x float64) string { return text.Thousands(int(math.Round(x))) + " tokens" })
	c.sayBroken(&s)
	return s
}

func (c *Comparison) sayVerdict(s *Says, candidates int) {
	rate := 100 * c.Alpha
	switch {
	case len(c.Looks) > 0 || c.Next > 0:
		c.sayLooks(s)
	case c.Verdict == Unfinished:
		s.unknown("Whether there is a difference: a run that goes on has no verdict, as one at any moment would find differences where " +
			"there are none. Wait for its end, plan looks with --looks, or judge by what has ended with --partial.")
	case c.Verdict != Unknown:
		s.known("That is more than chance: if both were the same, so large a difference would come in %s of comparisons (p = %.2g, %s). "+
			"Equal configurations are called different at most %g times in 100.", percent(*c.P), *c.P, c.Test, rate)
	default:
		s.unknown("The difference may be chance: if both were the same, so large a difference would come in %s of comparisons "+
			"(p = %.2g, %s). That does not show that they are the same.", percent(*c.P), *c.P, c.Test)
	}
	if candidates > 1 {
		s.known("%s were compared with the same base. The figures of chance are corrected for that (Holm), the intervals are not.",
			text.Count(candidates, "candidate"))
	}
}

func (c *Comparison) sayLooks(s *Says) {
	switch n := len(c.Looks); {
	case c.Verdict != Unknown:
		s.known("It can stop here: after %d tasks the difference is more than chance, with all looks so far counted. "+
			"Equal configurations are called different at most %g times in 100.", c.Looks[n-1].Tasks, 100*c.Alpha)
		s.unknown("How large the difference is: a comparison that stops early shows it larger than it is, on average. " +
			"The intervals do not correct that.")
	case c.Next > 0:
		s.unknown("The difference may be chance so far. The next look is after %d tasks, in the order of the suite.", c.Next)
	default:
		s.unknown("The difference may be chance: none of %s found more.", text.Count(n, "look"))
	}
}

func (c *Comparison) sayPower(s *Says) {
	found, some := promised("a difference of %s would be found", "no difference would be found", c.Design, c.Smallest, c.Power)
	switch {
	case !some:
		s.unknown("%s.", found)
	case c.Verdict == Unknown:
		s.unknown("%s. A smaller one may be there all the same.", found)
	default:
		s.known("%s.", found)
	}
}

// promised describes the smallest effect that a design finds with a power, or says that there is none.
func promised(one, none string, d stats.Design, smallest, power float64) (says string, some bool) {
	design := fmt.Sprintf("With %s and %s ", text.Count(d.Tasks, "task"), text.Counted(d.Tries, "try", "tries"))
	often := fmt.Sprintf(" in %s of comparisons", share(power))
	switch {
	case smallest > 0:
		return design + fmt.Sprintf(one, points(smallest)[1:]) + often, true
	case d.Tasks < d.Fewest():
		return design + none + fmt.Sprintf(", however large: it takes at least %s", text.Count(d.Fewest(), "task")), false
	}
	return design + none + often + ", however large", false
}

func (p Price) say(s *Says, verb string, show func(float64) string) {
	if !usable(p.Base.Value) || !usable(p.Candidate.Value) {
		s.unknown("What a success %s: one side has none.", verb)
		return
	}
	if !usable(p.Times.Value) { // both are free
		s.known("A success %s %s on either side.", verb, show(p.Candidate.Value))
		return
	}
	line := fmt.Sprintf("A success %s %s instead of %s, %.2f times as much (interval %s).", verb, show(p.Candidate.Value), show(p.Base.Value),
		p.Times.Value, between(p.Times, func(x float64) string { return fmt.Sprintf("%.2f", x) }))
	if p.Times.Holds(1) {
		s.unknown("%s So it may be the same.", line)
		return
	}
	s.known("%s", line)
}

func (c *Comparison) sayBroken(s *Says) {
	if a, b := c.Base.Broken, c.Candidate.Broken; a+b > 0 {
		s.unknown("%s set aside, as the infrastructure failed: %d of the base, %d of the candidate. They say nothing about either.",
			text.Counted(a+b, "trial was", "trials were"), a, b)
	}
	if c.Uneven {
		s.unknown("Whether that is the infrastructure: more trials of one side were set aside than chance explains. Find the cause first.")
	}
	if c.Shared > 0 {
		s.unknown("How far chance goes: %s the same on both sides, as the runs are one, or one was cached from the other. "+
			"They can show no difference.", text.Counted(c.Shared, "trial is", "trials are"))
	}
	if a, b := c.Base.Missing, c.Candidate.Missing; a+b > 0 {
		s.unknown("How it ends: %s not ended, %d of the base, %d of the candidate.", text.Counted(a+b, "trial has", "trials have"), a, b)
	}
	if c.Alone > 0 {
		s.unknown("%s left out, as only one side has a result.", text.Counted(c.Alone, "task was", "tasks were"))
	}
}

// usable reports whether a figure is a number.
func usable(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

func percent(share float64) string {
	if share > 0 && share < 0.001 {
		return "less than 0.1 %"
	}
	return fmt.Sprintf("%.1f %%", 100*share)
}

// share formats a rate that a person chose.
func share(rate float64) string { return fmt.Sprintf("%g %%", 100*rate) }

// points formats a difference of shares, with its sign.
func points(x float64) string {
	unit := "points"
	if n := fmt.Sprintf("%+.1f", 100*x); n == "+1.0" || n == "-1.0" {
		unit = "point"
	}
	return fmt.Sprintf("%+.1f %s", 100*x, unit)
}

// between formats an interval, with the unit once.
func between(f Figure, show func(float64) string) string {
	bound := func(x float64) string {
		if !usable(x) {
			return "not known"
		}
		return show(x)
	}
	low, high := bound(f.Low), bound(f.High)
	if !usable(f.Low) && !usable(f.High) {
		return high
	}
	if n, unit, ok := strings.Cut(low, " "); ok && strings.HasSuffix(high, " "+unit) {
		low = n
	}
	return low + " to " + high
}
