package netguard

import (
	"net/url"
	"testing"
)

// TestProxies checks which proxy counts for an address.
func TestProxies(t *testing.T) {
	for name, c := range map[string]struct {
		env  map[string]string
		to   string
		want string
	}{
		"none":           {nil, "https://a.example", ""},
		"all":            {map[string]string{"ALL_PROXY": "socks5://p:1"}, "https://a.example", "socks5://p:1"},
		"all, small":     {map[string]string{"all_proxy": "http://p:1"}, "http://a.example", "http://p:1"},
		"its own first":  {map[string]string{"ALL_PROXY": "http://p:1", "HTTPS_PROXY": "http://q:1"}, "https://a.example", "http://q:1"},
		"not the other":  {map[string]string{"ALL_PROXY": "http://p:1", "HTTPS_PROXY": "http://q:1"}, "http://a.example", "http://p:1"},
		"excluded":       {map[string]string{"ALL_PROXY": "http://p:1", "NO_PROXY": "a.example"}, "https://a.example", ""},
		"never to here":  {map[string]string{"ALL_PROXY": "http://p:1"}, "http://127.0.0.1:8080", ""},
		"without scheme": {map[string]string{"ALL_PROXY": "p:1"}, "https://a.example", "http://p:1"},
	} {
		to, err := url.Parse(c.to)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		u, err := proxies(func(key string) string { return c.env[key] })(to)
		if u != nil {
			got = u.String()
		}
		if got != c.want || err != nil {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
}
