package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxLine bounds one message of a client at a pipe, in bytes.
const maxLine = 16 << 20

// lines is a pipe with one message a line. An invalid line is answered with an error and does not end the
// connection; a line that is too long does.
type lines struct {
	in  io.ReadCloser
	out io.WriteCloser

	mu     sync.Mutex // guards out
	queue  chan lineOrEnd
	closed chan struct{}
	once   sync.Once
}

// lineOrEnd is a line, or why there are no more.
type lineOrEnd struct {
	line []byte
	err  error
}

var _ sdk.Transport = (*lines)(nil)

// Connect implements [sdk.Transport]. The goroutine that reads ends when in is closed, or with the process if
// closing does not end a read.
func (l *lines) Connect(context.Context) (sdk.Connection, error) {
	l.queue, l.closed = make(chan lineOrEnd), make(chan struct{})
	go l.scan()
	return l, nil
}

func (l *lines) scan() {
	s := bufio.NewScanner(l.in)
	s.Buffer(make([]byte, 0, 64<<10), maxLine)
	for s.Scan() {
		if line := bytes.TrimSpace(s.Bytes()); len(line) > 0 && !l.passOn(lineOrEnd{line: bytes.Clone(line)}) {
			return
		}
	}
	err := s.Err()
	if err == nil {
		err = io.EOF
	}
	l.passOn(lineOrEnd{err: err})
}

func (l *lines) passOn(m lineOrEnd) bool {
	select {
	case l.queue <- m:
		return true
	case <-l.closed:
		return false
	}
}

// Read implements [sdk.Connection].
func (l *lines) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-l.closed:
			return nil, io.EOF
		case m := <-l.queue:
			if m.err != nil {
				return nil, m.err
			}
			msg, err := jsonrpc.DecodeMessage(m.line)
			if err == nil {
				return msg, nil
			}
			if err := l.write([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"this line is no message"}}`)); err != nil {
				return nil, err
			}
		}
	}
}

// Write implements [sdk.Connection].
func (l *lines) Write(ctx context.Context, msg jsonrpc.Message) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	return l.write(data)
}

func (l *lines) write(data []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.out.Write(append(data, '\n'))
	return err
}

// Close implements [sdk.Connection].
func (l *lines) Close() (err error) {
	l.once.Do(func() {
		close(l.closed)
		err = errors.Join(l.in.Close(), l.out.Close())
	})
	return err
}

// SessionID implements [sdk.Connection].
func (l *lines) SessionID() string { return "" }
