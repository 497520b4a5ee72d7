package mcp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/inspan/inspan/internal/base/text"
)

// sift leaves out data over HTTP that is not a message, as frames does for pipes: the SDK would end the
// connection.
type sift struct {
	// skipped is called with the data left out.
	skipped func(data []byte)
	// bare marks the older HTTP transport, where any event data counts as a message.
	bare bool
}

// event returns an event that the SDK can read, or nothing.
func (s sift) event(event []byte) []byte {
	if len(event) > maxFrame {
		return event // who reads it will say so
	}
	var rest, data []byte
	name, odd := "", false
	for line := range bytes.Lines(event) {
		line = bytes.TrimRight(line, "\r\n")
		key, value, is := bytes.Cut(line, []byte{':'})
		switch {
		case len(line) == 0:
		case line[0] == '{' || line[0] == '[': // a whole answer that is called a stream
			data, odd = append(append(data, line...), '\n'), true
		case !is:
			odd = true
			s.skipped(line)
		case string(key) == "data":
			data = append(append(data, bytes.TrimSpace(value)...), '\n')
		default:
			if string(key) == "event" {
				name = string(bytes.TrimSpace(value))
			}
			rest = append(append(rest, line...), '\n')
		}
	}
	data = bytes.TrimSpace(data)
	list := each(data)
	switch {
	case s.bare && (len(data) == 0 || name != "" && name != "message" && name != "endpoint"):
		return nil
	case name != "" && name != "message", len(data) == 0, len(list) == 1 && data[0] != '[':
		if !odd {
			return event
		}
		list = []json.RawMessage{data}
	case len(list) == 0:
		s.skipped(data)
		if s.bare || len(rest) == 0 {
			return nil
		}
		return append(rest, '\n') // its id counts where the stream goes on
	}
	out := rest
	for i, one := range list {
		if i > 0 {
			out = append(out, '\n')
		}
		if len(one) > 0 {
			out = append(append(append(out, "data: "...), bytes.ReplaceAll(one, []byte{'\n'}, []byte{' '})...), '\n')
		}
	}
	return append(out, '\n')
}

// answer returns the one message that answers a call. An invalid response fails the call and not the
// connection; so does an error that names no call.
func (s sift) answer(call, data []byte, kind string) []byte {
	for _, one := range each(plainAnswer(call, data)) {
		if message, err := jsonrpc.DecodeMessage(one); err == nil {
			if _, is := message.(*jsonrpc.Response); is {
				return one
			}
		}
	}
	var said struct {
		Error json.RawMessage `json:"error"`
	}
	var failed json.RawMessage
	if json.Unmarshal(data, &said) == nil && orphan(data) {
		failed = said.Error
	} else {
		s.skipped(data)
		why, _ := json.Marshal("its answer is not a message of the protocol (" + cmp.Or(kind, "of no kind") + "): " +
			text.Cut(text.Line(printed(string(data[:min(len(data), 500)]))), 200)) // a text has no error
		failed = fmt.Appendf(nil, `{"code":%d,"message":%s}`, jsonrpc.CodeInternalError, why)
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":%s}`, call, failed)
}

// plainAnswer returns the message in the answer to a call: without a byte order mark and the frames of events, with the
// version of the protocol, and with an id of the type that the call has.
func plainAnswer(call, data []byte) []byte {
	data = bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(data), []byte("\ufeff")))
	if first, _, _ := bytes.Cut(data, []byte{':'}); slices.Contains([]string{"", "data", "event", "id"}, string(first)) {
		var inner []byte
		for line := range bytes.Lines(data) {
			if value, is := bytes.CutPrefix(line, []byte("data:")); is {
				inner = append(inner, value...)
			}
		}
		data = bytes.TrimSpace(inner)
	}
	var message map[string]json.RawMessage
	if len(data) == 0 || data[0] != '{' || json.Unmarshal(data, &message) != nil || message["result"] == nil && message["error"] == nil {
		return data
	}
	id, version := message["id"], message["jsonrpc"]
	if version != nil && (bytes.Equal(id, call) || string(bytes.Trim(id, `"`)) != string(bytes.Trim(call, `"`))) {
		return data
	}
	message["jsonrpc"] = json.RawMessage(`"2.0"`)
	if string(bytes.Trim(id, `"`)) == string(bytes.Trim(call, `"`)) {
		message["id"] = call
	}
	data, _ = json.Marshal(message) // of what was just read
	return data
}

// called returns the id of the call in a request; nil means it has none.
func called(req *http.Request) []byte {
	if req.Method != http.MethodPost || req.GetBody == nil {
		return nil
	}
	body, err := req.GetBody()
	if err != nil {
		return nil
	}
	defer body.Close()
	var message struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	data, err := io.ReadAll(body)
	if err != nil || json.Unmarshal(data, &message) != nil || message.Method == "" || string(message.ID) == "null" {
		return nil
	}
	return message.ID
}

// kindOfAnswer returns the media type of a response.
func kindOfAnswer(resp *http.Response) string {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // what can't be read is of no kind
	return kind
}
