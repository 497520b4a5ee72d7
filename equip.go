package inspan

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/loop"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// toolbox holds the tools that a session has by now. Guarded by its lock for driving.
type toolbox struct {
	tools map[string]tool.Tool // wrapped
	specs []llm.ToolSpec       // of those that the model is told of
	left  []string             // why tools were left out
	wrote []loop.Written       // by the model, as far as it is here
	given int                  // of specs, which the model has not written
}

// equip gathers the tools of the agent and those that come and go.
func (s *Session) equip(ctx context.Context) error {
	tools, specs := map[string]tool.Tool{}, []llm.ToolSpec{}
	for _, t := range s.agent.Tools {
		if _, twice := tools[t.Name]; twice {
			return fmt.Errorf("two tools are named %q", t.Name)
		}
		tools[t.Name] = s.agent.tool(t, s.marker, s.vault)
		specs = append(specs, t.Spec())
	}
	s.left = nil
	if s.agent.Extra != nil {
		shown, hidden := s.agent.Extra(ctx)
		for i, t := range append(shown[:len(shown):len(shown)], hidden...) {
			_, twice := tools[t.Name]
			switch {
			case s.vault.Redact(t.Name) != t.Name:
				s.left = append(s.left, fmt.Sprintf("a tool has a secret in its name, %q; it is left out", t.Name))
				continue
			case twice:
				s.left = append(s.left, fmt.Sprintf("two tools are named %q; the later one is left out", t.Name))
				continue
			}
			tools[t.Name] = s.agent.tool(t, s.marker, s.vault)
			if i < len(shown) {
				specs = append(specs, t.Spec())
			}
		}
	}
	s.tools, s.specs = tools, s.redactedTools(specs)
	s.wrote, s.given = nil, len(s.specs)
	s.mu.Lock()
	written := s.state.Written
	s.mu.Unlock()
	s.write(ctx, s, written)
	return nil
}

// write has the tools that the model of a session has written stand behind all others, and no others
// of its.
func (b *toolbox) write(ctx context.Context, s *Session, list []loop.Written) {
	if s.agent.Written == nil {
		return
	}
	for _, spec := range b.specs[b.given:] {
		delete(b.tools, spec.Name)
	}
	b.wrote, b.specs = list, b.specs[:b.given:b.given]
	for _, w := range list {
		t, err := s.agent.Written(ctx, w.Proposal)
		if _, twice := b.tools[t.Name]; err == nil && (twice || t.Name != w.Name || s.vault.Redact(t.Name) != t.Name) {
			err = errors.New("it can't have that name")
		}
		if err != nil {
			b.left = append(b.left, fmt.Sprintf("the tool %q that the model wrote is left out: %v", w.Name, err))
			continue
		}
		b.tools[t.Name] = s.agent.tool(t, s.marker, s.vault)
		b.specs = append(b.specs, s.redactedTools([]llm.ToolSpec{t.Spec()})...)
	}
}

// written brings in what the model has written since it was told of its tools, and nothing else that
// comes and goes. It reports whether there was anything.
func (d *driver) written(ctx context.Context) (some bool, err error) {
	if d.agent.Written == nil || slices.Equal(d.wrote, d.state.Written) {
		return false, nil
	}
	d.left = nil
	d.write(ctx, d.Session, d.state.Written)
	return true, d.record(ctx, append(d.clashes(), event.Switched{Tools: d.specs})...)
}

// renewed is what has changed of the tools since the last run.
func (d *driver) renewed(ctx context.Context) []event.Body {
	if d.agent.Extra == nil {
		return nil
	}
	before := d.left
	if err := d.equip(ctx); err != nil {
		return []event.Body{event.Note{Topic: "tools", Text: err.Error()}}
	}
	var out []event.Body
	if !reflect.DeepEqual(before, d.left) {
		out = d.clashes()
	}
	tools, told := d.retooled(false)
	if tools != nil {
		out = append(out, event.Switched{Tools: tools})
	}
	return append(out, told...)
}

// meet waits for servers, unless somebody interrupts, and stores how they are if that is
// news. Their tools are gathered again after it, also if none was waited for: a server that
// connected since the run began would otherwise be called ready without its tools.
func (d *driver) meet(ctx context.Context) error {
	if d.agent.Servers == nil {
		return nil
	}
	watched, done := d.interruptible(ctx)
	var broken error
	list := d.agent.Servers(watched, func(text string) { broken = d.show(event.Progress{Text: text}) })
	done()
	out := d.renewed(ctx)
	if len(list) > 0 && !slices.Equal(list, d.served) {
		d.served = list
		out = append(out, event.Served{Servers: list})
	}
	if broken != nil || len(out) == 0 {
		return broken
	}
	return d.record(ctx, out...)
}

// missed stores how the servers are, if one has come to need somebody since the run began:
// those that are known are not waited for, so they may have failed beside it.
func (d *driver) missed(ctx context.Context) error {
	if d.agent.Servers == nil {
		return nil
	}
	now, cancel := context.WithCancel(ctx)
	cancel() // nobody is waited for here either
	list := d.agent.Servers(now, func(string) {})
	if !slices.ContainsFunc(list, func(s event.Server) bool {
		return s.State != "ready" && s.State != "connecting" && s.State != "off" && !slices.Contains(d.served, s)
	}) {
		return nil
	}
	d.served = list
	return d.record(ctx, event.Served{Servers: list})
}

// clashes tells of tools that were left out.
func (b *toolbox) clashes() []event.Body {
	var out []event.Body
	for _, why := range b.left {
		out = append(out, event.Note{Topic: "tools", Text: why})
	}
	return out
}
