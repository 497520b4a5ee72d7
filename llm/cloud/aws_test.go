package cloud

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/llm"
)

// example are the keys of the vendor's published signing examples.
func example(session string) func(context.Context) (Credentials, error) {
	return func(context.Context) (Credentials, error) {
		return Credentials{AccessKey: "AKIDEXAMPLE", SecretKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", Session: session}, nil
	}
}

// TestSignature compares with the vendor's test suite (the first two rows) and with botocore 1.43.11 for the same
// requests.
func TestSignature(t *testing.T) {
	const body = `{"anthropic_version":"bedrock-2023-05-31","max_tokens":10,"messages":[]}`
	const runtime = "https://bedrock-runtime.eu-west-1.amazonaws.com/model/"
	for _, c := range []struct {
		method, url, body string
		at                AWS
		now               string
		session           string
		want              string
	}{
		{
			method: "GET", url: "https://example.amazonaws.com/", at: AWS{Region: "us-east-1", Service: "service"}, now: "2015-08-30T12:36:00Z",
			want: "20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, " +
				"Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
		},
		{
			method: "POST", url: "https://example.amazonaws.com/", at: AWS{Region: "us-east-1", Service: "service"}, now: "2015-08-30T12:36:00Z",
			want: "20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, " +
				"Signature=5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
		},
		{
			method: "POST", url: runtime + "us.anthropic.claude-sonnet-5-5-20260930-v1%3A0/invoke-with-response-stream", body: body,
			now: "2026-11-21T10:20:30Z",
			want: "20261121/eu-west-1/bedrock/aws4_request, SignedHeaders=accept;content-length;content-type;host;x-amz-date, " +
				"Signature=20282b04bff5148f7b1d3a1db402bd5beb9f192dbc99aa7da54e988996437ada",
		},
		{
			method: "POST", url: runtime + "arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fx/invoke-with-response-stream", body: body,
			now: "2026-11-21T10:20:30Z",
			at:  AWS{Region: "us-west-2"}, session: "session/token+==",
			want: "20261121/us-west-2/bedrock/aws4_request, " +
				"SignedHeaders=accept;content-length;content-type;host;x-amz-date;x-amz-security-token, " +
				"Signature=decf235a32303f9d0611445b5b2bb6ff92647f751899e7551f002f62af288266",
		},
	} {
		now, err := time.Parse(time.RFC3339, c.now)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(c.method, c.url, nil)
		if c.body != "" {
			r = httptest.NewRequest(c.method, c.url, strings.NewReader(c.body))
			r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/vnd.amazon.eventstream"}, "User-Agent": {"inspan"}}
		}
		c.at.Credentials = example(c.session)
		got, err := c.at.sign(r, now)
		if err != nil {
			t.Fatal(err)
		}
		want := "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/" + c.want
		if diff := cmp.Diff(want, got.Header.Get("Authorization")); diff != "" {
			t.Errorf("%s %s:\n%s", c.method, c.url, diff)
		}
		if c.session != got.Header.Get("X-Amz-Security-Token") || r.Header.Get("Authorization") != "" {
			t.Errorf("session %q, the given request has %v", got.Header.Get("X-Amz-Security-Token"), r.Header)
		}
	}
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestSendsWhatItSigned checks that the body arrives, whole and with its length, and that a bearer token takes the
// place of the signature.
func TestSendsWhatItSigned(t *testing.T) {
	for name, c := range map[string]struct {
		credentials func(context.Context) (Credentials, error)
		want        string
	}{
		"signed": {example(""), "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/"},
		"bearer": {func(context.Context) (Credentials, error) { return Credentials{Bearer: "token", AccessKey: "x"}, nil }, "Bearer token"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil || string(body) != "the body" || r.ContentLength != 8 || !strings.HasPrefix(r.Header.Get("Authorization"), c.want) {
				t.Errorf("%s: got %q, %v, length %d, %v", name, body, err, r.ContentLength, r.Header)
			}
		}))
		defer server.Close()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, io.NopCloser(strings.NewReader("the body")))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := (&AWS{Region: "us-east-1", Credentials: c.credentials}).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
}

func TestSignErrors(t *testing.T) {
	broken := errors.New("keychain locked")
	sent := false
	next := tripper(func(*http.Request) (*http.Response, error) { sent = true; return nil, io.EOF })
	for name, c := range map[string]struct {
		at   AWS
		body io.Reader
		want llm.Kind
	}{
		"no credentials": {
			AWS{HTTP: next, Credentials: func(context.Context) (Credentials, error) { return Credentials{}, broken }},
			nil, llm.KindAuth,
		},
		"no region": {AWS{HTTP: next, Credentials: example("")}, nil, llm.KindInvalid},
		"broken body": {
			AWS{HTTP: next, Region: "r", Credentials: example("")},
			io.MultiReader(strings.NewReader("a"), brokenReader{broken}), llm.KindTransient,
		},
	} {
		resp, err := c.at.RoundTrip(httptest.NewRequest(http.MethodPost, "https://gateway.example/model", c.body))
		if err == nil {
			resp.Body.Close()
		}
		if e := llm.AsError(err); e == nil || e.Kind != c.want || sent || name != "no region" && !errors.Is(err, broken) {
			t.Errorf("%s: %v, sent %v, want %s", name, err, sent, c.want)
		}
	}
}

type brokenReader struct{ err error }

func (b brokenReader) Read([]byte) (int, error) { return 0, b.err }

func TestRegion(t *testing.T) {
	for host, want := range map[string]string{
		"bedrock-runtime.eu-west-1.amazonaws.com":                       "eu-west-1",
		"bedrock-runtime-fips.us-gov-east-1.amazonaws.com":              "us-gov-east-1",
		"vpce-0a1-2b.bedrock-runtime.ap-southeast-2.vpce.amazonaws.com": "ap-southeast-2",
		"bedrock-runtime.cn-north-1.amazonaws.com.cn":                   "cn-north-1",
		"bedrock-mantle.us-east-1.api.aws":                              "us-east-1",
		"gateway.example.com":                                           "",
		"notbedrock-runtime.us-east-1.amazonaws.com":                    "",
	} {
		if got := (&AWS{}).region(host); got != want {
			t.Errorf("region of %s = %q, want %q", host, got, want)
		}
	}
}

func TestLocalAWS(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	shared := file("credentials", `
# keys
[default]
aws_access_key_id = AKDEFAULT
aws_secret_access_key=se/cr+et=  # the key
s3 =
  aws_access_key_id = nested

[ work ] ; mine
AWS_ACCESS_KEY_ID=AKWORK
aws_secret_access_key=two
aws_session_token=three

[half]
aws_access_key_id=AKHALF
`)
	config := file("config", `
[profile half]
aws_access_key_id = AKCONFIG
aws_secret_access_key = four
[profile sso]
sso_start_url = https://x
[sso]
aws_access_key_id = not this one
aws_secret_access_key = x
[profile broken
= nothing
`)
	for name, c := range map[string]struct {
		env  map[string]string
		want Credentials
		err  string
	}{
		"bearer": {
			map[string]string{"AWS_BEARER_TOKEN_BEDROCK": "b", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s"},
			Credentials{Bearer: "b"},
			"",
		},
		"keys": {
			map[string]string{"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t"},
			Credentials{AccessKey: "a", SecretKey: "s", Session: "t"},
			"",
		},
		"default": {map[string]string{"AWS_ACCESS_KEY_ID": "half a pair"}, Credentials{AccessKey: "AKDEFAULT", SecretKey: "se/cr+et="}, ""},
		"profile": {map[string]string{"AWS_PROFILE": "work"}, Credentials{AccessKey: "AKWORK", SecretKey: "two", Session: "three"}, ""},
		"config":  {map[string]string{"AWS_PROFILE": "half"}, Credentials{AccessKey: "AKCONFIG", SecretKey: "four"}, ""},
		"sso":     {map[string]string{"AWS_PROFILE": "sso"}, Credentials{}, `the profile "sso" holds no keys`},
		"unknown": {map[string]string{"AWS_PROFILE": "no"}, Credentials{}, `nor a profile "no"`},
		"no file": {
			map[string]string{"AWS_SHARED_CREDENTIALS_FILE": filepath.Join(dir, "no"), "AWS_CONFIG_FILE": filepath.Join(dir, "no")},
			Credentials{},
			`nor a profile "default"`,
		},
		"folder": {map[string]string{"AWS_SHARED_CREDENTIALS_FILE": dir}, Credentials{}, "read AWS profile"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, v := range []string{
				"AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID",
				"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE",
			} {
				t.Setenv(v, "")
			}
			t.Setenv("AWS_SHARED_CREDENTIALS_FILE", shared)
			t.Setenv("AWS_CONFIG_FILE", config)
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			got, err := localAWS(t.Context())
			if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %+v, %v, want %+v, %q", got, err, c.want, c.err)
			}
		})
	}
}

// FuzzProfile checks that no file breaks the reader.
func FuzzProfile(f *testing.F) {
	f.Add("[default]\na=b\n")
	f.Add("[a\n=\n]x[\n\t= #")
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if set, err := section(path, "default"); err != nil || len(set) > strings.Count(text, "=") {
			t.Fatalf("%q: %v, %v", text, set, err)
		}
	})
}
