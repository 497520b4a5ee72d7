package oauth

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/inspan/inspan/internal/safety/netguard"
)

// address checks an address for requests or for the browser: https, or http on this machine if local allows it.
func address(raw string, local bool) (*url.URL, error) {
	u, err := netguard.Check(raw)
	switch {
	case err != nil:
		return nil, err
	case u.Fragment != "":
		return nil, fmt.Errorf("address %q: has a fragment", u.Redacted())
	case u.Scheme == "https", local && netguard.IsHere(u.Hostname()):
		return u, nil
	case netguard.IsHere(u.Hostname()):
		return nil, fmt.Errorf("address %q: a server elsewhere names an address of this machine", u.Redacted())
	}
	return nil, fmt.Errorf("address %q: is not https", u.Redacted())
}

// isLocal reports whether an address is on this machine.
func isLocal(raw string) bool {
	u, err := netguard.Check(raw)
	return err == nil && netguard.IsHere(u.Hostname())
}

// canonical returns the normal form of a resource or an issuer: addresses that differ only in a final slash are
// the same.
func canonical(raw string) (string, error) {
	u, err := netguard.Check(raw)
	if err != nil {
		return "", err
	}
	if u.Fragment != "" {
		return "", errors.New("it has a fragment")
	}
	if netguard.Port(u) == netguard.Port(&url.URL{Scheme: u.Scheme}) {
		u.Host = strings.TrimSuffix(u.Host, ":"+u.Port())
	}
	out := u.Scheme + "://" + u.Host + strings.TrimSuffix(u.EscapedPath(), "/")
	if u.RawQuery != "" {
		out += "?" + u.RawQuery
	}
	return out, nil
}

// same reports whether two addresses are equal. An unreadable one equals none.
func same(a, b string) bool {
	one, err := canonical(a)
	if err != nil {
		return false
	}
	two, err := canonical(b)
	return err == nil && one == two
}

// wellKnown inserts a well-known name between the host and the path of an address.
func wellKnown(u *url.URL, name string) string {
	out := url.URL{Scheme: u.Scheme, Host: u.Host, RawQuery: u.RawQuery}
	return out.JoinPath("/.well-known", name, strings.TrimSuffix(u.EscapedPath(), "/")).String()
}

// root returns the address of the host alone.
func root(u *url.URL) *url.URL { return &url.URL{Scheme: u.Scheme, Host: u.Host} }
