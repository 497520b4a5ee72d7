package acp

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	wire "github.com/coder/acp-go-sdk"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/llm"
)

const maxImage = 20 << 20 // bytes of an image, in either direction

// said returns the inputs that a prompt begins a run with.
func (st *session) said(blocks []wire.ContentBlock) ([]event.Body, error) {
	if name, args, ok := slashCommand(blocks); ok {
		body, expanded, err := st.command(name, args)
		switch {
		case err != nil:
			return nil, invalid("/%s: %v", name, err)
		case body != nil:
			return []event.Body{body}, nil
		case expanded != "":
			blocks = append([]wire.ContentBlock{wire.TextBlock(expanded)}, blocks[1:]...)
		}
	}
	parts, err := st.parts(blocks)
	if err != nil {
		return nil, err
	}
	st.expectEcho(parts)
	return []event.Body{event.Said{Parts: parts}}, nil
}

// slashCommand returns the slash command that a prompt begins with, if any.
func slashCommand(blocks []wire.ContentBlock) (name, args string, ok bool) {
	if len(blocks) == 0 || blocks[0].Text == nil {
		return "", "", false
	}
	text, ok := strings.CutPrefix(strings.TrimSpace(blocks[0].Text.Text), "/")
	end := strings.IndexFunc(text, unicode.IsSpace)
	if end < 0 {
		end = len(text)
	}
	return text[:end], strings.TrimSpace(text[end:]), ok && end > 0
}

// parts converts the blocks of a prompt to a person's message.
func (st *session) parts(blocks []wire.ContentBlock) (llm.Parts, error) {
	var out llm.Parts
	text := func(s string) {
		if n := len(out); n > 0 { // text goes on where it ended
			if last, ok := out[n-1].(llm.Text); ok {
				s, out = last.Text+s, out[:n-1]
			}
		}
		out = append(out, llm.Text{Text: s})
	}
	var context []string
	for _, b := range blocks {
		switch {
		case b.Text != nil:
			text(b.Text.Text)
		case b.Image != nil:
			image, err := readImage(b.Image.MimeType, b.Image.Data)
			if err != nil {
				return nil, err
			}
			out = append(out, image)
		case b.ResourceLink != nil:
			text(st.mentionOf(b.ResourceLink.Uri))
		case b.Resource != nil:
			mention, more, err := st.attachment(b.Resource.Resource)
			if err != nil {
				return nil, err
			}
			text(mention)
			switch m := more.(type) {
			case llm.Text:
				context = append(context, m.Text)
			case llm.Image:
				out = append(out, m)
			}
		case b.Audio != nil:
			return nil, invalid("prompt: audio is not taken, as promptCapabilities says; send it as text")
		default:
			return nil, invalid("prompt: text, images, resources and links to them are understood; this is none of them")
		}
	}
	for _, c := range context {
		text("\n\n" + c)
	}
	if len(out) == 0 || strings.TrimSpace(out.Text()) == "" && out.Images() == 0 {
		return nil, invalid("the prompt is empty")
	}
	return out, nil
}

func readImage(kind, data string) (llm.Part, error) {
	if !slices.Contains(llm.ImageTypes(), kind) {
		return nil, invalid("images are PNG, JPEG, GIF or WebP; %.60q is none of them", kind)
	}
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil || len(raw) == 0 || len(raw) > maxImage {
		return nil, invalid("the image is empty, damaged, or has more than %d bytes", maxImage)
	}
	return llm.Image{MediaType: kind, Data: raw}, nil
}

// mentionOf returns an address in the form in which a person writes it: files by their path in the workspace.
func (st *session) mentionOf(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" {
		return uri
	}
	path := filepath.FromSlash(u.Path)
	if len(path) > 2 && path[2] == ':' { // /C:/work
		path = path[1:]
	}
	for _, root := range []string{st.cwd, st.root} {
		if rel, err := filepath.Rel(root, path); err == nil && text.Inside(root, path) {
			path = rel
			break
		}
	}
	if u.Fragment != "" {
		path += "#" + u.Fragment // lines, as editors write them
	}
	return "@" + path
}

// attachment returns an attachment of the editor: how the text names it, and its content.
func (st *session) attachment(r wire.EmbeddedResourceResource) (mention string, content llm.Part, err error) {
	switch {
	case r.TextResourceContents != nil:
		mention = st.mentionOf(r.TextResourceContents.Uri)
		name := strings.TrimPrefix(mention, "@")
		return mention, llm.Text{Text: fmt.Sprintf("%s, as it is in the person's editor:\n%s",
			text.Line(name), text.Fenced("", r.TextResourceContents.Text))}, nil
	case r.BlobResourceContents != nil:
		mention = st.mentionOf(r.BlobResourceContents.Uri)
		kind := ""
		if r.BlobResourceContents.MimeType != nil {
			kind = *r.BlobResourceContents.MimeType
		}
		if strings.HasPrefix(kind, "image/") {
			content, err = readImage(kind, r.BlobResourceContents.Blob)
		}
		return mention, content, err
	}
	return "", nil, invalid("prompt: the resource has no content")
}

// image returns a picture as a block of the protocol, or a text in its place if it is unavailable.
func (st *session) image(p llm.Image) wire.ContentBlock {
	st.mu.Lock()
	blobs := st.blobs
	st.mu.Unlock()
	data := transcript.ImageData(st.ctx, blobs, p, maxImage)
	if len(data) == 0 {
		return wire.TextBlock("[image]")
	}
	return wire.ImageBlock(base64.StdEncoding.EncodeToString(data), p.MediaType)
}
