package catalog

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/llm"
)

// TestBook checks that each entry of the built-in book is found under its own name, with figures that can be.
func TestBook(t *testing.T) {
	models := 0
	for _, v := range BuiltIn().Vendors {
		for _, m := range v.Models {
			models++
			name, info := v.Name+"/"+m.ID, Find(v.Name, m.ID)
			if info.Window != m.Window || info.MaxOutput != m.Output || len(info.Prices) != len(m.Prices) {
				t.Errorf("%s is not found under its own name: %+v", name, info)
			}
			for _, p := range info.Prices {
				sane(t, name, p)
				if (p.Long == nil) != (p.Above == 0) {
					t.Errorf("%s: above %d, long %v", name, p.Above, p.Long)
				}
				if l := p.Long; l != nil {
					sane(t, name, *l)
					if l.Input <= p.Input || l.CacheRead <= p.CacheRead || l.CacheWrite <= p.CacheWrite || l.Output <= p.Output {
						t.Errorf("%s: long prompts are no dearer: %+v, %+v", name, p, *l)
					}
				}
			}
		}
	}
	if models < 80 {
		t.Errorf("%d models", models)
	}
}

func sane(t *testing.T, name string, p llm.Price) {
	t.Helper()
	if p.CacheRead <= 0 || p.CacheRead > p.Input || p.CacheWrite < p.Input || p.CacheWrite > 2*p.Input || p.Output < p.Input {
		t.Errorf("%s: odd price %+v", name, p)
	}
}

// TestRead checks which price books are refused.
func TestRead(t *testing.T) {
	book := func(vendor, model string) string {
		return "[[vendor]]\nname = 'v'\nchecked = '2026-11-21'\nsources = ['x']\n" + vendor + "\nmodels = [{ id = 'm', window = 100, output = 10, prices = [" +
			"{ input = 1, cache_read = 0.1, cache_write = 1, output = 2 }] }, " + model + "]\n"
	}
	price := "{ input = 1, output = 2 }"
	for name, c := range map[string]struct{ text, want string }{
		"nothing":           {"", "names no vendor"},
		"a price as a tier": {book("tiers = { batch = 500 }", ""), "a tier multiplies"},
		"no toml":           {"[[", "expected"},
		"unknown field":     {book("", "{ id = 'n', window = 9, output = 1, price = 3 }"), "no field vendor.models.price"},
		"no day":            {strings.Replace(book("", ""), "2026-11-21", "lately", 1), `vendor "v"`},
		"twice":             {book("", "{ id = 'm', window = 9, output = 1, prices = ["+price+"] }"), "model v/m: it is there twice"},
		"no price":          {book("", "{ id = 'n', window = 9, output = 1 }"), "model v/n: it has no price"},
		"no window":         {book("", "{ id = 'n', output = 1, prices = ["+price+"] }"), "window"},
		"dear cache":        {book("", "{ id = 'n', window = 9, output = 1, prices = [{ input = 1, cache_read = 2, output = 2 }] }"), "can't be"},
		"nan":               {book("", "{ id = 'n', window = 9, output = 1, prices = [{ input = nan, output = 2 }] }"), "each is a number"},
		"nan for reply":     {book("", "{ id = 'n', window = 9, output = 1, prices = [{ input = 1, output = nan }] }"), "each is a number"},
		"nan for cache":     {book("", "{ id = 'n', window = 9, output = 1, prices = [{ input = 1, cache_write = nan, output = 2 }] }"), "each is a number"},
		"infinite":          {book("", "{ id = 'n', window = 9, output = 1, prices = [{ input = 1, output = inf }] }"), "each is a number"},
		"long nan":          {book("", "{ id = 'n', window = 9, output = 1, prices = ["+price+"], long = { above = 3, prompt = nan, reply = 1 } }"), "no cheaper"},
		"long infinite":     {book("", "{ id = 'n', window = 9, output = 1, prices = ["+price+"], long = { above = 3, prompt = 2, reply = inf } }"), "no cheaper"},
		"per token":         {book("", "{ id = 'n', window = 9, output = 1, prices = [{ input = 0.000003, output = 0.000015 }] }"), "multiply it by 1,000,000"},
		"no order":          {book("", "{ id = 'n', window = 9, output = 1, prices = ["+price+", "+price+"] }"), "a later day"},
		"cheaper long":      {book("", "{ id = 'n', window = 9, output = 1, prices = ["+price+"], long = { above = 3, prompt = 0.5, reply = 1 } }"), "no cheaper"},
	} {
		if _, err := Read([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	b, err := Read([]byte(book("", "")))
	if err != nil {
		t.Fatal(err)
	}
	if info := b.Find("v", "m"); info.Window != 100 || info.Prices[0].Output != 2 {
		t.Errorf("%+v", info)
	}
}

// TestCachesLeftOut checks that a cache price missing from a book equals the input price, and that a price of zero
// means free.
func TestCachesLeftOut(t *testing.T) {
	b, err := Read([]byte("[[vendor]]\nname = 'v'\nchecked = '2026-11-21'\nsources = ['x']\nmodels = [" +
		"{ id = 'free', window = 9, output = 1, prices = [{ input = 0, output = 0 }] }," +
		"{ id = 'm', window = 9, output = 1, prices = [{ input = 3, output = 9 }, { from = '2026-12-01', input = 4, cache_read = 0, output = 9 }, " +
		"{ from = '2026-12-02', input = 5, cache_write = 6, output = 9 }] }]\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := llm.Prices{
		{Input: 3, CacheRead: 3, CacheWrite: 3, Output: 9},
		{From: "2026-12-01", Input: 4, CacheRead: 0, CacheWrite: 4, Output: 9},
		{From: "2026-12-02", Input: 5, CacheRead: 5, CacheWrite: 6, Output: 9},
	}
	if diff := cmp.Diff(want, b.Find("v", "m").Prices); diff != "" {
		t.Error(diff)
	}
}

// TestSold checks that a model that anyone may run does not count as one that only a vendor sells.
func TestSold(t *testing.T) {
	for id, want := range map[string]bool{
		"claude-opus-5-5": true, "anthropic/claude-opus-5-5-20260101": true, "x-ai/grok-4.3": true, "gpt-5.1": true,
		"deepseek-chat": false, "mistralai/devstral-2512": false, "qwen3:8b": false, "": false,
	} {
		if _, sold := BuiltIn().Sold(id); sold != want {
			t.Errorf("%q: %v", id, sold)
		}
	}
}

// TestChanges checks the price of a million tokens on the day before a change and on the day of it.
func TestChanges(t *testing.T) {
	m := 1_000_000
	for _, c := range []struct {
		vendor, id  string
		day         string
		usage       llm.Usage
		before, now float64
	}{
		{"gemini", "gemini-4-argon", "2026-12-01", llm.Usage{Input: m, Output: m}, 12, 24},
		{"gemini", "gemini-3.6-flash", "2027-01-01", llm.Usage{Input: m, Output: m}, 4.5, 9},
		{"gemini", "gemini-3.7-flash", "2027-01-01", llm.Usage{CacheRead: m}, 0.075, 0.15},
		{"gemini", "gemini-3.8-flash", "2027-01-01", llm.Usage{Input: m}, 0.75, 1.5},
		{"anthropic", "claude-sonnet-5-5", "2026-10-07", llm.Usage{CacheRead: m}, 0.2, 0.1},
		{"anthropic", "claude-sonnet-5-5", "2026-10-07", llm.Usage{Input: m}, 2, 2},
	} {
		change, err := time.Parse(time.DateOnly, c.day)
		if err != nil {
			t.Fatal(err)
		}
		prices := Find(c.vendor, c.id).Prices
		before, _ := prices.At(change.Add(-time.Second))
		now, _ := prices.At(change)
		if before.Cost(c.usage) != c.before || now.Cost(c.usage) != c.now {
			t.Errorf("%s at %s: %v, then %v, want %v, then %v", c.id, c.day, before.Cost(c.usage), now.Cost(c.usage), c.before, c.now)
		}
	}
}

// TestLongPrompts checks the price of the longest prompt at the ordinary price, and of one with a token more.
func TestLongPrompts(t *testing.T) {
	for _, c := range []struct {
		vendor, id          string
		above               int
		input, output       float64
		longInput, longOut  float64
		cacheRead, longRead float64
	}{
		{"anthropic", "claude-haiku-5-5", 100_000, 0.1, 0.5, 0.5, 2.5, 0.01, 0.05},
		{"openai", "gpt-6-sol", 272_000, 2, 10, 4, 15, 0.2, 0.4},
		{"openai", "gpt-6-luna", 272_000, 0.1, 0.5, 0.2, 0.75, 0.01, 0.02},
		{"openai", "gpt-5.4", 272_000, 2.5, 15, 5, 22.5, 0.25, 0.5},
		{"gemini", "gemini-3.1-pro-preview", 200_000, 2, 12, 4, 18, 0.2, 0.4},
		{"gemini", "gemini-2.5-pro", 200_000, 1.25, 10, 2.5, 15, 0.125, 0.25},
	} {
		p, ok := Find(c.vendor, c.id).Prices.At(time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC))
		if !ok {
			t.Fatalf("%s has no price", c.id)
		}
		got := []float64{
			p.Cost(llm.Usage{Input: c.above}) / float64(c.above) * 1e6,
			p.Cost(llm.Usage{Input: c.above + 1}) / float64(c.above+1) * 1e6,
			p.Cost(llm.Usage{CacheRead: c.above}) / float64(c.above) * 1e6,
			p.Cost(llm.Usage{CacheRead: c.above + 1}) / float64(c.above+1) * 1e6,
			p.Output, p.Long.Output,
		}
		want := []float64{c.input, c.longInput, c.cacheRead, c.longRead, c.output, c.longOut}
		if diff := cmp.Diff(want, got, cmp.Comparer(near)); diff != "" {
			t.Errorf("%s:\n%s", c.id, diff)
		}
	}
	for _, id := range []string{"gpt-5", "gpt-5-2025-08-07"} {
		if p := Find("openai", id).Prices[0]; p.Long != nil {
			t.Errorf("%s has a price for long prompts: %+v", id, p)
		}
	}
	if p := Find("gemini", "gemini-4-argon").Prices[0]; p.Long != nil {
		t.Errorf("gemini-4-argon has a price for long prompts: %+v", p)
	}
}

func near(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }

func TestFind(t *testing.T) {
	for _, c := range []struct {
		vendor, id string
		window     int
		input      float64
		images     bool
	}{
		{"anthropic", "claude-opus-5-5", 1_000_000, 4, true},
		{"anthropic", "claude-opus-5", 1_000_000, 5, true},
		{"anthropic", "claude-opus-5-20260724", 1_000_000, 5, true},
		{"anthropic", "claude-haiku-4-5-20251001", 200_000, 1, true},
		{"anthropic", "claude-opus-5-7", 0, 0, true},
		{"anthropic", "claude-opus-5-7-20270101", 0, 0, true},
		{"anthropic", "claude-opus-5-5-fast", 0, 0, true},
		{"anthropic", "claude-opus-5-5-2026010", 0, 0, true},
		{"anthropic", "kimi-k3", 0, 0, false},
		{"anthropic", "gpt-5", 0, 0, false},
		{"anthropic", "", 0, 0, false},

		{"anthropic", "us.anthropic.claude-sonnet-5-5-20260930-v1:0", 1_000_000, 2.2, true},
		{"anthropic", "global.anthropic.claude-sonnet-5-5-20260930-v1:0", 1_000_000, 2, true},
		{"anthropic", "anthropic.claude-opus-4-6-v1", 1_000_000, 5.5, true},
		{"anthropic", "us-gov.anthropic.claude-haiku-4-5-20251001-v1:0:200k", 200_000, 1.1, true},
		{"anthropic", "apac.anthropic.claude-opus-4-8", 1_000_000, 5.5, true},
		{"anthropic", "arn:aws:bedrock:eu-west-1:123456789012:inference-profile/global.anthropic.claude-opus-5-5", 1_000_000, 4, true},
		{"anthropic", "arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/abc123", 0, 0, false},
		{"anthropic", "us.anthropic.claude-opus-5-7-v1:0", 0, 0, true},
		{"anthropic", "anthropic.titan-v1", 0, 0, false},
		{"anthropic", "claude-sonnet-5-5@20260930", 1_000_000, 2, true},
		{"anthropic", "claude-opus-4-8@default", 1_000_000, 5, true},
		{"anthropic", "claude-opus-4-8@2026", 0, 0, true},
		{"anthropic", "claude-opus-4-8-v1:0", 0, 0, true},

		{"openai", "gpt-5", 400_000, 1.25, true},
		{"openai", "gpt-5-2025-08-07", 400_000, 1.25, true},
		{"openai", "gpt-6-sol-2026-09-01", 1_050_000, 2, true},
		{"openai", "gpt-5.4", 1_050_000, 2.5, true},
		{"openai", "gpt-5-mini", 400_000, 0.25, true},
		{"openai", "gpt-5.1-2025-11-13", 400_000, 1.25, true},
		{"openai", "gpt-5-micro", 0, 0, false},
		{"openai", "gpt-5.6", 0, 0, false},
		{"deepseek", "deepseek-chat", 1_000_000, 0.14, false},
		{"xai", "grok-4.3", 1_000_000, 1.25, true},
		{"openai", "gpt-5-20250807", 0, 0, false},
		{"openai", "models/gpt-5", 0, 0, false},
		{"openai", "claude-opus-5-5", 0, 0, false},

		{"gemini", "gemini-4-argon", 1_048_576, 2, true},
		{"gemini", "models/gemini-3.8-flash", 1_048_576, 0.75, true},
		{"gemini", "gemini-3.5-flash-lite", 1_048_576, 0.3, true},
		{"gemini", "gemini-3.1-pro-preview-customtools", 1_048_576, 2, true},
		{"gemini", "gemini-2.5-flash-001", 1_048_576, 0.3, true},
		{"gemini", "gemini-2.5-flash-image", 0, 0, true},
		{"gemini", "gemini-2.5-flash-lite-image-preview", 0, 0, true},
		{"gemini", "gemini-4", 0, 0, true},
		{"gemini", "gemini-flash-latest", 0, 0, true},
		{"gemini", "gemma-4-31b-it", 0, 0, false},

		{"", "claude-opus-5-5", 0, 0, false},
		{"mistral", "gpt-5", 0, 0, false},
	} {
		info := Find(c.vendor, c.id)
		price := 0.0
		if len(info.Prices) > 0 {
			price = info.Prices[0].Input
		}
		if info.Window != c.window || price != c.input || info.Images != c.images {
			t.Errorf("Find(%q, %q) = window %d, input %v, images %v, want %d, %v, %v",
				c.vendor, c.id, info.Window, price, info.Images, c.window, c.input, c.images)
		}
	}
}

// TestNothingIsShared checks that a caller that changes an Info changes no other one.
func TestNothingIsShared(t *testing.T) {
	first := Find("anthropic", "claude-haiku-5-5")
	first.Prices[0].Input, first.Prices[0].Long.Input = 99, 99
	if again := Find("anthropic", "claude-haiku-5-5"); again.Prices[0].Input != 0.1 || again.Prices[0].Long.Input != 0.5 {
		t.Errorf("the book was changed: %+v", again.Prices[0])
	}
}

// TestTiers checks the price of exchanges in other tiers than the standard one, and that the cost is unknown in a tier
// without a known price.
func TestTiers(t *testing.T) {
	at := time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
	used := llm.Usage{Input: 1_000_000}
	for _, c := range []struct {
		vendor, id, tier string
		want             float64
	}{
		{"anthropic", "claude-opus-5-5", "", 4},
		{"anthropic", "claude-opus-5-5", "batch", 2},
		{"anthropic", "claude-opus-5-5", "fast", 8},
		{"anthropic", "claude-opus-5-5", "fast region", 8.8},
		{"openai", "gpt-5.5", "priority", 12.5 * 2}, // above the prompt that is long
		{"openai", "gpt-5.4-mini", "flex", 0.375},
		{"openai", "gpt-5-mini", "fast", 0.45},
		{"gemini", "gemini-3.8-flash", "priority", 1.35},
	} {
		got, known := Find(c.vendor, c.id).Prices.Bill(at, llm.Usage{Input: used.Input, Tier: c.tier})
		if !known || math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s by %q: %v %v, want %v", c.id, c.tier, got, known, c.want)
		}
	}
	if got, known := Find("anthropic", "claude-sonnet-5-5").Prices.Bill(at, llm.Usage{Input: 1_000_000, Tier: "express"}); known || got != 2 {
		t.Errorf("by a tier that nobody knows: %v %v", got, known)
	}
	hour := llm.Usage{CacheWrite: 1_000_000, CacheHour: 400_000}
	if got, _ := Find("anthropic", "claude-sonnet-5-5").Prices.Bill(at, hour); math.Abs(got-(0.6*2.5+0.4*4)) > 1e-9 {
		t.Errorf("what stays in a cache for an hour: %v", got)
	}
	if got, _ := Find("openai", "gpt-5.4-mini").Prices.In("region").Bill(at, llm.Usage{Input: 1000, Tier: "region"}); math.Abs(got-0.000825) > 1e-12 {
		t.Errorf("in a region: %v", got)
	}
}
