package netguard

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/inspan/inspan/internal/base/text"
)

// maxAddress bounds the length of an address, in bytes.
const maxAddress = 32 << 10

// Check parses an address and returns it in canonical form, unless its text alone is a reason to reject it.
// Only http and https are accepted. It rejects user information, spaces, control characters, backslashes, hosts
// with characters that programs read differently, and numbers in any form except dotted quads and bracketed
// IPv6. It does not check where a host leads: [Guard] does. The error is meant for a model.
//
// The host of the result is in lower case, in its xn-- form if it is not ASCII, without a trailing dot; an IPv4
// address mapped to IPv6 is unmapped, and the port has no leading zeros.
func Check(raw string) (*url.URL, error) {
	if err := checkText(raw); err != nil {
		return nil, fmt.Errorf("address %q: %w", shown(raw), err)
	}
	u, err := url.Parse(raw)
	if err != nil {
		var inner *url.Error
		if errors.As(err, &inner) {
			err = inner.Err // the rest repeats the address, credentials included
		}
		return nil, fmt.Errorf("address %q: can't be read: %w", shown(raw), err)
	}
	if err := checkURL(u); err != nil {
		return nil, fmt.Errorf("address %q: %w", shown(raw), err)
	}
	u.RawQuery = escapeBytes(u.RawQuery)
	return u, nil
}

// checkText checks for text that parsers read differently, before one of them runs.
func checkText(raw string) error {
	if raw == "" {
		return errors.New("is empty")
	}
	if len(raw) > maxAddress {
		return fmt.Errorf("is longer than %d bytes", maxAddress)
	}
	if !utf8.ValidString(raw) {
		return errors.New("is not valid UTF-8")
	}
	for _, r := range raw {
		switch {
		case r == '\\':
			return errors.New("has a backslash; write / or %5C")
		case r == ' ':
			return errors.New("has a space; write %20")
		case unicode.IsControl(r):
			return fmt.Errorf("has the control character %U", r)
		}
	}
	return nil
}

// checkURL checks the parts of an address and converts its host to canonical form.
func checkURL(u *url.URL) error {
	if u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("has the scheme %q; only http and https can be fetched", u.Scheme)
	}
	if u.Opaque != "" {
		return errors.New("has no // after its scheme")
	}
	if u.User != nil {
		return fmt.Errorf("has user information before the host %q; write it without", u.Host)
	}
	// The parser also checks this, unless a GODEBUG setting makes it lax.
	if strings.HasPrefix(u.Host, "[") != strings.Contains(u.Hostname(), ":") {
		return fmt.Errorf("host %q: brackets belong around IPv6 addresses and nothing else", u.Host)
	}
	host, err := canonical(u.Hostname())
	if err != nil {
		return err
	}
	port := u.Port()
	if u.Host = host; strings.Contains(host, ":") {
		u.Host = "[" + host + "]"
	}
	if port == "" {
		return nil
	}
	n, err := parsePort(port)
	if err != nil {
		return fmt.Errorf("host %q: %w", host, err)
	}
	u.Host += ":" + strconv.Itoa(n)
	return nil
}

func parsePort(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("port %q is not a number from 1 to 65535", text)
	}
	return int(n), nil
}

// Port returns the port that an address names, or else the usual one of http and https; 0 for other schemes, and if
// the port is not a number from 1 to 65535.
func Port(u *url.URL) int {
	if named := u.Port(); named != "" {
		n, _ := parsePort(named)
		return n
	}
	switch u.Scheme {
	case "https":
		return 443
	case "http":
		return 80
	}
	return 0
}

// canonical returns the unique spelling in which a host is matched, resolved and shown: a name in lower case,
// or an IP address without brackets.
func canonical(host string) (string, error) {
	if strings.Contains(host, ":") {
		ip, err := netip.ParseAddr(host)
		if err != nil {
			return "", fmt.Errorf("host %q is not an IPv6 address", host)
		}
		if ip.Zone() != "" {
			return "", fmt.Errorf("host %q has a zone, which means this machine's own links", host)
		}
		return ip.Unmap().String(), nil
	}
	if !ascii(host) {
		name, err := international(host)
		if err != nil {
			return "", fmt.Errorf("host %q %w", host, err)
		}
		host = name
	}
	if err := checkName(strings.TrimSuffix(host, ".")); err != nil {
		return "", fmt.Errorf("host %q %w", host, err)
	}
	name := strings.ToLower(host) // after the check: lower-casing turns some letters into ASCII
	if !numeric(name) {
		return strings.TrimSuffix(name, "."), nil
	}
	ip, err := netip.ParseAddr(name)
	if err != nil {
		return "", fmt.Errorf("host %q is a number, but no address of four plain decimal parts", host)
	}
	return ip.String(), nil
}

// checkName accepts host names with letters, digits, hyphens and underscores in labels of at most 63 bytes.
func checkName(name string) error {
	if name == "" {
		return errors.New("is empty; an address needs a host")
	}
	if len(name) > 253 {
		return errors.New("is longer than 253 bytes")
	}
	for _, c := range name {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.':
		default:
			return fmt.Errorf("has the character %q, which no host has", c)
		}
	}
	for label := range strings.SplitSeq(name, ".") {
		switch {
		case label == "" || len(label) > 63:
			return errors.New("has a part between dots that is empty or longer than 63 bytes")
		case label[0] == '-' || label[len(label)-1] == '-':
			return errors.New("has a part that starts or ends with a hyphen")
		}
	}
	return nil
}

// numeric reports whether a parser may read the name as a number: its last label is decimal, octal or
// hexadecimal (the test of the WHATWG URL standard).
func numeric(name string) bool {
	name = strings.TrimSuffix(name, ".")
	last := name[strings.LastIndexByte(name, '.')+1:]
	if hex, ok := strings.CutPrefix(last, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(last, "0123456789") == ""
}

// escapeBytes escapes non-ASCII bytes; the rest of a query is unchanged.
func escapeBytes(query string) string {
	var b strings.Builder
	for _, c := range []byte(query) {
		if c < utf8.RuneSelf {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

// shown returns a short form of an address for an error, without credentials.
func shown(raw string) string {
	raw = text.Head(raw, maxAddress)
	if at := strings.LastIndexByte(raw, '@'); at >= 0 {
		raw = "..." + raw[at:]
	}
	return text.Cut(raw, 200)
}
