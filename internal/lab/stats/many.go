package stats

import (
	"cmp"
	"slices"
)

// Holm corrects the p-values of several comparisons, so that the chance to call any equal one different stays
// that of one (Holm 1979). They keep their order.
func Holm(ps []float64) []float64 {
	out, most := make([]float64, len(ps)), 0.0
	for rank, i := range ranked(ps) {
		most = max(most, min(1, ps[i]*float64(len(ps)-rank)))
		out[i] = most
	}
	return out
}

// FalseDiscoveries corrects p-values so that of all that are called different, the share of equal ones is
// bounded on average (Benjamini and Hochberg 1995). That suits a choice of candidates to try further, but not a
// decision.
func FalseDiscoveries(ps []float64) []float64 {
	out, least := make([]float64, len(ps)), 1.0
	order := ranked(ps)
	for rank := len(ps) - 1; rank >= 0; rank-- {
		i := order[rank]
		least = min(least, ps[i]*float64(len(ps))/float64(rank+1))
		out[i] = least
	}
	return out
}

// ranked returns the indexes of values, smallest value first.
func ranked(values []float64) []int {
	order := All(len(values))
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	return order
}

// Share returns how much of an error rate the j-th test of an unknown number gets, from 1: all of them together
// get no more than all of it.
func Share(j int) float64 { return 1 / float64(j*(j+1)) }
