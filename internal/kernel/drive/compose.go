package drive

import (
	"github.com/inspan/inspan/internal/kernel/request"
	"github.com/inspan/inspan/internal/kernel/wrap"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// This file lists every wrapper of a judge, a model or a tool, in order. Two kinds of influence are elsewhere: hooks.go
// asks hooks at other moments of a session, and calls.toolCall confines the environment of each call.

// judges returns the judges that decide on a call after the policy. policy.Combine combines their verdicts.
func (c *Config) judges() []tool.Judge {
	judges := c.Judges
	for _, h := range c.Hooks {
		judges = append(judges[:len(judges):len(judges)], hookJudge{h})
	}
	return judges
}

// model returns the model with its wrappers, the outermost last.
func (c *Config) model() llm.Model {
	m := c.Model
	for _, wrapper := range []func(llm.Model) llm.Model{
		request.Steady, // turns a panic into a failed reply
		c.Retry.Wrap,   // retries failed replies
	} {
		m = wrapper(m)
	}
	return m
}

// wrapped wraps a tool, the outermost wrapper last.
func (b *toolbox) wrapped(t tool.Tool) tool.Tool {
	vault := b.cfg.Secrets.Vault
	for _, wrapper := range []wrap.Wrapper{
		wrap.Taint,   // marks results of tools whose nested calls saw untrusted text
		wrap.Recover, // for the tool, which runs in a goroutine of its own below wrap.Limit
		wrap.Limit(b.cfg.CallTime),
		wrap.Redact(vault), // before the marker spells out hidden characters, which may be part of a secret
		b.marker.Wrap,
		wrap.Redact(vault), // again, because hidden characters may have split a secret
		wrap.Hooks(b.cfg.Hooks, vault),
		wrap.Spill(wrap.ResultSize(b.cfg.Model.Info().Window)), // after the hooks, which see the whole result
		wrap.Recover, // for the wrappers
	} {
		t = wrapper(t)
	}
	return t
}
