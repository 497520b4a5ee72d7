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

	byName           map[string]tool.Tool // wrapped
	specs            []llm.ToolSpec       // of the tools that the model knows, in the order of the next three fields
	fixed            int                  // how many of specs come from Config
	subagentTools    []llm.ToolSpec       // of Dynamic.SubagentTools
	hasSubagentTools bool                 // specs contain subagentTools
	written          []loop.Written       // tools written by the model
	leftOut          []string             // why tools were left out
	servers          []event.Server       // as last stored
}

// gather collects the tools of the agent, the dynamic ones, and those that follow from the log.
func (b *toolbox) gather(ctx context.Context) error {
	byName, specs, redact := map[string]tool.Tool{}, []llm.ToolSpec{}, b.cfg.Secrets.Vault.Redact
	for _, t := range b.cfg.Tools {
		if _, twice := byName[t.Name]; twice {
			return fmt.Errorf("two tools are named %q", t.Name)
		}
		byName[t.Name] = b.wrapped(t)
		specs = append(specs, t.Spec())
	}
	b.leftOut, b.subagentTools = nil, nil
	if b.cfg.Dynamic.Tools != nil {
		shown, hidden := b.cfg.Dynamic.Tools(ctx)
		for i, t := range slices.Concat(shown, hidden) {
			_, twice := byName[t.Name]
			switch {
			case redact(t.Name) != t.Name:
				b.leftOut = append(b.leftOut, fmt.Sprintf("a tool has a secret in its name, %q; it is left out", t.Name))
				continue
			case twice:
				b.leftOut = append(b.leftOut, fmt.Sprintf("two tools are named %q; the later one is left out", t.Name))
				continue
			}
			byName[t.Name] = b.wrapped(t)
			if i < len(shown) {
				specs = append(specs, t.Spec())
			} else if slices.Contains(b.cfg.Dynamic.SubagentTools, t.Name) {
				b.subagentTools = append(b.subagentTools, t.Spec())
			}
		}
	}
	b.byName, b.specs = byName, b.cfg.Secrets.Tools(specs)
	b.written, b.hasSubagentTools, b.fixed = nil, false, len(b.specs)
	b.journal.mu.Lock()
	written, directs := b.journal.state.WrittenTools, b.journal.state.ManagesChildren()
	b.journal.mu.Unlock()
	b.addFromLog(ctx, directs, written)
	return nil
}

// addFromLog replaces the tools that follow from the log: the tools for managing subagents, and tools written by the
// model. They come after all others.
func (b *toolbox) addFromLog(ctx context.Context, directs bool, list []loop.Written) {
	first := b.fixed // index of the first tool written by the model
	if b.hasSubagentTools {
		first += len(b.subagentTools)
	}
	for _, spec := range b.specs[first:] {
		delete(b.byName, spec.Name)
	}
	b.hasSubagentTools, b.written, b.specs = directs, list, b.specs[:b.fixed:b.fixed]
	if directs {
		b.specs = append(b.specs, b.cfg.Secrets.Tools(b.subagentTools)...)
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
			b.leftOut = append(b.leftOut, fmt.Sprintf("the tool %q that the model wrote is left out: %v", w.Name, err))
			continue
		}
		b.byName[t.Name] = b.wrapped(t)
		b.specs = append(b.specs, b.cfg.Secrets.Tools([]llm.ToolSpec{t.Spec()})...)
	}
}

// addNew adds tools that have followed from the log since the model was last told about its tools. It reports whether
// there were any.
func (b *toolbox) addNew(ctx context.Context) (added bool, err error) {
	state := b.journal.state
	directs := state.ManagesChildren()
	if (directs == b.hasSubagentTools || len(b.subagentTools) == 0) && (b.cfg.Dynamic.Proposed == nil || slices.Equal(b.written, state.WrittenTools)) {
		return false, nil
	}
	b.leftOut = nil
	b.addFromLog(ctx, directs, state.WrittenTools)
	return true, b.journal.record(ctx, append(b.leftOutNotes(), b.changeEvents()...)...)
}

// collectAgain collects the tools again, and returns events for the changes since the last run.
func (b *toolbox) collectAgain(ctx context.Context) []event.Body {
	if b.cfg.Dynamic.Tools == nil {
		return nil
	}
	before := b.leftOut
	if err := b.gather(ctx); err != nil {
		return []event.Body{event.Note{Topic: "tools", Text: err.Error()}}
	}
	var out []event.Body
	if !reflect.DeepEqual(before, b.leftOut) {
		out = b.leftOutNotes()
	}
	return append(out, b.changeEvents()...)
}

// leftOutNotes returns notes on tools that were left out.
func (b *toolbox) leftOutNotes() []event.Body {
	var out []event.Body
	for _, why := range b.leftOut {
		out = append(out, event.Note{Topic: "tools", Text: why})
	}
	return out
}

// awaitServers waits for MCP servers, unless there is an interrupt, and stores their states if they have changed. It
// collects the tools again even if it did not wait: otherwise a server that has just connected would count as ready,
// but without its tools.
func (b *toolbox) awaitServers(ctx context.Context) error {
	if b.cfg.Dynamic.Servers == nil {
		return nil
	}
	watched, done := b.journal.interruptible(ctx)
	var gone error
	list := b.cfg.Dynamic.Servers(watched, func(text string) { gone = b.journal.show(event.Progress{Text: text}) })
	done()
	out := b.collectAgain(ctx)
	if len(list) > 0 && !slices.Equal(list, b.servers) {
		b.servers = list
		out = append(out, event.Served{Servers: list})
	}
	if gone != nil || len(out) == 0 {
		return gone
	}
	return b.journal.record(ctx, out...)
}

// storeServerTrouble stores the states of the servers if one has failed or needs a person since the run began. Runs
// don't wait for known servers, so these may fail later.
func (b *toolbox) storeServerTrouble(ctx context.Context) error {
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
