package netguard

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Here is a guard that lets what it guards reach this machine, and the ranges that a person
// has set: addresses that the person's settings name may be there.
func Here(local []netip.Prefix) *Guard {
	return &Guard{Local: append(slices.Clone(local), netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"))}
}

// For is a guard for what talks to the server at an address. Only a server at this machine may
// lead to addresses of this machine.
func For(address string, local []netip.Prefix) *Guard {
	if u, err := url.Parse(address); err == nil && IsHere(u.Hostname()) {
		return Here(local)
	}
	return &Guard{Local: local}
}

// IsHere reports whether a host, without a port, can be nothing but this machine: localhost, or an
// address of the loopback network. It is stricter than [Loopback]: other names that should lead here
// are what a resolver makes of them.
func IsHere(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().IsLoopback()
	}
	return strings.EqualFold(host, "localhost")
}
