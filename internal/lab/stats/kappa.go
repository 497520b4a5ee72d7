package stats

import "math"

// Kappa returns Cohen's kappa of two graders who sorted the same things into the same classes: how much more
// they agree than by chance, from counts[by the first][by the second], with its interval for many things
// (Fleiss, Cohen and Everitt 1969). It is not a number if chance alone makes them agree on all, as when both
// use only one class.
func Kappa(counts [][]int, level float64) (kappa float64, in Interval) {
	n, k := 0.0, len(counts)
	rows, columns := make([]float64, k), make([]float64, k)
	for i := range counts {
		for j, c := range counts[i] {
			n += float64(c)
			rows[i] += float64(c)
			columns[j] += float64(c)
		}
	}
	agreed, chance := 0.0, 0.0
	for i := range counts {
		rows[i], columns[i] = rows[i]/n, columns[i]/n
		agreed += float64(counts[i][i]) / n
	}
	for i := range counts {
		chance += rows[i] * columns[i]
	}
	kappa = (agreed - chance) / (1 - chance)
	if chance == 1 || n == 0 {
		return math.NaN(), Interval{-1, 1}
	}
	on, off := 0.0, 0.0
	for i := range counts {
		on += float64(counts[i][i]) / n * square(1-(rows[i]+columns[i])*(1-kappa))
		for j, c := range counts[i] {
			if i != j {
				off += float64(c) / n * square(columns[i]+rows[j])
			}
		}
	}
	variance := (on + square(1-kappa)*off - square(kappa-chance*(1-kappa))) / (n * square(1-chance))
	half := quantile((1+level)/2) * math.Sqrt(max(0, variance))
	return kappa, Interval{max(-1, kappa-half), min(1, kappa+half)}
}

func square(x float64) float64 { return x * x }
