// Package jsonrpc speaks JSON-RPC 2.0 with one peer: requests in both directions,
// notifications in order, and cancellations. The caller chooses the framing: one message a
// line ([Lines], [Outbox]) or a header with the length ([Header], [Decoder]).
//
// The peer is not trusted. Messages, queues and concurrent work are bounded. Unknown ids are
// ignored. A peer that neither reads nor writes blocks nobody forever.
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

// maxRunning is how many requests of the peer are worked on at once.
const maxRunning = 256

// ErrWithdrawn is the cause of the end of a context of [Work] whose request the peer has
// withdrawn.
var ErrWithdrawn = errors.New("the request was withdrawn")

// Work is what a request or a notification asks for. Its context ends when the peer
// withdraws the request, and with that of the connection. What it returns is answered if
// it was a request; an error that is no [*Error] gets a code of its own.
type Work func(ctx context.Context) (any, error)

// Then is a result of [Work], with what is to be done once it is sent.
type Then struct {
	Result any
	Do     func()
}

// Options of a connection.
type Options struct {
	// Send writes one message without what sets it apart on the wire. It keeps the
	// order, takes the message over, and must not wait for the peer to read for ever.
	Send func(body []byte) error
	// Handle is called for each request and notification, one after another, in the
	// order of their arrival; it must not wait. What it returns is done beside the rest.
	// Nil: there is nothing to do.
	Handle func(method string, params json.RawMessage, request bool) Work
	// Inline has work done before the next message is taken; it must not wait then. So
	// the answers have the order of the requests, too.
	Inline bool
	// Lenient passes over messages that are none, and takes those without a version.
	// Otherwise they are refused.
	Lenient bool
	// Withdraw is the method of the notification by which requests are withdrawn, and
	// WithdrawnID the name of the id in it.
	Withdraw, WithdrawnID string
	// Log takes what goes wrong and nobody else is told. Nil: it is lost.
	Log func(format string, args ...any)
}

// Conn is a connection. Safe for concurrent use, but for Receive, which one goroutine
// calls.
type Conn struct {
	options Options

	ctx  context.Context
	work sync.WaitGroup
	over chan struct{} // closed when err is set

	mu      sync.Mutex
	err     error // the connection is over
	last    int64
	asked   map[string]chan message            // our requests, by id
	running map[string]context.CancelCauseFunc // theirs, by id
}

// New returns a connection. The contexts of all work follow from ctx.
func New(ctx context.Context, o Options) *Conn {
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	return &Conn{
		options: o, ctx: ctx, over: make(chan struct{}),
		asked: map[string]chan message{}, running: map[string]context.CancelCauseFunc{},
	}
}

// Context is that which the connection was made with.
func (c *Conn) Context() context.Context { return c.ctx }

// Receive takes one message of the peer. The body may be used again once it returns.
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

// TooLong refuses a message that was skipped, as it has more bytes than are read.
func (c *Conn) TooLong(most int) {
	c.reject(fmt.Sprintf("the message is longer than %d bytes", most), InvalidRequest)
}

// reject answers a message that could not be read.
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

// begin does what a message asks for.
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

// Go does something beside the rest, unless the connection is over. [Conn.Wait] waits for
// it.
func (c *Conn) Go(do func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return false
	}
	c.work.Go(do)
	return true
}

// Wait waits for all work to end. Nothing begins any more once the connection is over.
func (c *Conn) Wait() { c.work.Wait() }

// guarded does the work of a request; a panic of it is an error like any other.
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

// reply sends an answer. If that fails the connection is over.
func (c *Conn) reply(m message) {
	if err := c.send(m); err != nil {
		c.options.Log("send: %v", err)
		c.Close(err)
	}
}

// withdrawn ends a request of the peer's.
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

// deliver hands an answer to whoever has asked, if anybody waits.
func (c *Conn) deliver(m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer, ok := c.asked[key(m.ID)]; ok {
		delete(c.asked, key(m.ID))
		answer <- m // it holds one
	}
}

// Call sends a request and waits for its answer, which is decoded into result unless that is
// nil. An error that the peer answers with is an [*Error]; that of a connection that is over
// is the one that it was closed with. When ctx is done the peer is told that nobody waits.
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
		_ = c.Notify(c.options.Withdraw, map[string]any{c.options.WithdrawnID: id}) // a courtesy
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

// decoded reads an answer.
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

// encoded leaves out params that are nil.
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

// Close ends the connection: whoever waits for an answer, and all who call later, get err,
// and no work begins any more. Only the first one counts.
func (c *Conn) Close(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
		close(c.over)
	}
}

// Err is what the connection was closed with; nil while it is not.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}
