package main

import (
	"errors"
	"math"
	"strconv"
)

// dollars is a flag of an amount of money, which has an end.
type dollars float64

// String implements pflag.Value.
func (d *dollars) String() string { return strconv.FormatFloat(float64(*d), 'g', -1, 64) }

// Type implements pflag.Value.
func (d *dollars) Type() string { return "dollars" }

// Set implements pflag.Value.
func (d *dollars) Set(text string) error {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v < 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return errors.New("it is not an amount of dollars; 0 means no limit")
	}
	*d = dollars(v)
	return nil
}
