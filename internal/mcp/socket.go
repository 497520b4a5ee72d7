package mcp

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"sync"

	"github.com/coder/websocket"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// dialSocket connects to a server over a web socket: one JSON-RPC message in each
// text message, and "mcp" as the protocol. The specification leaves this transport
// to those who use it.
func dialSocket(life context.Context, client *http.Client, u *url.URL) (sdk.Transport, error) {
	conn, resp, err := websocket.Dial(life, u.String(), &websocket.DialOptions{HTTPClient: client, Subprotocols: []string{"mcp"}})
	if resp != nil && resp.Body != nil && err != nil {
		resp.Body.Close()
	}
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(maxFrame)
	s := &socket{conn: conn, life: life}
	return &sdk.IOTransport{Reader: s, Writer: s, MaxLineLength: maxFrame + 1}, nil
}

// socket is a web socket as a stream of lines.
type socket struct {
	conn *websocket.Conn
	life context.Context //nolint:containedctx // of the connection
	left io.Reader       // of the message that is being read; nil: none is
	end  sync.Once
}

// Read implements [io.Reader]. One goroutine may read.
func (s *socket) Read(p []byte) (int, error) {
	if s.left == nil {
		_, r, err := s.conn.Reader(s.life)
		if err != nil {
			return 0, err
		}
		s.left = r
	}
	n, err := s.left.Read(p)
	if err != io.EOF { //nolint:errorlint // io.Reader hands EOF out bare
		return n, err
	}
	s.left = nil
	if n < len(p) { // a reader that returns EOF has no more than it returned
		p[n] = '\n'
		return n + 1, nil
	}
	s.left = eof{}
	return n, nil
}

// eof is a message at its end.
type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }

// Write implements [io.Writer]. Each call sends one message.
func (s *socket) Write(p []byte) (int, error) {
	return len(p), s.conn.Write(s.life, websocket.MessageText, p)
}

// Close implements [io.Closer].
func (s *socket) Close() error {
	s.end.Do(func() { _ = s.conn.CloseNow() }) // it is over in any case
	return nil
}
