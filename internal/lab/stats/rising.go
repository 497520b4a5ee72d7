package stats

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// Rising returns the evidence that failures are more frequent in one arm of a running trial, which gets a share
// of all cases at random. If both arms fail alike, however often and however that changes with time, each
// failure falls into the arm with the probability of its share. The evidence compares that with larger
// probabilities, all equally likely at first.
//
// It may be checked after each failure: if both arms are alike, the chance that it ever reaches 1/alpha is at most
// alpha (Ville 1939; Robbins 1970, a mixture of likelihood ratios), so it holds at any time and needs no plan, but
// takes more cases than [Flips.Sequential].
func Rising(inArm, all int, share float64) (evidence float64) {
	if share <= 0 || share >= 1 || inArm > all {
		return 0
	}
	a, b := float64(inArm+1), float64(all-inArm+1)
	above := mathext.RegIncBeta(b, a, 1-share) // of what is likely after them, the part above the share
	if above == 0 {
		return 0
	}
	log := lbeta(a, b) + math.Log(above) - math.Log(1-share)
	return math.Exp(log - float64(inArm)*math.Log(share) - float64(all-inArm)*math.Log1p(-share))
}

func lbeta(a, b float64) float64 {
	x, _ := math.Lgamma(a)
	y, _ := math.Lgamma(b)
	z, _ := math.Lgamma(a + b)
	return x + y - z
}
