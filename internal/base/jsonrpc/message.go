package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
)

// Error codes.
const (
	ParseError     = -32700
	InvalidRequest = -32600
	UnknownMethod  = -32601
	InvalidParams  = -32602
	Internal       = -32603
	Cancelled      = -32800
)

// maxError bounds the text of an error, in bytes.
const maxError = 2000

// Error is an error response. Data may be anything.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

// Error returns the message and the data, shortened in the middle if it is long.
func (e *Error) Error() string {
	message := e.Message
	if data, err := json.Marshal(e.Data); err == nil && e.Data != nil {
		message += " " + string(data)
	}
	head, tail, dropped := text.CutMiddle(strings.ToValidUTF8(message, "\ufffd"), maxError)
	if dropped == 0 {
		return head
	}
	return head + " … " + tail
}

// asError converts an error to an error response.
func asError(err error) *Error {
	var known *Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, context.Canceled), errors.Is(err, ErrWithdrawn):
		return &Error{Code: Cancelled, Message: err.Error()}
	}
	return &Error{Code: Internal, Message: err.Error()}
}

// message is a request, a notification or a response. Nil fields are missing.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *Error          `json:"error,omitempty"`
}

// isID reports whether an id is a string or a number.
func isID(raw json.RawMessage) bool {
	return len(raw) > 0 && strings.ContainsRune(`"-0123456789`, rune(raw[0]))
}

// key returns a canonical form of an id.
func key(id json.RawMessage) string {
	var text string
	if json.Unmarshal(id, &text) == nil {
		return "s" + text
	}
	if n, err := strconv.ParseFloat(string(id), 64); err == nil {
		return "n" + strconv.FormatFloat(n, 'g', -1, 64)
	}
	return "r" + string(id)
}
