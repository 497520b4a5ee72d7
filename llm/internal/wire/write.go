package wire

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/inspan/inspan/internal/base/memo"
	"github.com/inspan/inspan/llm"
)

// A Writer appends JSON to Buf. It checks nothing: the caller writes the brackets in the right order.
type Writer struct {
	Buf  []byte
	memo *memo.Memo // encodings from an earlier request of the conversation
}

// NewWriter returns a writer with room for the body of req.
func NewWriter(req llm.Request) Writer {
	grown := req.Memo.Begin()
	return Writer{Buf: make([]byte, 0, sizeHint(req)+grown), memo: req.Memo}
}

// Raw appends s as it is.
func (w *Writer) Raw(s string) *Writer { w.Buf = append(w.Buf, s...); return w }

// Str appends s as a JSON string; see [AppendString].
func (w *Writer) Str(s string) *Writer {
	w.Buf = memo.Append(w.memo, w.Buf, memo.String, s, AppendString)
	return w
}

// Int appends n.
func (w *Writer) Int(n int) *Writer { w.Buf = strconv.AppendInt(w.Buf, int64(n), 10); return w }

// JSON appends raw, which must be valid; see [AppendJSON].
func (w *Writer) JSON(raw json.RawMessage) *Writer {
	w.Buf = memo.Append(w.memo, w.Buf, memo.JSON, raw, AppendJSON)
	return w
}

// Quoted appends raw, which must be valid, as a JSON string that holds it.
func (w *Writer) Quoted(raw json.RawMessage) *Writer { return w.Str(string(AppendJSON(nil, raw))) }

// Base64 appends b in base64, without quotes.
func (w *Writer) Base64(b []byte) *Writer {
	w.Buf = memo.Append(w.memo, w.Buf, memo.Base64, b, base64.StdEncoding.AppendEncode)
	return w
}

// Comma separates entries of a list or an object: it appends a comma unless a bracket has just been opened.
func (w *Writer) Comma() *Writer {
	if c := w.Buf[len(w.Buf)-1]; c != '[' && c != '{' {
		w.Buf = append(w.Buf, ',')
	}
	return w
}

// Insert puts s before Buf[at].
func (w *Writer) Insert(at int, s string) { w.Buf = slices.Insert(w.Buf, at, []byte(s)...) }

// Schema appends the schema of a tool's arguments, or empty if there is none.
func (w *Writer) Schema(schema json.RawMessage, empty string) *Writer {
	if schema = Object(schema); len(schema) > 2 {
		return w.JSON(schema)
	}
	return w.Raw(empty)
}

// sizeHint estimates the size of the body, to allocate it once.
func sizeHint(req llm.Request) int {
	n := 4096
	for _, s := range req.System {
		n += len(s) + len(s)/8
	}
	for _, t := range req.Tools {
		n += len(t.Description) + len(t.Schema) + 200
	}
	for _, m := range req.Messages {
		n += partsSize(m.Parts)
	}
	return n
}

func partsSize(parts llm.Parts) int {
	n := 0
	for _, p := range parts {
		n += 200
		switch v := p.(type) {
		case llm.Text:
			n += len(v.Text) + len(v.Text)/8
		case llm.Image:
			n += base64.StdEncoding.EncodedLen(len(v.Data))
		case llm.Reasoning:
			n += len(v.Opaque)
		case llm.Call:
			n += len(v.Args) + len(v.Args)/8
		case llm.Result:
			n += partsSize(v.Parts)
		}
	}
	return n
}

// Called returns the tools called in turns, in order of their first call, with only their names: for vendors that
// refuse calls in the history of a request without tools.
func Called(turns []Turn) []llm.ToolSpec {
	var tools []llm.ToolSpec
	seen := map[string]bool{}
	for _, t := range turns {
		for _, p := range t.Parts {
			if c, ok := p.(llm.Call); ok && !seen[c.Name] {
				seen[c.Name] = true
				tools = append(tools, llm.ToolSpec{Name: c.Name})
			}
		}
	}
	return tools
}
