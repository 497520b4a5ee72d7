package oauth

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/safety/netguard"
)

// TestChallenges checks the parsing of headers, good and broken.
func TestChallenges(t *testing.T) {
	for _, tt := range []struct {
		header, name, want string
	}{
		{``, "scope", ""},
		{`Bearer`, "scope", ""},
		{`Bearer scope="a b"`, "scope", "a b"},
		{`bearer SCOPE=a`, "scope", "a"},
		{`BEARER realm = "x" , scope = "a"`, "scope", "a"},
		{`Bearer error="insufficient_scope", scope="a"`, "error", "insufficient_scope"},
		{`Basic realm="x", Bearer scope="a"`, "scope", "a"},
		{`Basic realm="x", Bearer scope="a"`, "realm", ""},
		{`Bearer scope="a", Basic scope="b"`, "scope", "a"},
		{`Basic scope="b"`, "scope", ""},
		{`Negotiate abc+/==, Bearer scope="a"`, "scope", "a"},
		{`DPoP algs="ES256", Bearer scope="a"`, "scope", "a"},
		{`DPoP resource_metadata="https://x.test/y", scope="a"`, "resource_metadata", "https://x.test/y"},
		{`DPoP scope="a", Bearer scope="b"`, "scope", "b"},
		{`DPoP scope="a", Bearer realm="x"`, "scope", "a"},
		{`dpop scope="a", DPoP scope="b", Basic scope="c"`, "scope", "a"},
		{`DPoP scope="a", Basic error="b"`, "error", ""},
		{`Bearer realm="a \"b\", scope=\"c\"", scope="d"`, "scope", "d"},
		{`Bearer realm="a\\", scope="d"`, "scope", "d"},
		{`Bearer realm="a, Bearer scope=b", scope="d"`, "scope", "d"},
		{`Bearer scope="a", scope="b"`, "scope", "a"},
		{`Bearer scope="a", Bearer error="b"`, "error", ""},
		{`Bearer scope="a`, "scope", ""},
		{`Bearer resource_metadata=https://x.test/y, scope=a`, "scope", "a"},
		{`Bearer resource_metadata="https://x.test/y?a=b,c"`, "resource_metadata", "https://x.test/y?a=b,c"},
		{`Bearer ,, , scope=a`, "scope", "a"},
		{strings.Repeat("x", 1<<20) + `, Bearer scope=a`, "scope", ""},
	} {
		if got := parseChallenge(tt.header).params[tt.name]; got != tt.want {
			t.Errorf("%.60s: %s is %q, want %q", tt.header, tt.name, got, tt.want)
		}
	}
}

func FuzzChallenge(f *testing.F) {
	f.Add(`Basic realm="x", Bearer scope="a b", error=insufficient_scope`)
	f.Add(`Bearer realm="a\\", x==,"`)
	f.Add("Bearer \x00=\xff, \"")
	f.Fuzz(func(t *testing.T, header string) {
		for name, value := range parseChallenge(header).params {
			if name == "" || name != strings.ToLower(name) || len(value) > len(header) {
				t.Errorf("%q: %q", name, value)
			}
		}
		// Text before one of our challenges changes nothing, if it is complete.
		if !strings.ContainsAny(header, `"\`) && len(header) < 1000 && !strings.Contains(strings.ToLower(header), "bearer") {
			if got := parseChallenge(header + `, Bearer scope="ours"`).params["scope"]; got != "ours" {
				t.Errorf("after %q: %q", header, got)
			}
		}
	})
}

// FuzzMetadata reads descriptions of servers and resources, and answers of a token endpoint. Whatever passes matches
// the request.
func FuzzMetadata(f *testing.F) {
	f.Add([]byte(`{"issuer":"https://x.test","token_endpoint":"https://x.test/token","code_challenge_methods_supported":["S256"]}`))
	f.Add([]byte(`{"resource":"https://x.test/mcp","authorization_servers":["https://x.test"]}`))
	f.Add([]byte(`{"access_token":"a","expires_in":"3600","refresh_token":null,"scope":"a b"}`))
	f.Add([]byte(`{"device_code":"a","user_code":"b","verification_uri":"c","interval":0.01,"expires_in":-1}`))
	f.Add([]byte(`{"device_code":"a","user_code":"b","verification_uri":"c","interval":1e9}`))
	f.Add([]byte(`{"a":{"b":[1,2,{"c":null}]},"a":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		fields, err := parseFields(data)
		if err != nil {
			return
		}
		if s, err := readServer(fields, "at", "https://x.test"); err == nil && !same(s.Issuer, "https://x.test") {
			t.Errorf("issuer %q", s.Issuer)
		}
		fields.err = nil
		if r, err := readResource(fields, place{"at", []string{"https://x.test/mcp"}}); err == nil && (!same(r.id, "https://x.test/mcp") || len(r.issuers) == 0) {
			t.Errorf("resource %q", r.id)
		}
		fields.err = nil
		if k, err := (kept{}).take(fields, nil, time.Unix(1<<30, 0)); err == nil {
			if !sendable(k.Access) || k.Access == "" || !k.Expires.IsZero() && !k.Expires.After(k.Got) {
				t.Errorf("%+v", k)
			}
		}
		fields.err = nil
		if d, err := readDevice(fields); err == nil && (d.pause < 1e9 || d.pause > maxPause || d.life < 0) {
			t.Errorf("%+v", d)
		}
	})
}

// FuzzPaste takes whatever a person pastes.
func FuzzPaste(f *testing.F) {
	f.Add("http://127.0.0.1/callback?code=a&state=right")
	f.Add("code#right")
	f.Add("  \"a\nb\" ")
	f.Fuzz(func(t *testing.T, text string) {
		r, problem := readPaste(text, "right")
		if problem == "" && (r.state != "right" || r.code == "" && r.failure == "") {
			t.Errorf("%q: %+v", text, r)
		}
	})
}

// FuzzAddress checks that whatever passes is https, or on this machine.
func FuzzAddress(f *testing.F) {
	f.Add("https://x.test/y?z")
	f.Add("http://127.0.0.1:80/")
	f.Add("http://localhost.evil.test")
	f.Add("http://[::ffff:127.0.0.1]/")
	f.Fuzz(func(t *testing.T, raw string) {
		if u, err := address(raw, false); err == nil && u.Scheme != "https" {
			t.Errorf("%q passed", raw)
		}
		u, err := address(raw, true)
		if err == nil && u.Scheme != "https" && !netguard.IsHere(u.Hostname()) {
			t.Errorf("%q passed", raw)
		}
		if one, err := canonical(raw); err == nil && !strings.HasSuffix(one, "/") {
			if two, err := canonical(one); err != nil || one != two {
				t.Errorf("%q: %q, then %q", raw, one, two)
			}
		}
		if u != nil {
			if _, err := url.Parse(wellKnown(u, "x")); err != nil {
				t.Error(err)
			}
		}
	})
}
