package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// Bootstrap returns the interval of a figure over n tasks: the figure is computed again for draws of n of them,
// with replacement, and whole tasks are drawn, so that all trials of a task stay together. It cuts off a little
// less than the percentiles of its level, as percentiles alone are too narrow with few tasks (Hesterberg 2015,
// "expanded percentile interval"). Draws for which of is not a number are omitted; if most are, nothing is
// known about the figure.
func Bootstrap(n, draws int, level float64, src Source, of func(tasks []int) float64) Interval {
	unknown := Interval{math.Inf(-1), math.Inf(1)}
	if n < 2 {
		return unknown
	}
	values, tasks := make([]float64, 0, draws), make([]int, n)
	for range draws {
		for i := range tasks {
			tasks[i] = below(src, n)
		}
		if v := of(tasks); !math.IsNaN(v) {
			values = append(values, v)
		}
	}
	if 2*len(values) < draws {
		return unknown
	}
	slices.Sort(values)
	tail := expanded((1-level)/2, n)
	return Interval{percentile(values, tail), percentile(values, 1-tail)}
}

// Unseen widens the interval of a mean over n tasks, of values between two bounds, if it has no width because
// all tasks have the same value. Other tasks may have another value: as many as could hide from n draws. The
// interval of a difference then excludes 0 only if an exact test of it is sure.
func (i Interval) Unseen(n int, level, least, most float64) Interval {
	if i.Low != i.High {
		return i
	}
	hidden := ClopperPearson(0, n, level).High
	return Interval{i.Low - hidden*(i.Low-least), i.High + hidden*(most-i.High)}
}

// expanded returns the tail to cut off for the nominal one.
func expanded(tail float64, n int) float64 {
	nu := float64(n - 1)
	x := mathext.InvRegIncBeta(nu/2, 0.5, 2*tail)
	t := math.Sqrt(nu * (1 - x) / x) // Student's t, because its square is a ratio of these
	return phi(-t * math.Sqrt(float64(n)/nu))
}

// percentile returns a percentile of sorted values, interpolated.
func percentile(sorted []float64, p float64) float64 {
	at := p * float64(len(sorted)-1)
	low := int(at)
	if high := low + 1; high < len(sorted) && at > float64(low) && sorted[low] != sorted[high] {
		return sorted[low] + (sorted[high]-sorted[low])*(at-float64(low))
	}
	return sorted[low]
}

// Median returns the median of one or more values.
func Median(values []float64) float64 {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return percentile(sorted, 0.5)
}

// Mean returns the mean of values; not a number without any.
func Mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// Ratio returns a figure for [Bootstrap]: the sum of parts over the sum of wholes, such as dollars for each
// success. Without successes it is infinite, and without parts too it is not a number.
func Ratio(parts, wholes []float64) func(tasks []int) float64 {
	return func(tasks []int) float64 {
		part, whole := 0.0, 0.0
		for _, t := range tasks {
			part += parts[t]
			whole += wholes[t]
		}
		return part / whole
	}
}

// All returns the numbers of n tasks, each once.
func All(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
