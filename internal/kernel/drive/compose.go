package drive

import (
	"github.com/inspan/inspan/internal/kernel/request"
	"github.com/inspan/inspan/internal/kernel/wrap"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// The three places where behaviour is composed, and the only ones. What observes reads events; what
// changes is put in here, in this order.

// judges say whether a call may happen, after the policy, which is asked first. See policy.Combine for how
// their verdicts become one.
func (c *Config) judges() []tool.Judge {
	judges := c.Judges
	for _, h := range c.Hooks {
		judges = append(judges[:len(judges):len(judges)], hookJudge{h})
	}
	return judges
}

// model wraps the model, the outermost wrapper last.
func (c *Config) model() llm.Model {
	m := c.Model
	for _, wrapper := range []func(llm.Model) llm.Model{
		request.Steady, // a panic is a failed reply
		c.Retry.Wrap,   // and is retried as one
	} {
		m = wrapper(m)
	}
	return m
}

// wrapped wraps a tool, the outermost wrapper last.
func (b *toolbox) wrapped(t tool.Tool) tool.Tool {
	vault := b.cfg.Secrets.Vault
	for _, wrapper := range []wrap.Wrapper{
		wrap.Taint,   // what its own calls saw
		wrap.Recover, // the tool, which has a goroutine of its own
		wrap.Limit(b.cfg.CallTime),
		wrap.Redact(vault), // before the marker spells out hidden characters, which changes the text of a secret
		b.marker.Wrap,
		wrap.Redact(vault), // and after it, as hidden characters may have split a secret
		wrap.Hooks(b.cfg.Hooks, vault),
		wrap.Spill(wrap.ResultSize(b.cfg.Model.Info().Window)), // after the hooks, which see the result whole
		wrap.Recover, // hooks and blobs
	} {
		t = wrapper(t)
	}
	return t
}
