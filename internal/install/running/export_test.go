package running_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/store"
)

// TestReceiverOf checks the meaning of the standard variables.
func TestReceiverOf(t *testing.T) {
	const otlp = "OTEL_EXPORTER_OTLP_"
	none := map[string]string{}
	for name, tc := range map[string]struct {
		variables map[string]string
		want      *running.Receiver
		problem   string
	}{
		"nothing": {map[string]string{"OTEL_SERVICE_NAME": "x"}, nil, ""},
		"one for both": {
			map[string]string{otlp + "ENDPOINT": "http://h:4318/", otlp + "HEADERS": "a=b", otlp + "TIMEOUT": "1500", otlp + "PROTOCOL": "http/json"},
			&running.Receiver{
				Traces: "http://h:4318/v1/traces", Metrics: "http://h:4318/v1/metrics", Headers: "a=b", Timeout: 1500 * time.Millisecond, Attributes: none,
			}, "",
		},
		"one signal at its own address, with content": {
			map[string]string{otlp + "TRACES_ENDPOINT": "https://h/x", "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "True"},
			&running.Receiver{Traces: "https://h/x", Attributes: none, Content: true}, "",
		},
		"half of it off": {
			map[string]string{otlp + "ENDPOINT": "http://h", "OTEL_METRICS_EXPORTER": "none"},
			&running.Receiver{Traces: "http://h/v1/traces", Attributes: none}, "",
		},
		"attributes": {
			map[string]string{
				otlp + "METRICS_ENDPOINT": "http://h", "OTEL_SERVICE_NAME": "mine", "OTEL_RESOURCE_ATTRIBUTES": "service.name=other, team=a%20b,bad",
			},
			&running.Receiver{Metrics: "http://h", Attributes: map[string]string{"service.name": "mine", "team": "a b"}}, "",
		},
		"off": {map[string]string{otlp + "ENDPOINT": "http://h", "OTEL_SDK_DISABLED": "TRUE"}, nil, ""},
		"protobuf for one of both": {
			map[string]string{otlp + "ENDPOINT": "http://h", otlp + "TRACES_PROTOCOL": "http/protobuf"},
			&running.Receiver{Traces: "http://h/v1/traces", Metrics: "http://h/v1/metrics", Attributes: none, Protobuf: []string{"http://h/v1/traces"}}, "",
		},
		"another protocol": {map[string]string{otlp + "ENDPOINT": "http://h", otlp + "TRACES_PROTOCOL": "grpc"}, nil, "only http/json"},
		"no address":       {map[string]string{otlp + "ENDPOINT": "h:4317", otlp + "HEADERS": "a=hidden"}, nil, "is not an address"},
	} {
		got, err := running.ReceiverOf(func(name string) string { return tc.variables[name] })
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
		if said := fmt.Sprint(err); err != nil != (tc.problem != "") || !strings.Contains(said, tc.problem) || strings.Contains(said, "hidden") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestProtobuf checks how a request and an answer look in protobuf. The collector's own receiver reads whole ones in
// the tests of test/oracle.
func TestProtobuf(t *testing.T) {
	var got []byte
	kind := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, _ = io.ReadAll(r.Body)
		kind = r.Header.Get("Content-Type")
		_, _ = w.Write([]byte("\x0a\x07\x08\x03\x12\x03why")) // partial_success: 3 rejected, and why
	}))
	defer server.Close()
	r := &running.Receiver{Traces: server.URL, Protobuf: []string{server.URL}}
	err := r.Send(t.Context(), server.URL, []byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"spanId":"0102","kind":3,"endTimeUnixNano":"258",
		"attributes":[{"key":"k","value":{"intValue":"-1"}},{"key":"b","value":{"boolValue":true}}]}]}]}]}`))
	if fmt.Sprint(err) != "the receiver rejected 3 spans or points: why" || kind != "application/x-protobuf" {
		t.Errorf("%v, %s", err, kind)
	}
	span := "\x12\x02\x01\x02" + "\x30\x03" + "\x41\x02\x01\x00\x00\x00\x00\x00\x00" +
		"\x4a\x10" + "\x0a\x01k\x12\x0b\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" + "\x4a\x07" + "\x0a\x01b\x12\x02\x10\x01"
	want := span
	for _, number := range []byte{0x12, 0x12, 0x0a} { // spans, scopeSpans, resourceSpans
		want = string([]byte{number, byte(len(want))}) + want
	}
	if string(got) != want {
		t.Errorf("%x, want\n%x", got, want)
	}
	if err := r.Send(t.Context(), server.URL, []byte(`{"resourceSpans":[{"newField":1}]}`)); err == nil || !strings.Contains(err.Error(), "newField") {
		t.Errorf("a field that is not known: %v", err)
	}
}

// TestExporterForgetsWhatWas checks that of a session that continues in this process only the new part is exported,
// and that refused spans are counted and not sent forever.
func TestExporterForgetsWhatWas(t *testing.T) {
	sent, status := make(chan string, 10), http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		w.WriteHeader(status)
		sent <- string(raw)
	}))
	defer server.Close()
	sessions := &store.Memory{}
	log, err := sessions.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if err := log.Lease(t.Context()); err != nil {
		t.Fatal(err)
	}
	last := uint64(0)
	x := running.NewExporter(sessions, &running.Receiver{Traces: server.URL}, "1")
	grow := func(seen bool, bodies ...event.Body) {
		t.Helper()
		stored, err := log.AppendAs(t.Context(), event.Driver{After: last}, bodies...)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range stored {
			if last = e.Seq; seen {
				x.OnEvent(e)
			}
		}
	}
	turn := []event.Body{event.Asked{Route: "p/m"}, event.Replied{Route: "p/m", Parts: llm.Say("x"), Stop: llm.StopEnd}, event.Stopped{Reason: event.ReasonDone}}
	grow(false, append([]event.Body{event.Opened{}, event.Say("go")}, turn...)...)
	grow(true, append([]event.Body{event.Say("on")}, turn...)...)
	if err := x.Over(log.ID()); err != nil {
		t.Error(err)
	}
	if raw := <-sent; strings.Count(raw, `"spanId"`) != 2 || strings.Contains(raw, `"intValue":"2"`) {
		t.Errorf("%s", raw)
	}
	status = http.StatusBadRequest
	for i, want := range []string{"did not accept 2 spans: the receiver answers 400", ""} {
		grow(true, append([]event.Body{event.Say("on")}, turn...)...)
		if err := x.Over(log.ID()); fmt.Sprint(err) == "<nil>" != (want == "") || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%d: %v, want %q", i, err, want)
		}
		<-sent
	}
	if err := x.Over("another"); err != nil || len(sent) > 0 {
		t.Error(err, len(sent))
	}
}
