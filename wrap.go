package inspan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/secret"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

const (
	defaultCallTimeout = 15 * time.Minute
	maxResult          = 30_000  // bytes of one text of a result the model sees, in a large window
	leastResult        = 2_000   // and in any window
	maxBrought         = 500_000 // bytes of one that a call brings to the one which made it
)

// catching turns a panic of a tool, or of what is around it, into an error.
func catching(t tool.Tool) tool.Tool {
	run := t.Run
	t.Run = func(ctx context.Context, c *tool.Call) (res tool.Result, err error) {
		defer caught("the tool", nil, &err)
		return run(ctx, c)
	}
	return t
}

// grace is how long a call may take to stop once it was told to. One that delegates may
// take longer, as those who work for it have theirs.
const (
	grace          = 10 * time.Second
	graceDelegated = 3 * grace
)

var (
	errTimeout = errors.New("it took too long")
	errLeft    = errors.New("it did not stop when it was told to; what it still does is not known")
)

// limiting bounds the time that a call works, waits for people aside. Those of tools that
// delegate or make calls have no bound here: what works for them has its own. A call that
// does not stop when it is told to is left to itself, and its result is dropped.
func limiting(most time.Duration) func(tool.Tool) tool.Tool {
	if most <= 0 {
		most = defaultCallTimeout
	}
	return func(t tool.Tool) tool.Tool {
		run := t.Run
		t.Run = func(ctx context.Context, c *tool.Call) (tool.Result, error) {
			limited, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			limit, patience := &deadline{do: func() { cancel(errTimeout) }}, graceDelegated
			defer limit.end()
			if !t.Delegates && !t.Calls {
				limit.set(time.Now().Add(most))
				patience = grace
			}
			own := *c // what is left to itself must not change that of others
			own.Ask = holding(limit, c.Ask)
			res, err := leaving(limited, patience, func() (tool.Result, error) { return run(limited, &own) })
			if err != nil && errors.Is(context.Cause(limited), errTimeout) && ctx.Err() == nil {
				err = fmt.Errorf("stopped after %v, the longest a call may take: %w", most, err)
			}
			return res, err
		}
		return t
	}
}

// asking is how a call asks a person, see [tool.Call].
type asking = func(ctx context.Context, question string, options []string) (answer string, err error)

// holding lets the time of a call stand still while it waits for a person.
func holding(limit *deadline, ask asking) asking {
	if ask == nil {
		return nil
	}
	return func(ctx context.Context, question string, options []string) (string, error) {
		goOn := limit.hold()
		defer goOn()
		return ask(ctx, question, options)
	}
}

// leaving waits for what run brings, but no longer than for a time after ctx has ended.
func leaving(ctx context.Context, patience time.Duration, run func() (tool.Result, error)) (tool.Result, error) {
	type outcome struct {
		res tool.Result
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		res, err := run()
		done <- outcome{res, err}
	}()
	select {
	case o := <-done:
		return o.res, o.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case o := <-done:
		return o.res, o.err
	case <-timer.C:
		return tool.Result{}, errLeft
	}
}

// redacting takes secrets out of results, before anything of them is stored, and what a shell makes
// of those that the call was given.
func redacting(vault *secret.Vault) func(tool.Tool) tool.Tool {
	return func(t tool.Tool) tool.Tool {
		run := t.Run
		t.Run = func(ctx context.Context, c *tool.Call) (tool.Result, error) {
			given := vault.Pieces(string(mapTexts(c.Args, vault.Redact)))
			clear := func(text string) string { return given.HideWords(vault.Redact(text)) }
			res, err := run(ctx, saying(c, clear))
			if err != nil {
				err = redactedError{err, clear(err.Error())}
			}
			res = redactedResult(res, vault)
			apart := event.MapText(event.Ended{Parts: res.Parts, Show: res.Show}, given.HideWords).(event.Ended)
			res.Parts, res.Show = apart.Parts, apart.Show
			return res, err
		}
		return t
	}
}

// saying is a call that clears what it says while it runs, and of its job.
func saying(c *tool.Call, clear func(string) string) *tool.Call {
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

// resultSize is how many bytes of one text of a result a model sees whose window has so many
// tokens, if that is known: an eighth of them, at three and a half bytes each.
func resultSize(window int) int {
	if window == 0 {
		return maxResult
	}
	return max(leastResult, min(maxResult, window*7/16))
}

// spilling keeps big things out of the log: images and the middle of long
// texts go to blobs. The model is shown so many bytes of a text.
func spilling(shown int) func(tool.Tool) tool.Tool {
	return func(t tool.Tool) tool.Tool {
		run := t.Run
		t.Run = func(ctx context.Context, c *tool.Call) (tool.Result, error) {
			res, err := run(ctx, c)
			return spilledResult(ctx, c, res, shown), err
		}
		return t
	}
}

func spilledResult(ctx context.Context, c *tool.Call, res tool.Result, most int) tool.Result {
	if c.Parent != "" {
		most = maxBrought
	}
	for i, part := range res.Parts {
		switch p := part.(type) {
		case llm.Text:
			res.Parts[i] = spillText(context.WithoutCancel(ctx), c.Env.Blobs, p, most)
		case llm.Image:
			res.Parts[i] = spillImage(context.WithoutCancel(ctx), c.Env.Blobs, p)
		}
	}
	return res
}

// spilled is parts of which the images are in blobs.
func spilled(ctx context.Context, blobs tool.Blobs, parts llm.Parts) llm.Parts {
	out := slices.Clone(parts)
	for i, part := range out {
		if p, ok := part.(llm.Image); ok {
			out[i] = spillImage(ctx, blobs, p)
		}
	}
	return out
}

func spillText(ctx context.Context, blobs tool.Blobs, p llm.Text, most int) llm.Text {
	p.Text = strings.ToValidUTF8(p.Text, "\uFFFD")
	head, tail, dropped := tool.Cut(p.Text, most)
	if dropped == 0 {
		return p
	}
	note := fmt.Sprintf("\n[... %d bytes left out; they are not kept ...]\n", dropped)
	if blobs != nil {
		if name, err := blobs.Put(ctx, strings.NewReader(p.Text)); err == nil {
			note = fmt.Sprintf("\n[... %d bytes left out; read_file with path \"blob:%s\" shows them, with offset and limit if they are many ...]\n", dropped, name)
		}
	}
	return llm.Text{Text: head + note + tail}
}

func spillImage(ctx context.Context, blobs tool.Blobs, p llm.Image) llm.Part {
	if blobs == nil || p.Digest != "" {
		return p
	}
	name, err := blobs.Put(ctx, bytes.NewReader(p.Data))
	if err != nil {
		return llm.Text{Text: "[the image could not be stored: " + err.Error() + "]"}
	}
	return llm.Image{MediaType: p.MediaType, Digest: name}
}
