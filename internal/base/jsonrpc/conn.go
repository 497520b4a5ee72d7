// Package jsonrpc implements JSON-RPC 2.0 with one peer: requests in both directions, notifications in order,
// and cancellations. The caller chooses the framing: one message per line ([Lines], [Outbox]) or a header with
// the length ([Header], [Decoder]).
//
// The peer is not trusted. Messages, queues and concurrent work are bounded. Unknown ids are ignored. A peer
// that neither reads nor writes blocks no caller forever.
package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
)

// maxRunning bounds the concurrent requests of the peer.
const maxRunning = 256

// ErrWithdrawn is the cancellation cause of the context of [Work] whose request the peer has withdrawn.
var ErrWithdrawn = errors.New("the request was withdrawn")

// Work handles a request or a notification. Its context ends when the peer withdraws the request, or with the
// connection. The result of a request is sent as its response; an error that is not an [*Error] gets a code of
// its own.
type Work func(ctx context.Context) (any, error)

// Then is a result of [Work], with a function to call once it is sent.
type Then struct {
	Result any
	Do     func()
}

// Options of a connection.
type Options struct {
	// Send writes one message without its framing. It preserves the order, takes ownership of the message, and
	// must not wait forever for the peer to read.
	Send func(body []byte) error
	// Handle is called for each request and notification, sequentially in the order of arrival; it must not block.
	// The returned Work runs concurrently. Nil means nothing to do.
	Handle func(method string, params json.RawMessage, request bool) Work
	// Inline runs work before the next message is handled, so that responses have the order of the requests.
	// The work must not block then.
	Inline bool
	// Lenient ignores invalid messages, and accepts those without a version. Otherwise they are rejected.
	Lenient bool
	// Withdraw is the method of the notification that withdraws a request, and WithdrawnID the name of its id
	// parameter.
	Withdraw, WithdrawnID string
	// Log receives errors that are not reported otherwise. Nil means they are discarded.
	Log func(format string, args ...any)
}

// Conn is a connection. It is safe for concurrent use, except Receive, which a single goroutine calls.
type Conn struct {
	options Options

	ctx  context.Context
	work sync.WaitGroup
	over chan struct{} // closed when err is set

	mu      sync.Mutex
	err     error // the connection is closed
	last    int64
	asked   map[string]chan message            // our requests, by id
	running map[string]context.CancelCauseFunc // the peer's requests, by id
}

// New returns a connection. The contexts of all work derive from ctx.
func New(ctx context.Context, o Options) *Conn {
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	return &Conn{
		options: o, ctx: ctx, over: make(chan struct{}),
		asked: map[string]chan message{}, running: map[string]context.CancelCauseFunc{},
	}
}

// Context returns the context that the connection was created with.
func (c *Conn) Context() context.Context { return c.ctx }

// Receive handles one message of the peer. The body may be reused once it returns.
func (c *Conn) Receive(body []byte) {
	var m message
	err := json.Unmarshal(body, &m)
	null := string(m.ID) == "null"
	if c.options.Lenient && null {
		m.ID = nil
	}
	switch {
	case err != nil && json.Valid(body):
		c.reject("this is not a JSON-RPC message; send one object a message, not a list", InvalidRequest)
	case err != nil:
		c.reject("this message is not JSON", ParseError)
	case !c.options.Lenient && m.Version != "2.0", m.ID != nil && !isID(m.ID):
		c.reject(`jsonrpc must be "2.0", and an id a text or a number`, InvalidRequest)
	case m.Method == "" && m.ID == nil:
		c.reject("there is neither a method nor an id", InvalidRequest)
	case m.Method == "":
		c.deliver(m)
	case m.ID == nil && m.Method == c.options.Withdraw:
		c.withdrawn(m.Params)
	case m.ID == nil:
		c.notified(m)
	default:
		c.requested(m)
	}
}

// TooLong rejects a message that was skipped because it has more than most bytes.
func (c *Conn) TooLong(most int) {
	c.reject(fmt.Sprintf("the message is longer than %d bytes", most), InvalidRequest)
}

// reject responds to an unreadable message.
func (c *Conn) reject(why string, code int) {
	if !c.options.Lenient {
		c.refuse(json.RawMessage("null"), &Error{Code: code, Message: why})
	}
}

func (c *Conn) notified(m message) {
	do := c.options.Handle(m.Method, m.Params, m.ID != nil)
	if do == nil {
		return
	}
	c.begin(func() {
		if _, err := c.guarded(c.ctx, do); err != nil && !strings.HasPrefix(m.Method, "_") && !strings.HasPrefix(m.Method, "$/") {
			c.options.Log("%.100q: %v", m.Method, err)
		}
	})
}

func (c *Conn) requested(m message) {
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
		c.refuse(m.ID, &Error{Code: InvalidRequest, Message: "the id is in use, or too many requests are"})
		return
	}
	do := c.options.Handle(m.Method, m.Params, m.ID != nil)
	begun := c.begin(func() {
		result, err := c.guarded(ctx, do)
		c.mu.Lock()
		delete(c.running, id)
		c.mu.Unlock()
		cancel(nil)
		then, more := result.(Then)
		if more {
			result = then.Result
		}
		c.answer(m.ID, result, err)
		if more && err == nil {
			then.Do()
		}
	})
	if !begun {
		cancel(nil)
	}
}

// begin starts the work of a message.
func (c *Conn) begin(do func()) bool {
	if !c.options.Inline {
		return c.Go(do)
	}
	if c.Err() != nil {
		return false
	}
	do()
	return true
}

// Go runs a function concurrently, unless the connection is closed. [Conn.Wait] waits for it.
func (c *Conn) Go(do func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return false
	}
	c.work.Go(do)
	return true
}

// Wait waits for all work to end. Once the connection is closed, no work begins.
func (c *Conn) Wait() { c.work.Wait() }

// guarded runs the work of a request, and converts a panic to an error.
func (c *Conn) guarded(ctx context.Context, do Work) (result any, err error) {
	if do == nil {
		return nil, nil
	}
	defer func() {
		if p := recover(); p != nil {
			c.options.Log("panic: %v\n%s", p, debug.Stack())
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return do(ctx)
}

func (c *Conn) answer(id json.RawMessage, result any, err error) {
	var raw []byte
	if err == nil {
		raw, err = json.Marshal(result)
	}
	if err != nil {
		c.refuse(id, asError(err))
		return
	}
	c.reply(message{ID: id, Result: raw})
}

func (c *Conn) refuse(id json.RawMessage, err *Error) { c.reply(message{ID: id, Error: err}) }

// reply sends a response. On failure it closes the connection.
func (c *Conn) reply(m message) {
	if err := c.send(m); err != nil {
		c.options.Log("send: %v", err)
		c.Close(err)
	}
}

// withdrawn cancels a request of the peer.
func (c *Conn) withdrawn(params json.RawMessage) {
	var p map[string]json.RawMessage
	if json.Unmarshal(params, &p) != nil || !isID(p[c.options.WithdrawnID]) {
		return
	}
	c.mu.Lock()
	cancel := c.running[key(p[c.options.WithdrawnID])]
	c.mu.Unlock()
	if cancel != nil {
		cancel(ErrWithdrawn)
	}
}

// deliver passes a response to the waiting caller, if any.
func (c *Conn) deliver(m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer, ok := c.asked[key(m.ID)]; ok {
		delete(c.asked, key(m.ID))
		answer <- m // its capacity is one
	}
}

// Call sends a request, waits for its response, and decodes it into result unless that is nil. An error
// response is an [*Error]; on a closed connection the error is that of Close. When ctx is done the request is
// withdrawn.
func (c *Conn) Call(ctx context.Context, method string, params, result any) error {
	id, answer, err := c.expect()
	if err != nil {
		return err
	}
	defer c.forget(id)
	raw, err := encoded(params)
	if err == nil {
		err = c.send(message{ID: id, Method: method, Params: raw})
	}
	if err != nil {
		return err
	}
	select {
	case m := <-answer:
		return decoded(m, method, result)
	case <-c.over:
		return c.Err()
	case <-ctx.Done():
		_ = c.Notify(c.options.Withdraw, map[string]any{c.options.WithdrawnID: id}) // best effort
		return fmt.Errorf("%s: %w", method, ctx.Err())
	}
}

func (c *Conn) expect() (json.RawMessage, chan message, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil, nil, c.err
	}
	c.last++
	id, answer := json.RawMessage(strconv.FormatInt(c.last, 10)), make(chan message, 1)
	c.asked[key(id)] = answer
	return id, answer, nil
}

func (c *Conn) forget(id json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.asked, key(id))
}

// decoded decodes a response.
func decoded(m message, method string, result any) error {
	switch {
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

// Notify sends a notification.
func (c *Conn) Notify(method string, params any) error {
	raw, err := encoded(params)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return c.send(message{Method: method, Params: raw})
}

// encoded encodes params, and omits nil.
func encoded(params any) (json.RawMessage, error) {
	if params == nil {
		return nil, nil
	}
	return json.Marshal(params)
}

func (c *Conn) send(m message) error {
	m.Version = "2.0"
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	return c.options.Send(body)
}

// Close closes the connection: waiting and later calls get err, and no work begins. Only the first call counts.
func (c *Conn) Close(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
		close(c.over)
	}
}

// Err returns the error of Close; nil while the connection is open.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}
