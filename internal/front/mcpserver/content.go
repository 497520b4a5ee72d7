package mcpserver

import (
	"context"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
)

const (
	maxText  = 1 << 20 // bytes of text in one result; tools set much lower bounds
	maxImage = 8 << 20 // bytes of one image
	maxShort = 200     // cells of a line of progress
)

func shorten(text string) string { return words.OneLine(text, maxShort) }

// content returns the result of a call for the client. The session has redacted it.
func (s *slot) content(ctx context.Context, end event.Ended) *sdk.CallToolResult {
	res := &sdk.CallToolResult{IsError: end.Outcome != event.OutcomeOK, Content: []sdk.Content{}}
	var text strings.Builder
	for _, part := range end.Parts {
		switch p := part.(type) {
		case llm.Text:
			text.WriteString(p.Text)
		case llm.Image:
			if data := transcript.ImageData(ctx, s.blobs, p, maxImage); data != nil {
				res.Content = append(res.Content, &sdk.ImageContent{MIMEType: p.MediaType, Data: data})
			} else {
				text.WriteString("\n[an image that is too large or gone]")
			}
		}
	}
	if text.Len() > 0 {
		res.Content = append([]sdk.Content{&sdk.TextContent{Text: bounded(text.String())}}, res.Content...)
	}
	return res
}

// bounded bounds a text.
func bounded(s string) string {
	if len(s) <= maxText {
		return s
	}
	return text.Head(s, maxText) + "\n[the rest was cut off]"
}
