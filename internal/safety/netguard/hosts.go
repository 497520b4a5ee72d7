package netguard

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// Hosts is a list of host patterns:
//
//	example.com      only this host
//	*.example.com    every name below it, at any depth, but not itself
//	192.0.2.1        this address, in this notation; an IPv6 one in brackets
//	*                every host
//
// A pattern may end in :PORT; otherwise it covers every port. A name is matched label by label in canonical
// form, so neither notexample.com nor example.com.evil.test matches the first two. A match does not override
// [Denied]. The nil list matches nothing, and neither does a pattern that [CheckHost] rejects.
type Hosts []string

// Match reports whether a pattern covers the host. The host may have any spelling with a canonical form; others
// never match, so pass a result of [Check] if the list denies hosts.
func (h Hosts) Match(host string, port int) bool {
	name, err := canonical(unbracketed(host))
	if err != nil {
		return false
	}
	for _, text := range h {
		if p, err := parsePattern(text); err == nil && p.covers(name, port) {
			return true
		}
	}
	return false
}

// Loopback reports whether a host, with or without a port, is this machine under a name that needs no lookup:
// localhost, a name below it, or an address of the loopback network. Inside of a sandbox these are the
// session's own processes.
func Loopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	name, err := canonical(unbracketed(host))
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(name)
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || err == nil && (ip.IsLoopback() || ip.IsUnspecified())
}

// CheckHost returns an error for an invalid pattern of [Hosts], for settings.
func CheckHost(text string) error {
	if _, err := parsePattern(text); err != nil {
		return fmt.Errorf("host pattern %q: %w", text, err)
	}
	return nil
}

type pattern struct {
	any   bool   // *
	below bool   // *.name
	name  string // canonical
	port  int    // 0 means every port
}

func (p pattern) covers(name string, port int) bool {
	switch {
	case p.port != 0 && p.port != port:
		return false
	case p.any:
		return true
	case p.below:
		return strings.HasSuffix(name, "."+p.name)
	}
	return name == p.name
}

func parsePattern(text string) (pattern, error) {
	var p pattern
	host := text
	if i := strings.LastIndexByte(text, ':'); i >= 0 && !strings.HasSuffix(text, "]") {
		port, err := parsePort(text[i+1:])
		if err != nil {
			return p, err
		}
		host, p.port = text[:i], port
	}
	if host == "*" {
		p.any = true
		return p, nil
	}
	if strings.Contains(host, "/") {
		return p, errors.New("wants a host, not an address with a scheme or a path")
	}
	host, p.below = strings.CutPrefix(host, "*.")
	if strings.Contains(host, "*") {
		return p, errors.New("has a * elsewhere than as its first part")
	}
	if strings.Contains(host, ":") && unbracketed(host) == host {
		return p, errors.New("wants brackets around an IPv6 address")
	}
	name, err := canonical(unbracketed(host))
	if err == nil && p.below && (strings.Contains(name, ":") || numeric(name)) {
		err = errors.New("has a * before an IP address")
	}
	p.name = name
	return p, err
}

// unbracketed removes the brackets of an IPv6 address, and of nothing else.
func unbracketed(host string) string {
	inner, open := strings.CutPrefix(host, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	if open && closed && strings.Contains(inner, ":") {
		return inner
	}
	return host
}
