package mcp

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
)

// hear adapts a response for the SDK: without data that is not a message, and with tasks moved to where the SDK
// keeps them.
func hear(req *http.Request, resp *http.Response, s sift) {
	tasks := req.Header.Get("Mcp-Protocol-Version") > lastHandshake
	call, kind := called(req), kindOfAnswer(resp)
	switch ok := resp.StatusCode == http.StatusOK; {
	case kind == "text/event-stream" && ok:
		resp.Body = &events{ReadCloser: resp.Body, from: bufio.NewReader(resp.Body), change: func(event []byte) []byte {
			if event = s.event(event); tasks {
				event = taskedEvent(event)
			}
			return event
		}}
	case call != nil && ok:
		resp.Body = &answer{ReadCloser: resp.Body, change: func(data []byte) []byte {
			if data = s.answer(call, data, kind); tasks {
				data, _ = taskedMessage(data)
			}
			return data
		}}
		resp.Header.Set("Content-Type", "application/json")
	case call == nil && req.Method == http.MethodPost && kind == "application/json" &&
		(resp.StatusCode == http.StatusBadRequest || resp.StatusCode >= 500):
		// Some servers know no notifications and refuse them.
		data, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err == nil && orphan(data) {
			s.skipped(data)
			resp.StatusCode, data = http.StatusAccepted, nil
		}
		resp.Body = io.NopCloser(bytes.NewReader(data))
	default:
		return
	}
	resp.ContentLength = -1
	resp.Header.Del("Content-Length")
}

// nameTask adds a header with the task of a request, which the SDK does not do: servers on several machines
// need it to find the task.
func nameTask(req *http.Request) {
	if !strings.HasPrefix(req.Header.Get("Mcp-Method"), "tasks/") || req.GetBody == nil {
		return
	}
	var message struct {
		Params struct {
			ID string `json:"taskId"`
		} `json:"params"`
	}
	body, err := req.GetBody()
	if err != nil {
		return
	}
	defer body.Close()
	if json.NewDecoder(body).Decode(&message) == nil {
		req.Header.Set("Mcp-Name", headerText(message.Params.ID))
	}
}

// headerText encodes a text for a header as the protocol does.
func headerText(s string) string {
	odd := strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
	if odd || strings.TrimSpace(s) != s || strings.HasPrefix(s, "=?base64?") {
		return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
	}
	return s
}

// answer is a body with one message.
type answer struct {
	io.ReadCloser
	change func(message []byte) []byte
	left   *bytes.Reader // nil means it was not read yet
	err    error
}

// Read implements [io.Reader].
func (a *answer) Read(p []byte) (int, error) {
	if a.left == nil {
		var data []byte
		if data, a.err = io.ReadAll(a.ReadCloser); a.err == nil {
			data = a.change(data)
		}
		a.left = bytes.NewReader(data)
	}
	n, err := a.left.Read(p)
	if err != nil && a.err != nil {
		err = a.err
	}
	return n, err
}

// events is a body with a stream of events, which it passes on one complete event at a time.
type events struct {
	io.ReadCloser
	from   *bufio.Reader
	change func(event []byte) []byte
	left   []byte // of the event that is being read
	err    error  // after it
}

// Read implements [io.Reader].
func (e *events) Read(p []byte) (int, error) {
	for len(e.left) == 0 {
		if e.err != nil {
			return 0, e.err
		}
		e.left, e.err = e.next()
		e.left = e.change(e.left)
	}
	n := copy(p, e.left)
	e.left = e.left[n:]
	return n, nil
}

// next returns the next event with its final empty line, or the beginning of one that is too large for the
// reader, which will report that.
func (e *events) next() ([]byte, error) {
	var event []byte
	line := 0
	for {
		part, err := e.from.ReadSlice('\n')
		event = append(event, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			err = nil
			if len(event) <= maxFrame {
				continue
			}
		}
		if err != nil || len(event) > maxFrame || len(bytes.TrimRight(event[line:], "\r\n")) == 0 {
			return event, err
		}
		line = len(event)
	}
}

// taskedEvent applies [taskedMessage] to the message of an event.
func taskedEvent(event []byte) []byte {
	if !mayTask(event) {
		return event
	}
	var out, data []byte
	for line := range bytes.Lines(event) {
		line = bytes.TrimRight(line, "\r\n")
		if value, is := bytes.CutPrefix(line, []byte("data:")); is {
			data = append(append(data, bytes.TrimSpace(value)...), '\n')
		} else if len(line) > 0 {
			out = append(append(out, line...), '\n')
		}
	}
	message, is := taskedMessage(bytes.TrimSpace(data))
	if !is {
		return event
	}
	return append(append(append(out, "data: "...), message...), "\n\n"...)
}
