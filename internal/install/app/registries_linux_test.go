package app_test

import (
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/app"
)

// TestRegistriesOfASession checks that commands of an unattended session in mode auto fetch from a registry that a rule
// opens, only fetch, and say how often; and that without the rule the denial of a package manager names it.
func TestRegistriesOfASession(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("NO CURL HERE")
	}
	got := ""
	registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got += r.Method + r.URL.Path + " "
		_, _ = w.Write([]byte("package " + strings.TrimPrefix(r.URL.Path, "/")))
	}))
	defer registry.Close()
	host := strings.TrimPrefix(registry.URL, "http://")
	fetches := `bash {"command":"curl -sf --noproxy '' ` + registry.URL + `/left-pad && curl -s --noproxy '' -d x ` + registry.URL + `/upload"}`
	installs := `bash {"command":"npm view left-pad"}`
	for _, tc := range []struct {
		allow  string
		called string
		fine   bool
		says   string
		from   int
	}{
		{"registries(" + host + ")", fetches, true, "package left-pad", 1},
		{"registries", fetches, true, "[exit code", 0}, // it runs, and finds the host closed
		{"", installs, false, "--allow 'bash(npm view *)' (allow in the settings) would let it run, or --allow registries, which lets", 0},
	} {
		got = ""
		o := app.Options{Model: "script", Mode: "auto", Unattended: true}
		if tc.allow != "" {
			o.Allow = []string{tc.allow}
		}
		if err := o.CheckNames(nil); err != nil {
			t.Fatal(err)
		}
		s, err := boxing(t, "").Host(o, func(string) {}).New(t.Context(), t.TempDir())
		ended := results(t, s, err, tc.called)[0]
		if fine := ended.Outcome == event.OutcomeOK; fine != tc.fine || !strings.Contains(ended.Parts.Text(), tc.says) {
			t.Errorf("with %q %s: %s, %q", tc.allow, tc.called, ended.Outcome, ended.Parts.Text())
		}
		if ended.Fetched[strings.Split(host, ":")[0]] != tc.from || (got == "GET/left-pad ") != (tc.from > 0) {
			t.Errorf("with %q the registry got %q, and the call tells of %v", tc.allow, got, ended.Fetched)
		}
	}
}
