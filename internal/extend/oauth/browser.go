package oauth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/inspan/inspan/internal/safety/netguard"
)

const (
	callback = "/callback"
	// farewell is how long sending the page after a login may take.
	farewell = 2 * time.Second
	good     = "The answer has arrived. You can close this page and go back to inspan.\n"
	wrong    = "This is not the answer that inspan waits for.\n"
)

// listener waits on this machine for the browser's redirect.
type listener struct {
	redirect string // the address that the browser comes back to
	host     string
	path     string
	net      net.Listener
	taken    atomic.Bool // an answer has come
}

// listen opens a port: the registered one, or any. If exact, the path is unguessable.
func listen(registered string, exact bool) (*listener, error) {
	if registered == "" {
		registered = "http://127.0.0.1" + callbackPath(exact)
	}
	u, err := url.Parse(registered)
	if err != nil || u.Scheme != "http" || !netguard.IsHere(u.Hostname()) || u.RawQuery != "" {
		return nil, fmt.Errorf("the registered address %q does not lead back to this machine: log in by pasting", registered)
	}
	host, port := u.Hostname(), u.Port()
	bind := host
	if strings.EqualFold(host, "localhost") {
		bind = "127.0.0.1"
	}
	if port == "" {
		port = "0"
	}
	l, err := net.Listen("tcp", net.JoinHostPort(bind, port))
	if err != nil {
		return nil, fmt.Errorf("wait for the browser: %w", err)
	}
	_, got, _ := net.SplitHostPort(l.Addr().String())
	u.Host = net.JoinHostPort(host, got)
	return &listener{redirect: u.String(), host: u.Host, path: u.EscapedPath(), net: l}, nil
}

func (l *listener) close() { _ = l.net.Close() }

// callbackPath is the path of the redirect.
func callbackPath(exact bool) string {
	if exact {
		return callback + "/" + rand.Text()
	}
	return callback
}

// nowhere returns a redirect address of this machine on which nothing listens: the person pastes it.
func nowhere(exact bool) string {
	var b [2]byte
	_, _ = rand.Read(b[:]) // never fails
	port := 49152 + (int(b[0])<<8|int(b[1]))%16384
	return fmt.Sprintf("http://127.0.0.1:%d%s", port, callbackPath(exact))
}

// browsed shows the person the page and waits for the browser's redirect.
func (t attempt) browsed(ctx context.Context, l *listener, at, state string) (response, error) {
	answers := make(chan response, 1)
	server := &http.Server{
		Handler:           l.handler(state, answers),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      10 * time.Second,
		MaxHeaderBytes:    64 << 10,
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(l.net) // ends by being shut down
	}()
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
		defer cancel()
		if server.Shutdown(end) != nil {
			_ = server.Close()
		}
		<-ended
	}()
	if err := t.show(at); err != nil {
		return response{}, err
	}
	select {
	case r := <-answers:
		return r, nil
	case <-ctx.Done():
		return response{}, ctx.Err()
	}
}

// show opens a page, or prints its address.
func (t attempt) show(at string) error {
	var failed error
	if t.p.Open != nil {
		failed = t.p.Open(at)
	}
	switch {
	case t.p.Tell == nil && failed != nil:
		return fmt.Errorf("open the page to log in: %w", failed)
	case t.p.Tell == nil:
	case t.p.Open != nil && failed == nil:
		t.p.Tell("Log in with the browser. If no page has opened, open " + at)
	default:
		t.p.Tell("To log in, open " + at)
	}
	return nil
}

// handler accepts the first response with the state. It refuses all others and changes nothing, because every web
// page in the browser can send requests here.
func (l *listener) handler(state string, answers chan<- response) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "text/plain; charset=utf-8")
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Connection", "close")
		status, text := l.take(req, state, answers)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text))
	})
}

func (l *listener) take(req *http.Request, state string, answers chan<- response) (status int, text string) {
	switch {
	case !strings.EqualFold(req.Host, l.host):
		return http.StatusMisdirectedRequest, wrong
	case req.URL.EscapedPath() != l.path:
		return http.StatusNotFound, wrong
	case req.Method != http.MethodGet:
		return http.StatusMethodNotAllowed, wrong
	}
	r, err := readResponse(req.URL.RawQuery)
	if err != nil || !equal(r.state, state) {
		return http.StatusBadRequest, wrong
	}
	if !l.taken.CompareAndSwap(false, true) {
		return http.StatusGone, wrong
	}
	answers <- r // has room for the one
	return http.StatusOK, good
}

// equal compares in constant time.
func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// readResponse reads the query of a redirect.
func readResponse(query string) (response, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return response{}, errors.New("it can't be read")
	}
	for _, name := range []string{"code", "state", "iss", "error"} {
		if len(values[name]) > 1 {
			return response{}, errors.New("it repeats a parameter")
		}
	}
	return response{values.Get("code"), values.Get("state"), values.Get("iss"), values.Get("error"), values.Get("error_description")}, nil
}
