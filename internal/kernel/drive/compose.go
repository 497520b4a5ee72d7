package drive

import (
	"github.com/inspan/inspan/internal/kernel/request"
	"github.com/inspan/inspan/internal/kernel/wrap"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// The three places where behaviour is composed. Observers read events; everything that changes a judge, a model or a
// tool is listed here, in order. Two things are elsewhere: hooks.go asks the hooks at the other moments, and
// calls.runnable confines the environment of each call that starts.

// judges returns who decides about a call after the policy, which is asked first. See policy.Combine for how
// verdicts are combined.
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
		request.Steady, // a panic becomes a failed reply
		c.Retry.Wrap,   // and is retried like one
	} {
		m = wrapper(m)
	}
	return m
}

// wrapped wraps a tool, the outermost wrapper last.
func (b *toolbox) wrapped(t tool.Tool) tool.Tool {
	vault := b.cfg.Secrets.Vault
	for _, wrapper := range []wrap.Wrapper{
		wrap.Taint,   // marks what its own calls have seen
		wrap.Recover, // for the tool, which has a goroutine of its own
		wrap.Limit(b.cfg.CallTime),
		wrap.Redact(vault), // before the marker spells out hidden characters, which changes the text of a secret
		b.marker.Wrap,
		wrap.Redact(vault), // and after it, since hidden characters may have split a secret
		wrap.Hooks(b.cfg.Hooks, vault),
		wrap.Spill(wrap.ResultSize(b.cfg.Model.Info().Window)), // after the hooks, which see the whole result
		wrap.Recover, // for hooks and blobs
	} {
		t = wrapper(t)
	}
	return t
}
