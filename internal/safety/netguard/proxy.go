package netguard

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Proxy is an HTTP proxy for sandboxed processes: CONNECT, and requests for http addresses in absolute form. It
// reaches the hosts that its guard allows; a denied host gets 403 and a plain text that names the host and the
// reason. The limits of the guard on bytes and types don't apply, since tunnels are opaque. Set its fields
// before Serve.
type Proxy struct {
	// Guard decides and dials. Nil means the zero Guard.
	Guard *Guard
	// Refused is called for each denied host, concurrently. The host is as the process wrote it if it has no
	// canonical form; the reason is for people. May be nil.
	Refused func(host, reason string)
	// Swap replaces stand-ins for secrets in requests. Nil means none are replaced.
	Swap *Swap
	// Processes may only fetch from the hosts in Fetches: other requests get 405, and further data is removed. It
	// needs a Swap, to inspect encrypted requests.
	Fetches Hosts
	// Fetched is called for each request to a host of Fetches, concurrently. May be nil.
	Fetched func(host string)
	// Idle is how long a connection may be idle in both directions. 0 means 5 minutes.
	Idle time.Duration
	// MaxConns bounds the open connections; further ones are closed at once, so that a sandbox can't exhaust
	// the host's files. 0 means 512.
	MaxConns int
}

// Serve serves the listener until ctx is done, which is not an error. Then it closes the listener and all
// connections, and returns when none is left.
func (p *Proxy) Serve(ctx context.Context, l net.Listener) error {
	var open sync.WaitGroup
	s := &http.Server{
		Handler:                      p.handler(&open),
		ReadHeaderTimeout:            p.idle(),
		IdleTimeout:                  p.idle(),
		MaxHeaderBytes:               64 << 10,
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     log.New(io.Discard, "", 0), // a sandbox must not write to the terminal
		BaseContext:                  func(net.Listener) context.Context { return ctx },
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				open.Add(1)
			case http.StateClosed, http.StateHijacked:
				open.Done()
			}
		},
	}
	settle := onDone(ctx, func() { shut(s) })
	slots := p.MaxConns
	if slots <= 0 {
		slots = 512
	}
	err := s.Serve(&limited{Listener: l, slots: make(chan struct{}, slots)})
	settle()
	shut(s)
	open.Wait()
	if ctx.Err() == nil {
		return fmt.Errorf("serve proxy: %w", err)
	}
	return nil
}

func (p *Proxy) idle() time.Duration {
	if p.Idle <= 0 {
		return 5 * time.Minute
	}
	return p.Idle
}

func (p *Proxy) guard() *Guard {
	if p.Guard == nil {
		return &Guard{}
	}
	return p.Guard
}

func (p *Proxy) handler(open *sync.WaitGroup) http.Handler {
	next := &http.Transport{
		DisableKeepAlives:      true,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: p.guard().RootCAs},
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeader,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := p.guard().DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &idleConn{Conn: conn, idle: p.idle()}, nil
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect {
			p.connect(w, r, open, next)
			return
		}
		u, err := Check(r.RequestURI)
		switch {
		case err != nil && r.URL.Host != "":
			p.fail(w, &RefusedError{Host: r.URL.Host, Reason: err.Error()})
		case err != nil || u.Scheme != "http":
			http.Error(w, "This is a proxy: it takes CONNECT, and http addresses in full.", http.StatusBadRequest)
		default:
			p.forward(w, r, u, next)
		}
	})
}

// forward sends one request and returns its response.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request, u *url.URL, next http.RoundTripper) {
	fetches := p.Fetches.Match(u.Hostname(), Port(u))
	if fetches {
		if reason := unfetched(r, u); reason != "" {
			if p.Refused != nil {
				p.Refused(u.Hostname(), reason)
			}
			http.Error(w, u.Hostname()+": "+reason+"; --allow 'network("+u.Hostname()+")' opens all", http.StatusMethodNotAllowed)
			return
		}
		if p.Fetched != nil {
			p.Fetched(u.Hostname())
		}
		r.Body, r.ContentLength, r.Trailer = http.NoBody, 0, nil
	}
	var unread error // why the body could not be read
	rp := &httputil.ReverseProxy{
		Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			if unread != nil {
				return nil, unread
			}
			return next.RoundTrip(r)
		}),
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.Out.URL, pr.Out.Host = u, hostOf(u)
			pr.Out.Header.Del("Upgrade")
			pr.Out.Header.Del("Connection")
			if fetches {
				pr.Out.Header = fetchHeader(pr.Out.Header, Registries().Match(u.Hostname(), Port(u)))
			}
			unread = replace(pr.Out, p.Swap.at(u.Hostname(), Port(u)))
		},
		ModifyResponse: func(resp *http.Response) error {
			if resp.StatusCode == http.StatusSwitchingProtocols {
				return fmt.Errorf("host %q switches protocols; only CONNECT can carry that", u.Hostname())
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { p.fail(w, err) },
	}
	w.Header()["Date"], w.Header()["Content-Type"] = nil, nil // as the host sent them, or not at all
	rp.ServeHTTP(w, r)
}

// hostOf returns the Host header for an address, as clients write it. That of the process is ignored: another
// name could send a secret elsewhere.
func hostOf(u *url.URL) string {
	if Port(u) == Port(&url.URL{Scheme: u.Scheme}) {
		return strings.TrimSuffix(u.Host, ":"+u.Port())
	}
	return u.Host
}

// connect opens a tunnel.
func (p *Proxy) connect(w http.ResponseWriter, r *http.Request, open *sync.WaitGroup, next *http.Transport) {
	u, err := Check("https://" + r.RequestURI)
	if err == nil && (u.Port() == "" || u.String() != "https://"+u.Host) {
		err = errors.New("CONNECT wants HOST:PORT and nothing else")
	}
	if err != nil {
		p.fail(w, &RefusedError{Host: shown(r.RequestURI), Reason: err.Error()})
		return
	}
	up, err := p.guard().DialContext(r.Context(), "tcp", u.Host)
	if err != nil {
		p.fail(w, err)
		return
	}
	defer shut(up)
	open.Add(1) // the server doesn't count hijacked connections
	defer open.Done()
	down, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		p.fail(w, fmt.Errorf("take over connection: %w", err))
		return
	}
	defer shut(down)
	early, _ := buffered.Peek(buffered.Reader.Buffered()) // sent before our response
	settle := onDone(r.Context(), func() { shut(down) })
	defer settle()
	if _, err := io.WriteString(down, established); err != nil {
		return
	}
	sealed, fetches := false, p.Fetches.Match(u.Hostname(), Port(u))
	if len(p.Swap.at(u.Hostname(), Port(u))) > 0 || fetches && p.Swap != nil {
		early, sealed = encrypts(down, early)
	}
	if !sealed && fetches {
		return // its purpose is unknown
	}
	if !sealed {
		t := &tunnel{down: down, up: up, idle: p.idle()}
		t.run(r.Context(), early)
		return
	}
	own := next.Clone() // one for this tunnel, as requests of one connection may belong together
	first := make(chan net.Conn, 1)
	first <- &idleConn{Conn: up, idle: p.idle()}
	own.DisableKeepAlives = false
	own.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		select {
		case conn := <-first:
			return conn, nil
		default:
			return next.DialContext(ctx, network, addr)
		}
	}
	defer own.CloseIdleConnections()
	p.inside(&begun{down, io.MultiReader(bytes.NewReader(early), down)}, u.Hostname(), func(w http.ResponseWriter, r *http.Request) {
		to, err := Check("https://" + u.Host + r.URL.RequestURI())
		if err != nil {
			p.fail(w, &RefusedError{Host: u.Host, Reason: err.Error()})
			return
		}
		p.forward(w, r, to, own)
	})
}

// speaksFirst is how long a process may take to start TLS. One that sends nothing by then waits for the host,
// as clients of mail servers do.
const speaksFirst = 2 * time.Second

// encrypts reports whether a process starts TLS, and returns the data that was read.
func encrypts(down net.Conn, early []byte) ([]byte, bool) {
	const handshake = 22 // type of the first TLS record
	if len(early) == 0 {
		one := make([]byte, 1)
		_ = down.SetReadDeadline(time.Now().Add(speaksFirst)) // the next reader sets another deadline
		n, _ := down.Read(one)
		early = one[:n]
	}
	return early, len(early) > 0 && early[0] == handshake
}

// roundTrip is a function as a transport.
type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Blocked returns the message, for models and people, that a host is closed to a sandboxed process, with the
// remedy.
func Blocked(host string) string {
	said := fmt.Sprintf("the sandbox blocked %s; allow with --allow 'network(%s)'", host, host)
	if Registries().Match(host, 443) {
		said += " or --allow registries"
	}
	return said
}

// fail responds with 403 if the host is denied, otherwise with 502.
func (p *Proxy) fail(w http.ResponseWriter, err error) {
	var refused *RefusedError
	if !errors.As(err, &refused) {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	if p.Refused != nil {
		p.Refused(refused.Host, refused.Reason)
	}
	text := refused.Error() + "."
	if refused.Err != nil {
		text = Blocked(refused.Host) + " (" + refused.Reason + ").\nThe network argument of a call asks for it."
	}
	http.Error(w, text, http.StatusForbidden)
}
