package custom

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

const declared = `{"name":"slack_message","description":"Sends.","schema":{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},` +
	`"$defs":{"b":{"type":"string"}}},` +
	`"effects":{"read":true,"write":true,"network":["*.slack.com:443"],"external":"send"},"secrets":["SLACK_TOKEN"],"timeout_seconds":60}`

func TestDecode(t *testing.T) {
	d, err := decode([]byte(" " + declared + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	e := d.effects
	if d.name != "slack_message" || d.description != "Sends." || !e.read || !e.write || len(e.network) != 1 || e.external != "send" ||
		d.secrets[0] != "SLACK_TOKEN" || d.timeout.Seconds() != 60 {
		t.Errorf("%+v", d)
	}
	for host, want := range map[string]bool{
		"*": true, "slack.com": true, "*.slack.com": true, "a.b:443": true, "127.0.0.1:80": true, "localhost": true, "xn--a.example": true,
		"": false, "*.": false, "**": false, "a*": false, "*.*.a": false, "a:": false, "a:b": false, "a:123456": false, ".a": false,
		"a..b": false, "-a": false,
		"a/b": false, "http://a": false, "a b": false, "user@a": false, "[::1]": false, "ä.example": false, "a\n": false, "a:1:2": false,
	} {
		if isHost(host) != want {
			t.Errorf("%q: %v", host, !want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(declared))
	for _, part := range []string{`"name"`, `"schema"`, `"a"`, `{`, `true`, `60`, `"#/$defs/b"`, `"string"`} {
		for _, with := range []string{``, `null`, `"#"`, `[[[[`, `{"`, `1e999`, `"\ud800"`, "\xff"} {
			f.Add([]byte(strings.Replace(declared, part, with, 1)))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := decode(data)
		if err != nil {
			if d.name != "" || err.Error() == "" {
				t.Errorf("an error and %+v", d)
			}
			return
		}
		if d.name == "" || len(d.name) > 64 || d.description == "" || len(d.description) > maxDescription || !utf8.ValidString(d.description) {
			t.Errorf("name %q, description %q", d.name, d.description)
		}
		if d.timeout < 1e9 || d.timeout > maxTimeout*1e9 || !json.Valid(d.schema) {
			t.Errorf("timeout %v, schema %s", d.timeout, d.schema)
		}
		if strings.ContainsAny(d.effects.external+strings.Join(d.effects.network, "")+strings.Join(d.secrets, ""), "\n\r\x00\x1b") {
			t.Errorf("%+v", d)
		}
		// Arguments can be checked, whatever the result.
		if _, err := (tool.Tool{Name: d.name, Schema: d.schema}).Check(json.RawMessage(`{"a":{"a":["b",1]}}`)); err != nil &&
			strings.HasPrefix(err.Error(), "schema of ") {
			t.Error(err)
		}
	})
}

func FuzzReply(f *testing.F) {
	for _, text := range []string{
		`{"text":"a"}`, `{"error":"b","images":[{"media_type":"image/gif","data":"R0lGODlhAQ=="}]}`,
		`{"images":[null]}`, `{`, `{}`, "text\x1b[31m", "{\"text\":\"\x00\"}", `{"text":"a"}x`,
	} {
		f.Add([]byte(text), 3)
	}
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		o := output{most: 64}
		cut = min(max(cut, 0), len(data))
		for _, p := range [][]byte{data[:cut], data[cut:]} {
			if n, err := o.Write(p); n != len(p) || err != nil {
				t.Fatal(n, err)
			}
		}
		r := understand(&o)
		for _, text := range []string{r.text, r.err} {
			if !utf8.ValidString(text) || strings.ContainsAny(text, "\x00\x1b\r\a") {
				t.Errorf("text %q", text)
			}
		}
		for _, i := range r.images {
			if http.DetectContentType(i.Data) != i.MediaType {
				t.Errorf("image %q", i.MediaType)
			}
		}
		var known map[string]any
		if len(r.images) > 0 && (len(data) > 64 || json.Unmarshal(data, &known) != nil) {
			t.Error("images out of nothing")
		}
	})
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nb\x1b[0m\n\xffc"), 2)
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		var told strings.Builder
		l := lines{tell: func(line string) { told.WriteString(line) }}
		cut = min(max(cut, 0), len(data))
		_, _ = l.Write(data[:cut])
		_, _ = l.Write(data[cut:])
		s := l.text()
		if strings.Contains(told.String(), "\x1b") || strings.Contains(s, "\x1b") || !utf8.ValidString(told.String()) {
			t.Errorf("told %q, text %q", told.String(), s)
		}
		if len(data) < maxLine && s != text.Printed(string(data)) {
			t.Errorf("text %q of %q", s, data)
		}
	})
}

func TestKeep(t *testing.T) {
	var all, tail []byte
	for i := range 500 {
		p := []byte(strings.Repeat(string(rune('a'+i%26)), i%40))
		all, tail = append(all, p...), lastOf(tail, p, 30)
		if last := all[max(0, len(all)-30):]; !strings.HasSuffix(string(tail), string(last)) || len(tail) > 60 {
			t.Fatalf("after %d: %q does not end in %q", i, tail, last)
		}
	}
}
