package oauth_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/inspan/inspan/internal/extend/oauth"
)

// direct asks a handler without a network, so that a test can have time of its own.
type direct struct{ http.Handler }

// cutOff is the status that stands for no answer.
const cutOff = 599

func (d direct) RoundTrip(req *http.Request) (*http.Response, error) {
	rec := httptest.NewRecorder()
	d.ServeHTTP(rec, req)
	if rec.Code == cutOff {
		return nil, errors.New("cut off")
	}
	return rec.Result(), nil
}

// TestDeviceServers checks the handling of answers to a device, good and bad, and the pauses between its polls.
func TestDeviceServers(t *testing.T) {
	const good = `{"device_code":"device-secret","user_code":"AB-12","verification_uri":"WORLD/enter","interval":2}`
	const pending = `{"error":"authorization_pending"}`
	for _, tt := range []struct {
		name, device string
		tokens       []string      // answers to the questions for a token, before the token
		took         time.Duration // all of it
		want         string        // the error
		told         string
	}{
		{name: "entered", device: good, took: 2 * time.Second, told: "/enter and enter the code AB-12"},
		{name: "entered later", device: good, tokens: []string{pending, pending}, took: 6 * time.Second},
		{name: "too fast", device: good, tokens: []string{`{"error":"slow_down"}`, pending}, took: 16 * time.Second},
		{name: "overloaded", device: good, tokens: []string{"503", "429"}, took: 14 * time.Second},
		{name: "cut off", device: good, tokens: []string{"599", pending}, took: 10 * time.Second},
		{name: "refused", device: good, tokens: []string{`{"error":"access_denied"}`}, took: 2 * time.Second, want: "access_denied"},
		{name: "over", device: good, tokens: []string{`{"error":"expired_token"}`}, took: 2 * time.Second, want: "expired_token"},
		{
			name: "a token that will not do", device: good, tokens: []string{`{"token_type":"bearer"}`},
			took: 2 * time.Second, want: "no access token",
		},
		{
			name: "not entered in time", device: strings.Replace(good, `"interval"`, `"expires_in":3,"interval"`, 1),
			tokens: []string{pending, pending}, took: 4 * time.Second, want: "in time",
		},
		{
			name: "not entered at all", device: good, tokens: []string{strings.Repeat(pending+"\n", 100)},
			took: 90 * time.Second, want: "not done within 1m30s",
		},
		{name: "no pause said", device: strings.Replace(good, `,"interval":2`, ``, 1), took: 5 * time.Second},
		{name: "a pause below zero", device: strings.Replace(good, `:2}`, `:-1}`, 1), took: 5 * time.Second},
		{name: "a pause of nothing", device: strings.Replace(good, `:2}`, `:0.001}`, 1), tokens: []string{pending}, took: 2 * time.Second},
		{name: "a pause of years", device: strings.Replace(good, `:2}`, `:1e30}`, 1), took: time.Minute},
		{
			name: "escapes in the code", device: strings.Replace(good, "AB-12", `AB\u001b[2J\u202e`, 1),
			took: 2 * time.Second, told: `AB\x1b[2J\u202e`,
		},
		{name: "the page is a script", device: strings.Replace(good, "WORLD/enter", "javascript:alert(1)", 1), want: "scheme"},
		{name: "the page is not https", device: strings.Replace(good, "WORLD/enter", "http://192.0.2.1/", 1), want: "is not https"},
		{name: "the filled page is a script", device: strings.Replace(good, `"interval"`,
			`"verification_uri_complete":"javascript:alert(1)","interval"`, 1), took: 2 * time.Second, told: "/enter"},
		{name: "no code", device: `{"device_code":"x","verification_uri":"WORLD/enter"}`, want: "no code to enter"},
		{name: "no page", device: `{"device_code":"x","user_code":"x"}`, want: "no code to enter"},
		{
			name: "page under its old name", device: strings.Replace(good, "verification_uri", "verification_url", 1),
			took: 2 * time.Second, told: "/enter",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, c := newWorld(t), newClient(t)
			c.HTTP, c.Patience = &http.Client{Transport: direct{w}}, 90*time.Second
			w.on["/device"] = raw(strings.ReplaceAll(tt.device, "WORLD", w.URL))
			answers := strings.Split(strings.Join(tt.tokens, "\n"), "\n")
			w.on["/token"] = func(rw http.ResponseWriter, req *http.Request) {
				if req.FormValue("device_code") != "device-secret" {
					t.Error(req.Form)
				}
				answer := ""
				if len(answers) > 0 {
					answer, answers = answers[0], answers[1:]
				}
				var status int
				switch _, err := fmt.Sscan(answer, &status); {
				case answer == "":
					_ = json.NewEncoder(rw).Encode(w.token)
				case err == nil:
					rw.WriteHeader(status)
				default:
					fmt.Fprint(rw, answer)
				}
			}
			synctest.Test(t, func(t *testing.T) {
				told, opened := "", ""
				p := oauth.Person{Tell: func(text string) { told += text }, Open: func(at string) error { opened = at; return nil }}
				start := time.Now()
				err := c.Login(t.Context(), w.account(), oauth.Device, p, "")
				if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
					t.Errorf("got %v, want %q", err, tt.want)
				}
				if took := time.Since(start).Round(100 * time.Millisecond); took != tt.took {
					t.Errorf("took %s, want %s", took, tt.took)
				}
				if !strings.Contains(told, tt.told) || strings.Contains(opened, "script") {
					t.Errorf("told %q, opened %q", told, opened)
				}
				noSecrets(t, told+fmt.Sprint(err), "device-secret")
			})
		})
	}
}

// TestNoDevices is a server that has no way for devices.
func TestNoDevices(t *testing.T) {
	w, c := newWorld(t), newClient(t)
	delete(w.server, "device_authorization_endpoint")
	err := c.Login(t.Context(), w.account(), oauth.Device, oauth.Person{Tell: func(string) {}}, "")
	if err == nil || !strings.Contains(err.Error(), "with a code") {
		t.Error(err)
	}
}
