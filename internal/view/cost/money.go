package cost

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/models/catalog"
	"github.com/inspan/inspan/llm"
)

// Money is an amount in trillionths of a US dollar. The rule for rounding: each bill is rounded once, from its
// event, to a whole Money. All further sums and parts are whole Money, so parts add up to their sum. A token
// whose price per million has at most six decimals costs a whole Money, so such bills lose nothing.
type Money int64

const dollar = 1e12

// mostDollars bounds the dollars of one event.
const mostDollars = 1e6

// Of returns the Money for a bill in US dollars. Impossible amounts are 0.
func Of(dollars float64) Money {
	if !(dollars > 0) {
		return 0
	}
	return Money(math.Round(min(dollars, mostDollars) * dollar))
}

// Dollars returns the amount in US dollars, for people.
func (m Money) Dollars() float64 { return float64(m) / dollar }

// String returns the amount in US dollars with all digits.
func (m Money) String() string {
	sign, n := "", uint64(m)
	if m < 0 {
		sign, n = "-", -n
	}
	digits := fmt.Sprintf("%d.%012d", n/dollar, n%dollar)
	return sign + strings.TrimSuffix(strings.TrimRight(digits, "0"), ".")
}

// MarshalJSON writes US dollars as a number with all digits.
func (m Money) MarshalJSON() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalJSON reads such a number.
func (m *Money) UnmarshalJSON(data []byte) error {
	f, err := strconv.ParseFloat(string(data), 64)
	*m = Money(math.Round(f * dollar))
	return err
}

// portion returns n*part/whole, rounded down; part is at most whole. The share of a piece is the difference
// between the portions at its end and at its beginning, so pieces add up to n.
func portion(n, part, whole int) int {
	if n <= 0 || part <= 0 || whole <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(n), uint64(min(part, whole)))
	out, _ := bits.Div64(hi, lo, uint64(whole))
	return int(out)
}

// classes are the tokens of a usage with a price each, in the order of the prompt: vendors cache beginnings.
const (
	cached = iota
	written
	fresh
	output
	classes
)

func tokens(u llm.Usage) []int { return []int{u.CacheRead, u.CacheWrite, u.Input, u.Output} }

// mostTokens is more than any exchange can have. Larger figures are invalid.
const mostTokens = 1 << 40

// sound reports whether the figures are possible.
func sound(u llm.Usage) bool {
	all := append([]int{u.Reasoning}, tokens(u)...)
	return slices.Min(all) >= 0 && slices.Max(all) <= mostTokens
}

// divide divides a bill among the classes by the cost of their tokens.
func divide(bill Money, used llm.Usage, price llm.Price) (out [classes]Money) {
	per := [classes]float64{price.CacheRead, price.CacheWrite, price.Input, price.Output}
	weights := make([]int, classes)
	whole := 0
	for i, n := range tokens(used) {
		weights[i] = n * int(math.Round(per[i]*1e4))
		whole += weights[i]
	}
	if whole == 0 { // free at this price
		weights = tokens(used)
		whole = used.Prompt() + used.Output
	}
	if whole == 0 {
		out[output] = bill
		return out
	}
	sum := 0
	for i, w := range weights {
		out[i] = Money(portion(int(bill), sum+w, whole) - portion(int(bill), sum, whole))
		sum += w
	}
	return out
}

// priceOf returns the price of a reply on its bill: the catalogue's price if that gives the same amount. Otherwise
// the person had a price of their own, which the log lacks, and the classes are assumed to relate as with most
// vendors.
func priceOf(route string, at time.Time, used llm.Usage, dollars float64) llm.Price {
	provider, model, _ := strings.Cut(route, "/")
	for _, vendor := range []string{provider, "anthropic", "openai", "gemini"} {
		price, known := catalog.Find(vendor, model).Prices.At(at)
		if known && math.Abs(price.Cost(used)-dollars) <= 1e-6*dollars {
			price, _ = price.For(used)
			return price
		}
	}
	return llm.Price{Input: 1, CacheRead: 0.1, CacheWrite: 1.25, Output: 5}
}
