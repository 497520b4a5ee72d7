package anthropic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/testkit/anthropictest"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/cloud"
	"github.com/inspan/inspan/llm/internal/wire"
)

const vertexBase = "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/anthropic"

func TestURL(t *testing.T) {
	for _, c := range []struct {
		dialect, base, id string
		at                platform
		want              string
	}{
		{"", "", "claude-opus-5-5", direct, "https://api.anthropic.com/v1/messages"},
		{"", "http://proxy:1/", "m", direct, "http://proxy:1/v1/messages"},
		{"anthropic", "http://proxy/x/v1", "m", direct, "http://proxy/x/v1/messages"},
		{
			"anthropic", "https://bedrock-runtime.us-east-1.amazonaws.com", "m", direct,
			"https://bedrock-runtime.us-east-1.amazonaws.com/v1/messages",
		},
		{"", "https://bedrock-mantle.us-east-1.api.aws/anthropic", "m", direct, "https://bedrock-mantle.us-east-1.api.aws/anthropic/v1/messages"},
		{
			"", "https://bedrock-runtime.eu-west-1.amazonaws.com/", "us.anthropic.claude-opus-4-6-v1:0", bedrock,
			"https://bedrock-runtime.eu-west-1.amazonaws.com/model/us.anthropic.claude-opus-4-6-v1%3A0/invoke-with-response-stream",
		},
		{
			"", "https://vpce-1.bedrock-runtime.eu-west-1.vpce.amazonaws.com", "m", bedrock,
			"https://vpce-1.bedrock-runtime.eu-west-1.vpce.amazonaws.com/model/m/invoke-with-response-stream",
		},
		{
			"bedrock", "http://gateway", "arn:aws:bedrock:us-east-1:1:inference-profile/x", bedrock,
			"http://gateway/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fx/invoke-with-response-stream",
		},
		{"", vertexBase, "claude-haiku-4-5@20251001", vertex, vertexBase + "/models/claude-haiku-4-5@20251001:streamRawPredict"},
		{
			"", "https://europe-west1-aiplatform.googleapis.com/v1/x", "m", vertex,
			"https://europe-west1-aiplatform.googleapis.com/v1/x/models/m:streamRawPredict",
		},
		{"vertex", "http://gateway/", "a/b", vertex, "http://gateway/models/a%2Fb:streamRawPredict"},
		{"bedrock", "", "m", bedrock, ""},
		{"vertex", "", "m", vertex, ""},
		{"azure", "", "m", direct, ""},
	} {
		m := &Model{ID: c.id, BaseURL: c.base, Dialect: c.dialect}
		at, err := m.platform()
		got := ""
		if err == nil {
			got, err = m.url(at)
		}
		if at != c.at || got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q at %q: %s, %q, %v, want %s, %q", c.dialect, c.base, at, got, err, c.at, c.want)
		}
		if c.want != "" {
			continue
		}
		if e := fails(t, m); e.Kind != llm.KindInvalid || e.Provider == "" {
			t.Errorf("%q without a base: %v", c.dialect, e)
		}
	}
}

// fails asks for something and returns the error.
func fails(t *testing.T, m *Model) *llm.Error {
	t.Helper()
	var last error
	for _, err := range m.Stream(t.Context(), llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: llm.Say("hi")}}}) {
		last = err
	}
	var e *llm.Error
	if !errors.As(last, &e) {
		t.Fatalf("got %v, want an error", last)
	}
	return e
}

func keys(secret string) func(context.Context) (cloud.Credentials, error) {
	return func(context.Context) (cloud.Credentials, error) {
		return cloud.Credentials{AccessKey: anthropictest.AccessKey, SecretKey: secret}, nil
	}
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// onBedrock is a model at a fake that insists on a signature.
func onBedrock(t *testing.T, answer anthropictest.Answer) (m *Model, wire http.RoundTripper) {
	wire = anthropictest.Transport(t, &anthropictest.Server{
		Dialect: "bedrock", Secret: "secret",
		Answer: func(*http.Request, []byte) anthropictest.Answer { return answer },
	})
	return &Model{
		ID: "us.anthropic.claude-opus-4-8", BaseURL: "https://bedrock-runtime.eu-west-1.amazonaws.com",
		HTTP: &cloud.AWS{Credentials: keys("secret"), HTTP: plain{wire}},
	}, wire
}

// plain speaks to the fake, which has no certificate.
type plain struct{ next http.RoundTripper }

func (p plain) RoundTrip(r *http.Request) (*http.Response, error) {
	r.URL.Scheme = "http"
	return p.next.RoundTrip(r)
}

// TestSignedWhole checks that the fake takes the requests as they are signed, and none that anything changed after
// the signature.
func TestSignedWhole(t *testing.T) {
	m, wire := onBedrock(t, anthropictest.Answer{Parts: llm.Say("hi")})
	var reply *llm.Reply
	for c, err := range m.Stream(t.Context(), llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: llm.Say("hi")}}}) {
		if err != nil {
			t.Fatal(err)
		}
		reply = c.Reply
	}
	if reply.Parts.Text() != "hi" || !strings.HasPrefix(reply.RequestID, "req_") || reply.Route != "bedrock/us.anthropic.claude-opus-4-8" {
		t.Errorf("got %+v", reply)
	}
	changed := func(change func(*http.Request)) http.RoundTripper {
		return tripper(func(r *http.Request) (*http.Response, error) {
			change(r)
			return plain{wire}.RoundTrip(r)
		})
	}
	for name, http := range map[string]http.RoundTripper{
		"other secret":  &cloud.AWS{Credentials: keys("another"), HTTP: plain{wire}},
		"other service": &cloud.AWS{Credentials: keys("secret"), HTTP: plain{wire}, Service: "s3"},
		"other body": &cloud.AWS{Credentials: keys("secret"), HTTP: changed(func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader("{}")), 2
		})},
		"other path": &cloud.AWS{Credentials: keys("secret"), HTTP: changed(func(r *http.Request) {
			r.URL.Path,
				r.URL.RawPath = "/model/other/invoke-with-response-stream", ""
		})},
		"other header": &cloud.AWS{Credentials: keys("secret"), HTTP: changed(func(r *http.Request) { r.Header.Set("Accept", "*/*") })},
		"none":         plain{wire},
	} {
		m.HTTP = http
		if e := fails(t, m); e.Kind != llm.KindAuth || e.Code != "InvalidSignatureException" || e.RequestID == "" || e.Provider != "bedrock" {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// TestNoCredentials checks that errors of the signing transport keep their kind.
func TestNoCredentials(t *testing.T) {
	m, _ := onBedrock(t, anthropictest.Answer{})
	m.HTTP = &cloud.AWS{Credentials: func(context.Context) (cloud.Credentials, error) { return cloud.Credentials{}, errors.New("no profile") }}
	if e := fails(t, m); e.Kind != llm.KindAuth || e.Provider != "bedrock" || !strings.Contains(e.Message, "no profile") {
		t.Errorf("got %+v", e)
	}
	m.BaseURL, m.Dialect, m.HTTP = "http://gateway", "bedrock", &cloud.AWS{Credentials: keys("secret")}
	if e := fails(t, m); e.Kind != llm.KindInvalid || !strings.Contains(e.Message, "region") {
		t.Errorf("got %+v", e)
	}
}

// TestCloudKeys sends a key to the clouds as a bearer token, and lets them refuse keys that are not theirs.
func TestCloudKeys(t *testing.T) {
	key := func(k string) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { return k, nil }
	}
	for _, c := range []struct {
		name string
		m    Model
		at   string
		want llm.Kind // empty means a reply
		code string
	}{
		{"bedrock", Model{Dialect: "bedrock", BaseURL: "http://x", Key: key("some-key")}, "bedrock", "", ""},
		{
			"vertex",
			Model{Dialect: "vertex", BaseURL: "http://x/v1/projects/p/locations/l/publishers/anthropic", Key: key("some-key")},
			"vertex", "", "",
		},
		{
			"bedrock, wrong key",
			Model{Dialect: "bedrock", BaseURL: "http://x", Key: key("other-key")},
			"bedrock", llm.KindAuth, "AccessDeniedException",
		},
		{
			"vertex, wrong key",
			Model{Dialect: "vertex", BaseURL: "http://x/v1/projects/p/locations/l/publishers/anthropic", Key: key("other-key")},
			"vertex", llm.KindAuth, "UNAUTHENTICATED",
		},
		{"vertex, short path", Model{Dialect: "vertex", BaseURL: "http://x", Key: key("some-key")}, "vertex", llm.KindNoModel, "NOT_FOUND"},
		{
			"bedrock's path at vertex",
			Model{Dialect: "bedrock", BaseURL: "http://x", Key: key("some-key")},
			"vertex", llm.KindNoModel, "NOT_FOUND",
		},
		{
			"vertex's path at bedrock",
			Model{Dialect: "vertex", BaseURL: "http://x", Key: key("some-key")},
			"bedrock", llm.KindNoModel, "UnknownOperationException",
		},
	} {
		m := c.m
		m.ID = "claude-opus-5-5"
		m.HTTP = anthropictest.Transport(t, &anthropictest.Server{Dialect: c.at, Key: "some-key"})
		var last *llm.Error
		for _, err := range m.Stream(t.Context(), llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: llm.Say("hi")}}}) {
			last = llm.AsError(err)
		}
		if c.want == "" && last != nil || c.want != "" && (last == nil || last.Kind != c.want || last.Code != c.code) {
			t.Errorf("%s: %+v, want %s %s", c.name, last, c.want, c.code)
		}
	}
}

// TestBodiesDiffer checks that no platform takes the body of another.
func TestBodiesDiffer(t *testing.T) {
	req := llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: llm.Say("hi")}}}
	for _, from := range []string{"anthropic", "bedrock", "vertex"} {
		for _, to := range []string{"anthropic", "bedrock", "vertex"} {
			sent := body(&Model{ID: "claude-opus-5-5", Dialect: from}, req)
			m := &Model{ID: "claude-opus-5-5", Dialect: to, BaseURL: "http://x"}
			if to == "vertex" {
				m.BaseURL = "http://x/v1/projects/p/locations/l/publishers/anthropic"
			}
			wire := anthropictest.Transport(t, &anthropictest.Server{Dialect: strings.TrimPrefix(to, "anthropic")})
			m.HTTP = tripper(func(r *http.Request) (*http.Response, error) {
				r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(sent)), int64(len(sent))
				return wire.RoundTrip(r)
			})
			var last error
			for _, err := range m.Stream(t.Context(), req) {
				last = err
			}
			if e := llm.AsError(last); (e == nil) != (from == to) || e != nil && e.Kind != llm.KindInvalid {
				t.Errorf("%s at %s: %v", from, to, e)
			}
		}
	}
}

// TestThoughtsStayOnTheirPlatform checks that thoughts signed by one platform are not sent to another, even if the
// model has the same id.
func TestThoughtsStayOnTheirPlatform(t *testing.T) {
	for _, from := range []string{"", "bedrock", "vertex"} {
		for _, to := range []string{"", "bedrock", "vertex"} {
			route := (&Model{ID: "claude-opus-4-8", Dialect: from}).Info().Route()
			req := llm.Request{Messages: []llm.Message{
				{Role: llm.User, Parts: llm.Say("hi")},
				{Role: llm.Assistant, Parts: llm.Parts{
					llm.Reasoning{Opaque: json.RawMessage(`{"type":"thinking","thinking":"hm","signature":"c2ln"}`), Route: route},
					llm.Text{Text: "Hello."},
				}},
				{Role: llm.User, Parts: llm.Say("Go on.")},
			}}
			sent := string(body(&Model{ID: "claude-opus-4-8", Dialect: to}, req))
			if strings.Contains(sent, "c2ln") != (from == to) {
				t.Errorf("from %q to %q: %s", from, to, sent)
			}
		}
	}
}

// framed returns the sample as Bedrock streams it.
func framed() []byte {
	var b []byte
	events := serverSent(strings.NewReader(sample))
	for {
		data, err := events()
		if err != nil {
			return b
		}
		b = append(b, anthropictest.Frame(data)...)
	}
}

func decodeFrames(r io.Reader) (llm.Reply, error) {
	d := newDecoder("anthropic/m", wire.NewAliases(wire.ToolName))
	done, err := d.run(newFrames(r).next, func(llm.Chunk) bool { return true })
	if done == nil && err == nil {
		err = errors.New("neither done nor failed")
	}
	return d.reply, err
}

func TestFrames(t *testing.T) {
	want, _, err := decodeAll(strings.NewReader(sample))
	if err != nil {
		t.Fatal(err)
	}
	strange := append(anthropictest.Message([]byte(`{}`), ":message-type", "event", ":event-type", "metrics"), anthropictest.Message(nil)...)
	for name, r := range map[string]io.Reader{
		"whole":          bytes.NewReader(framed()),
		"bytes":          iotest.OneByteReader(bytes.NewReader(framed())),
		"strange frames": bytes.NewReader(append(strange, framed()...)),
	} {
		got, err := decodeFrames(r)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}

// TestDamagedFrames cuts the stream and turns over a bit at every third byte: nothing
// comes out but the whole reply or a cut stream.
func TestDamagedFrames(t *testing.T) {
	stream := framed()
	whole, _ := decodeFrames(bytes.NewReader(stream))
	stop := len(stream) - len(anthropictest.Frame([]byte(`{"type":"message_stop"}`))) // the reply is complete from here on
	for n := 0; n < len(stream); n += 3 {
		cut, err := decodeFrames(bytes.NewReader(stream[:n]))
		if e := llm.AsError(err); n >= stop && (err != nil || !cmp.Equal(whole, cut)) || n < stop && (e == nil || e.Kind != llm.KindStreamCut) {
			t.Fatalf("cut at %d: %+v, %v", n, cut, err)
		}
		stream[n] ^= 0x10
		got, err := decodeFrames(bytes.NewReader(stream))
		stream[n] ^= 0x10
		if e := llm.AsError(err); n >= stop && !cmp.Equal(whole, got) || n < stop && (e == nil || e.Kind != llm.KindStreamCut) {
			t.Fatalf("damaged at %d: %+v, %v", n, got, err)
		}
	}
}

// TestHostileLengths lets a frame claim lengths that can't be.
func TestHostileLengths(t *testing.T) {
	for _, prelude := range []string{
		"\x00\x00\x00\x00\x00\x00\x00\x00", "\x00\x00\x00\x0f\x00\x00\x00\x00", "\x00\x00\x00\x10\x00\x00\x00\x01",
		"\xff\xff\xff\xff\x00\x00\x00\x00", "\x7f\xff\xff\xff\x7f\xff\xff\xf0",
	} {
		_, err := decodeFrames(io.MultiReader(strings.NewReader(prelude), forever{}))
		if e := llm.AsError(err); e.Kind != llm.KindStreamCut {
			t.Errorf("%q: %v", prelude, err)
		}
	}
}

type forever struct{}

func (forever) Read(b []byte) (int, error) { return len(b), nil }

func TestExceptions(t *testing.T) {
	for _, c := range []struct {
		kind, message string
		want          llm.Kind
	}{
		{"throttlingException", "Too many requests", llm.KindRateLimited},
		{"ThrottlingException", "Too many tokens per day", llm.KindQuota},
		{"modelNotReadyException", "not ready", llm.KindOverloaded},
		{"serviceUnavailableException", "busy", llm.KindOverloaded},
		{"internalServerException", "oops", llm.KindTransient},
		{"modelStreamErrorException", "oops", llm.KindTransient},
		{"modelTimeoutException", "late", llm.KindTransient},
		{"validationException", "Input is too long for requested model.", llm.KindWindow},
		{"validationException", "The model returned the following errors: too many total text bytes: 17929476 > 16000000", llm.KindWindow},
		{
			"validationException", "The model returned the following errors: messages.3: `tool_use` ids were found without `tool_result` blocks",
			llm.KindHistory,
		},
		{"validationException", "Invocation of model ID x with on-demand throughput isn’t supported.", llm.KindNoModel},
		{"accessDeniedException", "no", llm.KindAuth},
		{"somethingNewException", "?", llm.KindTransient},
	} {
		for name, frame := range map[string][]byte{
			"exception": anthropictest.Exception(c.kind, c.message),
			"error":     anthropictest.Message(nil, ":message-type", "error", ":error-code", c.kind, ":error-message", c.message),
		} {
			_, err := decodeFrames(bytes.NewReader(frame))
			if e := llm.AsError(err); e.Kind != c.want || e.Message != c.message || !strings.EqualFold(e.Code, c.kind) {
				t.Errorf("%s %s %q: %+v, want %s", name, c.kind, c.message, e, c.want)
			}
		}
	}
}

func FuzzFrames(f *testing.F) {
	f.Add(framed())
	f.Add(framed()[:100])
	f.Add(append(anthropictest.Exception("throttlingException", "x"), framed()...))
	var events [][]byte
	next := serverSent(strings.NewReader(sample))
	for {
		data, err := next()
		if err != nil {
			break
		}
		events = append(events, anthropictest.Frame(data))
	}
	for i := 1; i < len(events); i++ { // reordered
		events[i-1], events[i] = events[i], events[i-1]
		f.Add(bytes.Join(events, nil))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		whole, err := decodeFrames(bytes.NewReader(in))
		bits, bitErr := decodeFrames(iotest.OneByteReader(bytes.NewReader(in)))
		if (err == nil) != (bitErr == nil) || err == nil && !cmp.Equal(whole, bits) {
			t.Fatalf("at once: %+v %v\nby bytes: %+v %v", whole, err, bits, bitErr)
		}
		var e *llm.Error
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("error is a %T", err)
		}
	})
}
