package anthropic_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/testkit/anthropictest"
	"github.com/inspan/inspan/internal/testkit/wiretest"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/anthropic"
)

// TestDiscover reads the vendor's list, which the clouds don't have.
func TestDiscover(t *testing.T) {
	wiretest.TestDiscover(t, llm.Endpoint{}, anthropic.Discover)
	server := anthropictest.Start(t, &anthropictest.Server{Key: "k", Models: []string{"claude-haiku-4-5", "claude-unheard-of"}})
	key := func(context.Context) (string, error) { return "k", nil }
	list, err := anthropic.Discover(t.Context(), llm.Endpoint{BaseURL: server, Key: key})
	var ids []string
	for _, info := range list {
		ids = append(ids, info.Route())
	}
	if diff := cmp.Diff([]string{"anthropic/claude-haiku-4-5", "anthropic/claude-unheard-of"}, ids); diff != "" || err != nil {
		t.Fatalf("%v\n%s", err, diff)
	}
	if list[0].Window == 0 || list[1].Window != 0 {
		t.Errorf("the catalogue is not asked: %+v", list)
	}
	wrong := llm.Endpoint{BaseURL: server, Key: func(context.Context) (string, error) { return "other", nil }}
	if _, err := anthropic.Discover(t.Context(), wrong); llm.AsError(err) == nil || llm.AsError(err).Kind != llm.KindAuth {
		t.Errorf("a wrong key: %v", err)
	}
	for _, at := range []llm.Endpoint{{Dialect: "vertex", BaseURL: server}, {Dialect: "nobody"}} {
		if _, err := anthropic.Discover(t.Context(), at); llm.AsError(err) == nil || llm.AsError(err).Kind != llm.KindInvalid {
			t.Errorf("%s: %v", at.Dialect, err)
		}
	}
}
