package netguard

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Guard dials and fetches. The zero value reaches every public host and no other. It is safe for concurrent use
// once its fields are set.
type Guard struct {
	// Resolve looks a name up; it gets the canonical name and is called once for each connection. Nil uses the
	// system, which treats a name with a dot as complete: search domains don't apply.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Allow is called for each connection, redirects included, before the host is looked up, since the lookup
	// itself reveals information. The host is canonical. Its error is shown to the model. Nil allows every
	// host. It may be called concurrently.
	Allow func(host string, port int) error
	// Local are ranges that may be reached although [Denied] names them or an own interface has them. A person
	// sets them, never a model.
	Local []netip.Prefix
	// Near are hosts, named by a person, that may have any address.
	Near Hosts
	// Own returns the addresses of this machine, which are also denied. Nil uses the system.
	Own func() ([]netip.Addr, error)
	// MaxBytes bounds the body of a response, as sent and as decompressed. 0 means 10 MiB.
	MaxBytes int64
	// Timeout bounds a request from its lookup to the last byte of its body, redirects included, and the
	// dialling of a connection. 0 means 30 seconds.
	Timeout time.Duration
	// Types are the accepted media types of a response, such as text/html or text/*. Empty means every type.
	Types []string
	// RootCAs are the trusted authorities. Nil means the system's.
	RootCAs *x509.CertPool
}

// Anywhere returns all addresses, for [Guard.Local] if a person has named the host.
func Anywhere() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
}

// attempt bounds one connection attempt if there are other addresses to try.
const attempt = 5 * time.Second

func (g *Guard) timeout() time.Duration {
	if g.Timeout <= 0 {
		return 30 * time.Second
	}
	return g.Timeout
}

// Addresses calls Allow, resolves the host once and returns the addresses that may be dialled, in order. If
// there is none, the error is a *[RefusedError].
func (g *Guard) Addresses(ctx context.Context, host string, port int) ([]netip.AddrPort, error) {
	name, err := canonical(unbracketed(host))
	if err != nil {
		return nil, &RefusedError{Host: host, Reason: err.Error()}
	}
	if g.Allow != nil {
		if err := g.Allow(name, port); err != nil {
			return nil, &RefusedError{Host: name, Reason: err.Error(), Err: err}
		}
	}
	ips, err := g.lookup(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("host %q: look up: %w", name, err)
	}
	var out []netip.AddrPort
	var reasons []string
	for _, ip := range ips {
		if why := g.denied(ip); why != "" {
			reasons = append(reasons, ip.String()+" "+why)
			continue
		}
		out = append(out, netip.AddrPortFrom(ip.Unmap(), uint16(port)))
	}
	if len(out) == 0 {
		return nil, &RefusedError{Host: name, Reason: because(reasons)}
	}
	return out, nil
}

func because(reasons []string) string {
	const most = 3
	if len(reasons) == 0 {
		return "it has no address"
	}
	if len(reasons) > most {
		reasons = append(reasons[:most:most], "and so on")
	}
	return "its address " + strings.Join(reasons, "; ") + ". Only a person can open addresses that are not public: sandbox.local in the settings"
}

// lookup resolves a canonical name, or parses an address.
func (g *Guard) lookup(ctx context.Context, name string) ([]netip.Addr, error) {
	if ip, err := netip.ParseAddr(name); err == nil {
		return []netip.Addr{ip}, nil
	}
	if g.Resolve != nil {
		return g.Resolve(ctx, name)
	}
	if strings.Contains(name, ".") {
		name += "." // complete, so that no search domain is appended
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
}

// denied is [Denied] plus the addresses of this machine.
func (g *Guard) denied(ip netip.Addr) string {
	ip = ip.Unmap()
	if slices.ContainsFunc(g.Local, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		return ""
	}
	if why := Denied(ip); why != "" {
		return why
	}
	own := g.Own
	if own == nil {
		own = interfaces
	}
	mine, err := own()
	if err != nil {
		return "can't be told from this machine's own: " + err.Error()
	}
	if slices.ContainsFunc(mine, func(m netip.Addr) bool { return m.Unmap().WithZone("") == ip }) {
		return "is an address of this machine"
	}
	return ""
}

func interfaces() ([]netip.Addr, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var out []netip.Addr
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			out = append(out, p.Addr())
		}
	}
	return out, nil
}

// DialContext connects to HOST:PORT over tcp, tcp4 or tcp6. The host is resolved once, denied addresses are
// dropped, and the others are tried in order. The error is a *[RefusedError] if the host may not be reached.
func (g *Guard) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	if network != "tcp" && network != "tcp4" && network != "tcp6" {
		return nil, fmt.Errorf("dial %q: network %q is not tcp", addr, network)
	}
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("dial %q: %w", addr, err)
	}
	port, err := parsePort(text)
	if err != nil {
		return nil, fmt.Errorf("dial %q: %w", addr, err)
	}
	if g.Near.Match(host, port) {
		near := *g
		near.Local, near.Near = Anywhere(), nil
		return near.DialContext(ctx, network, addr)
	}
	ctx, cancel := context.WithTimeout(ctx, g.timeout())
	defer cancel()
	targets, err := g.Addresses(ctx, host, port)
	if err != nil {
		return nil, err
	}
	conn, err := g.dialFirst(ctx, network, targets)
	if err != nil {
		return nil, fmt.Errorf("host %q: %w", host, err)
	}
	return conn, nil
}

// dialFirst returns the first successful connection. If all fail, the error is the first one: later ones only
// say that time ran out.
func (g *Guard) dialFirst(ctx context.Context, network string, targets []netip.AddrPort) (net.Conn, error) {
	var first error
	for i, target := range targets {
		d := net.Dialer{ControlContext: g.control}
		if i < len(targets)-1 {
			d.Timeout = attempt
		}
		conn, err := d.DialContext(ctx, network, target.String())
		if err == nil {
			return conn, nil
		}
		if first == nil {
			first = err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, first
}

// control checks the address that the system is about to connect to.
func (g *Guard) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil {
		return errors.New("no address to check in " + address)
	}
	if why := g.denied(target.Addr()); why != "" {
		return &RefusedError{Host: target.Addr().String(), Reason: because([]string{target.Addr().String() + " " + why})}
	}
	return nil
}
