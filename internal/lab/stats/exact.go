package stats

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// McNemar returns the exact two-sided p-value of McNemar's test: whether, of the tasks on which two
// configurations ended differently, more than chance were won by one of them. It is 1 without any.
func McNemar(won, lost int) float64 {
	n, k := won+lost, min(won, lost)
	if n == 0 || won == lost {
		return 1
	}
	return min(1, 2*binomialTail(k, n, 0.5))
}

// binomialTail returns the probability of at most k of n, each with the probability p.
func binomialTail(k, n int, p float64) float64 {
	if k >= n {
		return 1
	}
	if k < 0 {
		return 0
	}
	return mathext.RegIncBeta(float64(n-k), float64(k+1), 1-p)
}

// Wilson returns the interval of a share, k of n that are independent, by Wilson (1927): right on average also
// for few and for shares near 0 and 1. Without any it is all from 0 to 1.
func Wilson(k, n int, level float64) Interval {
	if n == 0 {
		return Interval{0, 1}
	}
	z, m, p := quantile((1+level)/2), float64(n), float64(k)/float64(n)
	middle := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	i := Interval{max(0, middle-half), min(1, middle+half)}
	if k == 0 {
		i.Low = 0
	}
	if k == n {
		i.High = 1
	}
	return i
}

// ClopperPearson returns an interval of a share that contains the true one at least as often as its level says,
// whatever that is. It is wider than [Wilson].
func ClopperPearson(k, n int, level float64) Interval {
	i, tail := Interval{0, 1}, (1-level)/2
	if k > 0 {
		i.Low = mathext.InvRegIncBeta(float64(k), float64(n-k+1), tail)
	}
	if k < n {
		i.High = mathext.InvRegIncBeta(float64(k+1), float64(n-k), 1-tail)
	}
	return i
}

// PassAtK estimates the chance that at least one of k tries passes, from c of n that did, without
// bias (Chen and others, 2021). It is not a number if fewer than k were made.
func PassAtK(n, c, k int) float64 { return 1 - PassHatK(n, n-c, k) }

// PassHatK estimates the chance that all of k tries pass, from c of n that did, without bias (Yao
// and others, 2024). It is not a number if fewer than k were made.
func PassHatK(n, c, k int) float64 {
	if k < 1 || n < k {
		return math.NaN()
	}
	all := 1.0
	for i := range k { // C(c,k)/C(n,k), without the large numbers
		all *= float64(max(0, c-i)) / float64(n-i)
	}
	return all
}
