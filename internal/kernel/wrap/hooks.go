package wrap

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/inspan/inspan/internal/kernel/fault"
	"github.com/inspan/inspan/internal/kernel/redact"
	"github.com/inspan/inspan/internal/safety/secret"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Hear asks a hook. A panic becomes an error.
func Hear(ctx context.Context, h tool.Hook, p tool.Point) (out tool.Outcome, err error) {
	defer fault.Recover("the hook", nil, &err)
	return h.At(ctx, p)
}

// SaidBy returns a hook's text for the model, with its source.
func SaidBy(out tool.Outcome) string {
	by := out.By
	if by == "" {
		by = "a hook"
	}
	return fmt.Sprintf("[%s says; it is not the person:]\n%s", by, strings.TrimSpace(out.Text))
}

// OnNewLine returns the parts of a result with a text appended on a new line.
func OnNewLine(parts llm.Parts, text string) llm.Parts {
	if before := parts.Text(); before != "" && !strings.HasSuffix(before, "\n") {
		text = "\n" + text
	}
	return append(parts[:len(parts):len(parts)], llm.Text{Text: text})
}

// Suspended reports whether a call that makes nested calls was stopped, or returned tool.ErrHeld, and will run again.
func Suspended(ctx context.Context, err error) bool {
	return errors.Is(err, tool.ErrHeld) || ctx.Err() != nil && !errors.Is(context.Cause(ctx), fault.ErrInterrupted)
}

// Hooks lets hooks see, extend or replace the result of a call. Like judges they see placeholders instead of
// secrets.
func Hooks(hooks []tool.Hook, vault *secret.Vault) Wrapper {
	return func(t tool.Tool) tool.Tool {
		if len(hooks) == 0 {
			return t
		}
		run := t.Run
		t.Run = func(ctx context.Context, c *tool.Call) (tool.Result, error) {
			res, err := run(ctx, c)
			if t.Calls && Suspended(ctx, err) {
				return res, err // it will run again
			}
			seen := *c
			seen.Args, seen.Cwd = redact.Texts(c.Args, vault.Redact), vault.Redact(c.Cwd)
			seen.Seen = func(path string) (string, bool) { return c.Seen.Digest(vault.Resolve(path)) }
			for _, h := range hooks {
				res, err = afterCall(ctx, h, &seen, res, err)
			}
			return res, err
		}
		return t
	}
}

func afterCall(ctx context.Context, h tool.Hook, c *tool.Call, res tool.Result, failed error) (tool.Result, error) {
	p := tool.Point{Moment: tool.AfterCall, Session: c.Session, Who: c.Who, Root: c.Env.Root, Mode: c.Mode, Call: c, Result: &res}
	if failed != nil {
		p.Failed = failed.Error()
	}
	out, err := Hear(ctx, h, p)
	if out.Result != nil {
		// A hook replaces only the parts; the log keeps the facts about files, exit code and so on.
		res.Parts = out.Result.Parts
		if failed != nil {
			failed = errors.New("the call failed; see above")
		}
	}
	if err != nil {
		out.Text = strings.TrimSpace(out.Text + "\n(a hook failed: " + err.Error() + ")")
	}
	if out.Text != "" {
		res.Parts = OnNewLine(res.Parts, SaidBy(out))
	}
	return res, failed
}
