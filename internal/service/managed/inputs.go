package managed

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
)

// The inputs of clients, read from their requests.

// input is a client's input to a session.
type input struct {
	kind     string
	parts    llm.Parts // of a message, or of a tool result
	question string    // id of the answered event
	allow    bool
	failed   bool
	reason   string
	outcome  Outcome
}

// content is a block of a request.
type content struct {
	Type    string  `json:"type"`
	Text    *string `json:"text"`
	Source  *where  `json:"source"`
	Title   string  `json:"title"`
	Context string  `json:"context"`
}

// where has the bytes of a block, or their place.
type where struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
	URL       string `json:"url"`
	FileID    string `json:"file_id"`
}

const (
	mostEvents  = 100
	mostContent = 1 << 20 // bytes of text in an event
	mostImage   = 8 << 20 // bytes
)

// inputs reads the events of a request, all before the first is sent.
func (d *door) inputs(field string, list []json.RawMessage) (out []input, err error) {
	for i, raw := range list {
		var kind struct {
			Type string `json:"type"`
		}
		at := fmt.Sprintf("%s.%d", field, i)
		if json.Unmarshal(raw, &kind) != nil {
			return nil, invalid(at, "it is not an event", "an object with a type")
		}
		in, err := d.input(at, kind.Type, raw)
		if err != nil {
			return nil, err
		}
		in.kind = kind.Type
		out = append(out, in)
	}
	return out, nil
}

func (d *door) input(at, kind string, raw []byte) (in input, err error) {
	switch kind {
	case "user.message", "system.message":
		var m struct {
			Type    string    `json:"type"`
			Content []content `json:"content"`
		}
		if err := strict(raw, &m); err != nil {
			return in, server.Within(at, err)
		}
		in.parts, err = d.parts(at+".content", m.Content, kind == "user.message")
		if err == nil && len(in.parts) == 0 {
			err = invalid(at+".content", "it is empty", "at least one block")
		}
	case "user.interrupt":
		var m struct {
			Type   string  `json:"type"`
			Thread *string `json:"session_thread_id"`
		}
		if err = server.Within(at, strict(raw, &m)); err == nil && m.Thread != nil && *m.Thread != threadPrefix+d.r.PathValue("id") {
			err = unserved(at+".session_thread_id", "interrupting one thread; leave it out to interrupt the session")
		}
	case "user.tool_confirmation":
		var m struct {
			Type   string  `json:"type"`
			ID     string  `json:"tool_use_id"`
			Result string  `json:"result"`
			Why    *string `json:"deny_message"`
		}
		err = server.Within(at, strict(raw, &m))
		in.question, in.allow = m.ID, m.Result == "allow"
		switch {
		case err != nil:
		case m.ID == "":
			err = invalid(at+".tool_use_id", "it is missing", "the id of the agent.tool_use or agent.mcp_tool_use that asks")
		case m.Result != "allow" && m.Result != "deny":
			err = invalid(at+".result", fmt.Sprintf("it is %q", words.OneLine(m.Result, 40)), "allow or deny")
		case m.Why != nil && in.allow:
			err = invalid(at+".deny_message", "the result is allow", "")
		case m.Why != nil:
			in.reason = *m.Why
		}
	case "user.custom_tool_result":
		var m struct {
			Type    string    `json:"type"`
			ID      string    `json:"custom_tool_use_id"`
			Failed  *bool     `json:"is_error"`
			Content []content `json:"content"`
		}
		if err := strict(raw, &m); err != nil {
			return in, server.Within(at, err)
		}
		return d.result(at, ".custom_tool_use_id", "agent.custom_tool_use", toolResult(m))
	case "user.define_outcome":
		in.outcome, err = d.wanted(at, raw)
	case resultType:
		var m struct {
			Type    string    `json:"type"`
			ID      string    `json:"tool_use_id"`
			Failed  *bool     `json:"is_error"`
			Content []content `json:"content"`
		}
		if err := strict(raw, &m); err != nil {
			return in, server.Within(at, err)
		}
		return d.result(at, ".tool_use_id", "agent.tool_use", toolResult(m))
	default:
		err = invalid(at+".type", fmt.Sprintf("it is %q", words.OneLine(kind, 40)), "user.message, user.interrupt, user.tool_confirmation, "+
			"user.custom_tool_result, user.tool_result, user.define_outcome or system.message")
	}
	return in, err
}

// toolResult is the result of a call that a client or a worker has made.
type toolResult struct {
	Type, ID string
	Failed   *bool
	Content  []content
}

// result reads the result of the call of an event, whose id is in a field.
func (d *door) result(at, field, event string, m toolResult) (in input, err error) {
	if m.ID == "" {
		return in, invalid(at+field, "it is missing", "the id of the "+event)
	}
	in.question, in.failed = m.ID, m.Failed != nil && *m.Failed
	in.parts, err = d.parts(at+".content", m.Content, false)
	return in, err
}

// parts returns the blocks of a request in the form for our models.
func (d *door) parts(field string, list []content, pictures bool) (out llm.Parts, err error) {
	size := 0
	for i, c := range list {
		at := fmt.Sprintf("%s.%d", field, i)
		var part llm.Part
		switch {
		case c.Type == "text" && c.Text != nil && c.Source == nil && c.Title+c.Context == "":
			part = llm.Text{Text: *c.Text}
		case c.Type == "image" && pictures && c.Source != nil && c.Text == nil:
			part, err = d.image(at+".source", c.Source)
		case c.Type == "document" && pictures && c.Source != nil && c.Text == nil:
			part, err = d.document(at, c)
		case c.Type == "text":
			err = invalid(at+".text", "it is missing, or there are fields of another type", "a text")
		case c.Type == "image" || c.Type == "document" || c.Type == "search_result":
			err = unserved(at, c.Type+" blocks here; use text")
		default:
			err = invalid(at+".type", fmt.Sprintf("it is %q", words.OneLine(c.Type, 40)), "text, image or document")
		}
		if err != nil {
			return nil, err
		}
		if t, is := part.(llm.Text); is {
			size += len(t.Text)
		}
		out = append(out, part)
	}
	if size > mostContent {
		return nil, invalid(field, fmt.Sprintf("its text has %d bytes", size), fmt.Sprintf("at most %d", mostContent))
	}
	return out, nil
}

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
	if !slices.Contains(llm.ImageTypes(), s.MediaType) {
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
