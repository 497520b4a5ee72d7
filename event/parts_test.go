package event_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/event"
)

// slowly decodes a line in the plain way: indented JSON takes no short cut.
func slowly(line string) (event.Event, error) {
	var indented bytes.Buffer
	if err := json.Indent(&indented, []byte(line), "", " "); err != nil {
		return event.Event{}, err
	}
	return event.Decode(indented.Bytes())
}

// agrees fails unless a line decodes to the same in both ways.
func agrees(t *testing.T, line string) {
	t.Helper()
	got, err := event.Decode([]byte(line))
	want, wantErr := slowly(line)
	if (err == nil) != (wantErr == nil) {
		t.Errorf("%s\n at once: %+v, %v\nplainly: %+v, %v", line, got, err, want, wantErr)
		return
	}
	if diff := cmp.Diff(compacted(t, want), compacted(t, got)); err == nil && diff != "" {
		t.Errorf("%s\n%s", line, diff)
	}
}

// compacted is an event as it is written, without the blanks of raw values.
func compacted(t *testing.T, e event.Event) string {
	t.Helper()
	if e.Body == nil {
		return ""
	}
	raw, err := event.Encode(e)
	if err != nil {
		return err.Error()
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// oddBodies are bodies in which the parts of a message stand where a short cut could miss them, or
// where there are none.
func oddBodies() []string {
	const parts = `"parts":[{"type":"text","text":"x"}]`
	return []string{
		`{` + parts + `}`,
		`{` + parts + `,"by":"b"}`,
		`{"by":"b",` + parts + `}`,
		`{"by":"b",` + parts + `,"message":"m"}`,
		`{"by":"\"parts\":[",` + parts + `}`,
		`{"x\"parts":[{"type":"text","text":"forged"}],"by":"b"}`, // the name of another field ends so
		`{"x\\\"parts":[{"type":"text","text":"forged"}],"by":"b"}`,
		`{"x":{` + parts + `},"by":"b"}`,
		`{"x":[{` + parts + `}],"by":"b"}`,
		`{` + parts + `,"parts":[]}`,
		`{` + parts + `,"parts":null}`,
		`{"parts":[],` + parts + `}`,
		`{"Parts":[{"type":"text","text":"y"}],` + parts + `}`,
		`{"parts":[{"type":"text","text":"]}\\\"],["}],"by":"b"}`,
		`{"parts":[{"type":"text","text":"\u005d\ud83d\ude00"}]}`,
		`{"parts":[{"type":"later","more":[[],{"a":"]"}]}],"by":"b"}`,
		`{"parts":[[]],"by":"b"}`,
		`{"parts":[1],"by":"b"}`,
		`{"parts":[{"type":"text"}],"by":7}`,
		`{"parts":[]}`,
		`{"by":"` + strings.Repeat("long", 200) + `",` + parts + `}`,
	}
}

// TestShortCuts checks that the fast way to read an event gives the same result as the plain way.
func TestShortCuts(t *testing.T) {
	for _, kind := range []string{"said", "steered", "replied", "ended", "returned", "titled", "later"} {
		for _, body := range oddBodies() {
			agrees(t, `{"seq":1,"time":"2026-01-02T03:04:05.006Z","session":"s","kind":"`+kind+`","body":`+body+`}`)
		}
	}
	body := oddBodies()[0]
	for _, head := range []string{
		`"seq":01,"time":"2026-01-02T03:04:05.006Z","session":"s","kind":"said",`,
		`"seq":1,"time":"2026-01-02T03:04:05.006+01:00","session":"s","kind":"said",`,
		`"seq":1,"time":"2026-01-02T03:04:05Z","session":"s","kind":"said",`,
		`"seq":1,"time":"2026-01-02T03:04:05.006Z","session":"s\u0041","kind":"said",`,
		`"seq":1,"time":"2026-01-02T03:04:05.006Z","session":"s","kind":"said","must":true,`,
		`"seq":1,"time":"2026-01-02T03:04:05.006Z","session":"s","kind":"s\u0061id",`,
		`"seq":18446744073709551616,"time":"2026-01-02T03:04:05.006Z","session":"s","kind":"said",`,
		`"seq":-1,"time":"2026-01-02T03:04:05.006Z","session":"s","kind":"said",`,
		`"seq":1,"time":"2026-13-02T03:04:05.006Z","session":"s","kind":"said",`,
	} {
		agrees(t, `{`+head+`"body":`+body+`}`)
		agrees(t, `{`+head+`"body":`+body+`}}`)
		agrees(t, `{`+head+`"body":`+body)
	}
}

// TestShortCutsAtRandom does the same with lines whose pieces are moved.
func TestShortCutsAtRandom(t *testing.T) {
	pieces := []string{
		`"parts":[`, `]`, `[`, `{`, `}`, `,`, `:`, `"`, `\`, `"by":"b"`, `"text":"x"`, `{"type":"text","text":"x"}`, `"x\"parts":[`, `null`, `1`,
		`"a":`, `,"b":2`,
	}
	random := rand.New(rand.NewPCG(1, 2))
	valid := 0
	for range 100_000 {
		var body strings.Builder
		body.WriteString(`{`)
		for range 1 + random.IntN(7) {
			body.WriteString(pieces[random.IntN(len(pieces))])
		}
		body.WriteString(`}`)
		if !json.Valid([]byte(body.String())) {
			continue
		}
		valid++
		agrees(t, `{"seq":1,"time":"2026-01-02T03:04:05.006Z","session":"s","kind":"said","body":`+body.String()+`}`)
	}
	if valid < 100 {
		t.Errorf("only %d lines were JSON", valid)
	}
}
