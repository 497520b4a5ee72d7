package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Fault is an error in a settings file. For people it reads "PATH:LINE: KEY: ...".
type Fault struct {
	Path string
	Line int    // 0 means unknown
	Key  string // empty means it concerns the file, or more than one key
	Err  error  // of the check; it begins with the key, as in "sandbox.memory_mb: ..."
}

// Error implements [error].
func (f Fault) Error() string {
	if f.Line > 0 {
		return fmt.Sprintf("%s:%d: %v", f.Path, f.Line, f.Err)
	}
	return fmt.Sprintf("%s: %v", f.Path, f.Err)
}

// About reports whether the fault concerns a setting, or a table that contains it.
func (f Fault) About(key string) bool { return f.Key == key || inside(key, f.Key) }

// Unwrap implements the convention of [errors.Unwrap].
func (f Fault) Unwrap() error { return f.Err }

// Faulty adds to errors, which begin with a key, their lines in the file at path. A [Fault] is unchanged. Nil means
// no errors.
func Faulty(path string, errs ...error) error {
	var lines map[string]int
	var faults []Fault
	for _, err := range single(errs...) {
		fault, located := errors.AsType[Fault](err)
		if !located {
			if lines == nil {
				text, _ := ReadFile(path) // an unreadable file gives no lines
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

// Faults returns the faults in an error of [Faulty], sorted by line. Other errors are left out.
func Faults(err error) (out []Fault) {
	for _, one := range single(err) {
		if fault, ok := errors.AsType[Fault](one); ok {
			out = append(out, fault)
		}
	}
	return out
}

// single splits joined errors.
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

// inTable prefixes the errors of settings with the key of their table.
func inTable(table string, err error) error {
	var out []error
	for _, one := range single(err) {
		out = append(out, fmt.Errorf("%s.%w", table, one))
	}
	return errors.Join(out...)
}

// oneOf returns an error if a value is not one of the allowed ones; empty means the default.
func oneOf(key, value string, values ...string) error {
	for _, v := range append(values, "") {
		if v == value {
			return nil
		}
	}
	return fmt.Errorf("%s: unknown value %q; use %s%s", key, value, strings.Join(values, ", "), didYouMean(value, values))
}
