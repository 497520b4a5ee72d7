package wiretest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/inspan/inspan/internal/models/reaction"
	"github.com/inspan/inspan/llm"
)

// TestDiscover proves that a query for the models at an endpoint ends: with an [*llm.Error] of its provider
// that contains no key if there is no usable answer, after half a minute if the vendor hangs, at once if the
// caller has stopped waiting, and after some bytes if the vendor sends without end. A vendor that hangs answers
// the first requests with the bodies in first, so that all requests of a query are tried.
func TestDiscover(t *testing.T, at llm.Endpoint, discover func(context.Context, llm.Endpoint) ([]llm.Info, error), first ...string) {
	t.Helper()
	at.Provider = "mine"
	const key = "sk-very-secret"
	withKey := func(context.Context) (string, error) { return key, nil }
	locked := func(context.Context) (string, error) { return "", errors.New("locked") }
	for name, c := range map[string]struct {
		at   func(*llm.Endpoint)
		want llm.Kind
	}{
		"key refused":    {func(at *llm.Endpoint) { at.Key, at.HTTP = withKey, answers(401, `{"error":"bad key `+key+`"}`) }, llm.KindAuth},
		"no key":         {func(at *llm.Endpoint) { at.Key, at.HTTP = locked, answers(200, `{}`) }, llm.KindAuth},
		"busy":           {func(at *llm.Endpoint) { at.HTTP = answers(503, `{"error":"server busy"}`) }, llm.KindOverloaded},
		"too many":       {func(at *llm.Endpoint) { at.HTTP = answers(429, `{}`) }, llm.KindRateLimited},
		"a page":         {func(at *llm.Endpoint) { at.HTTP = answers(200, `<html>`) }, llm.KindNoReply},
		"a redirect":     {func(at *llm.Endpoint) { at.HTTP = answers(302, ``) }, llm.KindInvalid},
		"nobody listens": {func(at *llm.Endpoint) { at.BaseURL, at.HTTP = "http://127.0.0.1:1/v1", nil }, llm.KindTransient},
		"bad URL":        {func(at *llm.Endpoint) { at.BaseURL = "http://bad host\x00" }, llm.KindInvalid},
	} {
		asked := at
		c.at(&asked)
		list, err := discover(t.Context(), asked)
		var e *llm.Error
		switch {
		case !errors.As(err, &e) || e.Kind != c.want || e.Provider != "mine" || list != nil:
			t.Errorf("%s: %+v, %v, want %s", name, list, err, c.want)
		case strings.Contains(e.Error()+e.Message, key):
			t.Errorf("%s: the error holds the key: %v", name, e)
		case asked.HTTP != nil && reaction.To(c.want) == reaction.Retry && e.RetryAfter != 7*time.Second:
			t.Errorf("%s: RetryAfter = %v", name, e.RetryAfter)
		}
	}
	for n := range len(first) + 1 {
		synctest.Test(t, func(t *testing.T) { discoverEnds(t, at, discover, first[:n]) })
	}
	var body forever
	at.HTTP = tripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(&body)}, nil
	})
	if _, err := discover(t.Context(), at); llm.AsError(err) == nil || body.read > 128<<20 {
		t.Errorf("%v after %d bytes", err, body.read)
	}
}

// answers returns a vendor with one answer.
func answers(status int, body string) http.RoundTripper {
	return tripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{"Retry-After": {"7"}}, Body: io.NopCloser(strings.NewReader(body))}, nil
	})
}

// discoverEnds queries a vendor that hangs after its first answers.
func discoverEnds(t *testing.T, at llm.Endpoint, discover func(context.Context, llm.Endpoint) ([]llm.Info, error), first []string) {
	ask := func(ctx context.Context) (*llm.Error, time.Duration) {
		left := make(chan string, len(first))
		for _, body := range first {
			left <- body
		}
		at.HTTP = tripper(func(r *http.Request) (*http.Response, error) {
			select {
			case body := <-left:
				return answers(200, body).RoundTrip(r)
			default:
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
		})
		start := time.Now()
		_, err := discover(ctx, at)
		return llm.AsError(err), time.Since(start)
	}
	if e, took := ask(t.Context()); e == nil || e.Kind != llm.KindTimeout || e.Phase != "total" || took != 30*time.Second {
		t.Errorf("%q: %v after %v", at.Dialect, e, took)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Second, cancel)
	if e, took := ask(ctx); e == nil || e.Kind != llm.KindCancelled || took != time.Second {
		t.Errorf("%q: %v after %v", at.Dialect, e, took)
	}
}
