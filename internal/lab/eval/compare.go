package eval

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/lab/stats"
)

// Comparing says how runs are compared. Its zero value has the defaults.
type Comparing struct {
	Alpha float64 // chance to call equal configurations different; 0 means 0.05
	Power float64 // probability of finding a promised difference; 0 means 0.8
	Looks int     // number of equally spaced looks while candidates run and the base has ended; 0 means one, at the end
	Draws int     // of the bootstrap; 0 means 4,000

	Planned int  // planned tasks, if more than those that either run has
	Partial bool // runs with missing trials are judged by the finished ones
}

func (c Comparing) filled() Comparing {
	c.Alpha, c.Power, c.Draws = cmp.Or(c.Alpha, 0.05), cmp.Or(c.Power, 0.8), cmp.Or(c.Draws, 4000)
	return c
}

// Verdict is the result of a comparison.
type Verdict string

// The verdicts. Unknown does not mean "equal": a difference too small to find may exist.
const (
	Better  Verdict = "better"  // the candidate passes more, and chance is an unlikely explanation
	Worse   Verdict = "worse"   // it passes less
	Unknown Verdict = "unknown" // the difference may be chance

	// Unfinished is the verdict for runs with missing trials, unless looks were planned: repeated looks that
	// stop at the first difference find one where there is none.
	Unfinished Verdict = "unfinished"
)

// Comparison compares a candidate run with a base run. Shares are of the tasks that both have, each counted
// once, however often it was tried; intervals are at 1 less Alpha.
type Comparison struct {
	Base      Side         `json:"base"`
	Candidate Side         `json:"candidate"`
	Suite     string       `json:"suite"`
	HeldOut   bool         `json:"held_out,omitempty"`
	Tasks     int          `json:"tasks"`            // those that both have
	Alone     int          `json:"alone"`            // those that only one has, or that have only broken trials on one side
	Shared    int          `json:"shared,omitempty"` // trials with the same session on both sides, so they show no difference
	Uneven    bool         `json:"uneven,omitempty"` // more trials broke on one side than chance explains
	Gain      Figure       `json:"gain"`             // share of the candidate minus that of the base
	Test      string       `json:"test"`
	Alpha     float64      `json:"alpha"`
	P         *float64     `json:"p,omitempty"` // corrected for the number of candidates; nil with looks
	Verdict   Verdict      `json:"verdict"`
	Design    stats.Design `json:"design"`               // the design, with the observed disagreement
	Seen      Figure       `json:"disagree"`             // share of tasks on which two trials end differently
	Smallest  float64      `json:"detectable,omitempty"` // smallest effect found with Power; 0: none is found
	Power     float64      `json:"power"`
	Looks     []stats.Look `json:"looks,omitempty"`
	Next      int          `json:"next_look,omitempty"` // after so many tasks; 0: there is none
	Tries     []Tried      `json:"tries,omitempty"`
	Cost      *Price       `json:"cost_per_success,omitempty"` // US dollars; nil if a price is unknown
	Tokens    Price        `json:"tokens_per_success"`
	Flips     []Flip       `json:"flips,omitempty"` // never of held-out tasks
	Says      Says         `json:"says"`            // the comparison in words
}

// Side is one of the two runs.
type Side struct {
	Run     string         `json:"run"`
	Config  string         `json:"config"`
	Pinned  string         `json:"config_digest"`
	Model   string         `json:"model"`
	Version string         `json:"version"`
	Trials  int            `json:"trials"`            // those that count
	Broken  int            `json:"broken"`            // those set aside
	Missing int            `json:"missing,omitempty"` // those that have not ended
	Passed  Figure         `json:"passed"`
	Reasons map[string]int `json:"reasons,omitempty"` // of the failed trials
}

// Tried is the result of k tries of one task: any of them passes, or all.
type Tried struct {
	K         int    `json:"k"`
	BaseAny   Figure `json:"base_any"`
	Any       Figure `json:"any"`
	BaseEvery Figure `json:"base_every"`
	Every     Figure `json:"every"`
}

// Price is the cost of a success on each side, and the ratio of the candidate's to the base's.
type Price struct {
	Base      Figure `json:"base"`
	Candidate Figure `json:"candidate"`
	Times     Figure `json:"times"`
}

// ErrNothingShared says that two runs have no task in common.
var ErrNothingShared = errors.New("the runs have no task in common")

// Compare compares candidates with a base, each on the tasks that both have. With several, error rates are
// corrected, so that all verdicts together are wrong as rarely as one would be. The same runs give the same
// figures.
func Compare(base Run, candidates []Run, how Comparing) ([]Comparison, error) {
	how = how.filled()
	out, ps := make([]Comparison, len(candidates)), make([]float64, len(candidates))
	for i, candidate := range candidates {
		pairs, err := paired(base, candidate)
		if err != nil {
			return nil, err
		}
		out[i] = how.compare(base, candidate, pairs, len(candidates))
		ps[i] = stats.NewFlips(pairs.gains()).P()
		out[i].Test = "exact sign flips of whole tasks"
		if pairs.single() {
			out[i].Test = "exact McNemar test"
		}
		if how.Looks > 1 {
			how.look(&out[i], pairs, len(candidates))
		}
	}
	for i, p := range stats.Holm(ps) {
		switch {
		case how.Looks > 1:
		case how.unfinished(&out[i]):
			out[i].Verdict = Unfinished
		default:
			out[i].P, out[i].Verdict = &p, verdictOf(p <= how.Alpha, out[i].Gain.Value)
		}
		out[i].Says = inWords(&out[i], len(candidates))
	}
	return out, nil
}

// unfinished reports whether the runs lack planned trials, and may not be judged without them.
func (c Comparing) unfinished(of *Comparison) bool {
	return c.Planned > 0 && of.Base.Missing+of.Candidate.Missing > 0 && !c.Partial
}

func verdictOf(found bool, gain float64) Verdict {
	switch {
	case found && gain > 0:
		return Better
	case found && gain < 0:
		return Worse
	}
	return Unknown
}

// pair is a task that both runs have.
type pair struct {
	task            string
	base, candidate tally
}

// tally is the trials of one task in one run, without the broken ones.
type tally struct {
	trials []Trial
	passed int
	broken int // those set aside
	cost   float64
	tokens float64
	priced bool
}

func (t *tally) share() float64 { return float64(t.passed) / float64(len(t.trials)) }

// ended returns the number of finished tries.
func (t *tally) ended() int { return len(t.trials) + t.broken }

// pairs are the tasks of two runs.
type pairs struct {
	order           []string // all of them, see [Order]
	base, candidate map[string]*tally
	tries           int    // planned number of tries of each
	list            []pair // those that both have
}

func paired(base, candidate Run) (pairs, error) {
	if base.Digest != candidate.Digest {
		return pairs{}, fmt.Errorf("compare %s with %s: they are of different suites, or the suite has changed between them",
			base.ID, candidate.ID)
	}
	p := pairs{base: tallies(base), candidate: tallies(candidate), tries: max(1, base.Tries, candidate.Tries)}
	all := maps.Clone(p.base)
	maps.Copy(all, p.candidate)
	p.order = Order(base.Digest, slices.Collect(maps.Keys(all)))
	for _, task := range p.order {
		a, b := p.base[task], p.candidate[task]
		if a != nil && b != nil && len(a.trials) > 0 && len(b.trials) > 0 {
			p.list = append(p.list, pair{task, *a, *b})
		}
	}
	if len(p.list) == 0 {
		return pairs{}, fmt.Errorf("compare %s with %s: %w", base.ID, candidate.ID, ErrNothingShared)
	}
	return p, nil
}

func tallies(r Run) map[string]*tally {
	out := map[string]*tally{}
	for _, trial := range r.Trials {
		t := out[trial.Task]
		if t == nil {
			t = &tally{priced: true}
			out[trial.Task] = t
		}
		if trial.Outcome == Broken {
			t.broken++
			continue
		}
		t.trials = append(t.trials, trial)
		t.cost += trial.Cost
		t.tokens += float64(trial.Tokens)
		t.priced = t.priced && trial.Priced
		if trial.Outcome == Passed {
			t.passed++
		}
	}
	for _, t := range out {
		slices.SortStableFunc(t.trials, func(a, b Trial) int { return cmp.Compare(a.Try, b.Try) })
	}
	return out
}

// Order returns the order in which tasks begin and looks use them: as if shuffled, the same for every run of a
// suite, so that the tasks that end early are not selected by outcome.
func Order(suite string, tasks []string) []string {
	key := func(task string) uint64 {
		h := fnv.New64a()
		h.Write([]byte(suite + "\n" + task))
		return mixed(h.Sum64())
	}
	out := slices.Clone(tasks)
	slices.SortFunc(out, func(a, b string) int {
		return cmp.Or(cmp.Compare(key(a), key(b)), strings.Compare(a, b))
	})
	return out
}

// mixed spreads a digest over all its bits, as SplitMix64 does: FNV's bits depend little on a last letter.
func mixed(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// mostUneven is the two-sided p-value up to which the sides count as breaking unevenly often: three tasks of
// one and none of the other. As the verdict depends on this check, it errs on the strict side.
const mostUneven = 0.25

// uneven reports whether one side broke more often than the other, beyond chance. Then the trials set aside say
// something about the agents, and the figures of the rest are incomplete.
func (p pairs) uneven() bool {
	var diffs []float64
	for _, task := range p.order {
		if a, b := p.base[task], p.candidate[task]; a != nil && b != nil {
			diffs = append(diffs, float64(b.broken)/float64(b.ended())-float64(a.broken)/float64(a.ended()))
		}
	}
	return stats.NewFlips(diffs).P() <= mostUneven
}

// missing returns how many trials of a run have not ended.
func (c Comparing) missing(r Run, p pairs) int {
	return max(0, max(c.Planned, len(p.order))*max(1, r.Tries)-len(r.Trials))
}

// shared returns how many trials of a candidate are those of the base.
func shared(base, candidate Run) (n int) {
	sessions := map[string]bool{}
	for _, t := range base.Trials {
		sessions[t.Session] = t.Session != ""
	}
	for _, t := range candidate.Trials {
		if sessions[t.Session] || base.ID == candidate.ID {
			n++
		}
	}
	return n
}

func (p pairs) gains() []float64 {
	out := make([]float64, len(p.list))
	for i := range p.list {
		out[i] = p.list[i].candidate.share() - p.list[i].base.share()
	}
	return out
}

// single reports whether each task was tried once on each side.
func (p pairs) single() bool {
	return !slices.ContainsFunc(p.list, func(t pair) bool { return len(t.base.trials) != 1 || len(t.candidate.trials) != 1 })
}

// fewest returns the smallest number of tries of a task on one side.
func (p pairs) fewest() int {
	n := math.MaxInt
	for i := range p.list {
		n = min(n, len(p.list[i].base.trials), len(p.list[i].candidate.trials))
	}
	return n
}

// compare compares one of several candidates. Its design has the error rate that each gets.
func (c Comparing) compare(base, candidate Run, p pairs, candidates int) Comparison {
	seed := fnv.New64a()
	seed.Write([]byte(base.ID + "\n" + candidate.ID))
	f := figures{pairs: p, how: c, src: rand.NewPCG(seed.Sum64(), 0)}
	out := Comparison{
		Suite: base.Suite, HeldOut: base.Split == HeldOut || candidate.Split == HeldOut,
		Base: side(base), Candidate: side(candidate), Tasks: len(p.list), Alone: len(p.order) - len(p.list),
		Gain: f.of(p.gains(), -1), Alpha: c.Alpha, Power: c.Power, Tries: f.tries(),
		Tokens: f.price(func(t *tally) float64 { return t.tokens }), Verdict: Unknown,
	}
	out.Shared = shared(base, candidate)
	out.Uneven, out.Base.Missing, out.Candidate.Missing = p.uneven(), c.missing(base, p), c.missing(candidate, p)
	out.Base.Passed, out.Candidate.Passed = f.passed(baseOf), f.passed(candidateOf)
	if !slices.ContainsFunc(p.list, func(t pair) bool { return !t.base.priced || !t.candidate.priced }) {
		cost := f.price(func(t *tally) float64 { return t.cost })
		out.Cost = &cost
	}
	out.Seen = f.of(p.disagreement(), 0)
	out.Design = stats.Design{
		Tasks: len(p.list), Tries: p.fewest(), Disagree: out.Seen.Value, Spread: p.spread(), Alpha: c.Alpha / float64(candidates),
		Looks: c.Looks,
	}
	out.Smallest = out.Design.Detectable(c.Power)
	if !out.HeldOut {
		out.Flips = flips(p)
	}
	return out
}

func side(r Run) Side {
	s := Side{Run: r.ID, Config: r.Config, Pinned: r.Pinned, Model: r.Model, Version: r.Version, Reasons: map[string]int{}}
	for _, t := range r.Trials {
		switch t.Outcome {
		case Broken:
			s.Broken++
			continue
		case Failed:
			s.Reasons[cmp.Or(t.Reason, "not said")]++
		}
		s.Trials++
	}
	return s
}

// look tests at looks, on the first tasks in order that have ended on both sides. A task with only broken
// trials on one side is skipped, and delays nothing.
func (c Comparing) look(out *Comparison, p pairs, candidates int) {
	var gains []float64
	for _, task := range p.order {
		base, candidate := p.base[task], p.candidate[task]
		if base == nil || candidate == nil || base.ended() < p.tries || candidate.ended() < p.tries {
			break
		}
		gain := 0.0
		if len(base.trials) > 0 && len(candidate.trials) > 0 {
			gain = candidate.share() - base.share()
		}
		gains = append(gains, gain)
	}
	looks := stats.Looks(len(p.order), c.Looks)
	out.Looks = stats.NewFlips(gains).Sequential(looks, len(p.order), c.Alpha/float64(candidates))
	if n := len(out.Looks); n > 0 {
		out.Verdict = verdictOf(out.Looks[n-1].Result != 0, out.Looks[n-1].Sum)
	}
	if out.Verdict == Unknown && len(out.Looks) < len(looks) {
		out.Next = looks[len(out.Looks)]
	}
}
