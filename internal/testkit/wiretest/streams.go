package wiretest

import (
	"errors"
	"strings"
	"testing"

	"github.com/inspan/inspan/llm"
)

// TestStops proves how streams end. The table has for a stream the [llm.Stop] of its reply, or the [llm.Kind]
// of its error. Each reply must be usable, and is also checked by Check.
func TestStops(t *testing.T, p WireParams, table map[string]string) {
	for stream, want := range table {
		r, shown, err := p.Decode(strings.NewReader(stream))
		got := string(r.Stop)
		if e := (*llm.Error)(nil); errors.As(err, &e) {
			got = string(e.Kind)
		}
		if got != want || want == "" {
			t.Errorf("%s\n got %q, %v\nwant %q", stream, got, err, want)
			continue
		}
		if err == nil {
			p.usable(t, r)
			if p.Check != nil {
				p.Check(t, r, shown)
			}
		}
	}
}

// TestUsage proves how the figures of streams are read.
func TestUsage(t *testing.T, p WireParams, table map[string]llm.Usage) {
	for stream, want := range table {
		if r, _, err := p.Decode(strings.NewReader(stream)); err != nil || r.Usage != want {
			t.Errorf("%s\n got %+v, %v\nwant %+v", stream, r.Usage, err, want)
		}
	}
}

// firstDifference returns the number of the first line in which two texts differ, and both lines; 0 if there is
// none.
func firstDifference(a, b string) (n int, inA, inB string) {
	as, bs := strings.SplitAfter(a, "\n"), strings.SplitAfter(b, "\n")
	for i := range max(len(as), len(bs)) {
		inA, inB = "", ""
		if i < len(as) {
			inA = as[i]
		}
		if i < len(bs) {
			inB = bs[i]
		}
		if inA != inB {
			return i + 1, inA, inB
		}
	}
	return 0, "", ""
}
