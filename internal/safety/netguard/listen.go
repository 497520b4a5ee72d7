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

// ErrOpen says that an address would admit other machines, which was not requested, or without a token to
// restrict them.
var ErrOpen = errors.New("the address can be reached from other machines")

// Listen listens on a TCP address, for instance "127.0.0.1:0". An address that other machines can reach is
// rejected with ErrOpen, unless others is set and the gate needs a token. A name is resolved now. The caller
// closes the listener.
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

// resolve returns the address to listen on, so that the checked and the bound one can't differ. An empty host
// means all addresses.
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
	return list[0], nil // a successful lookup returns at least one
}

// Server returns an HTTP server that slow or endless headers can't block. Responses may take any time.
func Server(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
}

// endTime bounds the requests in progress when a server ends.
const endTime = 5 * time.Second

// Serve serves h behind the gate until ctx ends, which is not an error. Then it accepts no more requests and
// calls end, which should make those in progress return soon, and waits a little for them. End may be nil. The
// listener is closed.
func (g *Gate) Serve(ctx context.Context, l net.Listener, h http.Handler, end func()) error {
	return Serve(ctx, l, g.Wrap(h), end)
}

// Serve is [Gate.Serve] for a handler that is already behind a gate.
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
		_ = srv.Close() // remaining clients had enough time
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
