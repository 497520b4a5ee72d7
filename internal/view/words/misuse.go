package words

import (
	"fmt"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
)

// Misuse is an error in a person's input. Nothing was done, and the command ends with the exit code for usage.
type Misuse struct{ Err error }

// Error implements [error].
func (m Misuse) Error() string { return m.Err.Error() }

// Unwrap returns the error.
func (m Misuse) Unwrap() error { return m.Err }

// DidYouMean returns the end of an error about want: '; did you mean "NAME"?' with the [text.Nearest] name, or
// "" if none is really near: a beginning of the name, or less than a third different. No suggestion is better
// than a wrong one.
func DidYouMean(want string, names []string) string {
	near := text.Nearest(want, names)
	is, typed := strings.ToLower(near), strings.ToLower(want)
	if near == "" || !strings.HasPrefix(is, typed) && text.Distance(typed, is) > max(1, len(want)/3) {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", near)
}

// Nearly reports whether a word is one of the names except for a typing error.
func Nearly(word string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return text.Distance(strings.ToLower(word), name) <= max(1, len(word)/4)
	})
}

// Near returns at most three names that resemble want: the nearest first, then those that contain it.
func Near(want string, names []string) (near []string) {
	left := slices.Clone(names)
	for len(near) < 3 {
		name := text.Nearest(want, left)
		if name == "" {
			break
		}
		near = append(near, name)
		left = slices.DeleteFunc(left, func(n string) bool { return n == name })
	}
	for _, name := range left {
		if len(near) < 3 && len(want) > 2 && strings.Contains(name, strings.ToLower(want)) {
			near = append(near, name)
		}
	}
	return near
}
