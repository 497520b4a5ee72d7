package llm_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/llm"
)

func TestDescribe(t *testing.T) {
	price, other := llm.Prices{{Input: 1}}, llm.Prices{{Input: 2}}
	known := llm.Info{Window: 10, MaxOutput: 5, Prices: price, Images: true}
	for name, tc := range map[string]struct {
		at    llm.Endpoint
		known llm.Info
		want  llm.Info
	}{
		"what is known stands": {
			llm.Endpoint{ID: "m"},
			known,
			llm.Info{Provider: "vendor", Model: "m", Window: 10, MaxOutput: 5, Prices: price, Images: true},
		},
		"fields go before it": {
			llm.Endpoint{ID: "m", Provider: "mine", Window: 20, MaxOutput: 6, Prices: other},
			known,
			llm.Info{Provider: "mine", Model: "m", Window: 20, MaxOutput: 6, Prices: other, Images: true},
		},
		"fields alone": {
			llm.Endpoint{ID: "m", Images: true},
			llm.Info{},
			llm.Info{Provider: "vendor", Model: "m", Images: true},
		},
	} {
		if diff := cmp.Diff(tc.want, tc.at.Describe("vendor", tc.known)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
