package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

func rounded(t *testing.T, what string, got, want float64, places int) {
	t.Helper()
	if math.Abs(got-want) > 0.5000001*math.Pow10(-places) {
		t.Errorf("%s is %.*f, and the table says %.*f", what, places+2, got, places, want)
	}
}

// TestPublishedIntervals is table I of R. G. Newcombe, "Two-sided confidence intervals for the single
// proportion", Statistics in Medicine 17 (1998): methods 3 and 5.
func TestPublishedIntervals(t *testing.T) {
	for _, c := range []struct {
		k, n          int
		wilson, exact Interval
	}{
		{81, 263, Interval{0.2553, 0.3662}, Interval{0.2527, 0.3676}},
		{15, 148, Interval{0.0624, 0.1605}, Interval{0.0578, 0.1617}},
		{0, 20, Interval{0, 0.1611}, Interval{0, 0.1684}},
		{1, 29, Interval{0.0061, 0.1718}, Interval{0.0009, 0.1776}},
	} {
		w, e := Wilson(c.k, c.n, 0.95), ClopperPearson(c.k, c.n, 0.95)
		rounded(t, "Wilson's lower bound", w.Low, c.wilson.Low, 4)
		rounded(t, "Wilson's upper bound", w.High, c.wilson.High, 4)
		rounded(t, "the exact lower bound", e.Low, c.exact.Low, 4)
		rounded(t, "the exact upper bound", e.High, c.exact.High, 4)
	}
}

// TestDarwinsMaize is the example of R. A. Fisher, "The Design of Experiments" (1935), section 21: of
// the 32,768 ways to flip the signs of Darwin's 15 pairs, 863 give as large a sum.
func TestDarwinsMaize(t *testing.T) {
	var diffs []float64
	for _, eighths := range []float64{49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48} {
		diffs = append(diffs, eighths/90) // any unit will do that the grid has
	}
	near(t, "the p-value", NewFlips(diffs).Above(), 863.0/32768)
	near(t, "on both sides", NewFlips(diffs).P(), 2*863.0/32768)
}

// TestPublishedBoundaries is the table for five equally spaced looks at 5 % on both sides, of K. K. G.
// Lan and D. L. DeMets, "Discrete sequential boundaries for clinical trials", Biometrika 70 (1983), as
// later programs print it to four digits. The exact boundaries of many single tries come near them.
func TestPublishedBoundaries(t *testing.T) {
	table := []float64{4.877, 3.357, 2.680, 2.290, 2.031}
	stops, spent := boundaries(5, 0.05, 0)
	for i, stop := range stops {
		if math.Abs(stop-table[i]) > 0.0015 {
			t.Errorf("look %d stops at %.4f, and the table says %.3f", i+1, stop, table[i])
		}
	}
	near(t, "the error rate", spent, 0.05)
	diffs := make([]float64, 5000)
	for i := range diffs {
		diffs[i] = 1 - 2*float64(i%2)
	}
	for i, look := range NewFlips(diffs).Sequential(Looks(5000, 5), 5000, 0.05) {
		z := look.Stop / math.Sqrt(float64(look.Tasks))
		if z < table[i]-0.005 || z > table[i]+2.5/math.Sqrt(float64(look.Tasks)) { // sums go in steps of 2
			t.Errorf("look %d of single tries stops at %.4f, and the table says %.3f", i+1, z, table[i])
		}
	}
}

// TestPublishedAgreement is the example of J. L. Fleiss, "Statistical Methods for Rates and
// Proportions" (1981), table 13.1. The interval is held against statsmodels.
func TestPublishedAgreement(t *testing.T) {
	kappa, _ := Kappa([][]int{{75, 1, 4}, {5, 4, 1}, {0, 0, 10}}, 0.95)
	rounded(t, "kappa", kappa, 0.68, 2)
}

// TestKnownDesigns checks the promises made before money is spent.
func TestKnownDesigns(t *testing.T) {
	d := Design{Tasks: 89, Tries: 1, Disagree: 0.2, Alpha: 0.05}
	rounded(t, "89 tasks once", d.Detectable(0.8), 0.13, 2)
	d.Tries = 5
	rounded(t, "89 tasks five times", d.Detectable(0.8), 0.06, 2)
	once := d.Detectable(0.8)
	d.Looks = 5
	if often := d.Detectable(0.8); often <= once || often > 1.03*once {
		t.Errorf("with five looks it finds %.4f, with one %.4f", often, once)
	}
	near(t, "the power of what it finds", math.Round(1000*d.Power(d.Detectable(0.8)))/1000, 0.8)
	if n := d.TasksFor(0.08, 0.8); n < 50 || n > 60 {
		t.Errorf("8 points five times take %d tasks", n)
	}
	if n := d.TasksFor(0, 0.8); n != 0 {
		t.Errorf("no effect is found with %d tasks", n)
	}
}

// TestWorstShape compares the promise about an effect whose tasks are unknown with simulated comparisons: no shape is
// found less often.
func TestWorstShape(t *testing.T) {
	const comparisons = 1000
	r := rand.New(rand.NewPCG(1, 2))
	for _, d := range []Design{
		{Tasks: 89, Tries: 1, Disagree: 0.2, Alpha: 0.05, Worst: true},
		{Tasks: 89, Tries: 5, Disagree: 0.2, Alpha: 0.05, Worst: true},
	} {
		effect, least := d.Detectable(0.8), 1.0
		for _, s := range Shapes() {
			found := 0
			for range comparisons {
				gains := make([]float64, d.Tasks)
				for i := range gains {
					each, differ := 0.0, d.Disagree
					if part := max(s.Part, effect); r.Float64() < part {
						each = effect / part
						differ = max(differ, each)
					}
					for range d.Tries {
						switch u := r.Float64(); {
						case u < (differ+each)/2:
							gains[i] += 1 / float64(d.Tries)
						case u < differ:
							gains[i] -= 1 / float64(d.Tries)
						}
					}
				}
				if NewFlips(gains).P() <= d.Alpha {
					found++
				}
			}
			least = min(least, float64(found)/comparisons)
		}
		if math.Abs(least-0.8) > 0.05 {
			t.Errorf("%+v: an effect of %.3f is found in %.3f in its worst shape, promised are 0.8", d, effect, least)
		}
	}
}

// TestFewTasksFindNothing checks that no design promises more than its test can find, and that the smallest one that
// can finds it.
func TestFewTasksFindNothing(t *testing.T) {
	for _, d := range []Design{
		{Tries: 1, Alpha: 0.05},
		{Tries: 5, Alpha: 0.05},
		{Tries: 5, Alpha: 0.05, Looks: 3},
		{Tries: 1, Alpha: 0.05, OneSided: true},
		{Tries: 3, Alpha: 0.01},
	} {
		d.Disagree = 0.2
		all := make([]float64, d.Fewest())
		for i := range all {
			all[i] = 1
		}
		p := func(n int) float64 {
			if d.OneSided {
				return NewFlips(all[:n]).Above()
			}
			return NewFlips(all[:n]).P()
		}
		if d.Tasks = len(all); p(len(all)) > d.Alpha || d.Detectable(0.8) == 0 {
			t.Errorf("%+v finds p = %v, and promises %v", d, p(len(all)), d.Detectable(0.8))
		}
		if d.Tasks--; p(d.Tasks) <= d.Alpha || d.Detectable(0.8) != 0 || d.Power(1) != 0 {
			t.Errorf("%+v finds p = %v, and promises %v", d, p(d.Tasks), d.Detectable(0.8))
		}
	}
}

// TestUnseenTasks checks that the interval of tasks that are all alike excludes no difference exactly if the exact test
// does.
func TestUnseenTasks(t *testing.T) {
	for n := 2; n < 40; n++ {
		for _, value := range []float64{-1, 1} {
			diffs := make([]float64, n)
			for i := range diffs {
				diffs[i] = value
			}
			in := Interval{value, value}.Unseen(n, 0.95, -1, 1)
			if !in.Holds(value) || in.Holds(0) != (NewFlips(diffs).P() > 0.05) {
				t.Errorf("%d tasks of %g: %v", n, value, in)
			}
		}
	}
	if in := (Interval{0, 0}).Unseen(20, 0.95, -1, 1); in.Low > -0.16 || in.High < 0.16 {
		t.Errorf("20 equal tasks: %v", in)
	}
	if in := (Interval{0.1, 0.2}).Unseen(20, 0.95, -1, 1); in != (Interval{0.1, 0.2}) {
		t.Errorf("an interval with a width becomes %v", in)
	}
}

// TestPowerIsConsistent checks that the number of tasks is the smallest, and that more of anything but disagreement
// finds more.
func TestPowerIsConsistent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := Design{
			Tries: rapid.IntRange(2, 8).Draw(t, "tries"), Disagree: rapid.Float64Range(0.05, 0.5).Draw(t, "disagree"),
			Alpha: 0.05, OneSided: rapid.Bool().Draw(t, "one-sided"),
		}
		effect := rapid.Float64Range(0.03, 0.3).Draw(t, "effect")
		n := d.TasksFor(effect, 0.8)
		d.Tasks = n
		if d.Power(effect) < 0.8 {
			t.Fatalf("%d tasks are not enough: %v", n, d.Power(effect))
		}
		d.Tasks = n - 1
		if n > 1 && d.Power(effect) >= 0.8 {
			t.Fatalf("%d tasks are one too many", n)
		}
		d.Tasks = n
		if d.Detectable(0.8) > effect+1e-4 {
			t.Fatalf("with %d tasks for %v, %v is the smallest", n, effect, d.Detectable(0.8))
		}
	})
}

// TestFlipsAreMcNemars checks that the two tests are one for single tries.
func TestFlipsAreMcNemars(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		won, lost := rapid.IntRange(0, 60).Draw(t, "won"), rapid.IntRange(0, 60).Draw(t, "lost")
		diffs := make([]float64, won+lost+rapid.IntRange(0, 5).Draw(t, "same"))
		for i := range won + lost {
			diffs[i] = 1
			if i >= won {
				diffs[i] = -1
			}
		}
		if got, want := NewFlips(diffs).P(), McNemar(won, lost); math.Abs(got-want) > 1e-9 {
			t.Fatalf("%d to %d: %v by flips, %v by McNemar", won, lost, got, want)
		}
	})
}

// TestOneLookIsTheFixedTest checks that a sequential test with its only look at the end equals the fixed test.
func TestOneLookIsTheFixedTest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		diffs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) float64 {
			return float64(rapid.IntRange(-3, 5).Draw(t, "fifths")) / 5
		}), 1, 40).Draw(t, "diffs")
		f := NewFlips(diffs)
		looks := f.Sequential([]int{len(diffs)}, len(diffs), 0.05)
		if found := looks[0].Result != 0; found != (f.P() <= 0.05) {
			t.Fatalf("p is %v, and the look says %+v", f.P(), looks[0])
		}
	})
}

// TestTries compares pass@k and pass^k with a count of all choices of k tries.
func TestTries(t *testing.T) {
	for n := 1; n <= 7; n++ {
		for c := 0; c <= n; c++ {
			for k := 1; k <= n; k++ {
				any, all, choices := 0, 0, 0
				for set := range 1 << n {
					if ones(set) != k {
						continue
					}
					passed := ones(set & (1<<c - 1))
					choices++
					if passed > 0 {
						any++
					}
					if passed == k {
						all++
					}
				}
				near(t, "pass@k", PassAtK(n, c, k), float64(any)/float64(choices))
				near(t, "pass^k", PassHatK(n, c, k), float64(all)/float64(choices))
			}
		}
	}
	if !math.IsNaN(PassAtK(2, 1, 3)) {
		t.Error("pass@3 of two tries is known")
	}
}

func ones(set int) (n int) {
	for ; set > 0; set &= set - 1 {
		n++
	}
	return n
}

// TestBootstrapCovers checks that the interval of a mean over 25 tasks holds the true one as often as it says: 1,000
// times, with a tolerance of three standard errors of that count. Percentiles alone do in 92 to 93 % only.
func TestBootstrapCovers(t *testing.T) {
	src, held := rand.NewPCG(1, 2), 0
	for range 1000 {
		values := make([]float64, 25)
		for i := range values {
			for range 5 {
				if unit(src) < 0.3 {
					values[i] += 0.2
				}
			}
		}
		in := Bootstrap(len(values), 500, 0.95, src, func(tasks []int) float64 {
			sum := 0.0
			for _, t := range tasks {
				sum += values[t]
			}
			return sum / float64(len(tasks))
		})
		if in.Holds(0.3) {
			held++
		}
	}
	if held < 929 || held > 971 {
		t.Errorf("the interval holds the true mean %d times of 1,000", held)
	}
}

// TestBootstrapKeepsTasksTogether checks that trials of one task count as one: repeated ten times they are as unsure as
// they were.
func TestBootstrapKeepsTasksTogether(t *testing.T) {
	parts, wholes := []float64{1, 2, 3, 4, 5, 6, 7, 8}, []float64{1, 1, 1, 1, 1, 1, 1, 1}
	once := Bootstrap(8, 2000, 0.9, rand.NewPCG(3, 4), Ratio(parts, wholes))
	for i := range parts {
		parts[i], wholes[i] = parts[i]*10, 10
	}
	near(t, "the lower bound", Bootstrap(8, 2000, 0.9, rand.NewPCG(3, 4), Ratio(parts, wholes)).Low, once.Low)
	if !once.Holds(4.5) || once.High-once.Low < 2 {
		t.Errorf("the interval is %v", once)
	}
	if in := Bootstrap(1, 100, 0.9, rand.NewPCG(3, 4), Ratio(parts, wholes)); !math.IsInf(in.High, 1) {
		t.Errorf("of one task, %v is known", in)
	}
	if in := Bootstrap(8, 100, 0.9, rand.NewPCG(3, 4), Ratio(parts, make([]float64, 8))); !math.IsInf(in.High, 1) {
		t.Errorf("without a success, %v is known", in)
	}
}

// TestRisingMayBeLookedAtAlways checks that looking after each failure does not raise the error rate, with a tolerance
// of three standard errors, and that a real rise is found.
func TestRisingMayBeLookedAtAlways(t *testing.T) {
	found := func(arm float64) (n int) {
		src := rand.NewPCG(5, 6)
		for range 2000 {
			in := 0
			for all := 1; all <= 200; all++ {
				if unit(src) < arm {
					in++
				}
				if Rising(in, all, 0.2) >= 20 {
					n++
					break
				}
			}
		}
		return n
	}
	if n := found(0.2); n > 100+29 {
		t.Errorf("with equal arms it says so %d times of 2,000", n)
	}
	if n := found(0.4); n < 1900 { // the arm of a share of 0.2 fails 2.7 times as often
		t.Errorf("with a real rise it says so %d times of 2,000", n)
	}
}

// TestShares checks that tests one after another spend no more than the whole error rate.
func TestShares(t *testing.T) {
	sum := 0.0
	for j := 1; j <= 1000; j++ {
		sum += Share(j)
	}
	near(t, "the sum of shares", sum, 1-1.0/1001)
	near(t, "the first", Share(1), 0.5)
}

// TestMedian checks the middle of an odd and an even number of values, and that the values stay as they are.
func TestMedian(t *testing.T) {
	for want, values := range map[float64][]float64{3: {3}, 2: {9, 1, 2}, 2.5: {4, 1, 3, 2}} {
		first := values[0]
		if got := Median(values); got != want || values[0] != first {
			t.Errorf("%v: %v", values, got)
		}
	}
}
