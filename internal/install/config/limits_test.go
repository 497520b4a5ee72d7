package config_test

import (
	"testing"

	"github.com/inspan/inspan/internal/install/config"
)

func TestLesser(t *testing.T) {
	for _, tc := range [][3]float64{{0, 0, 0}, {0, 2, 2}, {3, 0, 3}, {3, 2, 2}, {2, 3, 2}, {-1, 0, -1}, {-1, 2, 2}} {
		if got := config.Lesser(tc[0], tc[1]); got != tc[2] {
			t.Errorf("Lesser(%v, %v) = %v, want %v", tc[0], tc[1], got, tc[2])
		}
	}
}
