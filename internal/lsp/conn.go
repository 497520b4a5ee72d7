package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
)

// message is whatever comes: a request, a notification or an answer.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *wireError      `json:"error"`
}

// request is what we send; without an ID it is a notification.
type request struct {
	Version string `json:"jsonrpc"`
	ID      int64  `json:"id,omitempty"`
	Method  string `json:"method"`
	Params  any    `json:"params,omitempty"`
}

// reply is what we answer.
type reply struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result"`
}

// refusal is an answer that there is none.
type refusal struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Error   *wireError      `json:"error"`
}

// wireError is an error that a server answers with.
type wireError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// Error implements error.
func (e *wireError) Error() string { return endsOf(e.Message, maxText) }

const (
	codeUnknownMethod   = -32601
	codeContentModified = -32801
	codeServerCancelled = -32802
)

// conn speaks JSON-RPC with one server. Safe for concurrent use, but for
// receive, which one goroutine calls.
type conn struct {
	out io.Writer // must not wait for the server to read
	// asked answers a request of the server, heard takes a notification. They
	// are called one after another, in the order of arrival, and must not wait.
	asked func(method string, params json.RawMessage) (any, error)
	heard func(method string, params json.RawMessage)

	mu      sync.Mutex
	last    int64
	waiting map[int64]chan message
	err     error // the connection is over
}

func newConn(out io.Writer) *conn { return &conn{out: out, waiting: map[int64]chan message{}} }

// call sends a request and waits for its answer, which is decoded into result.
// When ctx is done the server is told that nobody waits any more.
func (c *conn) call(ctx context.Context, method string, params, result any) error {
	id, answer, err := c.expect()
	if err != nil {
		return err
	}
	defer c.forget(id)
	if err := c.send(request{Version: "2.0", ID: id, Method: method, Params: params}); err != nil {
		return err
	}
	select {
	case m, ok := <-answer:
		return c.decode(m, ok, method, result)
	case <-ctx.Done():
		_ = c.notify("$/cancelRequest", map[string]any{"id": id}) // a courtesy
		return fmt.Errorf("%s: %w", method, ctx.Err())
	}
}

func (c *conn) decode(m message, ok bool, method string, result any) error {
	switch {
	case !ok:
		return c.failure()
	case m.Error != nil:
		return m.Error
	case result == nil || len(m.Result) == 0:
		return nil
	}
	if err := json.Unmarshal(m.Result, result); err != nil {
		return fmt.Errorf("its answer to %s can't be understood: %w", method, err)
	}
	return nil
}

func (c *conn) expect() (int64, chan message, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, nil, c.err
	}
	c.last++
	answer := make(chan message, 1)
	c.waiting[c.last] = answer
	return c.last, answer, nil
}

func (c *conn) forget(id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, id)
}

// notify sends a notification.
func (c *conn) notify(method string, params any) error {
	return c.send(request{Version: "2.0", Method: method, Params: params})
}

func (c *conn) send(v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	_, err = c.out.Write(frame(body))
	return err
}

// receive handles one message of the server.
func (c *conn) receive(body []byte) {
	var m message
	if json.Unmarshal(body, &m) != nil {
		return // the frame was whole, so the next one can be fine
	}
	switch {
	case m.Method == "":
		c.deliver(m)
	case given(m.ID):
		c.answer(m)
	default:
		c.heard(m.Method, m.Params)
	}
}

// deliver hands an answer to who waits for it, if anybody does.
func (c *conn) deliver(m message) {
	id, err := strconv.ParseInt(string(m.ID), 10, 64)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer, ok := c.waiting[id]; ok {
		delete(c.waiting, id)
		answer <- m
	}
}

func (c *conn) answer(m message) {
	result, err := c.asked(m.Method, m.Params)
	var send any = reply{Version: "2.0", ID: m.ID, Result: result}
	if err != nil {
		problem := &wireError{Code: codeUnknownMethod, Message: err.Error()}
		send = refusal{Version: "2.0", ID: m.ID, Error: problem}
	}
	if err := c.send(send); err != nil {
		c.fail(err)
	}
}

// fail ends the connection: whoever waits, and all who call later, get err. Only
// the first one counts.
func (c *conn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = err
	for id, answer := range c.waiting {
		close(answer)
		delete(c.waiting, id)
	}
}

func (c *conn) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// given reports whether a field was there and is not null.
func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// offered reports whether a capability, a bool or an object, is there.
func offered(raw json.RawMessage) bool { return given(raw) && string(raw) != "false" }

// refusedBy tells an answer that something failed from a connection that did.
func refusedBy(err error) (code int, ok bool) {
	var e *wireError
	if errors.As(err, &e) {
		return e.Code, true
	}
	return 0, false
}
