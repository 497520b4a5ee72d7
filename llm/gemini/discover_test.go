package gemini_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/testkit/geminitest"
	"github.com/inspan/inspan/internal/testkit/wiretest"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/gemini"
)

// TestDiscover reads the vendor's list without the models that don't converse. Vertex AI has none.
func TestDiscover(t *testing.T) {
	wiretest.TestDiscover(t, llm.Endpoint{}, gemini.Discover)
	server := geminitest.Start(t, &geminitest.Server{Key: "k", Models: []string{"gemini-a", "gemini-b"}})
	key := func(context.Context) (string, error) { return "k", nil }
	list, err := gemini.Discover(t.Context(), llm.Endpoint{BaseURL: server, Key: key})
	var ids []string
	for _, info := range list {
		ids = append(ids, info.Route())
	}
	if diff := cmp.Diff([]string{"gemini/gemini-a", "gemini/gemini-b"}, ids); diff != "" || err != nil || list[0].Window != 1048576 {
		t.Errorf("%v, %+v\n%s", err, list, diff)
	}
	wrong := llm.Endpoint{BaseURL: server, Key: func(context.Context) (string, error) { return "other", nil }}
	if _, err := gemini.Discover(t.Context(), wrong); llm.AsError(err) == nil || llm.AsError(err).Kind != llm.KindAuth {
		t.Errorf("a wrong key: %v", err)
	}
	vertex := llm.Endpoint{BaseURL: "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google"}
	if _, err := gemini.Discover(t.Context(), vertex); llm.AsError(err) == nil || llm.AsError(err).Kind != llm.KindInvalid {
		t.Errorf("Vertex AI: %v", err)
	}
}
