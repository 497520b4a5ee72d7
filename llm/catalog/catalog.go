// Package catalog is the price book: what is known of the models of the vendors
// that inspan speaks to itself. Adapters look their models up in it.
package catalog

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/inspan/inspan/llm"
)

// row is one model. Its prices follow each other in time; what is free after the
// first is empty.
type row struct {
	vendor, model     string
	window, maxOutput int
	prices            [2]price
	long              tier
}

// price is in US dollars per million tokens. It holds from the start of a day,
// UTC.
type price struct {
	input, cacheRead, cacheWrite, output float64
	from                                 string
}

// tier says that prompts of more than above tokens multiply the price of all
// that is read, and that of the reply. The zero tier says that they don't.
type tier struct {
	above         int
	prompt, reply float64
}

// rows is the book, as of 2026-11-21.
//
//   - anthropic: the model pages (platform.claude.com/docs/en/models) and the
//     pricing page (platform.claude.com/docs/en/about-claude/pricing). Cache
//     writes are those that live for five minutes.
//   - openai: the model pages (developers.openai.com/api/docs/models) and release
//     notes that quote the pricing page. Where no price of cache writes is
//     published, they cost what input does.
//   - gemini: the model and pricing pages (ai.google.dev/gemini-api/docs/models
//     and /pricing). Writing to the cache costs nothing beyond the prompt. The
//     window of Gemini 4 is shared by prompt and reply.
func rows() []row {
	const (
		m, k200, k128, k64  = 1_000_000, 200_000, 128_000, 64_000
		gptWindow, gpt5     = 1_050_000, 400_000
		geminiWindow, gmOut = 1_048_576, 65_536
	)
	flat := tier{}
	fivefold := tier{above: 100_000, prompt: 5, reply: 5}
	gptLong := tier{above: 272_000, prompt: 2, reply: 1.5}
	proLong := tier{above: 200_000, prompt: 2, reply: 1.5}
	return []row{
		{"anthropic", "claude-fable-5-1", m, k128, [2]price{{10, 0.25, 12.5, 50, ""}}, flat},
		{"anthropic", "claude-fable-5", m, k128, [2]price{{10, 1, 12.5, 50, ""}}, flat},
		{"anthropic", "claude-opus-5-5", m, k128, [2]price{{4, 0.2, 5, 20, ""}}, flat},
		{"anthropic", "claude-opus-5", m, k128, [2]price{{5, 0.5, 6.25, 25, ""}}, flat},
		{"anthropic", "claude-opus-4-8", m, k128, [2]price{{5, 0.5, 6.25, 25, ""}}, flat},
		{"anthropic", "claude-opus-4-6", m, k128, [2]price{{5, 0.5, 6.25, 25, ""}}, flat},
		{"anthropic", "claude-sonnet-5-5", m, k128, [2]price{{2, 0.2, 2.5, 10, ""}, {2, 0.1, 2.5, 10, "2026-10-07"}}, flat},
		{"anthropic", "claude-sonnet-5", m, k128, [2]price{{2, 0.2, 2.5, 10, ""}}, flat},
		{"anthropic", "claude-haiku-5-5", m, k128, [2]price{{0.1, 0.01, 0.125, 0.5, ""}}, fivefold},
		{"anthropic", "claude-haiku-4-5", k200, k64, [2]price{{1, 0.1, 1.25, 5, ""}}, flat},

		{"openai", "gpt-6-astra", gptWindow, k128, [2]price{{10, 1, 10, 50, ""}}, gptLong},
		{"openai", "gpt-6-sol", gptWindow, k128, [2]price{{2, 0.2, 2.5, 10, ""}}, gptLong},
		{"openai", "gpt-6-luna", gptWindow, k128, [2]price{{0.1, 0.01, 0.125, 0.5, ""}}, gptLong},
		{"openai", "gpt-5.4", gptWindow, k128, [2]price{{2.5, 0.25, 2.5, 15, ""}}, gptLong},
		{"openai", "gpt-5", gpt5, k128, [2]price{{1.25, 0.125, 1.25, 10, ""}}, flat},

		{"gemini", "gemini-4-argon", geminiWindow, gmOut, [2]price{{2, 0.1, 2, 10, ""}, {4, 0.2, 4, 20, "2026-12-01"}}, flat},
		{"gemini", "gemini-3.8-flash", geminiWindow, gmOut, [2]price{{0.75, 0.075, 0.75, 3.75, ""}, {1.5, 0.15, 1.5, 7.5, "2027-01-01"}}, flat},
		{"gemini", "gemini-3.7-flash", geminiWindow, gmOut, [2]price{{0.75, 0.075, 0.75, 3.75, ""}, {1.5, 0.15, 1.5, 7.5, "2027-01-01"}}, flat},
		{"gemini", "gemini-3.6-flash", geminiWindow, gmOut, [2]price{{0.75, 0.075, 0.75, 3.75, ""}, {1.5, 0.15, 1.5, 7.5, "2027-01-01"}}, flat},
		{"gemini", "gemini-3.5-flash", geminiWindow, gmOut, [2]price{{1.5, 0.15, 1.5, 9, ""}}, flat},
		{"gemini", "gemini-3.5-flash-lite", geminiWindow, gmOut, [2]price{{0.3, 0.03, 0.3, 2.5, ""}}, flat},
		{"gemini", "gemini-3.1-pro", geminiWindow, gmOut, [2]price{{2, 0.2, 2, 12, ""}}, proLong},
		{"gemini", "gemini-3.1-flash-lite", geminiWindow, gmOut, [2]price{{0.25, 0.025, 0.25, 1.5, ""}}, flat},
		{"gemini", "gemini-3-flash", geminiWindow, gmOut, [2]price{{0.5, 0.05, 0.5, 3, ""}}, flat},
		{"gemini", "gemini-2.5-pro", geminiWindow, gmOut, [2]price{{1.25, 0.125, 1.25, 10, ""}}, proLong},
		{"gemini", "gemini-2.5-flash", geminiWindow, gmOut, [2]price{{0.3, 0.03, 0.3, 2.5, ""}}, flat},
		{"gemini", "gemini-2.5-flash-lite", geminiWindow, gmOut, [2]price{{0.1, 0.01, 0.1, 0.4, ""}}, flat},
	}
}

// Find returns what is known of a vendor's model: window, most output, images
// and prices. vendor is whose model it is, "anthropic", "openai" or "gemini",
// wherever it is served. Of a model that is not in the book it returns the zero
// Info, but that every Claude and every Gemini is known to accept images. It is
// a pure function.
//
// An id is that of a model or of one of its snapshots, and never that of a
// neighbour: a further version number, or any other ending, makes another model.
//
//	anthropic  claude-opus-5-5, claude-opus-5-5-20260101
//	openai     gpt-5.4, gpt-5.4-2026-03-05
//	gemini     gemini-3.1-pro, models/gemini-3.1-pro, gemini-3.1-pro-preview…, gemini-2.5-flash-001
//
// Claude is found by the ids of the clouds too: "us.anthropic.claude-opus-5-5",
// "anthropic.claude-sonnet-5-5-20260930-v1:0" and ARNs that end so on Bedrock,
// "claude-haiku-4-5@20251001" on Vertex AI. The clouds charge what the vendor
// does for their global endpoints, and a tenth more for those of one region or
// continent. A Bedrock id tells which it is and gets its price; a Vertex id does
// not and gets that of the global endpoint.
func Find(vendor, id string) llm.Info {
	name, factor := id, 1.0
	var info llm.Info
	switch vendor {
	case "anthropic":
		name, factor = claude(id)
		info.Images = strings.HasPrefix(name, "claude-")
	case "openai":
		name = dated.ReplaceAllString(id, "")
	case "gemini":
		name = gemini(id)
		info.Images = strings.HasPrefix(name, "gemini-")
	}
	for _, r := range rows() {
		if r.vendor == vendor && r.model == name {
			info.Window, info.MaxOutput, info.Images = r.window, r.maxOutput, true
			info.Prices = r.list(factor)
		}
	}
	return info
}

// Sold returns what is known of a model of any vendor in the book, by an id that a gateway has for it:
// the vendor's own, or that behind a vendor's name and a slash. It reports false for all other models.
func Sold(id string) (llm.Info, bool) {
	id = id[strings.LastIndexByte(id, '/')+1:]
	for _, vendor := range []string{"anthropic", "openai", "gemini"} {
		if info := Find(vendor, id); len(info.Prices) > 0 {
			return info, true
		}
	}
	return llm.Info{}, false
}

// IDs lists the ids of a vendor's models. Of models that differ by their version alone the newest
// comes first.
func IDs(vendor string) []string {
	var out []string
	for _, r := range rows() {
		if r.vendor == vendor {
			out = append(out, r.model)
		}
	}
	return out
}

// list returns the prices of a row, times factor.
func (r row) list(factor float64) llm.Prices {
	var out llm.Prices
	for _, p := range r.prices {
		if p == (price{}) {
			continue
		}
		one := p.times(factor, factor)
		one.From = p.from
		if r.long.above > 0 {
			long := p.times(factor*r.long.prompt, factor*r.long.reply)
			one.Above, one.Long = r.long.above, &long
		}
		out = append(out, one)
	}
	return out
}

func (p price) times(prompt, reply float64) llm.Price {
	round := func(x float64) float64 { return math.Round(x*1e6) / 1e6 }
	return llm.Price{
		Input: round(p.input * prompt), CacheRead: round(p.cacheRead * prompt),
		CacheWrite: round(p.cacheWrite * prompt), Output: round(p.output * reply),
	}
}

var (
	// dated matches the end of a snapshot's id at OpenAI.
	dated = regexp.MustCompile(`-\d{4}-\d{2}-\d{2}$`)
	// snapshot matches the end of a snapshot's id at Anthropic, and at Vertex AI,
	// where the newest has a name.
	snapshot = regexp.MustCompile(`-\d{8}$|@(\d{8}|default|latest)$`)
	// bedrock matches an id of Bedrock's: where it is served, the model, and the
	// version of the way it is served.
	bedrock = regexp.MustCompile(`^(?:arn:.*/)?(?:([a-z-]+)\.)?anthropic\.(claude-.+?)(?:-v\d+(?::\d+(?::\d+k)?)?)?$`)
)

// claude returns the name of a Claude without what marks a snapshot or a cloud,
// and what its price is to be multiplied with.
func claude(id string) (name string, factor float64) {
	factor = 1
	if m := bedrock.FindStringSubmatch(id); m != nil {
		id = m[2]
		if m[1] != "global" {
			factor = 1.1
		}
	}
	return snapshot.ReplaceAllString(id, ""), factor
}

// gemini returns the name of a Gemini without what marks a preview or a version.
func gemini(id string) string {
	id = strings.TrimPrefix(id, "models/")
	if name, _, ok := strings.Cut(id, "-preview"); ok {
		return name
	}
	if i := strings.LastIndexByte(id, '-'); i > 0 {
		if _, err := strconv.Atoi(id[i+1:]); err == nil && id[:i] != "gemini" {
			return id[:i]
		}
	}
	return id
}
