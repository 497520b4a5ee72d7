package text

import (
	"strconv"
	"strings"
)

// Lines is a range of lines in a file: the first one, counted from 1, and how many.
type Lines struct{ First, Count int }

// Hunk parses the head of a hunk in a unified diff, "@@ -1,2 +3,4 @@": its lines in the old and in the new file. It
// returns false for any other line.
func Hunk(line string) (old, fresh Lines, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 4 || fields[0] != "@@" || fields[3] != "@@" {
		return old, fresh, false
	}
	old, okOld := lineRange(fields[1], "-")
	fresh, okNew := lineRange(fields[2], "+")
	return old, fresh, okOld && okNew
}

func lineRange(field, sign string) (l Lines, ok bool) {
	rest, ok := strings.CutPrefix(field, sign)
	first, second, two := strings.Cut(rest, ",")
	start, err := strconv.Atoi(first)
	count := 1
	if two && err == nil {
		count, err = strconv.Atoi(second)
	}
	const most = 1 << 40 // larger ones are not line numbers
	return Lines{start, count}, ok && err == nil && start >= 0 && count >= 0 && start < most && count < most
}
