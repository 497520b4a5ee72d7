package app_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/view/transcript"
)

// sent is a span as a receiver gets it.
type sent struct {
	Trace      string `json:"traceId"`
	ID         string `json:"spanId"`
	Parent     string `json:"parentSpanId"`
	Name       string
	Attributes []struct{ Key string }
}

// pending reports whether it is only a mark.
func (s sent) pending() bool {
	for _, a := range s.Attributes {
		if a.Key == "inspan.pending" {
			return true
		}
	}
	return false
}

// spansIn are the spans of a request, by their ids.
func spansIn(t *testing.T, raw []byte, into map[string]sent) {
	t.Helper()
	var request struct {
		Resources []struct {
			Scopes []struct{ Spans []sent } `json:"scopeSpans"`
		} `json:"resourceSpans"`
	}
	if err := json.Unmarshal(raw, &request); err != nil {
		t.Error(err)
	}
	for _, resource := range request.Resources {
		for _, scope := range resource.Scopes {
			for _, span := range scope.Spans {
				if _, twice := into[span.ID]; twice {
					t.Errorf("%+v was sent twice", span)
				}
				into[span.ID] = span
			}
		}
	}
}

// TestExportedLive checks that a receiver gets the spans of a session and of its agents while they run, equal to those
// of a later export, and that commands get the span of their call.
func TestExportedLive(t *testing.T) {
	var mu sync.Mutex
	got, metrics, begun := map[string]sent{}, "", make(chan struct{})
	said := sync.OnceFunc(func() { close(begun) })
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if r.URL.Path == "/v1/metrics" {
			metrics = string(raw)
			return
		}
		spansIn(t, raw, got)
		said()
	}))
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_SERVICE_NAME", "mine")
	t.Setenv("TRACEPARENT", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	a := load(t, "")
	s, err := a.Host(app.Options{Model: "script", Mode: "yolo"}, func(string) {}).New(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	called := map[string]string{} // what commands were told, by the id of their call
	task := "bash: echo $TRACEPARENT\ncall: spawn_agent {\"task\":\"bash: true\"}\nbash: until [ -e go ]; do sleep 0.05; done"
	go func() {
		<-begun // a span is there before the run has ended
		_, _ = a.CallTool(t.Context(), app.Options{Mode: "yolo"}, s.Status().Root, "bash", []byte(`{"command":"touch go"}`), func(string) {})
	}()
	seqs := map[string]uint64{}
	for e, err := range s.Run(t.Context(), event.Say(task)) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := e.Body.(type) {
		case event.Started:
			seqs[b.Call] = e.Seq
		case event.Ended:
			called[b.Call] = b.Parts.Text()
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	trace, err := transcript.TraceOf(t.Context(), a.Store(), s.ID(), false)
	if err != nil || len(trace.Agents) != 1 {
		t.Fatal(trace, err)
	}
	for _, span := range trace.Spans {
		if !strings.Contains(called[span.Call], "00-") {
			continue
		}
		told := strings.Split(strings.TrimSpace(called[span.Call]), "-")
		if id := got[told[2]]; id.Name != "execute_tool bash" || id.Trace != told[1] {
			t.Errorf("the command was told %q, which is %+v", told, id)
		}
		delete(called, span.Call)
	}
	later, marks := map[string]sent{}, 0
	requests, err := exportedLater(trace)
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range requests {
		spansIn(t, raw, later)
	}
	for id, span := range got {
		if span.pending() {
			if marks++; later[span.Parent].Name != span.Name {
				t.Errorf("%+v is the mark of %+v", span, later[span.Parent])
			}
			continue
		}
		if other := later[id]; other.Parent != span.Parent || other.Trace != span.Trace {
			t.Errorf("live it is %+v, and later %+v", span, other)
		}
	}
	if marks == 0 || len(got)-marks != len(later) || len(called) == len(seqs) {
		t.Errorf("%d marks and %d spans live, %d later, %v", marks, len(got)-marks, len(later), called)
	}
	for _, want := range []string{
		`"gen_ai.client.token.usage"`, `"gen_ai.client.operation.duration"`, `"inspan.tool.duration"`, `"stringValue":"mine"`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s in %s", want, metrics)
		}
	}
}

// TestToldOfTheirSpan checks that an MCP server, and a hook after the call, get the span that an export has for the
// call, whatever the environment says.
func TestToldOfTheirSpan(t *testing.T) {
	a, root := served(t, 1, "[[hook]]\non = \"after_call\"\ncommand = 'printf %s \"$TRACEPARENT\" > hooked'")
	t.Setenv("PEER_WORD", "span")
	t.Setenv("TRACEPARENT", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	s, err := a.Host(app.Options{Mode: "yolo"}, func(string) {}).New(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	told := ""
	for e, err := range s.Run(t.Context(), event.Say("call: mcp__mine__say0 {}")) {
		if err != nil {
			t.Fatal(err)
		}
		if end, is := e.Body.(event.Ended); is {
			told = end.Parts.Text()
		}
	}
	trace, err := transcript.TraceOf(t.Context(), a.Store(), s.ID(), false)
	if err != nil {
		t.Fatal(err)
	}
	requests, err := exportedLater(trace)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]sent{}
	spansIn(t, requests[0], all)
	hooked, err := os.ReadFile(filepath.Join(root, "hooked"))
	if err != nil {
		t.Fatal(err)
	}
	for id, span := range all {
		want := "00-" + span.Trace + "-" + id + "-01"
		if span.Name == "execute_tool mcp__mine__say0" && (!strings.Contains(told, want) || string(hooked) != want) {
			t.Errorf("the server was told %q and the hook %q, want %s", told, hooked, want)
		}
	}
	if len(all) == 0 || told == "" {
		t.Error(all, told)
	}
}

// TestDeadReceiver checks that a receiver that never answers, or is not there, fails no run and hardly delays one, and
// that lost spans are reported once.
func TestDeadReceiver(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	for name, at := range map[string]string{"silent": silent.Addr().String(), "gone": "127.0.0.1:1"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+at)
			t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "key=hidden")
			var warned []string
			a := load(t, "")
			host := a.Host(app.Options{Model: "script", Mode: "yolo"}, func(why string) { warned = append(warned, why) })
			for range 2 {
				s, err := host.New(t.Context(), t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				runs(t, s, event.Say("bash: true"))
				began := time.Now()
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				// An exporter waits for ten seconds, if nothing else is said.
				if took := time.Since(began); took > 9*time.Second {
					t.Errorf("the end of the session took %v", took)
				}
			}
			told := strings.Join(warned, "\n")
			if strings.Count(told, "the receiver of traces did not accept") != 1 || strings.Contains(told, "hidden") {
				t.Errorf("%q", told)
			}
		})
	}
}

func exportedLater(trace transcript.Trace) ([][]byte, error) { return transcript.OTLP{}.Traces(trace) }
