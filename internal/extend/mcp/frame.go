package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const (
	maxFrame = 16 << 20 // bytes of one message
	maxNoise = 16 << 20 // bytes that are none, in all
	maxKept  = 1 << 20  // bytes of buffer that are kept between messages
)

// frames passes on a server's output, one message per line. Other lines go to noise, because many programs print
// greetings and logs on standard output. Everything after an error is dropped.
type frames struct {
	to    io.Writer
	noise io.Writer
	// skipped is called for each line that goes to noise. May be nil.
	skipped func(line []byte)
	// answered says that an error without a request, if nothing came before it, answers the first request: some
	// servers refuse unknown requests before the handshake in this way.
	answered bool

	line    []byte
	dropped int
	err     error
}

// Write implements [io.Writer]. It returns an error if the stream can't contain messages, or the reader's
// error.
func (f *frames) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 && f.err == nil {
		line, after, ended := bytes.Cut(p, []byte{'\n'})
		f.line = append(f.line, line...)
		if len(f.line) > maxFrame {
			f.err = fmt.Errorf("it wrote a message of more than %d MiB", maxFrame>>20)
			break
		}
		if ended {
			f.pass()
		}
		p = after
	}
	if f.err != nil {
		f.line = nil
		return 0, f.err
	}
	return n, nil
}

// pass handles a complete line.
func (f *frames) pass() {
	line := bytes.TrimSpace(f.line)
	if said := messages(line); said != nil {
		f.answered = false
		_, f.err = f.to.Write(append(said, '\n'))
	} else if f.answered && orphan(line) {
		f.err = errors.New("it answered the first request with an error without a request id")
	} else if f.dropped += len(line) + 1; f.dropped > maxNoise {
		f.err = fmt.Errorf("it wrote more than %d MiB of other text to its standard output", maxNoise>>20)
	} else {
		line = line[:min(len(line), 500)]
		if f.skipped != nil && len(line) > 0 {
			f.skipped(line)
		}
		_, _ = f.noise.Write(append(line, '\n')) // a tail never fails
	}
	if f.line = f.line[:0]; cap(f.line) > maxKept {
		f.line = nil
	}
}

// orphan reports whether a line is an error that answers no request.
func orphan(line []byte) bool {
	var m struct{ ID, Error json.RawMessage }
	return json.Unmarshal(line, &m) == nil && m.Error != nil && (m.ID == nil || string(m.ID) == "null")
}

// messages returns the part of a line that the SDK can read: a message, or those of a batch; nil means nothing. The
// SDK would end the connection at anything else.
func messages(line []byte) []byte {
	list := each(line)
	switch {
	case len(list) == 0:
		return nil
	case line[0] != '[':
		return line
	}
	out, err := json.Marshal(list)
	if err != nil {
		return nil
	}
	return out
}

// each returns the messages in a server's data: one, or those of a batch. It leaves out an error with a null
// id, which some servers send for an unknown notification.
func each(data []byte) (list []json.RawMessage) {
	if len(data) == 0 || data[0] != '[' {
		if _, err := jsonrpc.DecodeMessage(data); err != nil {
			return nil
		}
		return []json.RawMessage{data}
	}
	var batch []json.RawMessage
	if json.Unmarshal(data, &batch) != nil {
		return nil
	}
	for _, one := range batch {
		if one[0] == '{' && each(one) != nil {
			list = append(list, one)
		}
	}
	return list
}
