package stats

import "math"

// Design is a comparison before it is run.
//
// The model: a trial of one configuration and a trial of the other end differently on a share of the tasks,
// Disagree, by chance alone as well as by the effect; tries of a task are independent given the task; the
// effect, in shares of tasks that pass, differs between tasks with the standard deviation Spread. A real effect
// moves trials from lost to won and does not make more of them differ, unless it is larger than Disagree. The
// tests are those of [Flips]. For single tries the power is exact; for repeats the sum over tasks is assumed
// normal, which overestimates it for fewer than [FewTasks].
type Design struct {
	Tasks    int     `json:"tasks"`
	Tries    int     `json:"tries"`    // of each task under each configuration
	Disagree float64 `json:"disagree"` // 0.2 if unknown: typical of agents on public suites
	Spread   float64 `json:"spread"`   // of the effect between tasks; 0: it is the same for all
	Alpha    float64 `json:"alpha"`    // chance to call equal ones different
	Looks    int     `json:"looks"`    // equally spaced, see [Flips.Sequential]; 0 and 1: only at the end
	OneSided bool    `json:"one_sided"`
	// Worst says that the distribution of the effect over tasks is unknown: the power is that of the worst of
	// [Shapes].
	Worst bool `json:"worst,omitempty"`
}

// Shape is the distribution of an effect over the tasks: a part of them has all of it, evenly.
type Shape struct {
	Name string  // for people
	Part float64 // of the tasks
}

// Shapes returns the shapes of which a design reports the worst.
func Shapes() []Shape {
	return []Shape{{"in all tasks alike", 1}, {"in half of the tasks", 0.5}, {"in a fifth of the tasks", 0.2}}
}

// WorstShape returns the shape in which an effect is found least often.
func (d Design) WorstShape(effect float64) Shape {
	worst, least := Shape{}, 2.0
	for _, s := range Shapes() {
		if found := d.shaped(s, effect).plain(math.Abs(effect)); found < least-1e-9 {
			worst, least = s, found
		}
	}
	return worst
}

// shaped returns the design for an effect of a shape. An effect can't be larger than one in a task, so a large
// one is in more of them.
func (d Design) shaped(s Shape, effect float64) Design {
	effect = math.Abs(effect)
	part := max(s.Part, effect)
	if part >= 1 {
		return d
	}
	each := effect / part
	d.Disagree = part*max(d.Disagree, each) + (1-part)*d.Disagree
	d.Spread = math.Hypot(d.Spread, each*math.Sqrt(part*(1-part)))
	return d
}

// Fewest returns how many tasks the test needs to find anything: with fewer, not even winning all of them is
// more than chance.
func (d Design) Fewest() int {
	return max(1, int(math.Ceil(math.Log2(2/d.alpha())-1e-12)))
}

// FewTasks is the minimum number of tasks for the power of repeats to be right within 3 points.
const FewTasks = 50

// Power returns the chance that the comparison finds an effect, in shares of tasks that pass.
func (d Design) Power(effect float64) float64 {
	found := d.once(effect)
	return max(0, found-d.price(found))
}

// once returns the power with one look, at the end.
func (d Design) once(effect float64) float64 {
	effect = math.Abs(effect)
	if d.Worst {
		d = d.shaped(d.WorstShape(effect), effect)
	}
	return d.plain(effect)
}

// plain is once for an effect with the design's own distribution.
func (d Design) plain(effect float64) float64 {
	switch {
	case d.Tasks < d.Fewest() || d.Tries < 1:
		return 0
	case d.Tries == 1:
		return min(1, d.single(effect))
	}
	return min(1, d.repeated(effect))
}

// price returns the power that early looks cost: as much as for a normal sum.
func (d Design) price(found float64) float64 {
	if d.Looks < 2 || found <= 0 || found >= 1 {
		return 0
	}
	drift := quantile(found) + quantile(1-d.alpha()/2)
	_, often := boundaries(d.Looks, d.alpha(), drift)
	return max(0, found-often)
}

// needed returns the power with one look that leaves power with all looks.
func (d Design) needed(power float64) float64 {
	return power + d.price(power+d.price(power))
}

// alpha returns the error rate of a two-sided test with the same boundary.
func (d Design) alpha() float64 {
	if d.OneSided {
		return 2 * d.Alpha
	}
	return d.Alpha
}

// single returns the power of the exact test for single tries, over all numbers of tasks that may end
// differently.
func (d Design) single(effect float64) float64 {
	differ := max(d.Disagree, effect)
	wins := (differ + effect) / 2
	found := 0.0
	for n := range d.Tasks + 1 {
		p := binomialPoint(n, d.Tasks, differ)
		if p < 1e-12 {
			continue
		}
		few := fewest(n, d.alpha()/2)
		if few > n {
			continue
		}
		found += p * (1 - binomialTail(few-1, n, wins/differ))
		if !d.OneSided {
			found += p * binomialTail(n-few, n, wins/differ)
		}
	}
	return found
}

// fewest returns how many of n tasks that ended differently one side must win; more than n: no number is
// enough.
func fewest(n int, tail float64) int {
	if math.Pow(0.5, float64(n)) > tail {
		return n + 1
	}
	low, high := n/2, n
	for low < high {
		k := (low + high) / 2
		if binomialTail(n-k, n, 0.5) <= tail {
			high = k
		} else {
			low = k + 1
		}
	}
	return low
}

func binomialPoint(k, n int, p float64) float64 {
	return binomialTail(k, n, p) - binomialTail(k-1, n, p)
}

// repeated returns the power if the sum over tasks is nearly normal. The boundary of a test by sign flips
// depends on the squares of the differences, so the effect widens it.
func (d Design) repeated(effect float64) float64 {
	differ := max(d.Disagree, effect)
	within := max(0, differ-effect*effect-d.Spread*d.Spread) / float64(d.Tries)
	spread := math.Sqrt(within + d.Spread*d.Spread)
	if spread == 0 {
		return 1
	}
	root := math.Sqrt(float64(d.Tasks))
	bound := quantile(1-d.alpha()/2) * math.Sqrt(spread*spread+effect*effect)
	found := phi((effect*root - bound) / spread)
	if !d.OneSided {
		found += phi((-effect*root - bound) / spread)
	}
	return found
}

// Detectable returns the smallest effect that the comparison finds with a power; 0 if it finds none so often,
// however large it is.
func (d Design) Detectable(power float64) float64 {
	low, high, needed := 0.0, 1.0, d.needed(power)
	if d.once(high) < needed {
		return 0
	}
	for range 24 {
		if mid := (low + high) / 2; d.once(mid) < needed {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// mostTasks is the limit of [Design.TasksFor].
const mostTasks = 100_000

// TasksFor returns how many tasks are needed to find an effect with a power; 0 if that is more than 100,000.
func (d Design) TasksFor(effect, power float64) int {
	low, high, needed := 1, 1, d.needed(power)
	for d.Tasks = high; d.once(effect) < needed; d.Tasks = high {
		if low, high = high, high*2; high > mostTasks {
			return 0
		}
	}
	for low < high {
		if d.Tasks = (low + high) / 2; d.once(effect) < needed {
			low = d.Tasks + 1
		} else {
			high = d.Tasks
		}
	}
	return high
}
