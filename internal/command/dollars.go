package command

import (
	"errors"
	"math"
	"strconv"
)

const dollarsType = "dollars"

// ceiling is a flag of dollars that a session may cost, of which 0 says that there is no limit, whatever
// the settings say: as in [inspan.Agent], that is a negative one.
type ceiling float64

// String implements pflag.Value.
func (c *ceiling) String() string { return strconv.FormatFloat(max(float64(*c), 0), 'g', -1, 64) }

// Type implements pflag.Value.
func (c *ceiling) Type() string { return dollarsType }

// Set implements pflag.Value.
func (c *ceiling) Set(text string) error {
	err := (*dollars)(c).Set(text)
	if err == nil && *c == 0 {
		*c = -1
	}
	return err
}

// dollars is a flag of an amount of money, which has an end.
type dollars float64

// String implements pflag.Value.
func (d *dollars) String() string { return strconv.FormatFloat(float64(*d), 'g', -1, 64) }

// Type implements pflag.Value.
func (d *dollars) Type() string { return dollarsType }

// Set implements pflag.Value.
func (d *dollars) Set(text string) error {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v < 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return errors.New("not an amount of money")
	}
	*d = dollars(v)
	return nil
}
