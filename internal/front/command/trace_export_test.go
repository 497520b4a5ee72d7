package command

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/view/transcript"
)

// TestExportTrace checks that a receiver gets all spans with the headers that it wants, and that refused ones are
// reported. test/oracle has a third-party receiver.
func TestExportTrace(t *testing.T) {
	trace := transcript.Trace{Session: "s"}
	for i := range 2500 {
		trace.Spans = append(trace.Spans, transcript.Span{ID: fmt.Sprint("call-", i), Kind: transcript.SpanCall, Name: "bash", Start: time.Now()})
	}
	answer, status, got, header := "{}", http.StatusOK, 0, ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		if got += bytes.Count(raw, []byte(`"spanId"`)); r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/json" {
			t.Error(r.URL, r.Header)
		}
		header = r.Header.Get("X-Key")
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	send := func(to, semconv string) string {
		form, by := transcript.OTLP{Semconv: semconv}, running.Receiver{Headers: "x-key=a%20b, other=c"}
		if err := exportTrace(t.Context(), io.Discard, trace, form, to, by); err != nil {
			return err.Error()
		}
		return ""
	}
	if said := send(server.URL, ""); said != "" || got != 2500 || header != "a b" {
		t.Errorf("%q, %d spans, header %q", said, got, header)
	}
	for _, tc := range []struct {
		answer string
		status int
		want   string
	}{
		{`{"partialSuccess":{"rejectedSpans":"7","errorMessage":"too old"}}`, http.StatusOK, "rejected 7 spans: too old"},
		{`{"partialSuccess":{"rejectedSpans":7}}`, http.StatusOK, "rejected 7 spans"},
		{`{"partialSuccess":{"rejectedSpans":"0"}}`, http.StatusOK, ""},
		{"go away\x1b", http.StatusServiceUnavailable, `503 Service Unavailable: go away\x1b`},
		{"", http.StatusTemporaryRedirect, "307"},
	} {
		answer, status = tc.answer, tc.status
		if said := send(server.URL, ""); !strings.Contains(said, tc.want) || tc.want == "" && said != "" {
			t.Errorf("%d %s: %q", tc.status, tc.answer, said)
		}
	}
	for _, wrong := range [][2]string{{"localhost:4318"}, {"file:///x"}, {"", "0.1"}} {
		if said := send(wrong[0], wrong[1]); !strings.Contains(said, "use ") {
			t.Errorf("%+v: %q", wrong, said)
		}
	}
}
