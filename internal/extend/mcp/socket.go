package mcp

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"sync"

	"github.com/coder/websocket"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// dialSocket connects to a server over a web socket: one JSON-RPC message in each text message, with "mcp" as
// the protocol. The specification leaves such transports to implementations.
func dialSocket(life context.Context, client *http.Client, u *url.URL, noise sift) (sdk.Transport, error) {
	conn, resp, err := websocket.Dial(life, u.String(), &websocket.DialOptions{HTTPClient: client, Subprotocols: []string{"mcp"}})
	if resp != nil && resp.Body != nil && err != nil {
		resp.Body.Close()
	}
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(maxFrame)
	s := &socket{conn: conn, life: life, noise: noise}
	return &sdk.IOTransport{Reader: s, Writer: s, MaxLineLength: maxFrame + 1}, nil
}

// socket is a web socket as a stream of lines. Messages of other types are left out.
type socket struct {
	conn  *websocket.Conn
	life  context.Context //nolint:containedctx // of the connection
	noise sift
	left  []byte // of the message that is being read
	end   sync.Once
}

// Read implements [io.Reader]. One goroutine may read.
func (s *socket) Read(p []byte) (int, error) {
	for len(s.left) == 0 {
		_, data, err := s.conn.Read(s.life)
		if err != nil {
			return 0, err
		}
		data = bytes.TrimSpace(data)
		if s.left = messages(data); s.left == nil {
			s.noise.skipped(data)
			continue
		}
		s.left = append(bytes.ReplaceAll(s.left, []byte{'\n'}, []byte{' '}), '\n')
	}
	n := copy(p, s.left)
	s.left = s.left[n:]
	return n, nil
}

// Write implements [io.Writer]. Each call sends one message.
func (s *socket) Write(p []byte) (int, error) {
	return len(p), s.conn.Write(s.life, websocket.MessageText, p)
}

// Close implements [io.Closer].
func (s *socket) Close() error {
	s.end.Do(func() { _ = s.conn.CloseNow() }) // it is over in any case
	return nil
}
