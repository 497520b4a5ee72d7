package event_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/llm"
)

func envelope(b event.Body) event.Event {
	return event.Event{
		Seq: 12, Time: time.Date(2026, 11, 21, 13, 15, 2, 345e6, time.UTC), Session: "20261121-131502-k3f9", Body: b,
	}
}

func TestRoundTrip(t *testing.T) {
	for _, b := range testkit.Bodies() {
		t.Run(b.Kind(), func(t *testing.T) {
			checkSet(t, b)
			want := envelope(b)
			line := encode(t, want)
			if bytes.IndexByte(line, '\n') >= 0 || !json.Valid(line) {
				t.Fatalf("not one line of JSON: %s", line)
			}
			got, err := event.Decode(line)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("round trip (-want +got):\n%s", diff)
			}
			if again := encode(t, got); !bytes.Equal(again, line) {
				t.Errorf("encoded again:\n%s, want\n%s", again, line)
			}
		})
	}
}

// checkSet fails if a field of the body is zero: then the round trip would
// prove nothing about it.
func checkSet(t *testing.T, b event.Body) {
	t.Helper()
	v := reflect.ValueOf(b)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("the test leaves %s out", v.Type().Field(i).Name)
		}
	}
}

func encode(t *testing.T, e event.Event) []byte {
	t.Helper()
	line, err := event.Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func TestZeroBodies(t *testing.T) {
	for _, b := range testkit.Bodies() {
		zero := reflect.Zero(reflect.TypeOf(b)).Interface().(event.Body)
		if zero.Kind() == "compacted" {
			continue // a Snapshot is always there
		}
		got, err := event.Decode(encode(t, envelope(zero)))
		if err != nil {
			t.Errorf("%s: %v", zero.Kind(), err)
		} else if got.Body.Kind() != zero.Kind() {
			t.Errorf("%s came back as %s", zero.Kind(), got.Body.Kind())
		}
	}
}

func TestForm(t *testing.T) {
	got := string(encode(t, envelope(event.Titled{Title: "a<b"})))
	want := `{"seq":12,"time":"2026-11-21T13:15:02.345Z","session":"20261121-131502-k3f9","kind":"titled","body":{"title":"a<b"}}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if e := envelope(nil); e.Body == nil {
		if _, err := event.Encode(e); err == nil {
			t.Error("an event without a body was encoded")
		}
	}
}

// TestFieldOrder spells every event in other ways that mean the same.
func TestFieldOrder(t *testing.T) {
	for _, b := range testkit.Bodies() {
		want := envelope(b)
		line := encode(t, want)
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(line, &fields); err != nil {
			t.Fatal(err)
		}
		sorted, err1 := json.Marshal(fields) // body comes first, seq near the end
		var spaced bytes.Buffer
		err2 := json.Indent(&spaced, line, "", "  ")
		fields["from_later"] = json.RawMessage(`{"kind":"x","body":{}}`)
		longer, err3 := json.Marshal(fields)
		if err1 != nil || err2 != nil || err3 != nil {
			t.Fatal(err1, err2, err3)
		}
		for _, other := range [][]byte{sorted, longer, append(line[:len(line)-1:len(line)-1], `,"x":1}`...)} {
			got, err := event.Decode(other)
			if err != nil {
				t.Fatalf("%s: %v", other, err)
			}
			if !bytes.Equal(canonical(t, encode(t, got)), canonical(t, line)) {
				t.Errorf("%s\ncame back as %s", other, encode(t, got))
			}
		}
		if got, err := event.Decode(spaced.Bytes()); err != nil || got.Body.Kind() != b.Kind() || got.Seq != 12 {
			t.Errorf("%s\ncame back as %v, %v", spaced.Bytes(), got, err)
		}
	}
}

// canonical drops differences in the spelling of JSON.
func canonical(t *testing.T, line []byte) []byte {
	t.Helper()
	var v any
	if err := json.Unmarshal(line, &v); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestUnknownKind(t *testing.T) {
	for _, body := range []string{`{"b":1,"a":[2e1, null ],"c":"\u00e9<"}`, `null`, `3`, `"x"`, `[]`} {
		line := `{"seq":3,"time":"2026-11-21T13:15:02.000Z","session":"s","kind":"from \"later\"","body":` + body + `}`
		e, err := event.Decode([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		u, ok := e.Body.(event.Unknown)
		if !ok || u.Kind() != `from "later"` || string(u.Raw) != body {
			t.Errorf("decoded as %#v", e.Body)
		}
		if got := string(encode(t, e)); got != line {
			t.Errorf("got  %s\nwant %s", got, line)
		}
		if event.Input(u) || event.Synced(u) {
			t.Errorf("an unknown kind is taken for an input or for synced")
		}
	}
}

// TestUnknownPart checks that parts of a later version keep their bytes.
func TestUnknownPart(t *testing.T) {
	line := `{"seq":3,"time":"2026-11-21T13:15:02.000Z","session":"s","kind":"said",` +
		`"body":{"parts":[{"type":"text","text":"a"},{"type":"video","frames":[1,2]}]}}`
	e, err := event.Decode([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(encode(t, e)); got != line {
		t.Errorf("got  %s\nwant %s", got, line)
	}
}

func TestDecodeKeepsNothing(t *testing.T) {
	for _, b := range append(testkit.Bodies(), event.Unknown{Name: "x", Raw: json.RawMessage(`{"a":1}`)}) {
		line := encode(t, envelope(b))
		got, err := event.Decode(line)
		if err != nil {
			t.Fatal(err)
		}
		before := encode(t, got)
		clear(line)
		if after := encode(t, got); !bytes.Equal(before, after) {
			t.Errorf("%s changed with the line it was decoded from", b.Kind())
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	head := `{"seq":1,"time":"2026-11-21T13:15:02.000Z","session":"s",`
	for _, line := range []string{
		``, `{`, `null`, `[]`, `{}`, head + `"kind":"said"}`, head + `"kind":"","body":{}}`,
		head + `"kind":"said","body":{}`, head + `"kind":"said","body":}`, head + `"kind":"said","body":{"parts":3}}`,
		head + `"kind":"later","body":{]}`, head + `"kind":"said","body":{}} `[:1], head + `"kind":"said","body":{}}{}`,
		`{"seq":-1,"time":"2026-11-21T13:15:02.000Z","session":"s","kind":"said","body":{}}`,
		`{"seq":1,"time":"yesterday","session":"s","kind":"said","body":{}}`,
	} {
		if e, err := event.Decode([]byte(line)); err == nil {
			t.Errorf("%s was decoded as %+v", line, e)
		}
	}
}

func TestSyncedAndInput(t *testing.T) {
	synced, inputs := "", ""
	for _, b := range testkit.Bodies() {
		if event.Synced(b) {
			synced += b.Kind() + " "
		}
		if event.Input(b) {
			inputs += b.Kind() + " "
		}
	}
	if want := "withdrawn said steered decided cancelled started ended restored rewound compacted spawned returned paused " +
		"step_started step_ended recorded staged stopped "; synced != want {
		t.Errorf("synced are %s, want %s", synced, want)
	}
	want := "titled pinned moved withdrawn said steered decided cancelled compact spawned raised returned paused tasked finished recorded staged "
	if inputs != want {
		t.Errorf("inputs are %s, want %s", inputs, want)
	}
}

// TestRandomRoundTrip draws texts and numbers that a fixed table would not
// think of.
func TestRandomRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.String()
		want := event.Event{
			Seq:     rapid.Uint64().Draw(rt, "seq"),
			Time:    time.UnixMilli(rapid.Int64Range(0, 4e12).Draw(rt, "time")).UTC(),
			Session: text.Draw(rt, "session"),
			Body: event.Ended{
				Call: text.Draw(rt, "call"), Outcome: event.Outcome(text.Draw(rt, "outcome")),
				Parts:  llm.Say(text.Draw(rt, "text")),
				Millis: rapid.Int64().Draw(rt, "millis"),
			},
		}
		line, err := event.Encode(want)
		if err != nil {
			rt.Fatal(err)
		}
		got, err := event.Decode(line)
		if err != nil {
			rt.Fatalf("%s: %v", line, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Errorf("round trip (-want +got):\n%s", diff)
		}
	})
}

// FuzzDecode checks that whatever is decoded is JSON, means the same when it
// is spelled with spaces, which no fast path takes, and is encoded to something
// that decodes to the same.
func FuzzDecode(f *testing.F) {
	for _, b := range testkit.Bodies() {
		line, err := event.Encode(envelope(b))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(line)
	}
	f.Add([]byte(`{"kind":"later","body":3,"seq":1}`))
	for _, body := range []string{
		`{"parts":[]}`, `{"parts":[],}`, `{,"parts":[]}`, `{"by":"x","parts":[]}`, `{"by":"x",,"parts":[]}`, `{"parts":[]}}`,
		`{"x":{"parts":[1]},"parts":[]}`, `{"parts":[{"type":"text","text":"\\\\"}],"by":"\\"]}`, `{"parts":[],"parts":null}`,
	} {
		f.Add([]byte(`{"seq":1,"time":"2026-11-21T13:15:02.000Z","session":"s","kind":"said","body":` + body + `}`))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := event.Decode(line)
		if err != nil {
			return
		}
		if y := e.Time.UTC().Year(); y < 0 || y > 9999 {
			return // not a time a log stamps
		}
		once, err := event.Encode(e)
		if err != nil {
			return // such as a Compacted without its snapshot
		}
		var spaced bytes.Buffer
		if err := json.Indent(&spaced, line, "", " "); err != nil {
			t.Fatalf("%s was decoded: %v", line, err)
		}
		slow, err := event.Decode(spaced.Bytes())
		if err != nil {
			t.Fatalf("%s\nis decoded only without spaces: %v", line, err)
		}
		if got, want := canonical(t, once), canonical(t, encode(t, slow)); !bytes.Equal(got, want) {
			t.Fatalf("%s\nmeans\n%s, but with spaces\n%s", line, got, want)
		}
		again, err := event.Decode(once)
		if err != nil {
			t.Fatalf("%s\nwas encoded as %s: %v", line, once, err)
		}
		if twice, err := event.Encode(again); err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("encoded as\n%s, then as\n%s, %v", once, twice, err)
		}
	})
}

// TestLeversCheck checks which levers may be numbers.
func TestLeversCheck(t *testing.T) {
	for _, l := range []event.Levers{{}, {Jobs: "90"}, {Jobs: "unattended"}, {Jobs: "on"}, {Repeats: "3"}, {Verify: "off"}} {
		if err := l.Check(); err != nil {
			t.Errorf("%+v: %v", l, err)
		}
	}
	for _, l := range []event.Levers{{Jobs: "0"}, {Jobs: "long"}, {Verify: "3"}, {Repeats: "unattended"}} {
		if l.Check() == nil {
			t.Errorf("taken: %+v", l)
		}
	}
}

// TestSteeredByNobody checks that a steering message counts as the person's only if it says so, and that logs from
// before all origins were stored keep their meaning.
func TestSteeredByNobody(t *testing.T) {
	t.Parallel()
	for want, body := range map[event.Origin]event.Steered{
		event.OriginHarness: {Parts: llm.Say("x")}, event.OriginPerson: {Parts: llm.Say("x"), Origin: event.OriginPerson},
		event.OriginLead: {Parts: llm.Say("x"), Origin: event.OriginLead},
	} {
		line, err := event.Encode(event.Event{Seq: 1, Session: "s", Body: body})
		if err != nil {
			t.Fatal(err)
		}
		e, err := event.Decode(line)
		if got := e.Body.(event.Steered).Origin; err != nil || got != want || strings.Contains(string(line), "person") {
			t.Errorf("with origin %q it comes back with %q, %v: %s", body.Origin, got, err, line)
		}
		if body.Origin.Leads() != (want != event.OriginHarness) {
			t.Errorf("with origin %q it leads: %v", body.Origin, body.Origin.Leads())
		}
	}
	old, err := event.Decode([]byte(`{"seq":1,"time":"2026-01-01T00:00:00.000000Z","session":"s","kind":"steered","body":{"parts":[{"type":"text","text":"x"}]}}`))
	if err != nil || old.Body.(event.Steered).Origin != event.OriginPerson {
		t.Errorf("an old one is %+v, %v", old.Body, err)
	}
}
