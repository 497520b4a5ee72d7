package providers

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/inspan/inspan/internal/extend/profile"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/anthropic"
	"github.com/inspan/inspan/llm/gemini"
	"github.com/inspan/inspan/llm/ollama"
	"github.com/inspan/inspan/llm/openai"
)

// probeTime bounds the request to a local server before a session starts.
const probeTime = 2 * time.Second

// Found is a provider's model list.
type Found struct {
	Provider Provider
	Models   []llm.Info
	Err      error // why the list is missing
	Open     bool  // the list needs no key, so it doesn't prove a key
}

// Discover requests the model lists of local servers concurrently. Servers that don't respond are left out.
func (s *Set) Discover(ctx context.Context) []Found {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	var home []Provider
	for _, p := range s.List() {
		if p.Stays() && p.Ready {
			home = append(home, p)
		}
	}
	found := make([]Found, len(home))
	var wait sync.WaitGroup
	for i, p := range home {
		wait.Go(func() { found[i] = s.discover(ctx, p) })
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

// DiscoverAt requests the model list of one provider, local or not.
func (s *Set) DiscoverAt(ctx context.Context, name string) (Found, error) {
	for _, p := range s.List() {
		if p.Name == name {
			f := s.discover(ctx, p)
			if f.Err != nil {
				f.Err = s.advise(ctx, p, "", llm.AsError(f.Err))
			}
			return f, f.Err
		}
	}
	return Found{}, config.Error{Err: fmt.Errorf("no provider %q; see 'inspan models'", name)}
}

// Try requests the model list of a provider with a key that is not stored yet. A list proves the key, unless it
// needs none.
func (s *Set) Try(ctx context.Context, p Provider, key string) Found {
	at := s.Endpoint(p, "")
	at.Key = func(context.Context) (string, error) { return key, nil }
	f := list(ctx, p, at)
	if e := llm.AsError(f.Err); e != nil && e.Kind != llm.KindAuth {
		f.Err = s.advise(ctx, p, "", e)
	}
	return f
}

func (s *Set) discover(ctx context.Context, p Provider) Found { return list(ctx, p, s.Endpoint(p, "")) }

// list requests the model list at an address.
func list(ctx context.Context, p Provider, at llm.Endpoint) Found {
	f := Found{Provider: p, Open: p.Dialect == "huggingface"}
	switch p.Kind {
	case "openai", "openai-responses":
		f.Models, f.Err = openai.Discover(ctx, at)
	case "ollama":
		f.Models, f.Err = ollama.Discover(ctx, at)
	case "anthropic":
		f.Models, f.Err = anthropic.Discover(ctx, at)
	case "gemini":
		f.Models, f.Err = gemini.Discover(ctx, at)
	default:
		f.Err = fmt.Errorf("inspan can't list the models of %s; name them as %s/MODEL", p.Name, p.Name)
	}
	return f
}

// probe asks a local server for facts about a model that the settings don't set, and whether it supports tools.
// If the server doesn't respond, they stay unset.
func (s *Set) probe(ctx context.Context, at *llm.Endpoint, p Provider) (noTools bool) {
	if !p.Stays() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	var known llm.Info
	if p.Kind == "ollama" {
		shape, err := ollama.Show(ctx, *at)
		if err != nil {
			return false
		}
		known = shape.Info
		if at.Window == 0 { // querying the devices runs a program or two
			known.Window = shape.Fit(s.Room(ctx, p, shape))
		}
	} else {
		for _, m := range s.discover(ctx, p).Models {
			if m.Model == at.ID {
				known = m
			}
		}
	}
	at.Window = cmp.Or(at.Window, known.Window)
	at.Images = at.Images || known.Images
	return known.NoTools
}

// Room returns how many bytes of graphics memory a model may use on its server: the free memory, plus that of
// the server's loaded models, which it can unload. 0: unknown, as on another machine.
func (s *Set) Room(ctx context.Context, p Provider, shape ollama.Shape) int64 {
	if !p.here() {
		return 0
	}
	devices := Devices(ctx)
	return min(profile.Memory(devices), profile.Free(devices)+shape.Taken)
}

// Devices returns the current state of the machine's graphics processors.
func Devices(ctx context.Context) []profile.Device {
	run := func(ctx context.Context, args ...string) (string, error) { return sandbox.Output(ctx, nil, args...) }
	return profile.Devices(ctx, run, os.DirFS("/sys"))
}
