package netguard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// ErrOpen says that an address would let other machines in, which nobody has asked
// for, or that no token would keep them out.
var ErrOpen = errors.New("the address can be reached from other machines")

// Listen listens on a TCP address, "127.0.0.1:0" for instance. One that other
// machines can reach is refused with ErrOpen, unless others says that it is meant and
// the gate wants a token. A name counts as what it stands for now. The caller closes
// the listener.
func (g *Gate) Listen(ctx context.Context, addr string, others bool) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	ip, err := resolve(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	switch {
	case ip.IsLoopback():
	case !others:
		return nil, fmt.Errorf("listen on %s: %w; use 127.0.0.1, or --public if this is meant", addr, ErrOpen)
	case g.Who == nil:
		return nil, fmt.Errorf("listen on %s: %w, so it needs a token", addr, ErrOpen)
	}
	var c net.ListenConfig
	l, err := c.Listen(ctx, "tcp", net.JoinHostPort(ip.String(), port))
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return l, nil
}

// resolve is the one address that is listened on, so that what was checked and what is
// bound can't differ. No host at all means all addresses.
func resolve(ctx context.Context, host string) (netip.Addr, error) {
	if host == "" {
		return netip.IPv6Unspecified(), nil
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip, nil
	}
	list, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.Addr{}, err
	}
	for _, ip := range list {
		if ip.Unmap().Is4() {
			return ip.Unmap(), nil
		}
	}
	return list[0], nil // a lookup without an error finds at least one
}

// Server is an HTTP server that slow or endless headers don't hold up. Answers may
// take as long as they like.
func Server(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
}

// endTime is how long requests that are under way may take when a server ends.
const endTime = 5 * time.Second

// Serve serves h behind the gate until ctx ends, which is no error. No more requests are
// taken then; end is called, which should have those under way return soon, and they
// are waited for a little. End may be nil. The listener is closed.
func (g *Gate) Serve(ctx context.Context, l net.Listener, h http.Handler, end func()) error {
	return Serve(ctx, l, g.Wrap(h), end)
}

// Serve is [Gate.Serve] of a handler that is behind a gate already.
func Serve(ctx context.Context, l net.Listener, h http.Handler, end func()) error {
	srv, ended := Server(h), make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	patient, stop := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer stop()
	shut := make(chan error, 1)
	go func() { shut <- srv.Shutdown(patient) }()
	if end != nil {
		end()
	}
	if <-shut != nil {
		_ = srv.Close() // whoever is still there has had the time
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
