package custom

import (
	"bytes"
	"encoding/json"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

const maxImages = 20

// reply is a program's output.
type reply struct {
	text   string
	err    string // empty if the program reports no error
	images []llm.Image
	files  []tool.File // of the workspace that have changed
}

// understand parses an output: the JSON object described in the package documentation, or any other text.
func understand(out *output) reply {
	data, more := out.get()
	if more == 0 {
		if r, is := decodeReply(data); is {
			return r
		}
	}
	return reply{text: out.text()}
}

// decodeReply reports whether the output is a reply in JSON.
func decodeReply(data []byte) (reply, bool) {
	data = bytes.TrimSpace(data)
	if !bytes.HasPrefix(data, []byte("{")) {
		return reply{}, false
	}
	m, err := object(data, "text", "error", "images")
	if err != nil || len(m) == 0 {
		return reply{}, false
	}
	var r reply
	var list []json.RawMessage
	if m.field("text", &r.text) != nil || m.field("error", &r.err) != nil || m.field("images", &list) != nil || len(list) > maxImages {
		return reply{}, false
	}
	for _, raw := range list {
		image, is := decodeImage(raw)
		if !is {
			return reply{}, false
		}
		r.images = append(r.images, image)
	}
	r.text, r.err = text.Printed(r.text), text.Printed(r.err)
	return r, true
}

// decodeImage decodes a picture and checks its stated type.
func decodeImage(raw json.RawMessage) (llm.Image, bool) {
	m, err := object(raw, "media_type", "data")
	if err != nil {
		return llm.Image{}, false
	}
	var image llm.Image
	if m.field("media_type", &image.MediaType) != nil || m.field("data", &image.Data) != nil {
		return llm.Image{}, false
	}
	return image, image.MediaType != "" && llm.ImageType(image.Data) == image.MediaType
}
