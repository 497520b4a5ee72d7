package netguard

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// Denied returns the reason why an address must not be dialled, or "" if it may be. It denies everything except
// public unicast addresses, according to the IANA special-purpose registries (RFC 6890 and its successors), the
// metadata services of clouds, and IPv6 addresses that contain a denied IPv4 address. The reason does not contain
// the address, and nothing is looked up; [Guard] handles addresses of this machine's own interfaces.
func Denied(ip netip.Addr) string {
	switch {
	case !ip.IsValid():
		return "is no address"
	case ip.Zone() != "":
		return "has a zone, which means this machine's own links"
	}
	if ip = ip.Unmap(); ip.Is4() {
		return denied4(ip.As4())
	}
	return denied6(ip.As16())
}

func denied4(b [4]byte) string {
	switch n := binary.BigEndian.Uint32(b[:]); {
	case n == 0xa9fea9fe, n == 0xa83f8110, n == 0xc00000c0, n == 0x646464c8:
		// 169.254.169.254, 168.63.129.16, 192.0.0.192, 100.100.100.200
		return "is a cloud's metadata service"
	case n == 0:
		return "is the unspecified address, which means this machine"
	case b[0] == 0:
		return "is reserved for this network (0.0.0.0/8)"
	case b[0] == 127:
		return "is a loopback address, which means this machine"
	case b[0] == 10, n>>20 == 0xac1, n>>16 == 0xc0a8:
		return "is a private address"
	case n>>16 == 0xa9fe:
		return "is a link-local address"
	case n>>22 == 0x6440>>6:
		return "is a shared address of a provider's network (100.64.0.0/10)"
	case n>>17 == 0xc612>>1:
		return "is reserved for benchmarking (198.18.0.0/15)"
	case n>>8 == 0xc00002, n>>8 == 0xc63364, n>>8 == 0xcb0071:
		return "is reserved for documentation"
	case n>>8 == 0xc00000, n>>8 == 0xc05863:
		return "is reserved for protocols" // 192.0.0.0/24, 192.88.99.0/24
	case n == 0xffffffff:
		return "is the broadcast address"
	case b[0] >= 240:
		return "is reserved (240.0.0.0/4)"
	case b[0] >= 224:
		return "is a multicast address"
	}
	return ""
}

func denied6(b [16]byte) string {
	hi, lo := binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
	switch {
	case hi == 0 && lo == 0:
		return "is the unspecified address, which means this machine"
	case hi == 0 && lo == 1:
		return "is a loopback address, which means this machine"
	case hi>>32 == 0xfd000ec2:
		return "is a cloud's metadata service"
	case b[0]&0xfe == 0xfc:
		return "is a private address (fc00::/7)"
	case hi>>54 == 0xfe80>>6:
		return "is a link-local address"
	case hi>>54 == 0xfec0>>6:
		return "is a site-local address"
	case b[0] == 0xff:
		return "is a multicast address"
	}
	if why := deniedInside(b, hi, lo); why != "" {
		return why
	}
	switch {
	case hi == 0x0064ff9b_00000000 && lo>>32 == 0:
		return "" // NAT64 of a public address
	case hi>>32 == 0x20010db8, hi>>44 == 0x3fff0:
		return "is reserved for documentation"
	case hi>>41 == 0x200100>>1:
		return "is reserved for protocols (2001::/23)"
	case b[0]>>5 != 1:
		return "is outside of the public range (2000::/3)"
	}
	return ""
}

// deniedInside extracts IPv4 addresses that an IPv6 address contains. Several forms may apply to one address,
// so all are tried.
func deniedInside(b [16]byte, hi, lo uint64) string {
	tail := [4]byte(b[12:])
	wraps := [...]struct {
		is    bool
		what  string
		inner [4]byte
	}{
		{hi == 0 && lo>>32 == 0, "IPv4-compatible (RFC 4291)", tail},
		{hi == 0 && lo>>32 == 0xffff0000, "IPv4-translated (RFC 2765)", tail},
		{hi>>16 == 0x0064ff9b_0001, "local NAT64 (RFC 8215)", tail},
		{hi>>16 == 0x0064ff9b_0001, "local NAT64 (RFC 8215)", [4]byte{b[6], b[7], b[9], b[10]}},
		{hi == 0x0064ff9b_00000000 && lo>>32 == 0, "NAT64 (RFC 6052)", tail},
		{hi>>48 == 0x2002, "6to4 (RFC 3056)", [4]byte(b[2:6])},
		{hi>>32 == 0x20010000, "Teredo (RFC 4380)", [4]byte{^b[12], ^b[13], ^b[14], ^b[15]}},
		{lo>>32&^0x03000000 == 0x00005efe, "ISATAP (RFC 5214)", tail},
	}
	for _, w := range wraps {
		if !w.is {
			continue
		}
		if why := denied4(w.inner); why != "" {
			return fmt.Sprintf("is the %s form of %s, which %s", w.what, netip.AddrFrom4(w.inner), why)
		}
	}
	return ""
}
