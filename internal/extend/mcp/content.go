package mcp

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
)

const (
	maxImage  = 5 << 20 // bytes
	maxImages = 20      // of one result
)

// parts converts the result of a call for the model.
func parts(res *sdk.CallToolResult) llm.Parts {
	out := contents(res.Content)
	if res.StructuredContent == nil || repeated(res) {
		return out
	}
	data, err := json.Marshal(res.StructuredContent)
	if err != nil {
		return out // it came as JSON
	}
	return append(out, llm.Text{Text: text.Printed(string(data))})
}

// repeated reports whether a text repeats the structured content.
func repeated(res *sdk.CallToolResult) bool {
	return slices.ContainsFunc(res.Content, func(c sdk.Content) bool {
		text, is := c.(*sdk.TextContent)
		var said any
		return is && json.Unmarshal([]byte(text.Text), &said) == nil && reflect.DeepEqual(said, plain(res.StructuredContent))
	})
}

// plain returns a value as it is after a trip through JSON.
func plain(v any) any {
	var out any
	if data, err := json.Marshal(v); err == nil {
		_ = json.Unmarshal(data, &out) // it was just made
	}
	return out
}

// contents converts a server's content.
func contents(list []sdk.Content) llm.Parts {
	var out llm.Parts
	images := 0
	for _, c := range list {
		part := content(c)
		if _, is := part.(llm.Image); is {
			if images++; images > maxImages {
				part = llm.Text{Text: fmt.Sprintf("[an image is left out: more than %d]", maxImages)}
			}
		}
		if text, is := part.(llm.Text); part != nil && (!is || text.Text != "") {
			out = append(out, part)
		}
	}
	return out
}

func content(c sdk.Content) llm.Part {
	switch c := c.(type) {
	case *sdk.TextContent:
		return llm.Text{Text: text.Printed(c.Text)}
	case *sdk.ImageContent:
		return image(c.MIMEType, c.Data)
	case *sdk.AudioContent:
		return llm.Text{Text: fmt.Sprintf("[audio, %s, %d bytes: not shown]", words.OneLine(c.MIMEType, 60), len(c.Data))}
	case *sdk.ResourceLink:
		text := "[resource " + words.OneLine(c.URI, 1000)
		for _, more := range []string{c.Name, c.Description} {
			if more = words.OneLine(more, 500); more != "" {
				text += ": " + more
			}
		}
		return llm.Text{Text: text + "]"}
	case *sdk.EmbeddedResource:
		return resource(c.Resource)
	}
	return llm.Text{Text: "[content of an unknown kind: not shown]"}
}

// image returns a picture if it has the declared type.
func image(kind string, data []byte) llm.Part {
	switch {
	case kind == "" || llm.ImageType(data) != kind:
		return llm.Text{Text: fmt.Sprintf("[an image of the type %q, %d bytes, which can't be shown]", words.OneLine(kind, 60), len(data))}
	case len(data) > maxImage:
		return llm.Text{Text: fmt.Sprintf("[an image of %d bytes is left out: at most %d MiB are shown]", len(data), maxImage>>20)}
	}
	return llm.Image{MediaType: kind, Data: data}
}

func resource(r *sdk.ResourceContents) llm.Part {
	if r == nil {
		return nil
	}
	from := words.OneLine(r.URI, 1000)
	switch {
	case len(r.Blob) == 0:
		return llm.Text{Text: "[resource " + from + "]\n" + text.Printed(r.Text)}
	case strings.HasPrefix(r.MIMEType, "image/"):
		return image(r.MIMEType, r.Blob)
	}
	return llm.Text{Text: fmt.Sprintf("[resource %s, %s, %d bytes: not shown]", from, words.OneLine(r.MIMEType, 60), len(r.Blob))}
}
