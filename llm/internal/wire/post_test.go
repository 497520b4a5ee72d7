package wire

import (
	"bufio"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/models/reaction"
	"github.com/inspan/inspan/llm"
)

// A server that keeps a connection and then closes it when the next request
// comes must not make that one fail.
func TestClosedConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	requests := make(chan string, 9)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go answerOnce(conn, requests)
		}
	}()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	p := Post{URL: "http://" + l.Addr().String(), Body: []byte("body"), HTTP: transport}
	for i := range 3 {
		body, err := p.Ask(t.Context(), 99, func(status int, _ []byte) *llm.Error { return &llm.Error{Status: status} })
		if err != nil || string(body) != "{}" {
			t.Fatalf("request %d: %q, %v", i+1, body, err)
		}
	}
	for range 5 { // three that were answered, and two that were sent again
		if body := <-requests; body != "body" {
			t.Errorf("the server read %q", body)
		}
	}
}

// answerOnce answers the first request on a connection and hangs up on the
// second.
func answerOnce(conn net.Conn, requests chan<- string) {
	defer func() { _ = conn.Close() }()
	in := bufio.NewReader(conn)
	for n := range 2 {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		requests <- string(body)
		if n == 0 {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
		}
	}
}

// TestUntrusted checks that a server whose certificate is not trusted, or that speaks no TLS, is not asked again.
func TestUntrusted(t *testing.T) {
	quiet := log.New(io.Discard, "", 0)
	sealed := httptest.NewUnstartedServer(http.NotFoundHandler())
	sealed.Config.ErrorLog = quiet
	sealed.StartTLS()
	defer sealed.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	for name, at := range map[string]string{"an unknown authority": sealed.URL, "no TLS": strings.Replace(plain.URL, "http:", "https:", 1)} {
		p := Post{URL: at, Body: []byte("body"), HTTP: transport}
		_, err := p.Ask(t.Context(), 99, func(status int, _ []byte) *llm.Error { return &llm.Error{Status: status} })
		if e := llm.AsError(err); e == nil || e.Kind != llm.KindNoReply || reaction.To(e.Kind) == reaction.Retry {
			t.Errorf("%s: %v", name, err)
		}
	}
}
