package eval

import (
	"encoding/json"
	"errors"
	"math"

	"github.com/inspan/inspan/internal/lab/stats"
)

// Figure is an estimate with its interval. A bound that does not follow from the data is infinite, and null as
// JSON.
type Figure struct {
	Value float64
	stats.Interval
}

// MarshalJSON implements json.Marshaler.
func (f Figure) MarshalJSON() ([]byte, error) {
	known := func(x float64) *float64 {
		if math.IsInf(x, 0) || math.IsNaN(x) {
			return nil
		}
		return &x
	}
	return json.Marshal(struct {
		Value *float64 `json:"value"`
		Low   *float64 `json:"low"`
		High  *float64 `json:"high"`
	}{known(f.Value), known(f.Low), known(f.High)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *Figure) UnmarshalJSON(data []byte) error {
	var in struct{ Value, Low, High *float64 }
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	or := func(x *float64, unknown float64) float64 {
		if x == nil {
			return unknown
		}
		return *x
	}
	*f = Figure{or(in.Value, math.NaN()), stats.Interval{Low: or(in.Low, math.Inf(-1)), High: or(in.High, math.Inf(1))}}
	return nil
}

func unknownFigure() Figure {
	return Figure{math.NaN(), stats.Interval{Low: math.Inf(-1), High: math.Inf(1)}}
}

// figures are estimates over the tasks of two runs.
type figures struct {
	pairs
	how Comparing
	src stats.Source
}

// of returns the mean over tasks of a value that each has, from least to 1.
func (f figures) of(values []float64, least float64) Figure {
	ones := make([]float64, len(values))
	for i := range ones {
		ones[i] = 1
	}
	out := f.over(stats.Ratio(values, ones))
	out.Interval = out.Unseen(len(values), 1-f.how.Alpha, least, 1)
	return out
}

// over returns a figure with its interval. With too few tasks to find any difference there is no interval: a
// bootstrap of them is only as wide as they happen to differ.
func (f figures) over(statistic func(tasks []int) float64) Figure {
	n := len(f.list)
	out := unknownFigure()
	out.Value = statistic(stats.All(n))
	if n >= (stats.Design{Alpha: f.how.Alpha}).Fewest() {
		out.Interval = stats.Bootstrap(n, f.how.Draws, 1-f.how.Alpha, f.src, statistic)
	}
	return out
}

func baseOf(t *pair) *tally      { return &t.base }
func candidateOf(t *pair) *tally { return &t.candidate }

// each returns a value of each task.
func (f figures) each(of func(t *pair) float64) []float64 {
	out := make([]float64, len(f.list))
	for i := range f.list {
		out[i] = of(&f.list[i])
	}
	return out
}

// passed returns the share of tasks that pass on one side.
func (f figures) passed(on func(*pair) *tally) Figure {
	shares := f.each(func(t *pair) float64 { return on(t).share() })
	if f.single() {
		passed := 0
		for _, share := range shares {
			passed += int(share)
		}
		return Figure{float64(passed) / float64(len(shares)), stats.Wilson(passed, len(shares), 1-f.how.Alpha)}
	}
	return f.of(shares, 0)
}

// disagreement returns for each task the probability that trials of the two sides end differently.
func (p pairs) disagreement() []float64 {
	out := make([]float64, len(p.list))
	for i := range p.list {
		a, b := p.list[i].base.share(), p.list[i].candidate.share()
		out[i] = a*(1-b) + b*(1-a)
	}
	return out
}

// spread returns how much the effect differs between tasks: the variation of the gains beyond that between
// tries of one task. With single tries the two can't be distinguished, and it is 0.
func (p pairs) spread() float64 {
	n := float64(len(p.list))
	if p.fewest() < 2 || n < 2 {
		return 0
	}
	gains, within := p.gains(), 0.0
	for i := range p.list {
		within += p.list[i].base.unsure() + p.list[i].candidate.unsure()
	}
	mean, squares := stats.Mean(gains), 0.0
	for _, g := range gains {
		squares += (g - mean) * (g - mean)
	}
	return math.Sqrt(max(0, squares/(n-1)-within/n))
}

// unsure returns the variance of a share over other tries of the same task.
func (t *tally) unsure() float64 {
	return t.share() * (1 - t.share()) / float64(len(t.trials)-1)
}

// tries returns pass@k and pass^k for each k of tries that every task has; nil if that is one.
func (f figures) tries() []Tried {
	most := f.fewest()
	if most < 2 {
		return nil
	}
	var out []Tried
	for k := 1; k <= most; k++ {
		of := func(on func(*pair) *tally, estimate func(n, c, k int) float64) Figure {
			return f.of(f.each(func(t *pair) float64 { return estimate(len(on(t).trials), on(t).passed, k) }), 0)
		}
		out = append(out, Tried{
			K: k, BaseAny: of(baseOf, stats.PassAtK), Any: of(candidateOf, stats.PassAtK),
			BaseEvery: of(baseOf, stats.PassHatK), Every: of(candidateOf, stats.PassHatK),
		})
	}
	return out
}

// price returns the cost of a success on each side.
func (f figures) price(of func(*tally) float64) Price {
	spent := func(on func(*pair) *tally) []float64 { return f.each(func(t *pair) float64 { return of(on(t)) }) }
	won := func(on func(*pair) *tally) []float64 {
		return f.each(func(t *pair) float64 { return float64(on(t).passed) })
	}
	base := stats.Ratio(spent(baseOf), won(baseOf))
	candidate := stats.Ratio(spent(candidateOf), won(candidateOf))
	return Price{
		Base: f.over(base), Candidate: f.over(candidate),
		Times: f.over(func(tasks []int) float64 { return candidate(tasks) / base(tasks) }),
	}
}

// Disagreement returns the probability that two trials of one task end differently under the same
// configuration, from a pilot run that has tried tasks several times. [stats.Design] needs it in advance.
func Disagreement(pilot Run) (float64, error) {
	sum, n := 0.0, 0.0
	for _, t := range tallies(pilot) {
		if k := float64(len(t.trials)); k > 1 {
			sum += 2 * float64(t.passed) * (k - float64(t.passed)) / (k * (k - 1))
			n++
		}
	}
	if n == 0 {
		return 0, errors.New("the pilot run has tried no task twice")
	}
	return sum / n, nil
}
