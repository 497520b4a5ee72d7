package netguard

import (
	"net/netip"
	"net/url"
	"slices"
)

// Here is a guard that lets what it guards reach this machine, and the ranges that a person
// has set: addresses that the person's settings name may be there.
func Here(local []netip.Prefix) *Guard {
	return &Guard{Local: append(slices.Clone(local), netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"))}
}

// For is a guard for what talks to the server at an address. Only a server at this machine may
// lead to addresses of this machine.
func For(address string, local []netip.Prefix) *Guard {
	if u, err := url.Parse(address); err == nil {
		ip, err := netip.ParseAddr(u.Hostname())
		if u.Hostname() == "localhost" || err == nil && ip.IsLoopback() {
			return Here(local)
		}
	}
	return &Guard{Local: local}
}
