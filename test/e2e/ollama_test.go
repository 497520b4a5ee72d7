package e2e_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/ollama"
)

// at is the model of the variables, with a window.
func at(t *testing.T, variable string, window int) llm.Endpoint {
	return llm.Endpoint{BaseURL: env(t, "INSPAN_E2E_OLLAMA"), ID: env(t, variable), Window: window}
}

const plain, tooled = "INSPAN_E2E_OLLAMA_MODEL", "INSPAN_E2E_OLLAMA_TOOLS"

func model(e llm.Endpoint) *ollama.Model { return (*ollama.Model)(&e) }

func TestOllamaStreams(t *testing.T) { streams(t, model(at(t, plain, 2048))) }

func TestOllamaRefusesTooLong(t *testing.T) {
	refusesTooLong(t, model(at(t, plain, 512)), 512)
}

func TestOllamaCancel(t *testing.T) { frees(t, model(at(t, plain, 2048))) }

func TestOllamaGrows(t *testing.T) {
	a, b := grows(t, model(at(t, plain, 2048)))
	t.Logf("first turn %+v, second %+v", a, b)
}

// TestOllamaWindow checks that the window has the requested size.
func TestOllamaWindow(t *testing.T) {
	for _, window := range []int{2048, 8192, 4096} {
		e := at(t, plain, window)
		must(t, model(e), llm.Request{Messages: user("Hi."), MaxOutput: 1})
		s, err := ollama.Show(t.Context(), e)
		if err != nil || s.Loaded != window {
			t.Errorf("asked for %d, loaded with %d, %v", window, s.Loaded, err)
		}
	}
}

// TestOllamaGivesLess asks for more than the model has: the server gives less
// without a word.
func TestOllamaGivesLess(t *testing.T) {
	e := at(t, plain, 0)
	s, err := ollama.Show(t.Context(), e)
	if err != nil || s.Window == 0 {
		t.Fatalf("%+v, %v", s, err)
	}
	if s.Window > 16384 {
		t.Skipf("a window of %d takes too much memory", s.Window)
	}
	e.Window = 2 * s.Window
	o := ask(t, model(e), llm.Request{Messages: user("Hi."), MaxOutput: 1})
	if o.err == nil || o.err.Kind != llm.KindWindow || o.err.Limit != s.Window {
		t.Errorf("%+v, %v", o.reply, o.err)
	}
}

func TestOllamaDiscover(t *testing.T) {
	e := at(t, plain, 0)
	list, err := ollama.Discover(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	for _, variable := range []string{plain, tooled} {
		name := env(t, variable)
		if !slices.ContainsFunc(list, func(i llm.Info) bool {
			return strings.TrimSuffix(i.Model, ":latest") == name && i.Window >= 2048 && !i.Images && (variable == plain || !i.NoTools)
		}) {
			t.Errorf("%s is not in %+v", name, list)
		}
	}
	s, err := ollama.Show(t.Context(), e)
	if err != nil || s.Weights < 1<<20 || s.PerToken < 1<<10 || s.PerToken > 1<<20 || s.Fit(64<<30) != s.Window&^1023 {
		t.Errorf("%+v, %v", s, err)
	}
	t.Logf("%+v", s)
}

func TestOllamaNoModel(t *testing.T) {
	e := at(t, plain, 2048)
	e.ID = "no-such-model:1b"
	if o := ask(t, model(e), llm.Request{Messages: user("Hi.")}); o.err == nil || o.err.Kind != llm.KindNoModel ||
		!strings.Contains(o.err.Message, "ollama pull no-such-model:1b") {
		t.Errorf("%+v, %v", o.reply, o.err)
	}
	if _, err := ollama.Show(t.Context(), e); err == nil || llm.AsError(err).Kind != llm.KindNoModel {
		t.Errorf("show: %v", err)
	}
}

func TestOllamaNoTools(t *testing.T) {
	e := at(t, plain, 2048)
	if s, err := ollama.Show(t.Context(), e); err != nil || !s.NoTools {
		t.Skipf("%s takes tools", e.ID)
	}
	if o := ask(t, model(e), llm.Request{Messages: user("Hi."), Tools: []llm.ToolSpec{read}}); o.err == nil || o.err.Kind != llm.KindNoTools {
		t.Errorf("%+v, %v", o.reply, o.err)
	}
}

// TestOllamaCalls lets a grammar hold the model to the form of a call; the
// server's own reader of calls makes one of it.
func TestOllamaCalls(t *testing.T) {
	e := at(t, tooled, 4096)
	form := json.RawMessage(`{"type":"object","properties":{"name":{"type":"string","enum":["read"]},
		"parameters":{"type":"object","properties":{"path":{"type":"string","enum":["a.txt","b.txt"]}},"required":["path"]}},"required":["name","parameters"]}`)
	if e.ID != env(t, plain) { // made for this; a model of a hub knows how to call
		e.HTTP = &forced{fields: map[string]any{"format": form}}
	}
	calls(t, model(e))
}
