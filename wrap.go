package inspan

import (
	"bytes"
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/secret"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

const (
	defaultCallTimeout = 15 * time.Minute
	maxResult          = 30_000 // bytes of one text of a result the model sees
)

// catching turns a panic of a tool into an error.
func catching(t tool.Tool) tool.Tool {
	run := t.Run
	t.Run = func(ctx context.Context, c *tool.Call) (res tool.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("the tool crashed: %v\n%s", p, firstLines(debug.Stack(), 20))
			}
		}()
		return run(ctx, c)
	}
	return t
}

func firstLines(text []byte, n int) string {
	lines := strings.SplitN(string(text), "\n", n+1)
	return strings.Join(lines[:min(n, len(lines))], "\n")
}

// limiting bounds the time of a call.
func limiting(d time.Duration) func(tool.Tool) tool.Tool {
	if d <= 0 {
		d = defaultCallTimeout
	}
	return func(t tool.Tool) tool.Tool {
		run := t.Run
		t.Run = func(ctx context.Context, c *tool.Call) (tool.Result, error) {
			limited, cancel := context.WithTimeout(ctx, d)
			defer cancel()
			res, err := run(limited, c)
			if err != nil && limited.Err() != nil && ctx.Err() == nil {
				err = fmt.Errorf("stopped after %v, the longest a call may take: %w", d, err)
			}
			return res, err
		}
		return t
	}
}

// redacting takes secrets out of results, before anything of them is stored.
func redacting(vault *secret.Vault) func(tool.Tool) tool.Tool {
	return func(t tool.Tool) tool.Tool {
		run := t.Run
		t.Run = func(ctx context.Context, c *tool.Call) (tool.Result, error) {
			res, err := run(ctx, c)
			for i, part := range res.Parts {
				if p, ok := part.(llm.Text); ok {
					res.Parts[i] = llm.Text{Text: vault.Redact(p.Text)}
				}
			}
			return res, err
		}
		return t
	}
}

// spilling keeps big things out of the log: images and the middle of long
// texts go to blobs.
func spilling(t tool.Tool) tool.Tool {
	run := t.Run
	t.Run = func(ctx context.Context, c *tool.Call) (tool.Result, error) {
		res, err := run(ctx, c)
		for i, part := range res.Parts {
			switch p := part.(type) {
			case llm.Text:
				res.Parts[i] = spillText(context.WithoutCancel(ctx), c.Env.Blobs, p)
			case llm.Image:
				res.Parts[i] = spillImage(context.WithoutCancel(ctx), c.Env.Blobs, p)
			}
		}
		return res, err
	}
	return t
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

func spillText(ctx context.Context, blobs tool.Blobs, p llm.Text) llm.Text {
	p.Text = strings.ToValidUTF8(p.Text, "\uFFFD")
	head, tail, dropped := tool.Cut(p.Text, maxResult)
	if dropped == 0 {
		return p
	}
	note := fmt.Sprintf("\n[... %d bytes left out; they are not kept ...]\n", dropped)
	if blobs != nil {
		if name, err := blobs.Put(ctx, strings.NewReader(p.Text)); err == nil {
			note = fmt.Sprintf("\n[... %d bytes left out; read_file with path \"blob:%s\" shows all ...]\n", dropped, name)
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
