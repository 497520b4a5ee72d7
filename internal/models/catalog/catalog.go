// Package catalog is the price book: context windows, limits and prices of the models of the vendors that inspan
// has adapters for. Adapters look their models up in it.
//
// Prices carry the day on which they were checked, and vendors change them. For bills, use a book of your own with
// [Read].
package catalog

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/inspan/inspan/llm"
)

//go:embed prices.toml
var prices []byte

// builtIn is the book that is embedded in the program.
var builtIn = sync.OnceValue(func() *Book {
	b, err := Read(prices)
	if err != nil {
		panic(err) // the embedded book is tested
	}
	return b
})

// BuiltIn returns the book that is embedded in the program. Don't modify it.
func BuiltIn() *Book { return builtIn() }

// Book describes models. Its file is prices.toml, which documents the format.
type Book struct {
	Vendors []Vendor `toml:"vendor"`
}

// Vendor is a company that sells access to models.
type Vendor struct {
	Name    string   `toml:"name"`
	Checked string   `toml:"checked"` // the day on which the models were last compared with the sources
	Sources []string `toml:"sources"`
	// Hour is the price of caching a token for an hour, as a multiple of the input price; 0 means the same as for
	// minutes.
	Hour float64 `toml:"hour"`
	// Tiers multiply all prices of an exchange that was served outside the standard tier or region, such as "batch"
	// by 0.5. A model can override them and add its own.
	Tiers  map[string]float64 `toml:"tiers"`
	Models []Model            `toml:"models"` // models that differ only by version are sorted newest first
}

// Model is one model.
type Model struct {
	ID     string  `toml:"id"`
	Window int     `toml:"window"` // tokens
	Output int     `toml:"output"` // maximum tokens of a reply
	Images bool    `toml:"images"`
	Open   bool    `toml:"open"` // the weights are public
	Prices []Price `toml:"prices"`
	Long   Long    `toml:"long"`

	Tiers map[string]float64 `toml:"tiers"`
}

// Price is in US dollars per million tokens. A cache price that the book omits is the price of input. It holds from
// the start of a day in UTC; empty means always.
type Price struct {
	From       string  `toml:"from"`
	Input      float64 `toml:"input"`
	CacheRead  float64 `toml:"cache_read"`
	CacheWrite float64 `toml:"cache_write"`
	CacheHour  float64 `toml:"cache_hour"`
	Output     float64 `toml:"output"`
}

// Long says that prompts of more than Above tokens multiply the price of everything read, and that of the reply.
// The zero Long says that they don't.
type Long struct {
	Above  int     `toml:"above"`
	Prompt float64 `toml:"prompt"`
	Reply  float64 `toml:"reply"`
}

// Read reads a book. An entry that makes no sense is an error that names the model.
func Read(data []byte) (*Book, error) {
	var b Book
	meta, err := toml.Decode(string(data), &b)
	if err != nil {
		return nil, err
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return nil, fmt.Errorf("there is no field %s in a price book", unknown[0])
	}
	if len(b.Vendors) == 0 {
		return nil, errors.New("it names no vendor")
	}
	if err := b.fill(data); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, v := range b.Vendors {
		for i := range v.Models {
			v.Models[i].inherit(v)
		}
		if _, err := time.Parse(time.DateOnly, v.Checked); err != nil || v.Name == "" || len(v.Sources) == 0 {
			return nil, fmt.Errorf("vendor %q: it needs a name, sources, and the day on which it was checked, such as 2026-11-21", v.Name)
		}
		for _, m := range v.Models {
			name := v.Name + "/" + m.ID
			if err := m.check(); err != nil || seen[name] {
				return nil, fmt.Errorf("model %s: %w", name, errors.Join(err, map[bool]error{true: errors.New("it is there twice")}[seen[name]]))
			}
			seen[name] = true
		}
	}
	return &b, nil
}

// fill sets omitted cache prices to the price of input. A price of 0 is not omitted.
func (b *Book) fill(data []byte) error {
	var given struct {
		Vendor []struct {
			Models []struct {
				Prices []struct {
					CacheRead  *float64 `toml:"cache_read"`
					CacheWrite *float64 `toml:"cache_write"`
				}
			}
		}
	}
	if err := toml.Unmarshal(data, &given); err != nil {
		return err
	}
	for i, v := range given.Vendor {
		for j, m := range v.Models {
			for k, p := range m.Prices {
				price := &b.Vendors[i].Models[j].Prices[k]
				if p.CacheRead == nil {
					price.CacheRead = price.Input
				}
				if p.CacheWrite == nil {
					price.CacheWrite = price.Input
				}
			}
		}
	}
	return nil
}

// inherit gives a model the values that its vendor states for all models.
func (m *Model) inherit(v Vendor) {
	for tier, factor := range v.Tiers {
		if _, own := m.Tiers[tier]; own {
			continue
		}
		if m.Tiers == nil {
			m.Tiers = map[string]float64{}
		}
		m.Tiers[tier] = factor
	}
	for i := range m.Prices {
		if p := &m.Prices[i]; p.CacheHour == 0 {
			p.CacheHour = p.Input * v.Hour
		}
	}
}

// leastPrice is in dollars per million tokens. No vendor sells output for less; a lower figure is a price per
// token.
const leastPrice = 0.001

// mostTier is the largest multiplier of a tier. A larger figure is a price by mistake.
const mostTier = 20

func (m Model) check() error {
	switch {
	case m.ID == "" || m.Window <= 0 || m.Output <= 0 || m.Output > m.Window:
		return errors.New("it needs an id, a window, and an output that is no larger")
	case !finite(m.Long.Prompt, m.Long.Reply), m.Long != Long{} && (m.Long.Above <= 0 || m.Long.Above >= m.Window || m.Long.Prompt < 1 || m.Long.Reply < 1):
		return errors.New("long prompts begin above a number of tokens within the window, and are no cheaper")
	case slices.ContainsFunc(slices.Collect(maps.Values(m.Tiers)), func(x float64) bool { return !finite(x) || x <= 0 || x > mostTier }):
		return fmt.Errorf("a tier multiplies prices by more than 0 and at most %d", mostTier)
	case len(m.Prices) == 0:
		return errors.New("it has no price")
	}
	before := ""
	for i, p := range m.Prices {
		if _, err := time.Parse(time.DateOnly, p.From); i > 0 && (err != nil || p.From <= before) || i == 0 && p.From != "" {
			return errors.New("the first price has no day, and each other one a later day than that before it, such as 2026-12-01")
		}
		before = p.From
		switch {
		case p.Output > 0 && p.Output < leastPrice:
			return fmt.Errorf("the price %+v is below %g dollars for a million tokens; if it is for one token, multiply it by 1,000,000", p, leastPrice)
		case !finite(p.Input, p.CacheRead, p.CacheWrite, p.CacheHour, p.Output), p.Input < 0 || p.CacheRead < 0 || p.CacheWrite < 0 || p.CacheHour < 0 || p.Output < 0 || p.CacheRead > p.Input || p.Output < p.Input:
			return fmt.Errorf("the price %+v can't be: each is a number and none is negative, and what is read from a cache costs no more than input, which costs no more than output", p)
		}
	}
	return nil
}

func finite(list ...float64) bool {
	return !slices.ContainsFunc(list, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
}

// Find returns the window, the output limit, image support and prices of a vendor's model. vendor is the maker of
// the model, "anthropic", "openai" or "gemini", wherever it is served, or another vendor's name in the book. For a
// model that is not in the book it returns the zero Info, except that every Claude and every Gemini is known to
// accept images.
//
// An id matches a model or one of its snapshots, never a neighbour: a further version number, or any other ending,
// makes another model.
//
//	anthropic  claude-opus-5-5, claude-opus-5-5-20260101
//	openai     gpt-5.4, gpt-5.4-2026-03-05
//	gemini     gemini-3.1-pro, models/gemini-3.1-pro, gemini-3.1-pro-preview…, gemini-2.5-flash-001
//
// Claude is also found by the ids of the clouds: "us.anthropic.claude-opus-5-5",
// "anthropic.claude-sonnet-5-5-20260930-v1:0" and ARNs with such an ending on Bedrock, "claude-haiku-4-5@20251001"
// on Vertex AI. The clouds charge the vendor's price for their global endpoints, and a tenth more for those of one
// region or continent. A Bedrock id names its endpoint and gets that price; a Vertex id does not and gets the price
// of the global endpoint, which [llm.Prices.In] converts to that of a region.
func Find(vendor, id string) llm.Info { return builtIn().Find(vendor, id) }

// Find is [Find] for this book.
func (b *Book) Find(vendor, id string) llm.Info {
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
	if m, ok := b.model(vendor, name); ok {
		info.Window, info.MaxOutput, info.Images = m.Window, m.Output, info.Images || m.Images
		info.Prices = m.list(factor)
	}
	return info
}

func (b *Book) model(vendor, id string) (Model, bool) {
	for _, v := range b.Vendors {
		if v.Name != vendor {
			continue
		}
		if i := slices.IndexFunc(v.Models, func(m Model) bool { return m.ID == id }); i >= 0 {
			return v.Models[i], true
		}
	}
	return Model{}, false
}

// Sold returns the entry of a model of any vendor in the book, by a gateway's id: the vendor's own id, alone or
// after a vendor's name and a slash. It reports false for all other models, and for those with public weights.
func (b *Book) Sold(id string) (llm.Info, bool) {
	id = id[strings.LastIndexByte(id, '/')+1:]
	for _, v := range b.Vendors {
		if m, ok := b.model(v.Name, id); ok && m.Open {
			continue
		}
		if info := b.Find(v.Name, id); len(info.Prices) > 0 {
			return info, true
		}
	}
	return llm.Info{}, false
}

// IDs lists the ids of a vendor's models. Of models that differ only by version the newest comes first.
func (b *Book) IDs(vendor string) []string {
	var out []string
	for _, v := range b.Vendors {
		for _, m := range v.Models {
			if v.Name == vendor {
				out = append(out, m.ID)
			}
		}
	}
	return out
}

// list returns the prices of a model, times factor.
func (m Model) list(factor float64) llm.Prices {
	var out llm.Prices
	for _, p := range m.Prices {
		one := p.times(factor, factor)
		one.From, one.Tiers = p.From, m.Tiers
		if m.Long.Above > 0 {
			long := p.times(factor*m.Long.Prompt, factor*m.Long.Reply)
			one.Above, one.Long = m.Long.Above, &long
		}
		out = append(out, one)
	}
	return out
}

func (p Price) times(prompt, reply float64) llm.Price {
	round := func(x float64) float64 { return math.Round(x*1e6) / 1e6 }
	return llm.Price{
		Input: round(p.Input * prompt), CacheRead: round(p.CacheRead * prompt),
		CacheWrite: round(p.CacheWrite * prompt), CacheHour: round(p.CacheHour * prompt), Output: round(p.Output * reply),
	}
}

var (
	// dated matches the end of a snapshot's id at OpenAI.
	dated = regexp.MustCompile(`-\d{4}-\d{2}-\d{2}$`)
	// snapshot matches the end of a snapshot's id at Anthropic, and at Vertex AI,
	// where the newest has a name.
	snapshot = regexp.MustCompile(`-\d{8}$|@(\d{8}|default|latest)$`)
	// bedrock matches an id of Bedrock: the region, the model, and the version of its Bedrock interface.
	bedrock = regexp.MustCompile(`^(?:arn:.*/)?(?:([a-z-]+)\.)?anthropic\.(claude-.+?)(?:-v\d+(?::\d+(?::\d+k)?)?)?$`)
)

// claude returns the name of a Claude without the marks of snapshots and clouds, and the factor of its price.
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

// gemini returns the name of a Gemini without the marks of previews and versions.
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
