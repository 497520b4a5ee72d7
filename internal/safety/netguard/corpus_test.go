package netguard_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/safety/netguard"
)

// row is one line of testdata/addresses.txt.
type row struct {
	line    int
	allow   bool
	want    string
	address string
	answers []string // one for each look-up
}

func corpus(t testing.TB) []row {
	t.Helper()
	data, err := os.ReadFile("testdata/addresses.txt")
	if err != nil {
		t.Fatal(err)
	}
	var rows []row
	for i, line := range strings.Split(string(data), "\n") {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] == "#" {
			continue
		}
		if len(f) < 3 || len(f) > 4 || f[0] != "allow" && f[0] != "deny" {
			t.Fatalf("line %d: want VERDICT WANT ADDRESS [ANSWERS]", i+1)
		}
		r := row{line: i + 1, allow: f[0] == "allow", want: strings.ReplaceAll(f[1], "_", " "), address: f[2]}
		if strings.HasPrefix(f[2], `"`) {
			if r.address, err = strconv.Unquote(f[2]); err != nil {
				t.Fatalf("line %d: %v", i+1, err)
			}
		}
		if len(f) == 4 {
			r.answers = strings.Split(f[3], "|")
		}
		rows = append(rows, r)
	}
	return rows
}

// resolver answers from the row and counts.
type resolver struct {
	answers []string
	asked   []string
}

func (r *resolver) resolve(_ context.Context, host string) ([]netip.Addr, error) {
	r.asked = append(r.asked, host)
	if len(r.asked) > len(r.answers) {
		return nil, errors.New("no such host")
	}
	var out []netip.Addr
	for _, text := range strings.Split(strings.Trim(r.answers[len(r.asked)-1], "-"), ",") {
		if text != "" {
			out = append(out, netip.MustParseAddr(text))
		}
	}
	return out, nil
}

func guardFor(r *resolver) *netguard.Guard {
	return &netguard.Guard{
		Resolve: r.resolve,
		Own:     func() ([]netip.Addr, error) { return []netip.Addr{netip.MustParseAddr("34.1.2.3")}, nil },
		Timeout: 2 * time.Second,
	}
}

// targets returns where an address leads, by Check and Addresses.
func targets(g *netguard.Guard, address string) (string, error) {
	u, err := netguard.Check(address)
	if err != nil {
		return "", err
	}
	port := map[string]int{"http": 80, "https": 443}[u.Scheme]
	if u.Port() != "" {
		port, _ = strconv.Atoi(u.Port())
	}
	addrs, err := g.Addresses(context.Background(), u.Hostname(), port)
	var out []string
	for _, a := range addrs {
		out = append(out, a.String())
	}
	return strings.Join(out, ","), err
}

func TestCorpus(t *testing.T) {
	rows := corpus(t)
	var denied, allowed, falseAllows, needless int
	for _, r := range rows {
		names := &resolver{answers: r.answers}
		got, err := targets(guardFor(names), r.address)
		switch {
		case r.allow && err != nil:
			needless++
			t.Errorf("line %d: %q refused: %v", r.line, r.address, err)
		case r.allow && got != r.want:
			t.Errorf("line %d: %q leads to %s, want %s", r.line, r.address, got, r.want)
		case !r.allow && err == nil:
			falseAllows++
			t.Errorf("line %d: %q leads to %s, want a refusal", r.line, r.address, got)
		case !r.allow && !strings.Contains(err.Error(), r.want):
			t.Errorf("line %d: %q: error %q does not say %q", r.line, r.address, err, r.want)
		case !r.allow:
			deniedEverywhere(t, r)
		}
		if len(names.asked) > 1 {
			t.Errorf("line %d: looked up %v, want once", r.line, names.asked)
		}
		if r.allow {
			allowed++
		} else {
			denied++
		}
	}
	if denied < 140 || allowed < 40 {
		t.Errorf("the corpus has %d to deny and %d to allow", denied, allowed)
	}
	t.Logf("netguard: %d addresses, false allows %d, needless refusals %d", len(rows), falseAllows, needless)
}

// deniedEverywhere sends a row that Addresses refuses through the client, which
// gets the address as a caller would have parsed it.
func deniedEverywhere(t *testing.T, r row) {
	t.Helper()
	if _, err := url.Parse(r.address); err != nil {
		return
	}
	names := &resolver{answers: r.answers}
	resp, err := guardFor(names).Client().Get(r.address)
	if err == nil {
		resp.Body.Close()
		t.Errorf("line %d: the client fetched %q", r.line, r.address)
	}
	if len(names.asked) > 1 {
		t.Errorf("line %d: the client looked up %v", r.line, names.asked)
	}
}

// TestErrorsNameTheHost checks that a refusal names the host and hides credentials.
func TestErrorsNameTheHost(t *testing.T) {
	for _, r := range corpus(t) {
		_, err := targets(guardFor(&resolver{answers: r.answers}), r.address)
		if err != nil && !strings.Contains(err.Error(), "host") && !strings.Contains(err.Error(), "address") {
			t.Errorf("line %d: %v", r.line, err)
		}
	}
	for _, address := range []string{
		"http://user:s3cret@example.com/",
		"http://user:s3cret@example.com /", "http://user:s3cret@exa%6dple.com/",
	} {
		if _, err := netguard.Check(address); err == nil || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), "@exa") {
			t.Errorf("%v", err)
		}
	}
}

func TestCheckCanonical(t *testing.T) {
	for address, want := range map[string]string{
		"HTTP://EXAMPLE.com.:0080/A?b=C#D":                  "http://example.com:80/A?b=C#D",
		"http://example.com:":                               "http://example.com",
		"http://[::FFFF:8.8.8.8]:1/":                        "http://8.8.8.8:1/",
		"https://[2606:4700:0:0:0:0:0:1]/x":                 "https://[2606:4700::1]/x",
		"https://example.com/ä?q=ä&r=%41":                   "https://example.com/%C3%A4?q=%C3%A4&r=%41",
		"https://example.com/" + strings.Repeat("q", 20000): "https://example.com/" + strings.Repeat("q", 20000),
	} {
		u, err := netguard.Check(address)
		if err != nil {
			t.Errorf("%q: %v", address, err)
		} else if u.String() != want {
			t.Errorf("%q became %q, want %q", address, u, want)
		}
	}
	if _, err := netguard.Check("http://example.com/" + strings.Repeat("q", 1<<20)); err == nil || len(err.Error()) > 500 {
		t.Error("a megabyte of address: want a short error")
	}
}

// TestLaxParser holds Check to its rules when the parser of the standard library is told to relax its own.
func TestLaxParser(t *testing.T) {
	t.Setenv("GODEBUG", "urlstrictcolons=0")
	addresses := []string{"http://::1/", "http://127.0.0.1:1:2/", "http://example.com:80:80/", "http://2606:4700::1:80/"}
	if _, err := url.Parse(addresses[0]); err != nil {
		t.Skip("the parser has no such setting any more")
	}
	for _, address := range addresses {
		if u, err := netguard.Check(address); err == nil {
			t.Errorf("%q became %q", address, u)
		}
	}
}

func TestDeniedEdges(t *testing.T) {
	if netguard.Denied(netip.Addr{}) == "" {
		t.Error("no address at all may be dialled")
	}
	if netguard.Denied(netip.MustParseAddr("2606:4700::1%eth0")) == "" {
		t.Error("an address with a zone may be dialled")
	}
	if why := netguard.Denied(netip.MustParseAddr("::ffff:8.8.8.8")); why != "" {
		t.Errorf("a public address in a coat %s", why)
	}
	for _, wrapped := range []string{"::ffff:0.0.0.0", "::ffff:224.0.0.1"} {
		if netguard.Denied(netip.MustParseAddr(wrapped)) == "" {
			t.Errorf("%s may be dialled", wrapped)
		}
	}
}

// TestDeniedCoversNetip compares with the addresses that the standard library calls public.
func TestDeniedCoversNetip(t *testing.T) {
	for hi := range 1 << 16 {
		ip := netip.AddrFrom4([4]byte{byte(hi >> 8), byte(hi), 3, 4})
		private := ip.IsPrivate() || ip.IsLoopback() || ip.IsLinkLocalUnicast() || !ip.IsGlobalUnicast()
		if private && netguard.Denied(ip) == "" {
			t.Errorf("%s may be dialled", ip)
		}
		six := netip.AddrFrom16([16]byte{byte(hi >> 8), byte(hi), 15: 4})
		private = six.IsPrivate() || six.IsLoopback() || six.IsLinkLocalUnicast() || !six.IsGlobalUnicast()
		if private && netguard.Denied(six) == "" {
			t.Errorf("%s may be dialled", six)
		}
	}
}

func FuzzCheck(f *testing.F) {
	for _, r := range corpus(f) {
		f.Add(r.address)
	}
	f.Fuzz(func(t *testing.T, address string) {
		u, err := netguard.Check(address)
		if err != nil {
			return
		}
		if u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
			t.Fatalf("%q became %q", address, u)
		}
		again, err := url.Parse(u.String())
		if err != nil || again.Host != u.Host || again.Scheme != u.Scheme {
			t.Fatalf("%q became %q, which reads as %v, %v", address, u, again, err)
		}
		if twice, err := netguard.Check(u.String()); err != nil || twice.String() != u.String() {
			t.Fatalf("%q became %q and then %v, %v", address, u, twice, err)
		}
		checkLiteral(t, u.Hostname())
	})
}

// checkLiteral holds that a host which is a number leads to that number, and
// that every other host is a name for the system too.
func checkLiteral(t *testing.T, host string) {
	names := &resolver{answers: []string{"93.184.216.34"}}
	g := guardFor(names)
	g.Local = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	got, err := g.Addresses(context.Background(), host, 80)
	if err != nil || len(got) != 1 {
		t.Fatalf("%q: %v, %v", host, got, err)
	}
	ip, err := netip.ParseAddr(host)
	if (err == nil) != (len(names.asked) == 0) {
		t.Fatalf("%q: looked up %v", host, names.asked)
	}
	if err == nil && (got[0].Addr() != ip || ip.String() != host) {
		t.Fatalf("%q leads to %v", host, got)
	}
	if err != nil && names.asked[0] != host {
		t.Fatalf("%q: looked up %v", host, names.asked)
	}
}

func BenchmarkCheckDenied(b *testing.B) {
	for name, address := range map[string]string{
		"name": "https://docs.example.com/a/b?q=1", "ipv4": "http://93.184.216.34/", "ipv6": "https://[2606:4700::1]:8443/",
	} {
		b.Run(name, func(b *testing.B) {
			ip := netip.MustParseAddr("2606:4700::1")
			b.ReportAllocs()
			for b.Loop() {
				u, err := netguard.Check(address)
				if err != nil {
					b.Fatal(err)
				}
				if why := netguard.Denied(ip); why != "" {
					b.Fatal(fmt.Sprint(u, why))
				}
			}
		})
	}
}
