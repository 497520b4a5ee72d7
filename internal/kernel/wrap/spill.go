package wrap

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

const (
	largestResult = 30_000  // bytes of a text in a result for the model, in a large window
	leastResult   = 2_000   // bytes of a text in a result for the model, in a tiny window
	largestNested = 500_000 // bytes of a text in a result for a caller
)

// ResultSize returns how many bytes a text in a result may have, given the tokens of the window: an eighth of the
// window, at 3.5 bytes a token. 0 means that the window is unknown.
func ResultSize(window int) int {
	if window == 0 {
		return largestResult
	}
	return max(leastResult, min(largestResult, window*7/16))
}

// Spill keeps large results out of the log. It moves images to blobs, and replaces the middle of texts longer than shown
// bytes with a reference to a blob.
func Spill(shown int) Wrapper {
	return func(t tool.Tool) tool.Tool {
		run := t.Run
		t.Run = func(ctx context.Context, c *tool.Call) (tool.Result, error) {
			res, err := run(ctx, c)
			most := shown
			if c.Parent != "" {
				most = largestNested
			}
			for i, part := range res.Parts {
				switch p := part.(type) {
				case llm.Text:
					res.Parts[i] = spillText(context.WithoutCancel(ctx), c.Env.Blobs, p, most)
				case llm.Image:
					res.Parts[i] = spillImage(context.WithoutCancel(ctx), c.Env.Blobs, p)
				}
			}
			return res, err
		}
		return t
	}
}

// SpillImages returns parts with their images in blobs. Without blobs it returns them unchanged.
func SpillImages(ctx context.Context, blobs tool.Blobs, parts llm.Parts) llm.Parts {
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
	head, tail, dropped := text.CutMiddle(p.Text, most)
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
