package transcript_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/fault"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// TestOTLPOfLogs exports the logs of all versions: ids are unique and the same again, a part has the
// span that it is a part of, and time does not run backwards.
func TestOTLPOfLogs(t *testing.T) {
	for _, path := range logs(t) {
		events, _ := readLog(t, path)
		var spans transcript.Spans
		for _, e := range events {
			spans.Apply(e)
		}
		trace := spans.Of(path)
		requests, err := transcript.OTLP{Release: "1"}.Traces(trace)
		again, _ := transcript.OTLP{Release: "1"}.Traces(trace)
		if err != nil || len(requests) != len(again) {
			t.Fatal(path, err)
		}
		ids, n := map[string]bool{"": true}, 0
		for i, raw := range requests {
			if string(raw) != string(again[i]) {
				t.Error(path, "is another when it is exported again")
			}
			for _, s := range exported(t, raw) {
				if ids[s.ID] || !ids[s.Parent] || len(s.ID) != 16 || len(s.Trace) != 32 || s.End < s.Start {
					t.Errorf("%s: %+v", path, s)
				}
				ids[s.ID] = true
				n++
			}
		}
		if n != len(trace.Spans) {
			t.Errorf("%s: %d of %d spans", path, n, len(trace.Spans))
		}
	}
}

type exportedSpan struct {
	ID     string `json:"spanId"`
	Parent string `json:"parentSpanId"`
	Trace  string `json:"traceId"`
	Start  string `json:"startTimeUnixNano"`
	End    string `json:"endTimeUnixNano"`
	Status struct{ Code int }
}

func exported(t *testing.T, raw []byte) []exportedSpan {
	t.Helper()
	var request struct {
		Resources []struct {
			Scopes []struct{ Spans []exportedSpan } `json:"scopeSpans"`
		} `json:"resourceSpans"`
	}
	if err := json.Unmarshal(raw, &request); err != nil || len(request.Resources) != 1 || len(request.Resources[0].Scopes) != 1 {
		t.Fatal(err, string(raw))
	}
	return request.Resources[0].Scopes[0].Spans
}

// TestOTLPUntil checks that open spans last as long as the log is known, and that failures are exported.
func TestOTLPUntil(t *testing.T) {
	start := time.Unix(100, 0)
	trace := transcript.Trace{Session: "s", Until: time.Unix(160, 0), Spans: []transcript.Span{
		{ID: "run-1", Kind: transcript.SpanRun, Start: start},
		{ID: "call-2", Parent: "run-1", Kind: transcript.SpanCall, Start: start, End: start, Outcome: "failed"},
		{ID: "call-3", Parent: "run-1", Kind: transcript.SpanCall, Start: start, End: start, Outcome: "ok"},
		{
			ID: "model-4", Parent: "run-1", Kind: transcript.SpanModel, Name: "a/b/c",
			Start: start, End: start.Add(-time.Second), Outcome: "overloaded",
		},
	}}
	requests, err := transcript.OTLP{Semconv: "1.36.0", Release: "1"}.Traces(trace)
	if err != nil || len(requests) != 1 {
		t.Fatal(requests, err)
	}
	got := exported(t, requests[0])
	for i, want := range []struct {
		end    string
		status int
	}{{"160000000000", 0}, {"100000000000", 2}, {"100000000000", 0}, {"100000000000", 2}} {
		if got[i].End != want.end || got[i].Status.Code != want.status {
			t.Errorf("%d: %+v, wanted %+v", i, got[i], want)
		}
	}
	if got[0].Parent != "" {
		t.Errorf("%+v is a part of something", got[0])
	}
	trace.Traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	requests, err = transcript.OTLP{Release: "1"}.Traces(trace)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range exported(t, requests[0]) {
		if s.Trace != "0af7651916cd43dd8448eb211c80319c" || (s.Parent == "b7ad6b7169203331") != (i == 0) {
			t.Errorf("%+v is no part of the other program's trace", s)
		}
	}
	if _, err := (transcript.OTLP{Semconv: "0.1"}).Traces(trace); err == nil {
		t.Error("unknown conventions are taken")
	}
}

// TestOTLPNamesTheAgent checks that a run is that of the kind of agent whose session it is.
func TestOTLPNamesTheAgent(t *testing.T) {
	for kind, want := range map[string]string{"": "inspan", "worker": "worker"} {
		spans := transcript.NewSpans(false)
		for i, body := range []event.Body{event.Opened{Format: 1, Agent: kind}, event.Say("go"), event.Stopped{Reason: event.ReasonDone}} {
			spans.Apply(event.Event{Seq: uint64(i + 1), Time: time.Unix(int64(100+i), 0), Session: "s", Body: body})
		}
		requests, err := transcript.OTLP{Release: "1"}.Traces(spans.Of("s"))
		if err != nil || len(requests) != 1 || !strings.Contains(string(requests[0]), `"invoke_agent `+want+`"`) {
			t.Errorf("%q: %v %s", kind, err, requests)
		}
	}
}

// TestWhoAnswered checks that a reply has the vendor's id and the server that sent it, and that a call of an unknown
// tool is marked as such, without the kind that it would have.
func TestWhoAnswered(t *testing.T) {
	start := time.Unix(100, 0)
	var spans transcript.Spans
	for seq, body := range []event.Body{
		event.Opened{Format: 1},
		event.Claimed{Epoch: 1},
		event.Said{Parts: llm.Say("go")},
		event.Asked{Turn: 1, Route: "p/m"},
		event.Replied{
			Route: "p/m", Stop: llm.StopCalls, ReplyID: "msg_1", Server: "api.example.org:8443",
			Parts: llm.Parts{llm.Call{ID: "a", Name: "nothing"}, llm.Call{ID: "b", Name: "bash"}},
		},
		event.Ended{Call: "a", Outcome: event.OutcomeInvalid, Class: fault.ErrorUnknown},
		event.Judged{Call: "b", Action: tool.Allow},
		event.Started{Call: "b"},
		event.Ended{Call: "b", Outcome: event.OutcomeOK},
		event.Stopped{Reason: event.ReasonDone},
	} {
		spans.Apply(event.Event{Seq: uint64(seq + 1), Time: start.Add(time.Duration(seq) * time.Second), Session: "s", Body: body})
	}
	requests, err := transcript.OTLP{Release: "1"}.Traces(spans.Of("s"))
	if err != nil || len(requests) != 1 {
		t.Fatal(requests, err)
	}
	said := string(requests[0])
	for _, want := range []string{
		`{"key":"gen_ai.response.id","value":{"stringValue":"msg_1"}}`, `{"key":"server.address","value":{"stringValue":"api.example.org"}}`,
		`{"key":"server.port","value":{"intValue":"8443"}}`, `{"key":"error.type","value":{"stringValue":"unknown_tool"}}`,
	} {
		if strings.Count(said, want) != 1 {
			t.Errorf("it has %d of %s: %s", strings.Count(said, want), want, said)
		}
	}
	if n := strings.Count(said, `{"key":"gen_ai.tool.type"`); n != 1 {
		t.Errorf("%d calls have a type of tool", n)
	}
}

// TestFinishReasons checks that the end of a reply is given in the words of the conventions, including for a
// refused one, and that a request without a reply has none.
func TestFinishReasons(t *testing.T) {
	start := time.Unix(100, 0)
	for outcome, want := range map[string]string{
		"end": "stop", "calls": "tool_call", "length": "length", "window": "length", "refusal": "content_filter", "overloaded": "",
	} {
		requests, err := transcript.OTLP{Release: "1"}.Traces(transcript.Trace{Session: "s", Spans: []transcript.Span{
			{ID: "model-1", Kind: transcript.SpanModel, Name: "a/b", Start: start, End: start, Outcome: outcome},
		}})
		if err != nil || len(requests) != 1 {
			t.Fatal(requests, err)
		}
		_, told, is := strings.Cut(string(requests[0]), `"gen_ai.response.finish_reasons","value":{"arrayValue":{"values":[{"stringValue":"`)
		if told, _, _ = strings.Cut(told, `"`); told != want || is != (want != "") {
			t.Errorf("%s is told as %q, want %q", outcome, told, want)
		}
	}
}
