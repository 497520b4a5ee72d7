package netguard

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Secret is a value that sandboxed processes don't have: they send a stand-in, which is replaced on its way to
// some hosts.
type Secret struct {
	StandIn, Value string
	Hosts          Hosts // nil means every host
	Header, Body   bool  // where it is replaced: header values, bodies
}

// Swap replaces stand-ins for secrets in requests. To inspect encrypted ones, it acts as the host towards the
// process, with a certificate of an authority that lives as long as the Swap. Only processes that are given
// [Swap.PEM] trust it. It is safe for concurrent use.
type Swap struct {
	secrets []Secret
	key     *ecdsa.PrivateKey
	root    *x509.Certificate

	mu    sync.Mutex
	known map[string]*tls.Certificate // by host
}

const (
	mostSwapped = 16 << 20 // bytes of a body that is searched; a longer one is sent unchanged
	mostCerts   = 256
	certLife    = 30 * 24 * time.Hour
)

// NewSwap creates a Swap with its own authority.
func NewSwap(secrets []Secret) (*Swap, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	t := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "inspan sandbox"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, err
	}
	root, err := x509.ParseCertificate(raw)
	return &Swap{secrets: secrets, key: key, root: root, known: map[string]*tls.Certificate{}}, err
}

// PEM returns the certificate of the authority.
func (s *Swap) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.root.Raw})
}

// at returns the secrets for a host.
func (s *Swap) at(host string, port int) (out []Secret) {
	if s == nil {
		return nil
	}
	for _, one := range s.secrets {
		if one.Hosts == nil || one.Hosts.Match(host, port) {
			out = append(out, one)
		}
	}
	return out
}

// certificate returns a certificate for a host.
func (s *Swap) certificate(host string) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.known[host]; c != nil {
		return c, nil
	}
	if len(s.known) >= mostCerts {
		clear(s.known)
	}
	now := time.Now()
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	t := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "inspan sandbox for a host"},
		NotBefore: now.Add(-time.Hour), NotAfter: s.root.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		t.IPAddresses = []net.IP{ip}
	} else {
		t.DNSNames = []string{host}
	}
	raw, err := x509.CreateCertificate(rand.Reader, t, s.root, key.Public(), s.key)
	if err != nil {
		return nil, err
	}
	c := &tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
	s.known[host] = c
	return c, nil
}

// replace replaces the stand-ins of secrets in a request.
func replace(r *http.Request, secrets []Secret) error {
	body := false
	for _, s := range secrets {
		body = body || s.Body
		if !s.Header {
			continue
		}
		for _, values := range r.Header {
			for i := range values {
				values[i] = replaced(values[i], s)
			}
		}
	}
	if !body || r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	from := r.Body
	raw, err := io.ReadAll(io.LimitReader(from, mostSwapped+1))
	if err != nil {
		return err
	}
	if len(raw) > mostSwapped {
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(raw), from), from}
		return nil
	}
	for _, s := range secrets {
		if s.Body {
			raw = bytes.ReplaceAll(raw, []byte(s.StandIn), []byte(s.Value))
		}
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
	return from.Close()
}

// replaced returns the value of a header with a secret in place of its stand-in, also within basic
// authentication.
func replaced(value string, s Secret) string {
	const basic = "Basic "
	if len(value) > len(basic) && strings.EqualFold(value[:len(basic)], basic) {
		if raw, err := base64.StdEncoding.DecodeString(value[len(basic):]); err == nil {
			return basic + base64.StdEncoding.EncodeToString([]byte(strings.ReplaceAll(string(raw), s.StandIn, s.Value)))
		}
	}
	return strings.ReplaceAll(value, s.StandIn, s.Value)
}

// inside acts as a host on a connection of a process that starts TLS, and passes its requests on.
func (p *Proxy) inside(down net.Conn, host string, pass http.HandlerFunc) {
	over := make(chan struct{})
	s := &http.Server{
		Handler: pass, ReadHeaderTimeout: p.idle(), IdleTimeout: p.idle(), MaxHeaderBytes: 64 << 10, ErrorLog: log.New(io.Discard, "", 0),
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed || state == http.StateHijacked {
				close(over)
			}
		},
	}
	conn := tls.Server(&idleConn{Conn: down, idle: p.idle()}, &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return p.Swap.certificate(host) },
	})
	_ = s.Serve(&single{conn: conn, over: over}) // ends with the connection
}

// single is a listener with one connection.
type single struct {
	conn net.Conn
	over chan struct{}
	once sync.Once
}

// Accept implements [net.Listener].
func (l *single) Accept() (conn net.Conn, err error) {
	l.once.Do(func() { conn = l.conn })
	if conn == nil {
		<-l.over
		return nil, net.ErrClosed
	}
	return conn, nil
}

// Close implements [net.Listener].
func (l *single) Close() error { return nil }

// Addr implements [net.Listener].
func (l *single) Addr() net.Addr { return l.conn.LocalAddr() }

// begun is a connection with some data already read.
type begun struct {
	net.Conn
	from io.Reader
}

// Read implements [net.Conn].
func (c *begun) Read(p []byte) (int, error) { return c.from.Read(p) }
