package eval_test

// What the numbers promise, held with simulated agents whose success rates are known. The counts are
// small in an ordinary run, and as large as they are promised with INSPAN_PROOF=1 (make proof).

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"gonum.org/v1/gonum/mathext"

	"github.com/inspan/inspan/internal/lab/eval"
	"github.com/inspan/inspan/internal/lab/stats"
)

// times is how many simulations there are, and whether those are all.
func times(all int) (n int, full bool) {
	if os.Getenv("INSPAN_PROOF") != "" {
		return all, true
	}
	return all / 20, false
}

// tolerance is three standard errors of a count of n at a rate, as a share.
func tolerance(rate float64, n int) float64 { return 3 * math.Sqrt(rate*(1-rate)/float64(n)) }

// agents draws pairs of agents. Their chances of passing differ between tasks, by a Beta distribution with which two
// trials of an agent end differently in one of five tasks.
type agents struct {
	src   *rand.Rand
	tasks int
	tries int
}

// disagree and shape belong together: for Beta(a, a), two trials differ with the chance a/(2a+1).
const (
	disagree = 0.2
	shape    = 1.0 / 3
)

// runs are one run of each agent. The second passes more tasks by the effect, on average: most on those that the first
// passes half of the time.
func (a agents) runs(effect float64) (base, candidate eval.Run) {
	base, candidate = a.run("base"), a.run("candidate")
	rates := rates()
	for task := range a.tasks {
		p := rates[a.src.IntN(len(rates))]
		a.try(&base, task, p)
		a.try(&candidate, task, p+gain(effect, p))
	}
	return base, candidate
}

// rates are those of tasks, equally likely: quantiles of the Beta distribution.
var rates = sync.OnceValue(func() []float64 {
	out := make([]float64, 10_000)
	for i := range out {
		out[i] = mathext.InvRegIncBeta(shape, shape, (float64(i)+0.5)/float64(len(out)))
	}
	return out
})

func gain(effect, p float64) float64 { return effect * p * (1 - p) / (disagree / 2) }

// spread is the standard deviation of the gain between tasks.
func spread(effect float64) float64 {
	squares := 0.0
	for _, p := range rates() {
		squares += gain(effect, p) * gain(effect, p) / float64(len(rates()))
	}
	return math.Sqrt(squares - effect*effect)
}

func (a agents) run(id string) eval.Run {
	return eval.Run{ID: id, Suite: "simulated", Digest: fmt.Sprint(a.src.Uint64()), Config: id, Tries: a.tries}
}

func (a agents) try(r *eval.Run, task int, p float64) {
	for try := range a.tries {
		t := eval.Trial{Task: fmt.Sprint("task-", task), Try: try + 1, Outcome: eval.Failed, Priced: true, Cost: 0.1, Tokens: 1000}
		if a.src.Float64() < p {
			t.Outcome, t.Score = eval.Passed, 1
		}
		r.Trials = append(r.Trials, t)
	}
}

// compared is how often comparisons of such agents have a verdict.
func compared(t *testing.T, n int, a agents, effect float64, how eval.Comparing) map[eval.Verdict]int {
	t.Helper()
	how.Draws = 10 // no verdict rests on the bootstrap
	out := map[eval.Verdict]int{}
	for range n {
		base, candidate := a.runs(effect)
		candidate.Digest = base.Digest
		cs, err := eval.Compare(base, []eval.Run{candidate}, how)
		if err != nil {
			t.Fatal(err)
		}
		out[cs[0].Verdict]++
	}
	return out
}

// designs are all if the counts are, and otherwise one without looks and one with.
func designs(full bool) []stats.Design {
	some := []stats.Design{
		{Tasks: 89, Tries: 1, Disagree: disagree, Alpha: 0.05},
		{Tasks: 89, Tries: 5, Disagree: disagree, Alpha: 0.05, Looks: 5},
	}
	if !full {
		return some
	}
	return append(some, []stats.Design{
		{Tasks: 89, Tries: 5, Disagree: disagree, Alpha: 0.05},
		{Tasks: 89, Tries: 1, Disagree: disagree, Alpha: 0.05, Looks: 5},
		{Tasks: 200, Tries: 2, Disagree: disagree, Alpha: 0.05, Looks: 3},
		{Tasks: 50, Tries: 3, Disagree: disagree, Alpha: 0.05},
	}...)
}

// TestEqualConfigurationsAreRarelyCalledDifferent compares agents with themselves, 1,000 times in full.
// At most 5 % may be called different; the tolerance is three standard errors of such a count.
func TestEqualConfigurationsAreRarelyCalledDifferent(t *testing.T) {
	n, full := times(1000)
	for i, d := range designs(full) {
		a := agents{rand.New(rand.NewPCG(uint64(i), 7)), d.Tasks, d.Tries}
		got := compared(t, n, a, 0, eval.Comparing{Looks: d.Looks})
		share := 1 - float64(got[eval.Unknown])/float64(n)
		t.Logf("%d tasks, %d tries, %d looks: %.1f %% of %d called different", d.Tasks, d.Tries, d.Looks, 100*share, n)
		if share > 0.05+tolerance(0.05, n) {
			t.Errorf("%+v: %.1f %% of equal agents are called different", d, 100*share)
		}
	}
}

// TestPowerIsWhatWasPromised compares agents with better ones. In full, the share that is found lies
// within 3 points of the promise, sequential stopping included.
func TestPowerIsWhatWasPromised(t *testing.T) {
	n, full := times(2500)
	for i, d := range designs(full) {
		effect := d.Detectable(0.8)
		for range 8 { // the spread follows from the effect, and the effect from the spread
			if d.Tries > 1 {
				d.Spread = spread(effect)
			}
			effect = min(0.1, d.Detectable(0.8)) // beyond that the better agent would pass with more than certainty
		}
		a := agents{rand.New(rand.NewPCG(uint64(i), 8)), d.Tasks, d.Tries}
		got := compared(t, n, a, effect, eval.Comparing{Looks: d.Looks})
		share, promised := float64(got[eval.Better])/float64(n), d.Power(effect)
		t.Logf("%d tasks, %d tries, %d looks, %.1f points: found in %.1f %% of %d, promised %.1f %%",
			d.Tasks, d.Tries, d.Looks, 100*effect, 100*share, n, 100*promised)
		most := 0.03
		if !full {
			most += tolerance(promised, n)
		}
		if math.Abs(share-promised) > most {
			t.Errorf("%+v: an effect of %.1f points is found in %.1f %%, promised are %.1f %%", d, 100*effect, 100*share, 100*promised)
		}
	}
}
