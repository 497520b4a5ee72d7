package anthropic

import (
	"strconv"
	"strings"
)

// version returns the version number in a Claude id: 4, 6 for "claude-opus-4-6-20260101", 3, 7 for
// "claude-3-7-sonnet". ok is false for other vendors' ids and those without a number.
func version(id string) (major, minor int, ok bool) {
	_, rest, found := strings.Cut(id, "claude-")
	if !found {
		return 0, 0, false
	}
	for _, word := range strings.FieldsFunc(rest, func(r rune) bool { return strings.ContainsRune("-@:.", r) }) {
		n, err := strconv.Atoi(word)
		switch {
		case err != nil && ok, err == nil && n > 99:
			return major, minor, ok
		case err != nil:
			continue
		case ok:
			return major, n, true
		}
		major, ok = n, true
	}
	return major, minor, ok
}

// atLeast reports whether id is a Claude of this version or later.
func atLeast(id string, major, minor int) bool {
	a, b, ok := version(id)
	return ok && (a > major || a == major && b >= minor)
}

// bindsThinking reports whether the model ties its thinking to the messages before it and must be told to drop
// thinking that no longer fits, for example after a compaction, instead of refusing the request
// (platform.claude.com/docs/en/build-with-claude/preserved-thinking, 2026-11).
func bindsThinking(id string) bool { return atLeast(id, 5, 1) }

// interleaves reports whether the model thinks between its calls only if asked: the larger models of generation 4,
// before they decided themselves how long to think
// (platform.claude.com/docs/en/build-with-claude/extended-thinking).
func interleaves(id string) bool {
	return atLeast(id, 4, 0) && !atLeast(id, 4, 6) && !strings.Contains(id, "haiku")
}
