package netguard

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Here returns a guard that may reach this machine, and the ranges that a person has set: for addresses in the
// person's settings.
func Here(local []netip.Prefix) *Guard {
	return &Guard{Local: append(slices.Clone(local), netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"))}
}

// For returns a guard for the server at an address. Only a server on this machine may lead to addresses of this
// machine.
func For(address string, local []netip.Prefix) *Guard {
	if u, err := url.Parse(address); err == nil && IsHere(u.Hostname()) {
		return Here(local)
	}
	return &Guard{Local: local}
}

// IsHere reports whether a host, without a port, can only be this machine: localhost, or an address of the
// loopback network. It is stricter than [Loopback]: a resolver could map other local names elsewhere.
func IsHere(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().IsLoopback()
	}
	return strings.EqualFold(host, "localhost")
}
