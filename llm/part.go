package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Role says who speaks in a message.
type Role string

// Roles. Results of tool calls travel in a user message.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is one entry of a conversation.
type Message struct {
	Role  Role  `json:"role"`
	Parts Parts `json:"parts"`
}

// A Part is a piece of a message: [Text], [Image], [Reasoning], [Call],
// [Result] or [Unknown]. The set is closed; a switch over it is complete.
type Part interface{ part() }

// Text is plain text.
type Text struct {
	Text string
}

// Image is a picture. Stored images have a Digest and no Data; the sender of a request loads Data from the blob
// store first. In JSON, Data is written only if there is no Digest.
type Image struct {
	MediaType string // one of ImageTypes
	Digest    string // name of the blob with the bytes
	Data      []byte
}

// ImageTypes lists the types of images that models accept.
func ImageTypes() []string { return []string{"image/png", "image/jpeg", "image/gif", "image/webp"} }

// ImageType returns the type of an image that models accept, by its first bytes; empty for other data.
func ImageType(data []byte) string {
	switch {
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(data, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(data, []byte("GIF87a")), bytes.HasPrefix(data, []byte("GIF89a")):
		return "image/gif"
	case len(data) > 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP":
		return "image/webp"
	}
	return ""
}

// Reasoning is a model's thinking. Opaque holds the vendor's own block, unchanged, and is sent back only to the
// route that wrote it; for any other route the part is dropped.
type Reasoning struct {
	Text   string          // for people; may be empty if the vendor hides it
	Opaque json.RawMessage // nil if the vendor needs nothing back
	Route  string          // "provider/model" that wrote it
}

// Call asks for a tool to be run.
type Call struct {
	ID      string          // unique in the log of the session
	Wire    string          // the vendor's id, if it differs from ID; used in messages to the vendor
	Name    string          // tool name
	Args    json.RawMessage // always one JSON object
	Invalid string          // the model's text, if it is not a JSON object and can't be repaired; Args is then {}
}

// Result answers one Call.
type Result struct {
	CallID string
	Name   string // the tool's name, which some wires require
	Parts  Parts  // Text and Image only
	Error  bool   // the call failed or was not made
}

// Unknown is a part written by a later version. It survives a round trip and
// is never sent.
type Unknown struct {
	Raw json.RawMessage
}

func (Text) part()      {}
func (Image) part()     {}
func (Reasoning) part() {}
func (Call) part()      {}
func (Result) part()    {}
func (Unknown) part()   {}

// Parts is a list of parts. In JSON, the field "type" of an object tells its kind.
type Parts []Part

// Say returns parts with one text.
func Say(text string) Parts { return Parts{Text{Text: text}} }

// Bytes returns the size of the text of the parts, arguments and results included.
func (p Parts) Bytes() int {
	n := 0
	for _, part := range p {
		switch v := part.(type) {
		case Text:
			n += len(v.Text)
		case Reasoning:
			n += len(v.Opaque)
		case Call:
			n += len(v.Name) + len(v.Args)
		case Result:
			n += v.Parts.Bytes()
		}
	}
	return n
}

// Text joins the text parts.
func (p Parts) Text() string {
	var b strings.Builder
	for _, part := range p {
		if t, ok := part.(Text); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}

// Calls returns the call parts in order.
func (p Parts) Calls() []Call {
	var calls []Call
	for _, part := range p {
		if c, ok := part.(Call); ok {
			calls = append(calls, c)
		}
	}
	return calls
}

// wirePart is the JSON form of every known part: one struct, so that a part is
// decoded in a single pass.
type wirePart struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	MediaType string          `json:"media_type,omitempty"`
	Digest    string          `json:"digest,omitempty"`
	Data      []byte          `json:"data,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Args      json.RawMessage `json:"args,omitempty"`
	Invalid   string          `json:"invalid,omitempty"`
	Wire      string          `json:"wire,omitempty"`
	Parts     Parts           `json:"parts,omitempty"`
	Error     bool            `json:"error,omitempty"`
	Opaque    json.RawMessage `json:"opaque,omitempty"`
	Route     string          `json:"route,omitempty"`
}

// MarshalJSON implements [json.Marshaler].
func (p Parts) MarshalJSON() ([]byte, error) {
	if p == nil {
		return []byte("[]"), nil
	}
	list := make([]any, len(p))
	for i, part := range p {
		switch v := part.(type) {
		case Text:
			list[i] = wirePart{Type: "text", Text: v.Text}
		case Image:
			w := wirePart{Type: "image", MediaType: v.MediaType, Digest: v.Digest}
			if v.Digest == "" {
				w.Data = v.Data
			}
			list[i] = w
		case Reasoning:
			list[i] = wirePart{Type: "reasoning", Text: v.Text, Opaque: v.Opaque, Route: v.Route}
		case Call:
			list[i] = wirePart{Type: "call", ID: v.ID, Name: v.Name, Args: v.Args, Invalid: v.Invalid, Wire: v.Wire}
		case Result:
			list[i] = wirePart{Type: "result", ID: v.CallID, Name: v.Name, Parts: v.Parts, Error: v.Error}
		case Unknown:
			list[i] = v.Raw
		default:
			return nil, fmt.Errorf("marshal part: unexpected %T", part)
		}
	}
	// Not json.Marshal: it would rewrite <, > and & inside raw JSON, which is
	// kept byte for byte.
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(list)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}

// UnmarshalJSON implements [json.Unmarshaler]. Parts of an unknown type become
// [Unknown].
func (p *Parts) UnmarshalJSON(data []byte) error {
	var list []wirePart
	err := json.Unmarshal(data, &list)
	known := err == nil
	out := make(Parts, len(list))
	for i, w := range list {
		out[i] = w.part()
		known = known && out[i] != nil
	}
	if known {
		*p = out
		return nil
	}
	return p.unmarshalUnknown(data)
}

// unmarshalUnknown is the slow path, for parts of a later version.
func (p *Parts) unmarshalUnknown(data []byte) error {
	var raws []json.RawMessage
	if err := json.Unmarshal(data, &raws); err != nil {
		return err
	}
	out := make(Parts, len(raws))
	for i, raw := range raws {
		var w wirePart
		if json.Unmarshal(raw, &w) == nil {
			out[i] = w.part()
		}
		if out[i] == nil {
			out[i] = Unknown{Raw: raw}
		}
	}
	*p = out
	return nil
}

// part returns the part that w stands for, or nil if its type is unknown.
func (w wirePart) part() Part {
	switch w.Type {
	case "text":
		return Text{Text: w.Text}
	case "image":
		return Image{MediaType: w.MediaType, Digest: w.Digest, Data: w.Data}
	case "reasoning":
		return Reasoning{Text: w.Text, Opaque: w.Opaque, Route: w.Route}
	case "call":
		return Call{ID: w.ID, Name: w.Name, Args: w.Args, Invalid: w.Invalid, Wire: w.Wire}
	case "result":
		return Result{CallID: w.ID, Name: w.Name, Parts: w.Parts, Error: w.Error}
	}
	return nil
}
