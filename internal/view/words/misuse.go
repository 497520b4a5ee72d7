package words

import (
	"fmt"
	"slices"
	"strings"

	"github.com/inspan/inspan/tool"
)

// Misuse is an error of the person who typed something: what they typed can't be, and nothing was
// done. Commands end with the exit code for usage.
type Misuse struct{ Err error }

// Error implements [error].
func (m Misuse) Error() string { return m.Err.Error() }

// Unwrap implements the convention of [errors.Unwrap].
func (m Misuse) Unwrap() error { return m.Err }

// DidYouMean is what an error about want says at its end: '; did you mean "NAME"?' with the
// [tool.Nearest] of the names, or nothing if none is really near: what is typed begins it, or differs
// in less than a third. A person is rather told nothing than something else.
func DidYouMean(want string, names []string) string {
	near := tool.Nearest(want, names)
	is, typed := strings.ToLower(near), strings.ToLower(want)
	if near == "" || !strings.HasPrefix(is, typed) && tool.Distance(typed, is) > max(1, len(want)/3) {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", near)
}

// Nearly reports whether a word is one of the names but for a slip of the fingers.
func Nearly(word string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return tool.Distance(strings.ToLower(word), name) <= max(1, len(word)/4)
	})
}

// Near are the names that look most like want, the nearest first, and then those that contain it;
// three at most.
func Near(want string, names []string) (near []string) {
	left := slices.Clone(names)
	for len(near) < 3 {
		name := tool.Nearest(want, left)
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
