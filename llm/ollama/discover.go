package ollama

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/internal/wire"
)

// asked is the number of models that a server is asked about at once.
const asked = 8

// listed is a model in a server's list.
type listed struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
}

// Discover returns the chat models of a server, in its order. Window is the maximum that a model was trained for,
// which may be far more than fits into the machine's memory: see [Shape.Fit]. A model that the server can't
// describe is listed with its name only.
//
// ID, Window, MaxOutput, Prices and Images of at are ignored. Deadlines.Total bounds the whole call; 0 means 30 s.
// The error is an [*llm.Error].
func Discover(ctx context.Context, at llm.Endpoint) ([]llm.Info, error) {
	c := newClient(at)
	ctx, cancel := wire.Within(ctx, c.Endpoint, c.provider, askTimeout)
	defer cancel()
	models, err := c.list(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]described, len(models))
	turns := make(chan struct{}, asked)
	var wait sync.WaitGroup
	for i, m := range models {
		wait.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			one := c
			one.ID = m.Name
			all[i], _ = one.describe(ctx, false) // the name is known in any case
		})
	}
	wait.Wait()
	if ctx.Err() != nil {
		return nil, llm.AsError(context.Cause(ctx))
	}
	infos := make([]llm.Info, 0, len(models))
	for i, d := range all {
		if d.Capabilities == nil || slices.Contains(d.Capabilities, "completion") {
			infos = append(infos, d.info(c.provider, models[i].Name))
		}
	}
	return infos, nil
}

func (c client) list(ctx context.Context) ([]listed, error) {
	var tags struct {
		Models []listed `json:"models"`
	}
	err := c.ask(ctx, "/api/tags", nil, &tags)
	return tags.Models, err
}

// described is a server's description of a model. Capabilities is nil if the server is too old to know them.
type described struct {
	Capabilities []string                   `json:"capabilities"`
	ModelInfo    map[string]json.RawMessage `json:"model_info"`
}

// describe asks about the client's model; inFull includes the long lists.
func (c client) describe(ctx context.Context, inFull bool) (d described, err error) {
	question := map[string]any{"model": c.ID, "name": c.ID} // old servers need the name
	if inFull {
		question["verbose"] = true
	}
	err = c.ask(ctx, "/api/show", question, &d)
	return d, err
}

func (d described) info(provider, name string) llm.Info {
	return llm.Info{
		Provider: provider, Model: name, Window: int(d.number("context_length")),
		Images:  slices.Contains(d.Capabilities, "vision"),
		NoTools: d.Capabilities != nil && !slices.Contains(d.Capabilities, "tools"),
	}
}

// Show asks a server about the model at.ID. Deadlines.Total bounds the whole; 0
// means 30 s. The error is an [*llm.Error].
func Show(ctx context.Context, at llm.Endpoint) (Shape, error) {
	c := newClient(at)
	ctx, cancel := wire.Within(ctx, c.Endpoint, c.provider, askTimeout)
	defer cancel()
	d, err := c.describe(ctx, false)
	if err != nil {
		return Shape{}, err
	}
	if d.elided() {
		if d, err = c.describe(ctx, true); err != nil {
			return Shape{}, err
		}
	}
	s := Shape{Info: d.info(c.provider, c.ID), PerToken: d.perToken()}
	models, err := c.list(ctx)
	if err != nil {
		return Shape{}, fmt.Errorf("list models: %w", err)
	}
	for _, m := range models {
		if same(m.Name, c.ID) {
			s.Weights = m.Size
		}
	}
	p, taken, ok := c.loaded(ctx)
	if s.Taken = taken; ok {
		s.Loaded, s.OnCPU = p.Count, max(p.Size-p.VRAM, 0)
	}
	return s, nil
}
