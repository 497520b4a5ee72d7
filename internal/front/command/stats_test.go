package command

import "testing"

// TestPercentile holds that a percentile is one of the values, by the nearest rank.
func TestPercentile(t *testing.T) {
	var hundred []int64
	for i := range int64(100) {
		hundred = append(hundred, i+1)
	}
	for _, tc := range []struct {
		of   []int64
		p    int
		want int64
	}{
		{nil, 50, 0},
		{[]int64{7}, 50, 7},
		{[]int64{7}, 99, 7},
		{[]int64{1, 2, 3, 4}, 50, 2},
		{[]int64{1, 2, 3, 4, 5}, 50, 3},
		{[]int64{1, 2, 3}, 95, 3},
		{hundred, 50, 50},
		{hundred, 95, 95},
		{hundred, 99, 99},
		{hundred[:20], 95, 19},
	} {
		if got := percentile(tc.of, tc.p); got != tc.want {
			t.Errorf("the %dth percentile of %d values is %d, wanted %d", tc.p, len(tc.of), got, tc.want)
		}
	}
}
