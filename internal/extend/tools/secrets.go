package tools

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/safety/netguard"
)

const (
	secretOpening = "{{secret:"
	secretClosing = "}}"
)

// Secret is a value that is sent in requests and never shown to a model.
type Secret struct {
	// Hosts are the hosts that it may be sent to, as in [netguard.Hosts]. None: nowhere.
	Hosts []string
	// Value returns it. It is called for each request that needs it.
	Value func(ctx context.Context) (string, error)
	// Plain also allows http without TLS, for your own servers.
	Plain bool
}

// secretNames returns the names of the secrets in a header's value.
func secretNames(value string) ([]string, error) {
	var out []string
	for {
		_, rest, found := strings.Cut(value, secretOpening)
		if !found {
			return out, nil
		}
		name, after, closed := strings.Cut(rest, secretClosing)
		if !closed {
			return nil, fmt.Errorf("a header has %s without %s", secretOpening, secretClosing)
		}
		out, value = append(out, name), after
	}
}

// allowed checks that all secrets of a message exist and may be sent to its host.
func (r requester) allowed(m message) error {
	for _, header := range slices.Sorted(maps.Keys(m.headers)) {
		names, err := secretNames(m.headers[header])
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := r.mayGo(name, m.url); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r requester) mayGo(name string, u *url.URL) error {
	s, known := r.secrets[name]
	switch {
	case !known && len(r.secrets) == 0:
		return fmt.Errorf("there is no secret %q; none is set", name)
	case !known:
		return fmt.Errorf("there is no secret %q; there are: %s", name, strings.Join(slices.Sorted(maps.Keys(r.secrets)), ", "))
	case !netguard.Hosts(s.Hosts).Match(u.Hostname(), netguard.Port(u)):
		return fmt.Errorf("secret %s does not go to %s, only to: %s", name, u.Host, strings.Join(s.Hosts, ", "))
	case u.Scheme != "https" && !s.Plain:
		return fmt.Errorf("secret %s goes over https only", name)
	}
	return nil
}

// secretValues are the values of the secrets that a request uses.
type secretValues map[string]string

func (r requester) values(ctx context.Context, m message) (secretValues, error) {
	out := secretValues{}
	for _, header := range m.headers {
		names, err := secretNames(header)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			value, err := r.secrets[name].Value(ctx)
			value = strings.TrimSpace(value)
			switch {
			case err != nil:
				return nil, fmt.Errorf("get secret %s: %w", name, err)
			case value == "":
				return nil, fmt.Errorf("secret %s is empty", name)
			case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }):
				return nil, fmt.Errorf("secret %s has a line end or another control character in it, so it can't go in a header", name)
			}
			out[name] = value
		}
	}
	return out, nil
}

// fill inserts the values, each place once: an inserted value is not expanded again.
func (v secretValues) fill(text string) string {
	var pairs []string
	for name, value := range v {
		pairs = append(pairs, secretOpening+name+secretClosing, value)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// hide removes the values again, including their forms in addresses, in JSON and in base64.
func (v secretValues) hide(text string) string {
	names := slices.Collect(maps.Keys(v))
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(len(v[b]), len(v[a])) })
	var pairs []string
	for _, name := range names {
		value := v[name]
		quoted, _ := json.Marshal(value) // a string always has a JSON form
		for _, form := range []string{
			value, string(quoted[1 : len(quoted)-1]), url.QueryEscape(value), url.PathEscape(value),
			base64.StdEncoding.EncodeToString([]byte(value)), base64.URLEncoding.EncodeToString([]byte(value)),
		} {
			pairs = append(pairs, form, secretOpening+name+secretClosing)
		}
	}
	return strings.NewReplacer(pairs...).Replace(text)
}
