package managed

import (
	"encoding/json"
	"slices"

	"github.com/inspan/inspan/llm"
)

// block is a piece of content on the wire.
type block struct {
	Type   string  `json:"type"`
	Text   string  `json:"text,omitempty"`
	Source *source `json:"source,omitempty"`
}

// source is where the bytes of an image are.
type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"`

	digest string // of the blob that holds the data
}

// MarshalJSON implements [json.Marshaler]: a text stands there although it is empty.
func (b block) MarshalJSON() ([]byte, error) {
	if b.Type == "text" {
		return json.Marshal(map[string]string{"type": b.Type, "text": b.Text})
	}
	type plain block
	return json.Marshal(plain(b))
}

// blocks are parts as content. The data of stored images are not in it; see [door.loaded].
func blocks(parts llm.Parts) []block {
	out := []block{}
	for _, part := range parts {
		switch p := part.(type) {
		case llm.Text:
			out = append(out, block{Type: "text", Text: p.Text})
		case llm.Image:
			out = append(out, block{Type: "image", Source: &source{Type: "base64", MediaType: p.MediaType, Data: p.Data, digest: p.Digest}})
		}
	}
	return out
}

// theirs is a call in the words of the agent toolset, as far as that has the tool.
func theirs(name string, args json.RawMessage) (string, any) {
	in := map[string]json.RawMessage{}
	if json.Unmarshal(args, &in) != nil {
		return name, in
	}
	for _, t := range toolset() {
		if slices.Contains(t.shown, name) {
			rename(t.name, in)
			return t.name, in
		}
	}
	return name, in
}

// rename gives arguments the names that they have in the toolset.
func rename(name string, in map[string]json.RawMessage) {
	switch name {
	case "read", "write", "edit":
		if path, there := in["path"]; there {
			in["file_path"] = path
			delete(in, "path")
		}
	}
	var edits []map[string]json.RawMessage
	if json.Unmarshal(in["edits"], &edits) == nil && len(edits) == 1 {
		delete(in, "edits")
		for key, value := range edits[0] {
			in[key] = value
		}
	}
}
