package wiretest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/inspan/inspan/llm"
)

// WireParams say how an adapter reads its vendor's stream.
type WireParams struct {
	// Decode reads a stream. Shown is the streamed text of the reply. A stream that is neither done nor failed
	// is an error, too.
	Decode func(in io.Reader) (reply llm.Reply, shown string, err error)
	Sample string    // a stream without a flaw
	Reply  llm.Reply // its reply, with all figures
	Shown  string    // its streamed text
	// Complete is how many bytes of the sample contain the whole reply: the rest may be lost. Trailer says that
	// usage and ids are in that rest.
	Complete int
	Trailer  bool
	// OwnIDs says that each call has an id of its own, whatever the vendor sends.
	OwnIDs bool
	// Check makes further checks of a reply. Nil means none.
	Check func(t testing.TB, reply llm.Reply, shown string)
}

// TestCuts proves that the sample gives the right reply, and that a stream which breaks off is never mistaken
// for a whole reply, wherever that happens.
func TestCuts(t *testing.T, p WireParams) {
	whole, shown, err := p.Decode(strings.NewReader(p.Sample))
	if err != nil || !reflect.DeepEqual(whole, p.Reply) || shown != p.Shown || p.Complete < 1 {
		t.Fatalf("the sample:\n got %s %q, %v\nwant %s %q", plain(whole), shown, err, plain(p.Reply), p.Shown)
	}
	for n := range len(p.Sample) {
		got, _, err := p.Decode(strings.NewReader(p.Sample[:n]))
		if n >= p.Complete {
			if p.Trailer {
				got.Usage, got.RequestID = whole.Usage, whole.RequestID
			}
			if err != nil || !reflect.DeepEqual(whole, got) {
				t.Fatalf("cut at %d: %+v, %v", n, got, err)
			}
		} else if e := llm.AsError(err); e == nil || e.Kind != llm.KindStreamCut {
			t.Fatalf("cut at %d: %+v, %v", n, got, err)
		}
	}
}

// plain formats a reply for a reader.
func plain(r llm.Reply) string {
	parts, err := json.Marshal(r.Parts)
	return fmt.Sprintf("%s %v %s %+v %s %s", parts, err, r.Stop, r.Usage, r.Route, r.RequestID)
}

// FuzzWire proves that any output of a vendor is a usable reply or an [*llm.Error], and that it does not matter
// in which pieces it comes. It begins with the sample, damaged in several ways, and with the other streams.
func FuzzWire(f *testing.F, p WireParams, others ...string) {
	for _, s := range append(damaged(p.Sample), others...) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		whole, shown, err := p.Decode(strings.NewReader(in))
		bits, bitShown, bitErr := p.Decode(iotest.OneByteReader(strings.NewReader(in)))
		if (err == nil) != (bitErr == nil) || shown != bitShown || err == nil && !reflect.DeepEqual(whole, bits) {
			t.Fatalf("at once: %+v %v\nby bytes: %+v %v", whole, err, bits, bitErr)
		}
		if err != nil {
			if e := (*llm.Error)(nil); !errors.As(err, &e) {
				t.Fatalf("error is a %T", err)
			}
			return
		}
		p.usable(t, whole)
		if p.Check != nil {
			p.Check(t, whole, shown)
		}
	})
}

// usable checks that the calls of a reply can be run and answered.
func (p WireParams) usable(t testing.TB, reply llm.Reply) {
	ids := map[string]bool{}
	for _, c := range reply.Calls() {
		var object map[string]any
		if json.Unmarshal(c.Args, &object) != nil || object == nil {
			t.Fatalf("arguments are no object: %+v", c)
		}
		if p.OwnIDs && (c.ID == "" || ids[c.ID]) {
			t.Fatalf("the id is not its own: %+v", c)
		}
		ids[c.ID] = true
	}
}

// damaged returns a stream with other line ends, cut, and with its events in other orders.
func damaged(sample string) []string {
	out := []string{sample, strings.ReplaceAll(sample, "\n", "\r\n"), strings.ReplaceAll(sample, "\n", "\r")}
	for n := 0; n < len(sample); n += 40 {
		out = append(out, sample[:n])
	}
	events := strings.SplitAfter(sample, "\n\n")
	for i := 1; i < len(events); i++ {
		events[i-1], events[i] = events[i], events[i-1]
		out = append(out, strings.Join(events, ""))
	}
	return out
}

// TestSecrets proves that the error of a model that is refused, or not reached, contains none of its secrets,
// although the vendor repeats them. At makes the model with its vendor at an address; addresses are those that
// refuse it. Unreachable addresses are tried as well.
func TestSecrets(t *testing.T, secrets []string, at func(base string) llm.Model, addresses ...string) {
	for _, base := range append(addresses, "http://127.0.0.1:1", "http://bad host\x00") {
		e := refusal(t.Context(), at(base))
		if e == nil {
			t.Fatalf("%q: no error", base)
		}
		all := fmt.Sprint(e, e.Message, e.Code, e.RequestID, e.Err)
		for _, s := range secrets {
			if strings.Contains(all, s) {
				t.Errorf("%q: the error holds a secret: %s", base, all)
			}
		}
	}
}

// TestKey proves that a key is sent in a header and nowhere else, as a bearer token if that is "Authorization",
// and that an unavailable key is a login failure before anything is sent.
func TestKey(t *testing.T, header string, with func(http.RoundTripper, func(context.Context) (string, error)) llm.Model) {
	t.Helper()
	const key = "a-secret-key"
	want, sent := key, 0
	if header == "Authorization" {
		want = "Bearer " + key
	}
	vendor := tripper(func(r *http.Request) (*http.Response, error) {
		sent++
		body, _ := io.ReadAll(r.Body)
		for name, values := range r.Header {
			if all := strings.Join(values, "\n"); (name == header) != strings.Contains(all, key) || name == header && all != want {
				t.Errorf("the header %s is %q, and the key goes into %s", name, all, header)
			}
		}
		if r.Header.Get(header) == "" || strings.Contains(r.URL.String()+string(body), key) {
			t.Errorf("the key is not in %s alone: %s\n%s", header, r.URL, body)
		}
		return nil, errors.New("nobody answers")
	})
	if e := refusal(t.Context(), with(vendor, func(context.Context) (string, error) { return key, nil })); e == nil || sent != 1 {
		t.Errorf("%d requests, %v", sent, e)
	}
	e := refusal(t.Context(), with(vendor, func(context.Context) (string, error) { return "", errors.New("keychain locked") }))
	if e == nil || e.Kind != llm.KindAuth || sent != 1 {
		t.Errorf("no key: %v, and %d requests in all", e, sent)
	}
}

// TestKeepAlive proves that a finished exchange leaves its connection for the next one.
func TestKeepAlive(t *testing.T, vendor http.Handler, at func(base string, tr http.RoundTripper) llm.Model) {
	var conns atomic.Int32
	server := httptest.NewUnstartedServer(vendor)
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	m := at(server.URL, tr)
	for range 5 {
		if e := refusal(t.Context(), m); e != nil {
			t.Fatal(e)
		}
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("5 requests took %d connections, want 1", n)
	}
}

// refusal returns the error at the end of a request, nil if it is not a model's.
func refusal(ctx context.Context, m llm.Model) *llm.Error {
	var last error
	for _, err := range m.Stream(ctx, llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: llm.Say("hi")}}}) {
		last = err
	}
	var e *llm.Error
	if !errors.As(last, &e) {
		return nil
	}
	return e
}
