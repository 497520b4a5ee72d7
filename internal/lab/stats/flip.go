package stats

import "math"

// Flips is the exact test of paired differences by sign flips, all at once or at looks while they come in. If
// two configurations are the same, each difference could as well have had the other sign; the p-value is the
// share of all ways to flip them that give as large a sum. For single tries that is [McNemar]'s exact test, for
// repeats it uses whole tasks, and it assumes no distribution (Fisher 1935, Pitman 1937).
type Flips struct {
	steps []int   // differences as whole numbers
	unit  float64 // whose multiples they are
	span  int     // sum of their sizes
}

// grid is the number of steps into which a difference of 1 is divided. It is exact for up to ten tries of each
// side. Rounding finer ones leaves the test exact, because both signs are rounded alike.
const grid = 2520

// NewFlips makes a test from differences of shares, one for each task, from -1 to 1.
func NewFlips(diffs []float64) Flips {
	steps, common := make([]int, len(diffs)), 0
	for i, d := range diffs {
		steps[i] = int(math.Round(d * grid))
		common = gcd(common, abs(steps[i]))
	}
	common = max(1, common)
	f := Flips{steps: steps, unit: float64(common) / grid}
	for i := range steps {
		steps[i] /= common
		f.span += abs(steps[i])
	}
	return f
}

// P returns the two-sided p-value.
func (f Flips) P() float64 {
	w := f.walked()
	return min(1, 2*w.atLeast(abs(w.sum)))
}

// Above returns the one-sided p-value: how often chance alone gives as large a sum or a larger one.
func (f Flips) Above() float64 {
	w := f.walked()
	return w.atLeast(w.sum)
}

// Below returns the same for as small a sum or a smaller one.
func (f Flips) Below() float64 {
	w := f.walked()
	return w.atLeast(-w.sum)
}

// Look is the result of a sequential test at one of its looks.
type Look struct {
	Tasks  int     `json:"tasks"`  // finished ones
	Spent  float64 `json:"spent"`  // of the error rate, including earlier looks
	Sum    float64 `json:"sum"`    // of the differences: tasks won minus tasks lost
	Stop   float64 `json:"stop"`   // the sum at which it stops, either way; 0: none does
	Result int     `json:"result"` // 1: more than chance above 0, -1: below, 0: neither
}

// Sequential tests at looks, each after a number of tasks, out of a planned total. It ends with the first look
// that finds something, and calls equal configurations different with a probability of at most alpha in all:
// each look gets the share that [Spend] allows, and its stopping sums follow from all ways to flip the signs so
// far that no earlier look has stopped. Looks beyond the existing tasks have not come yet.
func (f Flips) Sequential(looks []int, planned int, alpha float64) []Look {
	var out []Look
	w, spent, at := f.walk(), 0.0, 0
	for _, n := range looks {
		if n <= at || n > len(f.steps) {
			continue
		}
		w.take(f.steps[at:n])
		at = n
		stop, took := w.cut((Spend(float64(n)/float64(planned), alpha) - spent) / 2)
		spent += 2 * took
		look := Look{Tasks: n, Spent: spent, Sum: float64(w.sum) * f.unit}
		if stop <= f.span {
			look.Stop = float64(stop) * f.unit
		}
		if abs(w.sum) >= stop {
			look.Result = w.sum / abs(w.sum)
		}
		if out = append(out, look); look.Result != 0 {
			break
		}
	}
	return out
}

// walk is the distribution of a sum over all ways to flip the signs of its steps.
type walk struct {
	p, next []float64 // of the sums from -span to span
	span    int
	reach   int // no sum is further from 0
	sum     int // the observed one
}

func (f Flips) walk() *walk {
	w := &walk{p: make([]float64, 2*f.span+1), next: make([]float64, 2*f.span+1), span: f.span}
	w.p[f.span] = 1
	return w
}

func (f Flips) walked() *walk {
	w := f.walk()
	w.take(f.steps)
	return w
}

func (w *walk) take(steps []int) {
	for _, step := range steps {
		w.sum += step
		if step = abs(step); step == 0 {
			continue
		}
		was := w.reach
		w.reach += step
		clear(w.next[w.span-w.reach : w.span+w.reach+1])
		for s := w.span - was; s <= w.span+was; s++ {
			half := w.p[s] / 2
			w.next[s-step] += half
			w.next[s+step] += half
		}
		w.p, w.next = w.next, w.p
	}
}

// atLeast returns the probability of at least that sum.
func (w *walk) atLeast(sum int) float64 {
	p := 0.0
	for s := w.reach; s >= max(sum, -w.reach); s-- {
		p += w.p[w.span+s]
	}
	return p
}

// cut removes the ways whose sums are so far out that both sides together have at most twice the mass. It
// returns where that begins, beyond all sums if nowhere, and the mass of one side.
func (w *walk) cut(mass float64) (stop int, took float64) {
	stop = w.span + 1
	for s := w.reach; s > 0 && took+w.p[w.span+s] <= mass*(1+1e-12); s-- {
		if w.p[w.span+s] > 0 {
			took += w.p[w.span+s]
			stop = s
		}
	}
	for s := stop; s <= w.reach; s++ {
		w.p[w.span+s], w.p[w.span-s] = 0, 0
	}
	return stop, took
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func abs(n int) int { return max(n, -n) }
