package netguard_test

import (
	"context"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/safety/netguard"
)

func TestHostsMatch(t *testing.T) {
	for _, tt := range []struct {
		pattern string
		yes, no string // hosts, or HOST#PORT; without, the port is 443
	}{
		{
			"example.com", "example.com EXAMPLE.com example.com. example.com#22",
			"www.example.com notexample.com example.com.evil.test example.co example.com.. com xexample.com example.com%00 192.0.2.1",
		},
		{"Example.COM.", "example.com", "www.example.com"},
		{"example.com:443", "example.com example.com#443", "example.com#80 example.com#4430"},
		{
			"*.example.com", "www.example.com a.b.example.com WWW.Example.Com.",
			"example.com notexample.com www-example.com www.example.com.evil.test .example.com",
		},
		{"*.example.com:8080", "www.example.com#8080", "www.example.com example.com#8080"},
		{"*", "example.com localhost 8.8.8.8 ::1 [::1]", "exam_ple.com! 127.1 0x7f.0.0.1 a..b"},
		{"*:443", "example.com", "example.com#80"},
		{"8.8.8.8", "8.8.8.8 ::ffff:8.8.8.8 [::ffff:808:808]", "8.8.8.80 18.8.8.8 8.8.8 8.8.8.8."},
		{"[2606:4700::1]", "2606:4700::1 [2606:4700::1] 2606:4700:0:0:0:0:0:1 2606:4700::1#1", "2606:4700::2"},
		{"[2606:4700::1]:8443", "2606:4700::1#8443", "2606:4700::1"},
		{"xn--exmple-cua.com", "XN--exmple-cua.com exämple.com EXämple.com", "exAmple.com exａmple.com"},
		{"", "", "example.com ."},
		{"*.8.8.8", "", "8.8.8.8"},
		{"*example.com", "", "example.com notexample.com"},
		{"https://example.com", "", "example.com"},
		{"example.com:0", "", "example.com example.com#0"},
	} {
		hosts := netguard.Hosts{"other.test", tt.pattern}
		for want, list := range map[bool]string{true: tt.yes, false: tt.no} {
			for _, item := range strings.Fields(list) {
				host, port := item, 443
				if name, text, ok := strings.Cut(item, "#"); ok {
					host, port = name, map[string]int{"0": 0, "1": 1, "22": 22, "80": 80, "443": 443, "4430": 4430, "8080": 8080, "8443": 8443}[text]
				}
				if got := hosts.Match(host, port); got != want {
					t.Errorf("%q matches %s: %v", tt.pattern, item, got)
				}
			}
		}
	}
	if netguard.Hosts(nil).Match("example.com", 443) || (netguard.Hosts{"*.example.com", "example.com"}).Match("example.com\x00.evil.test",
		443) ||
		(netguard.Hosts{"*.example.com"}).Match("evil.test\x00.example.com", 443) {
		t.Error("a host that nothing names is matched")
	}
}

func TestCheckHost(t *testing.T) {
	for _, good := range []string{
		"example.com", "*.example.com", "*", "*:8080",
		"localhost:3000", "8.8.8.8", "[::1]", "[::1]:80", "EXAMPLE.com.",
	} {
		if err := netguard.CheckHost(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for bad, want := range map[string]string{
		"": "empty", "https://example.com": "", "example.com/path": "scheme or a path", "*example.com": "first part", "a.*.com": "first part",
		"*.*.com": "first part", "example.com:": "port", "example.com:0": "port", "example.com:99999": "port", "::1": "brackets",
		"fe80::2:80": "brackets",
		"127.1":      "number", "0x7f000001": "number", "*.1.2.3.4": "*", "[example.com]": "character", "exａmple.com": "xn--", "раypal.com": "xn--",
		"a b.com": "character",
		"*.":      "empty", "[::1": "", "[fe80::1%eth0]": "zone", "user@example.com": "character", "-x.com": "hyphen",
	} {
		if err := netguard.CheckHost(bad); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `"`+bad+`"`) {
			t.Errorf("%q: %v, want %q in it", bad, err, want)
		}
	}
}

func TestLoopback(t *testing.T) {
	for _, host := range []string{
		"localhost", "LOCALHOST.", "localhost:8123", "app.localhost", "127.0.0.1", "127.8.9.1:80", "::1", "[::1]",
		"[::1]:80", "0.0.0.0", "[::ffff:127.0.0.1]",
	} {
		if !netguard.Loopback(host) {
			t.Errorf("%s: not taken for this machine", host)
		}
	}
	for _, host := range []string{
		"", "*", "example.com", "localhost.example.com", "localhos", "127.0.0.1.example.com", "10.0.0.1",
		"2130706433", "169.254.169.254", "[::2]", "*.localhost:1:2",
	} {
		if netguard.Loopback(host) {
			t.Errorf("%s: taken for this machine", host)
		}
	}
}

// TestInternationalNames checks that a name which is not ASCII is looked up as its punycode, and that one which
// programs could read in two ways is not looked up.
func TestInternationalNames(t *testing.T) {
	for raw, want := range map[string]string{
		"https://exämple.com/": "xn--exmple-cua.com", "https://ex%C3%A4mple.com/": "xn--exmple-cua.com",
		"https://www.münchen.de/a": "www.xn--mnchen-3ya.de", "https://straße.de/": "xn--strae-oqa.de",
		"https://例え.jp/": "xn--r8jz45g.jp", "https://президент.рф/": "xn--d1abbgf6aiiy.xn--p1ai", "https://日本語.jp/": "xn--wgv71a119e.jp",
		"https://ελλάδα.gr/": "xn--hxakic4aa.gr", "https://中国.cn/": "xn--fiqs8s.cn",
		"https://аррӏе.com/": "xn--80ak6aa92e.com",
	} {
		u, err := netguard.Check(raw)
		if err != nil || u.Hostname() != want {
			t.Errorf("%s: %v %v", raw, u, err)
		}
		asked := ""
		g := netguard.Guard{Resolve: func(_ context.Context, host string) ([]netip.Addr, error) {
			asked = host
			return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
		}}
		parsed, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Addresses(t.Context(), parsed.Hostname(), 443); err != nil || asked != want {
			t.Errorf("%s: looked up %q: %v", raw, asked, err)
		}
	}
	for _, raw := range []string{
		"https://pаypal.com/", "https://１２７.0.0.1/", "https://exa\u0308mple.com/", "https://ﬁle.com/",
		"https://example\u2024com/", "https://ª.com/", "https://☃.net/", "https://Ä.com/", "https://x\u0338.com/",
	} {
		if u, err := netguard.Check(raw); err == nil {
			t.Errorf("%s: %s", raw, u.Host)
		}
	}
}
