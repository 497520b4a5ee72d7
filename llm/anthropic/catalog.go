package anthropic

import (
	"strconv"
	"strings"

	"github.com/inspan/inspan/llm"
)

// known returns what is known of a model: the row of its longest prefix, and
// nothing for a model that is not there. Every Claude accepts images.
//
// Figures from the model pages (platform.claude.com/docs/en/models) and the
// pricing page (platform.claude.com/docs/en/about-claude/pricing), as of
// 2026-11-21. Cache writes are those that live for five minutes. Sonnet 5.5
// and Haiku 5.5: price changes of 2026-10-07; Haiku 5.5 costs five times as
// much for prompts above 100,000 tokens, which this table does not hold.
func known(id string) llm.Info {
	type row struct {
		prefix            string
		window, maxOutput int
		price             llm.Price
	}
	const m, k200, k128, k64 = 1_000_000, 200_000, 128_000, 64_000
	rows := [...]row{
		{"claude-fable-5-1", m, k128, llm.Price{Input: 10, CacheRead: 0.25, CacheWrite: 12.5, Output: 50}},
		{"claude-fable-5", m, k128, llm.Price{Input: 10, CacheRead: 1, CacheWrite: 12.5, Output: 50}},
		{"claude-opus-5-5", m, k128, llm.Price{Input: 4, CacheRead: 0.2, CacheWrite: 5, Output: 20}},
		{"claude-opus-5", m, k128, llm.Price{Input: 5, CacheRead: 0.5, CacheWrite: 6.25, Output: 25}},
		{"claude-opus-4-8", m, k128, llm.Price{Input: 5, CacheRead: 0.5, CacheWrite: 6.25, Output: 25}},
		{"claude-opus-4-6", m, k128, llm.Price{Input: 5, CacheRead: 0.5, CacheWrite: 6.25, Output: 25}},
		{"claude-sonnet-5-5", m, k128, llm.Price{Input: 2, CacheRead: 0.1, CacheWrite: 2.5, Output: 10}},
		{"claude-sonnet-5", m, k128, llm.Price{Input: 2, CacheRead: 0.2, CacheWrite: 2.5, Output: 10}},
		{"claude-haiku-5-5", m, k128, llm.Price{Input: 0.1, CacheRead: 0.01, CacheWrite: 0.125, Output: 0.5}},
		{"claude-haiku-4-5", k200, k64, llm.Price{Input: 1, CacheRead: 0.1, CacheWrite: 1.25, Output: 5}},
	}
	info := llm.Info{Images: strings.HasPrefix(id, "claude")}
	longest := 0
	for _, r := range rows {
		if len(r.prefix) > longest && isOrDated(id, r.prefix) {
			longest = len(r.prefix)
			info.Window, info.MaxOutput, info.Prices = r.window, r.maxOutput, llm.Prices{r.price}
		}
	}
	return info
}

// isOrDated reports whether id is the model or one of its dated snapshots. A
// further version number makes another model, of which nothing is known.
func isOrDated(id, model string) bool {
	rest, ok := strings.CutPrefix(id, model)
	if !ok || rest == "" {
		return ok
	}
	_, err := strconv.Atoi(rest[1:])
	return err == nil && len(rest) == len("-20260101")
}

// version returns the version number in a Claude id: 4, 6 for
// "claude-opus-4-6-20260101", 3, 7 for "claude-3-7-sonnet". ok is false for
// ids of other vendors or without a number.
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

// bindsThinking reports whether the model ties its thinking to the messages
// before it and must be told to drop what no longer fits, as after a
// compaction, instead of refusing the request
// (platform.claude.com/docs/en/build-with-claude/preserved-thinking, 2026-11).
func bindsThinking(id string) bool { return atLeast(id, 5, 1) }
