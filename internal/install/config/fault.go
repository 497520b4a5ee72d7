package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Fault is one thing that is wrong with a settings file. For people it reads "PATH:LINE: KEY: ...".
type Fault struct {
	Path string
	Line int    // 0: it can't be told
	Key  string // empty: it is about the file, or more than one key
	Err  error  // of whoever checked the setting; it begins with the key, as in "sandbox.memory_mb: ..."
}

// Error implements [error].
func (f Fault) Error() string {
	if f.Line > 0 {
		return fmt.Sprintf("%s:%d: %v", f.Path, f.Line, f.Err)
	}
	return fmt.Sprintf("%s: %v", f.Path, f.Err)
}

// About reports whether the fault is about a setting, or about a table that it stands in.
func (f Fault) About(key string) bool { return f.Key == key || inside(key, f.Key) }

// Unwrap implements the convention of [errors.Unwrap].
func (f Fault) Unwrap() error { return f.Err }

// Faulty says where in the file at path each thing is that is wrong: the errors of those who checked its
// settings, which begin with the key. What is a [Fault] already stays one. Nil: nothing is wrong.
func Faulty(path string, errs ...error) error {
	var lines map[string]int
	var faults []Fault
	for _, err := range single(errs...) {
		fault, located := errors.AsType[Fault](err)
		if !located {
			if lines == nil {
				text, _ := ReadFile(path) // without it no line is told
				lines = keyLines(string(text))
			}
			key, _, _ := strings.Cut(err.Error(), ": ")
			fault = Fault{Path: path, Line: lineOf(lines, key), Key: key, Err: err}
		}
		faults = append(faults, fault)
	}
	slices.SortStableFunc(faults, func(a, b Fault) int { return cmp.Compare(a.Line, b.Line) })
	var out []error
	for _, fault := range faults {
		out = append(out, fault)
	}
	return errors.Join(out...)
}

// Faults are the faults in an error of [Faulty], by their lines. Other errors are left out.
func Faults(err error) (out []Fault) {
	for _, one := range single(err) {
		if fault, ok := errors.AsType[Fault](one); ok {
			out = append(out, fault)
		}
	}
	return out
}

// single takes joined errors apart.
func single(errs ...error) (out []error) {
	for _, err := range errs {
		switch err := any(err).(type) {
		case nil:
		case interface{ Unwrap() []error }:
			out = append(out, single(err.Unwrap()...)...)
		case Error:
			out = append(out, single(err.Err)...)
		case error:
			out = append(out, err)
		}
	}
	return out
}

// inTable puts the key of a table before the errors of its settings.
func inTable(table string, err error) error {
	var out []error
	for _, one := range single(err) {
		out = append(out, fmt.Errorf("%s.%w", table, one))
	}
	return errors.Join(out...)
}

// oneOf returns an error if a value is none of those that a setting can have; empty stands for the default.
func oneOf(key, value string, values ...string) error {
	for _, v := range append(values, "") {
		if v == value {
			return nil
		}
	}
	return fmt.Errorf("%s: unknown value %q; use %s%s", key, value, strings.Join(values, ", "), didYouMean(value, values))
}
