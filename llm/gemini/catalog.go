package gemini

import (
	"strconv"
	"strings"

	"github.com/inspan/inspan/llm"
)

// known returns what is known of a model, and nothing for one that is not in
// the table. Every Gemini accepts images.
//
// Figures from the model and pricing pages (ai.google.dev/gemini-api/docs/models
// and /pricing), as of 2026-11-21. Some prices have an end: gemini-4-argon costs
// twice as much from 2026-12-01, gemini-3.6-flash to 3.8-flash from 2027-01-01.
// The Pro models before 4 cost twice as much, and 1.5 times as much for output,
// for prompts above 200,000 tokens, which this table does not hold. Writing to the
// cache costs nothing beyond the prompt. The window of Gemini 4 is shared by
// prompt and reply.
func known(id string) llm.Info {
	type row struct {
		model                    string
		input, cacheRead, output float64
	}
	const window, maxOutput = 1_048_576, 65_536
	rows := [...]row{
		{"gemini-4-argon", 2, 0.1, 10},
		{"gemini-3.8-flash", 0.75, 0.075, 3.75},
		{"gemini-3.7-flash", 0.75, 0.075, 3.75},
		{"gemini-3.6-flash", 0.75, 0.075, 3.75},
		{"gemini-3.5-flash", 1.5, 0.15, 9},
		{"gemini-3.5-flash-lite", 0.3, 0.03, 2.5},
		{"gemini-3.1-pro", 2, 0.2, 12},
		{"gemini-3.1-flash-lite", 0.25, 0.025, 1.5},
		{"gemini-3-flash", 0.5, 0.05, 3},
		{"gemini-2.5-pro", 1.25, 0.125, 10},
		{"gemini-2.5-flash", 0.3, 0.03, 2.5},
		{"gemini-2.5-flash-lite", 0.1, 0.01, 0.4},
	}
	id = strings.TrimPrefix(id, "models/")
	info := llm.Info{Images: strings.HasPrefix(id, "gemini-")}
	for _, r := range rows {
		if isOrVersion(id, r.model) {
			info.Window, info.MaxOutput = window, maxOutput
			info.Prices = llm.Prices{{Input: r.input, CacheRead: r.cacheRead, CacheWrite: r.input, Output: r.output}}
		}
	}
	return info
}

// isOrVersion reports whether id is the model, one of its previews, or one of
// its numbered versions. Any other ending makes another model.
func isOrVersion(id, model string) bool {
	rest, ok := strings.CutPrefix(id, model)
	if !ok || rest == "" || strings.HasPrefix(rest, "-preview") {
		return ok
	}
	_, err := strconv.Atoi(rest[1:])
	return err == nil && rest[0] == '-'
}

// generation returns the number of the Gemini generation in id, 2.5 for
// "gemini-2.5-pro", and 0 for models of other families. A Gemini without a
// number is an alias such as "gemini-flash-latest", and newer than any.
func generation(id string) float64 {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(id, "models/"), "gemini-")
	if !ok {
		return 0
	}
	for word := range strings.SplitSeq(rest, "-") {
		if n, err := strconv.ParseFloat(word, 64); err == nil {
			return n
		}
	}
	return 99
}
