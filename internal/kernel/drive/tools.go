package drive

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/safety/guard"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// toolbox holds the current tools of the session.
type toolbox struct {
	cfg     *Config
	journal *journal
	marker  *guard.Marker

	byName  map[string]tool.Tool // wrapped
	specs   []llm.ToolSpec       // of the tools that the model is told about
	fixed   int                  // how many of specs every run starts with; they come first
	direct  []llm.ToolSpec       // of Dynamic.Directing
	directs bool                 // specs contain direct, after the fixed ones
	written []loop.Written       // tools written by the model that are in the box; the last of specs
	left    []string             // why tools were left out
	servers []event.Server       // as last stored
}

// gather collects the tools of the agent and the dynamic ones.
func (b *toolbox) gather(ctx context.Context) error {
	byName, specs, redact := map[string]tool.Tool{}, []llm.ToolSpec{}, b.cfg.Secrets.Vault.Redact
	for _, t := range b.cfg.Tools {
		if _, twice := byName[t.Name]; twice {
			return fmt.Errorf("two tools are named %q", t.Name)
		}
		byName[t.Name] = b.wrapped(t)
		specs = append(specs, t.Spec())
	}
	b.left, b.direct = nil, nil
	if b.cfg.Dynamic.Tools != nil {
		shown, hidden := b.cfg.Dynamic.Tools(ctx)
		for i, t := range slices.Concat(shown, hidden) {
			_, twice := byName[t.Name]
			switch {
			case redact(t.Name) != t.Name:
				b.left = append(b.left, fmt.Sprintf("a tool has a secret in its name, %q; it is left out", t.Name))
				continue
			case twice:
				b.left = append(b.left, fmt.Sprintf("two tools are named %q; the later one is left out", t.Name))
				continue
			}
			byName[t.Name] = b.wrapped(t)
			if i < len(shown) {
				specs = append(specs, t.Spec())
			} else if slices.Contains(b.cfg.Dynamic.Directing, t.Name) {
				b.direct = append(b.direct, t.Spec())
			}
		}
	}
	b.byName, b.specs = byName, b.cfg.Secrets.Tools(specs)
	b.written, b.directs, b.fixed = nil, false, len(b.specs)
	b.journal.mu.Lock()
	written, directs := b.journal.state.WrittenTools, b.journal.state.ManagesChildren()
	b.journal.mu.Unlock()
	b.add(ctx, directs, written)
	return nil
}

// add replaces the tools that follow from the log, which come after all others: the tools for working with
// subagents, and those written by the model.
func (b *toolbox) add(ctx context.Context, directs bool, list []loop.Written) {
	first := b.fixed // of the tools written by the model
	if b.directs {
		first += len(b.direct)
	}
	for _, spec := range b.specs[first:] {
		delete(b.byName, spec.Name)
	}
	b.directs, b.written, b.specs = directs, list, b.specs[:b.fixed:b.fixed]
	if directs {
		b.specs = append(b.specs, b.cfg.Secrets.Tools(b.direct)...)
	}
	if b.cfg.Dynamic.Proposed == nil {
		return
	}
	for _, w := range list {
		t, err := b.cfg.Dynamic.Proposed(ctx, w.Proposal)
		if _, twice := b.byName[t.Name]; err == nil && (twice || t.Name != w.Name || b.cfg.Secrets.Vault.Redact(t.Name) != t.Name) {
			err = errors.New("it can't have that name")
		}
		if err != nil {
			b.left = append(b.left, fmt.Sprintf("the tool %q that the model wrote is left out: %v", w.Name, err))
			continue
		}
		b.byName[t.Name] = b.wrapped(t)
		b.specs = append(b.specs, b.cfg.Secrets.Tools([]llm.ToolSpec{t.Spec()})...)
	}
}

// grown adds tools that follow from the log since the model was last told about its tools, and reports whether
// there were any.
func (b *toolbox) grown(ctx context.Context) (some bool, err error) {
	state := b.journal.state
	directs := state.ManagesChildren()
	if (directs == b.directs || len(b.direct) == 0) && (b.cfg.Dynamic.Proposed == nil || slices.Equal(b.written, state.WrittenTools)) {
		return false, nil
	}
	b.left = nil
	b.add(ctx, directs, state.WrittenTools)
	out := b.clashes()
	tools, told := b.retooled(false)
	if tools != nil {
		out = append(out, event.Switched{Tools: tools})
	}
	return true, b.journal.record(ctx, append(out, told...)...)
}

// renewed collects the tools again, and returns the changes since the last run.
func (b *toolbox) renewed(ctx context.Context) []event.Body {
	if b.cfg.Dynamic.Tools == nil {
		return nil
	}
	before := b.left
	if err := b.gather(ctx); err != nil {
		return []event.Body{event.Note{Topic: "tools", Text: err.Error()}}
	}
	var out []event.Body
	if !reflect.DeepEqual(before, b.left) {
		out = b.clashes()
	}
	tools, told := b.retooled(false)
	if tools != nil {
		out = append(out, event.Switched{Tools: tools})
	}
	return append(out, told...)
}

// clashes returns notes on tools that were left out.
func (b *toolbox) clashes() []event.Body {
	var out []event.Body
	for _, why := range b.left {
		out = append(out, event.Note{Topic: "tools", Text: why})
	}
	return out
}

// meetServers waits for MCP servers, unless there is an interrupt, and stores their state if it has changed. It
// collects the tools again even if it waited for no server: a server that connected since the run began would
// otherwise be called ready without its tools.
func (b *toolbox) meetServers(ctx context.Context) error {
	if b.cfg.Dynamic.Servers == nil {
		return nil
	}
	watched, done := b.journal.interruptible(ctx)
	var gone error
	list := b.cfg.Dynamic.Servers(watched, func(text string) { gone = b.journal.show(event.Progress{Text: text}) })
	done()
	out := b.renewed(ctx)
	if len(list) > 0 && !slices.Equal(list, b.servers) {
		b.servers = list
		out = append(out, event.Served{Servers: list})
	}
	if gone != nil || len(out) == 0 {
		return gone
	}
	return b.journal.record(ctx, out...)
}

// missedServers stores the state of the servers if one needs a person's help since the run began. Known servers
// are not waited for, so they may fail later.
func (b *toolbox) missedServers(ctx context.Context) error {
	if b.cfg.Dynamic.Servers == nil {
		return nil
	}
	now, cancel := context.WithCancel(ctx)
	cancel() // don't wait here either
	list := b.cfg.Dynamic.Servers(now, func(string) {})
	if !slices.ContainsFunc(list, func(s event.Server) bool {
		return s.State != "ready" && s.State != "connecting" && s.State != "off" && !slices.Contains(b.servers, s)
	}) {
		return nil
	}
	b.servers = list
	return b.journal.record(ctx, event.Served{Servers: list})
}
