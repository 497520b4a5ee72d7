package managed

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"

	"github.com/inspan/inspan/llm"
)

// block is a block of content on the wire.
type block struct {
	Type   string  `json:"type"`
	Text   string  `json:"text,omitempty"`
	Source *source `json:"source,omitempty"`
}

// source has the bytes of an image, or their place.
type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"`

	digest string // of the blob that holds the data
}

// MarshalJSON implements [json.Marshaler]: an empty text is not omitted.
func (b block) MarshalJSON() ([]byte, error) {
	if b.Type == "text" {
		return json.Marshal(map[string]string{"type": b.Type, "text": b.Text})
	}
	type plain block
	return json.Marshal(plain(b))
}

// blocks returns parts as content blocks, without the data of stored images; see [door.loaded].
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

// theirs returns a call in terms of the agent toolset, if that has the tool.
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

// rename gives arguments their names in the toolset.
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

// errNotHanded says that a tool is not one that workers have.
var errNotHanded = errors.New("no worker has this tool")

// oursOf returns our form of a call of a tool that runs on a worker.
func oursOf(name string, input json.RawMessage) (string, json.RawMessage, error) {
	var in struct {
		Command string `json:"command"`
		Restart bool   `json:"restart"`
		Timeout int    `json:"timeout_ms"`
		File    string `json:"file_path"`
		Range   []int  `json:"view_range"`
		Content string `json:"content"`
		Old     string `json:"old_string"`
		New     string `json:"new_string"`
		All     bool   `json:"replace_all"`
		Pattern string `json:"pattern"`
		Path    string `json:"path"`
	}
	unread := json.Unmarshal(input, &in)
	args := map[string]any{}
	switch name {
	case "bash":
		if in.Restart && in.Command == "" {
			in.Command = "true" // each call has its own shell
		}
		seconds := mostSeconds
		if in.Timeout > 0 {
			seconds = min(seconds, (in.Timeout+999)/1000)
		}
		args["command"], args["timeout"] = in.Command, seconds
	case "read":
		name, args["path"] = "read_file", in.File
		if len(in.Range) == 2 {
			args["offset"], args["limit"] = max(1, in.Range[0]), max(1, in.Range[1]-in.Range[0]+1)
		}
	case "write":
		name, args["path"], args["content"] = "write_file", in.File, in.Content
	case "edit":
		edit := map[string]any{"old_string": in.Old, "new_string": in.New, "replace_all": in.All}
		name, args["path"], args["edits"] = "edit_file", in.File, []any{edit}
	case "glob":
		name, args["pattern"], args["path"] = "find_files", in.Pattern, cmp.Or(in.Path, ".")
	case "grep":
		name, args["pattern"], args["path"] = "search_files", in.Pattern, cmp.Or(in.Path, ".")
	default:
		return name, nil, errNotHanded
	}
	raw, err := json.Marshal(args)
	return name, raw, errors.Join(unread, err)
}

const mostSeconds = 600 // longest time limit of a command
