package request

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// maxCached bounds the bytes of images kept for the next request. No provider accepts more in one request.
const maxCached = 32 << 20

// Images loads the images of requests from blobs. It keeps the images of the last request, so that they are not read
// again on each turn. It is not safe for concurrent use.
type Images struct {
	cached map[string][]byte // by digest
	size   int               // their total size in bytes
}

// Load returns the request with the images of the conversation.
func (i *Images) Load(ctx context.Context, blobs tool.Blobs, req llm.Request) (llm.Request, error) {
	l := loading{ctx: ctx, blobs: blobs, before: i.cached, now: Images{cached: map[string][]byte{}}}
	req.Messages = slices.Clone(req.Messages) // the state's messages must not change
	for n, msg := range req.Messages {
		parts, _, err := l.load(msg.Parts)
		if err != nil {
			return req, err
		}
		req.Messages[n].Parts = parts
	}
	*i = l.now
	return req, nil
}

// loading loads the images of one request.
type loading struct {
	ctx    context.Context
	blobs  tool.Blobs
	before map[string][]byte
	now    Images
}

// load returns parts with the data of stored images. A text replaces a missing image, so that the conversation can
// continue.
func (l *loading) load(parts llm.Parts) (out llm.Parts, changed bool, err error) {
	out = parts
	for i, part := range parts {
		var loaded llm.Part
		switch p := part.(type) {
		case llm.Image:
			if p.Digest == "" {
				continue
			}
			loaded, err = l.image(p)
		case llm.Result:
			var inner bool
			if p.Parts, inner, err = l.load(p.Parts); err == nil && !inner {
				continue
			}
			loaded = p
		default:
			continue
		}
		if err != nil {
			return nil, false, err
		}
		if !changed {
			out, changed = slices.Clone(parts), true
		}
		out[i] = loaded
	}
	return out, changed, nil
}

func (l *loading) image(p llm.Image) (llm.Part, error) {
	gone := llm.Text{Text: fmt.Sprintf("[image %s is no longer stored]", p.Digest)}
	if l.blobs == nil {
		return gone, nil
	}
	known := false
	if p.Data, known = l.before[p.Digest]; !known {
		r, err := l.blobs.Get(l.ctx, p.Digest)
		if err != nil {
			return gone, l.ctx.Err()
		}
		defer r.Close()
		if p.Data, err = io.ReadAll(r); err != nil {
			return nil, fmt.Errorf("load image: %w", err)
		}
	}
	if _, twice := l.now.cached[p.Digest]; !twice && l.now.size+len(p.Data) <= maxCached {
		l.now.cached[p.Digest] = p.Data
		l.now.size += len(p.Data)
	}
	return p, nil
}
