package app

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/ollama"
	"github.com/inspan/inspan/llm/openai"
)

// probeTime bounds the question a local server is asked before a session starts.
const probeTime = 2 * time.Second

// Found is what a provider says it has.
type Found struct {
	Provider Provider
	Models   []llm.Info
	Err      error // why nothing is known
}

// Discover asks the servers at home, all at once, what they have. Those that do
// not answer are left out.
func (a *App) Discover(ctx context.Context) []Found {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	var home []Provider
	for _, p := range a.Providers() {
		if p.stays() && p.Ready {
			home = append(home, p)
		}
	}
	found := make([]Found, len(home))
	var wait sync.WaitGroup
	for i, p := range home {
		wait.Go(func() { found[i] = a.discover(ctx, p) })
	}
	wait.Wait()
	var there []Found
	for _, f := range found {
		if f.Err == nil {
			there = append(there, f)
		}
	}
	return there
}

// DiscoverAt asks one provider, wherever it is.
func (a *App) DiscoverAt(ctx context.Context, name string) (Found, error) {
	for _, p := range a.Providers() {
		if p.Name == name {
			f := a.discover(ctx, p)
			return f, f.Err
		}
	}
	return Found{}, configError{fmt.Errorf("no provider %q; see 'inspan models'", name)}
}

func (a *App) discover(ctx context.Context, p Provider) Found {
	at := a.endpoint(p, "")
	f := Found{Provider: p}
	switch p.Kind {
	case "openai", "openai-responses":
		f.Models, f.Err = openai.Discover(ctx, at)
	case "ollama":
		f.Models, f.Err = ollama.Discover(ctx, at)
	default:
		f.Err = fmt.Errorf("%s has no list that inspan reads", p.Name)
	}
	return f
}

// probe asks a server at home for what the settings leave open of a model. One
// that does not answer leaves it open.
func (a *App) probe(ctx context.Context, at *llm.Endpoint, p Provider) llm.Info {
	if !p.stays() {
		return llm.Info{}
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	for _, m := range a.discover(ctx, p).Models {
		if m.Model == at.ID {
			if at.Window == 0 {
				at.Window = m.Window
			}
			at.Images = at.Images || m.Images
			return m
		}
	}
	return llm.Info{}
}
