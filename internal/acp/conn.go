package acp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"

	wire "github.com/coder/acp-go-sdk"
)

const (
	maxLine    = 64 << 20 // bytes of a message of the client
	maxRunning = 256      // requests of the client that are worked on at once
)

// errWithdrawn says that the client does not want an answer any more.
var errWithdrawn = errors.New("the request was withdrawn")

// work is the part of a request that takes time; its context ends when the client
// withdraws the request or is gone.
type work func(ctx context.Context) (any, error)

// conn is a JSON-RPC connection. Its methods may be called from any goroutine.
type conn struct {
	ctx  context.Context
	out  *outbox
	log  func(format string, args ...any)
	work sync.WaitGroup

	mu      sync.Mutex
	hung    bool
	next    int64
	asked   map[string]chan message            // our requests, by id
	running map[string]context.CancelCauseFunc // theirs, by id
	gone    chan struct{}                      // closed when hung
}

// message is one message of JSON-RPC. An ID that is nil was not there.
type message struct {
	Version string             `json:"jsonrpc"`
	ID      json.RawMessage    `json:"id,omitempty"`
	Method  string             `json:"method,omitempty"`
	Params  json.RawMessage    `json:"params,omitempty"`
	Result  json.RawMessage    `json:"result,omitempty"`
	Error   *wire.RequestError `json:"error,omitempty"`
}

// then is a result with what is to be done once it is sent.
type then struct {
	result any
	do     func()
}

func newConn(ctx context.Context, out io.Writer, log func(string, ...any)) *conn {
	return &conn{
		ctx: ctx, out: newOutbox(out), log: log,
		asked: map[string]chan message{}, running: map[string]context.CancelCauseFunc{}, gone: make(chan struct{}),
	}
}

// read takes the messages of the client until in ends. Handle is called for each
// request and notification, in order; what it returns is done beside the rest, and
// answered if it was a request.
func (c *conn) read(in io.Reader, handle func(method string, params json.RawMessage) work) error {
	lines := bufio.NewReaderSize(in, 64<<10)
	for {
		line, tooLong, err := readLine(lines)
		if c.isHung() {
			return nil
		}
		line = bytes.TrimSpace(line)
		switch {
		case tooLong:
			c.refuse(nil, wire.NewInvalidRequest(fmt.Sprintf("the message is longer than %d bytes", maxLine)))
		case len(line) > 0:
			c.take(line, handle)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read from the client: %w", err)
		}
	}
}

// readLine reads a line, or skips it if it is too long.
func readLine(r *bufio.Reader) (line []byte, tooLong bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if !tooLong {
			line = append(line, part...)
		}
		if len(line) > maxLine {
			line, tooLong = nil, true
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, tooLong, err
		}
	}
}

// take does what a message says.
func (c *conn) take(line []byte, handle func(string, json.RawMessage) work) {
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		if json.Valid(line) {
			c.refuse(nil, wire.NewInvalidRequest("this is no message of JSON-RPC; one object a line is, no list of them"))
		} else {
			c.refuse(nil, wire.NewParseError("this line is not JSON"))
		}
		return
	}
	switch {
	case m.Version != "2.0" || m.ID != nil && !isID(m.ID):
		c.refuse(nil, wire.NewInvalidRequest(`jsonrpc must be "2.0", and an id a text or a number`))
	case m.Method == "" && m.ID == nil:
		c.refuse(nil, wire.NewInvalidRequest("there is neither a method nor an id"))
	case m.Method == "":
		c.answered(m)
	case m.ID == nil && m.Method == "$/cancel_request":
		c.withdraw(m.Params)
	case m.ID == nil:
		c.notified(m, handle)
	default:
		c.request(m, handle)
	}
}

// isID reports whether an id is a text or a number.
func isID(raw json.RawMessage) bool {
	return len(raw) > 0 && strings.ContainsRune(`"-0123456789`, rune(raw[0]))
}

// key is how an id is known, however it is spelled.
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

func (c *conn) notified(m message, handle func(string, json.RawMessage) work) {
	do := handle(m.Method, m.Params)
	if do == nil {
		return
	}
	c.start(func() {
		if _, err := c.guarded(c.ctx, do); err != nil && !strings.HasPrefix(m.Method, "_") && !strings.HasPrefix(m.Method, "$/") {
			c.log("%.100q: %v", m.Method, err)
		}
	})
}

func (c *conn) request(m message, handle func(string, json.RawMessage) work) {
	id := key(m.ID)
	ctx, cancel := context.WithCancelCause(c.ctx)
	c.mu.Lock()
	_, twice := c.running[id]
	full := len(c.running) >= maxRunning
	if !twice && !full {
		c.running[id] = cancel
	}
	c.mu.Unlock()
	if twice || full {
		cancel(nil)
		c.refuse(m.ID, wire.NewInvalidRequest("the id is in use, or too many requests are"))
		return
	}
	do := handle(m.Method, m.Params)
	started := c.start(func() {
		result, err := c.guarded(ctx, do)
		c.mu.Lock()
		delete(c.running, id)
		c.mu.Unlock()
		cancel(nil)
		t, more := result.(then)
		if more {
			result = t.result
		}
		c.answer(m.ID, result, err)
		if more && err == nil {
			t.do()
		}
	})
	if !started {
		cancel(nil)
	}
}

// start does something beside the rest, unless the client is gone.
func (c *conn) start(do func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hung {
		return false
	}
	c.work.Go(do)
	return true
}

// guarded does the work of a request; a panic of it is an error like any other.
func (c *conn) guarded(ctx context.Context, do work) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			c.log("panic: %v\n%s", p, debug.Stack())
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return do(ctx)
}

func (c *conn) answer(id json.RawMessage, result any, err error) {
	if err != nil {
		c.refuse(id, fault(err))
		return
	}
	if result == nil {
		result = struct{}{}
	}
	raw, err := json.Marshal(result)
	if err != nil {
		c.refuse(id, fault(err))
		return
	}
	c.send(message{ID: id, Result: raw})
}

// refuse answers with an error. A nil id is that of a message that could not be read.
func (c *conn) refuse(id json.RawMessage, err *wire.RequestError) {
	if id == nil {
		id = json.RawMessage("null")
	}
	c.send(message{ID: id, Error: err})
}

// fault is an error in the form of the protocol.
func fault(err error) *wire.RequestError {
	var known *wire.RequestError
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, context.Canceled), errors.Is(err, errWithdrawn):
		return &wire.RequestError{Code: codeCancelled, Message: err.Error()}
	}
	return &wire.RequestError{Code: codeInternal, Message: err.Error()}
}

// withdraw ends a request of the client's.
func (c *conn) withdraw(params json.RawMessage) {
	var p struct {
		ID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil || !isID(p.ID) {
		return
	}
	c.mu.Lock()
	cancel := c.running[key(p.ID)]
	c.mu.Unlock()
	if cancel != nil {
		cancel(errWithdrawn)
	}
}

// answered hands the answer of the client to whoever has asked.
func (c *conn) answered(m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ch, ok := c.asked[key(m.ID)]; ok {
		delete(c.asked, key(m.ID))
		ch <- m // it holds one
	}
}

// ask sends a request and waits for the answer, which result takes if it is not nil. An error
// of the client is a *wire.RequestError; if it is gone, the error wraps errGone. When
// ctx ends, the client is told that nobody waits.
func (c *conn) ask(ctx context.Context, method string, params, result any) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	reply := make(chan message, 1)
	c.mu.Lock()
	if c.hung {
		c.mu.Unlock()
		return errGone
	}
	c.next++
	id := json.RawMessage(strconv.FormatInt(c.next, 10))
	c.asked[key(id)] = reply
	c.mu.Unlock()
	c.send(message{ID: id, Method: method, Params: raw})
	select {
	case m := <-reply:
		return decoded(m, result)
	case <-c.gone:
		return errGone
	case <-ctx.Done():
		c.mu.Lock()
		delete(c.asked, key(id))
		c.mu.Unlock()
		c.notify("$/cancel_request", map[string]any{"requestId": id})
		return ctx.Err()
	}
}

// decoded reads an answer.
func decoded(m message, result any) error {
	if m.Error != nil {
		return m.Error
	}
	if result == nil || len(m.Result) == 0 {
		return nil
	}
	return json.Unmarshal(m.Result, result)
}

// notify sends a notification.
func (c *conn) notify(method string, params any) {
	raw, err := json.Marshal(params)
	if err != nil {
		c.log("%s: %v", method, err)
		return
	}
	c.send(message{Method: method, Params: raw})
}

func (c *conn) send(m message) {
	m.Version = "2.0"
	line, err := json.Marshal(m)
	if err != nil {
		c.log("send: %v", err)
		return
	}
	c.out.put(append(line, '\n'))
}

// hangUp ends the conversation: nothing more is taken, nobody waits for the client
// any more.
func (c *conn) hangUp() {
	c.mu.Lock()
	if !c.hung {
		c.hung = true
		close(c.gone)
	}
	c.mu.Unlock()
	c.out.hurry()
}

func (c *conn) isHung() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hung
}
