package command

import (
	"cmp"
	"errors"
	"math"
	"strconv"
)

const dollarsType = "dollars"

// dollars is a flag of the most that something may cost, which has an end. 0 says that there is no
// limit, whatever is set elsewhere: as in [inspan.Agent], that is a negative one.
type dollars float64

// String implements pflag.Value.
func (d *dollars) String() string { return strconv.FormatFloat(max(float64(*d), 0), 'g', -1, 64) }

// Type implements pflag.Value.
func (d *dollars) Type() string { return dollarsType }

// Set implements pflag.Value.
func (d *dollars) Set(text string) error {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v < 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return errors.New("not an amount of money")
	}
	*d = dollars(cmp.Or(v, -1))
	return nil
}
