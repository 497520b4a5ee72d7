package stats

import "math"

// Spend returns how much of an error rate may be used up when a share of the planned tasks has ended: the
// function of Lan and DeMets (1983) that resembles the boundaries of O'Brien and Fleming, alpha/2 on each side.
// Early looks get little, so the last keeps nearly all.
func Spend(share, alpha float64) float64 {
	switch {
	case share <= 0:
		return 0
	case share >= 1:
		return alpha
	}
	return 4 * phi(quantile(alpha/4)/math.Sqrt(share))
}

// Looks divides a number of tasks into equal parts: the tasks that have ended at each look.
func Looks(tasks, looks int) []int {
	out := make([]int, max(1, looks))
	for i := range out {
		out[i] = int(math.Round(float64(tasks) * float64(i+1) / float64(len(out))))
	}
	return out
}

// boundaries returns the standardised sums at which equally spaced looks stop, for many tasks, and the chance
// that one of them is reached if the last look's expected sum is drift. They follow from the density of the
// continuing sums, step by step (Armitage, McPherson and Rowe 1969).
func boundaries(looks int, alpha, drift float64) (stops []float64, power float64) {
	null, real := brownian{}, brownian{drift: drift}
	spent := 0.0
	for i := range looks {
		share := float64(i+1) / float64(looks)
		null.step(share)
		real.step(share)
		stop := null.outside((Spend(share, alpha) - spent) / 2)
		spent = Spend(share, alpha)
		power += real.above(stop) + real.below(-stop)
		null.keep(stop)
		real.keep(stop)
		stops = append(stops, stop/math.Sqrt(share))
	}
	return stops, power
}

// brownian is the density of a sum on a grid, as far as no look has stopped it.
type brownian struct {
	drift, share float64
	mass         []float64 // at the places from -reach to reach
	begun        bool
}

const (
	reach  = 8.0
	places = 801
	width  = 2 * reach / (places - 1)
)

func at(i int) float64 { return -reach + float64(i)*width }

// step moves to the look at a share of the tasks.
func (b *brownian) step(share float64) {
	spread := math.Sqrt(share - b.share)
	moved := b.drift * (share - b.share)
	kernel := func(x float64) float64 { // the chance of one place after a step by x
		return phi((x+width/2-moved)/spread) - phi((x-width/2-moved)/spread)
	}
	next := make([]float64, places)
	if !b.begun {
		for i := range next {
			next[i] = kernel(at(i))
		}
	} else {
		far := min(places-1, int((7*spread+math.Abs(moved))/width)) // beyond that there is nothing to add
		steps := make([]float64, 2*far+1)
		for i := range steps {
			steps[i] = kernel(float64(i-far) * width)
		}
		for from, mass := range b.mass {
			if mass < 1e-14 {
				continue
			}
			for to := max(0, from-far); to <= min(places-1, from+far); to++ {
				next[to] += mass * steps[to-from+far]
			}
		}
	}
	b.mass, b.share, b.begun = next, share, true
}

// outside returns the place above which the given mass is.
func (b *brownian) outside(mass float64) float64 {
	sum := 0.0
	for i := places - 1; i >= 0; i-- {
		if sum+b.mass[i] > mass {
			return at(i) + width/2 - (mass-sum)/b.mass[i]*width
		}
		sum += b.mass[i]
	}
	return -reach
}

func (b *brownian) above(x float64) float64 {
	sum := 0.0
	for i, mass := range b.mass {
		sum += mass * min(1, max(0, (at(i)+width/2-x)/width))
	}
	return sum
}

func (b *brownian) below(x float64) float64 {
	sum := 0.0
	for i, mass := range b.mass {
		sum += mass * min(1, max(0, (x-at(i)+width/2)/width))
	}
	return sum
}

// keep removes the mass outside of the two boundaries.
func (b *brownian) keep(stop float64) {
	for i := range b.mass {
		inside := (min(stop, at(i)+width/2) - max(-stop, at(i)-width/2)) / width
		b.mass[i] *= max(0, inside)
	}
}
