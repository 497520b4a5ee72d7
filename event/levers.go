package event

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Levers are aids for the model, beyond running its calls. Each can be switched, and its effect compared: the
// Opened of a session holds the values in use. The zero value of a lever is its default.
type Levers struct {
	// gate at the end: files changed after the last command that checked them; unattended
	Verify Lever `json:"verify,omitempty" toml:"verify"`
	Todo   Lever `json:"todo,omitempty" toml:"todo"` // gate at the end: open items of the todo list; unattended
	// lines on what is left of turns, time, money and tokens; unattended
	Budget Lever `json:"budget,omitempty" toml:"budget"`
	// a final answer while jobs run is not the end, and ends of jobs are told; on, or the seconds that an unattended run waits for them, 300
	Jobs Lever `json:"jobs,omitempty" toml:"jobs" strength:"seconds"`
	// results and messages of other agents come only as far as the window has room; on
	Arrivals Lever `json:"arrivals,omitempty" toml:"arrivals"`
	// planning and verifying with more reasoning than the steps in between; unattended
	Effort Lever `json:"effort,omitempty" toml:"effort"`
	// facts about the machine and the folder are in the prompt; most tokens, 260
	Bootstrap Lever `json:"bootstrap,omitempty" toml:"bootstrap"`
	// names of tools and arguments that models are used to are accepted; on
	Names Lever `json:"names,omitempty" toml:"names"`
	// rare tools are found by tool_search and not described in each request; on
	Deferred Lever `json:"deferred,omitempty" toml:"deferred"`
	// one script in place of many calls: the tool script; off
	Script  Lever `json:"script,omitempty" toml:"script"`
	Repeats Lever `json:"repeats,omitempty" toml:"repeats"` // equal results of one call after which the run stops as stuck; 5
}

// Lever is the setting of one lever: "default" or empty, "off", "on", "unattended" (only if no one can answer), or
// its strength as a number.
type Lever string

// Values of a lever other than its strength.
const (
	leverDefault    Lever = "default"
	leverOff        Lever = "off"
	leverOn         Lever = "on"
	leverUnattended Lever = "unattended" // on if no person can answer
)

// usualLevers returns the default of each lever.
func usualLevers() Levers {
	return Levers{
		Verify: leverUnattended, Todo: leverUnattended, Budget: leverUnattended, Jobs: leverOn, Arrivals: leverOn, Effort: leverUnattended,
		Bootstrap: "260", Names: leverOn, Deferred: leverOn, Script: leverOff, Repeats: "5",
	}
}

// Stated returns the levers with each default written out.
func (l Levers) Stated() Levers {
	given, usual := reflect.ValueOf(&l).Elem(), reflect.ValueOf(usualLevers())
	for i := range given.NumField() {
		if v := Lever(given.Field(i).String()); v == "" || v == leverDefault || v == leverOn && number(Lever(usual.Field(i).String())) > 0 {
			given.Field(i).Set(usual.Field(i))
		}
	}
	return l
}

// Check returns an error for invalid values.
func (l Levers) Check() error {
	given, usual := reflect.ValueOf(l), reflect.ValueOf(usualLevers())
	var errs []error
	for i := range given.NumField() {
		v, strong := Lever(given.Field(i).String()), number(Lever(usual.Field(i).String())) > 0
		values := []Lever{leverDefault, leverOff, leverOn, leverUnattended}
		if strong {
			values = values[:3]
		}
		strong = strong || given.Type().Field(i).Tag.Get("strength") != ""
		if v == "" || slices.Contains(values, v) || strong && number(v) > 0 {
			continue
		}
		var names []string
		for _, value := range values {
			names = append(names, string(value))
		}
		want := strings.Join(names, ", ")
		if strong {
			want += " or a number above 0"
		}
		errs = append(errs, fmt.Errorf("%s: unknown value %q; use %s", given.Type().Field(i).Tag.Get("toml"), v, want))
	}
	return errors.Join(errs...)
}

// Active reports whether the lever is on. Unattended means that no one can answer. A lever without a value, as in
// logs of versions that lacked it, is off.
func (l Lever) Active(unattended bool) bool {
	return l == leverOn || number(l) > 0 || l == leverUnattended && unattended
}

// Strength returns the number that the lever is set to, or otherwise if it is not a number.
func (l Lever) Strength(otherwise int) int {
	if n := number(l); n > 0 {
		return n
	}
	return otherwise
}

func number(l Lever) int {
	n, err := strconv.Atoi(string(l))
	if err != nil || n < 0 {
		return 0
	}
	return n
}
