package managed

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	"github.com/inspan/inspan/llm"
)

// image reads an image of a request.
func (d *door) image(field string, s *where) (llm.Part, error) {
	if s.Type != "base64" {
		return nil, unserved(field+".type", "images by "+s.Type+"; use base64")
	}
	raw, err := base64.StdEncoding.DecodeString(s.Data)
	switch {
	case err != nil || len(raw) == 0:
		return nil, invalid(field+".data", "it is not base64", "the bytes of the image in base64")
	case len(raw) > mostImage:
		return nil, invalid(field+".data", fmt.Sprintf("it has %d bytes", len(raw)), fmt.Sprintf("at most %d", mostImage))
	}
	switch s.MediaType {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
	default:
		return nil, invalid(field+".media_type", fmt.Sprintf("it is %q", s.MediaType), "image/png, image/jpeg, image/gif or image/webp")
	}
	if is := http.DetectContentType(raw); is != s.MediaType {
		return nil, invalid(field+".media_type", "the bytes are "+is, is)
	}
	return llm.Image{MediaType: s.MediaType, Data: raw}, nil
}

// document reads a document, which the model gets as text.
func (d *door) document(at string, c content) (llm.Part, error) {
	s := c.Source
	if s.Type != "text" {
		return nil, unserved(at+".source.type", "documents by "+s.Type+"; use plain text")
	}
	if s.MediaType != "text/plain" {
		return nil, invalid(at+".source.media_type", fmt.Sprintf("it is %q", s.MediaType), "text/plain")
	}
	var head strings.Builder
	for name, text := range map[string]string{"title": c.Title, "context": c.Context} {
		if text != "" {
			fmt.Fprintf(&head, " %s=%q", name, text)
		}
	}
	return llm.Text{Text: "<document" + head.String() + ">\n" + s.Data + "\n</document>"}, nil
}
