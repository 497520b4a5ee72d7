package wrap

import (
	"context"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/redact"
	"github.com/inspan/inspan/internal/safety/secret"
	"github.com/inspan/inspan/tool"
)

// Redact removes secrets from results, including parts of secrets that the call received.
func Redact(vault *secret.Vault) Wrapper {
	return func(t tool.Tool) tool.Tool {
		run := t.Run
		t.Run = func(ctx context.Context, c *tool.Call) (tool.Result, error) {
			given := vault.Pieces(string(redact.Texts(c.Args, vault.Redact)))
			clear := func(text string) string { return given.HideWords(vault.Redact(text)) }
			res, err := run(ctx, quiet(c, clear))
			if err != nil {
				err = redact.Error{Err: err, Text: clear(err.Error())}
			}
			res = redact.Result(res, vault)
			apart := redact.MapText(event.Ended{Parts: res.Parts, Show: res.Show}, given.HideWords).(event.Ended)
			res.Parts, res.Show = apart.Parts, apart.Show
			return res, err
		}
		return t
	}
}

// quiet returns the call with secrets removed from its progress, its questions and the end of its job.
func quiet(c *tool.Call, clear func(string) string) *tool.Call {
	own := *c
	own.Progress = func(text string) { c.Progress(clear(text)) }
	if c.Ask != nil {
		own.Ask = func(ctx context.Context, question string, options []string) (string, error) {
			return c.Ask(ctx, clear(question), options)
		}
	}
	if c.Finished != nil {
		own.Finished = func(end tool.JobEnd) {
			end.Line, end.Error = clear(end.Line), clear(end.Error)
			c.Finished(end)
		}
	}
	return &own
}
