package command

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/spf13/pflag"
)

// bounded is a flag whose number lies between two bounds. Nothing else is one: neither NaN nor
// infinity, which pflag's own takes.
type bounded[N int | float64] struct {
	at          *N
	least, most N
	parse       func(string) (N, error)
}

// String implements pflag.Value.
func (b *bounded[N]) String() string {
	if b.at == nil { // pflag asks a zero value
		return ""
	}
	return fmt.Sprint(*b.at)
}

// Type implements pflag.Value.
func (b *bounded[N]) Type() string { return "number" }

// Set implements pflag.Value.
func (b *bounded[N]) Set(s string) error {
	n, err := b.parse(s)
	if err != nil || math.IsNaN(float64(n)) || n < b.least || n > b.most {
		return errors.New("it needs " + b.needs())
	}
	*b.at = n
	return nil
}

// needs says what the flag takes.
func (b *bounded[N]) needs() string {
	kind, plain := "a whole number", func(n N) string { return strconv.FormatFloat(float64(n), 'f', -1, 64) }
	if _, real := any(b.least).(float64); real {
		kind = "a number"
	}
	return fmt.Sprintf("%s from %s to %s", kind, plain(b.least), plain(b.most))
}

// numberFlag adds a flag for a number with its default and its bounds.
func numberFlag(fl *pflag.FlagSet, at *float64, name string, usual, least, most float64, usage string) {
	*at = usual
	parse := func(s string) (float64, error) { return strconv.ParseFloat(s, 64) }
	fl.Var(&bounded[float64]{at, least, most, parse}, name, usage)
}

// countFlag adds a flag for a whole number of at least 1.
func countFlag(fl *pflag.FlagSet, at *int, name string, usual, most int, usage string) {
	*at = usual
	fl.Var(&bounded[int]{at, 1, most, strconv.Atoi}, name, usage)
}

// rateFlag adds a flag for a rate or a share that is neither none nor all.
func rateFlag(fl *pflag.FlagSet, at *float64, name string, usual float64, usage string) {
	const leastRate = 1e-6
	numberFlag(fl, at, name, usual, leastRate, 1-leastRate, usage)
}
