// Package stats has the statistics of comparisons: how large a difference a number of tasks can show, whether
// an observed one is more than chance, and how sure an estimate is. It only computes; the caller supplies the
// source of randomness.
//
// The unit is the task: trials of one task resemble each other, so intervals and tests draw, flip and count whole
// tasks. docs/decisions/051-evaluation.md gives the reason why each method was chosen.
package stats

import "math"

// Interval is the range of a figure, at the level that the caller asked for. A bound that does not follow from
// the data is infinite.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Holds reports whether a value is in the interval, including its bounds.
func (i Interval) Holds(x float64) bool { return i.Low <= x && x <= i.High }

// Source is a source of random numbers, such as a seeded rand.PCG: the same seed, the same figures.
type Source interface{ Uint64() uint64 }

// below returns a number from 0 to n-1. Its bias is below n in 2^53.
func below(src Source, n int) int { return int(unit(src) * float64(n)) }

// unit returns a number of at least 0 and below 1.
func unit(src Source) float64 { return float64(src.Uint64()>>11) / (1 << 53) }

// phi is the distribution function of the standard normal distribution.
func phi(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }

// quantile is the inverse of phi.
func quantile(p float64) float64 { return -math.Sqrt2 * math.Erfcinv(2*p) }
