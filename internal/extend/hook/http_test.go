package hook_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/extend/hook"
	"github.com/inspan/inspan/tool"
)

// direct reaches servers without a guard, and follows no redirect.
type direct struct{ http.Client }

func newDirect() *direct {
	return &direct{http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

func TestHTTP(t *testing.T) {
	var asked *http.Request
	var body, answer string
	status := 200
	gone := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-gone
			return
		}
		data, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		asked, body = r, string(data)
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	defer close(gone)
	var told []string
	ask := func(c hook.Config) string {
		told = nil
		s := &hook.Set{
			Hooks: []hook.Config{c}, Env: tool.Env{HTTP: newDirect()},
			Getenv: func(name string) string { return "value of " + name },
			Warn:   func(_, text string) { told = append(told, text) },
		}
		out, err := s.At(t.Context(), tool.Point{Moment: c.On, Session: "s1", Call: &tool.Call{Name: "bash", Args: []byte(`{"command":"ls"}`)}})
		if err != nil {
			t.Error(err)
		}
		return strings.TrimSpace(string(out.Action) + " " + out.Reason + " " + out.Text)
	}
	for _, tc := range []struct {
		status int
		answer string
		claude bool
		want   string
		told   string
	}{
		{200, "", false, "", ""},
		{204, "", false, "", ""},
		{201, `{"action":"ask","reason":"hm"}`, false, "ask hm", ""},
		{200, `{"acton":"ask"}`, false, "", "did you mean"},
		{200, "some text", false, "", ""},
		{403, "not\x1b[1m today\n", false, "deny not today", ""},
		{403, "", false, "deny the hook gave no reason", ""},
		{403, "not today", true, "", "status 403: not today"},
		{200, `{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"never"}}`, true, "deny never", ""},
		{500, "broken", false, "", "status 500: broken"},
		{302, "", false, "", "status 302"},
		{200, `{"reason":"` + strings.Repeat("a", 70_000) + `"}`, false, "", "more than 64 KiB"},
	} {
		status, answer = tc.status, tc.answer
		got := ask(hook.Config{
			On: tool.BeforeCall, URL: server.URL + "/x?y=z", Claude: tc.claude,
			Headers: map[string]string{"X-Key": "a $KEY ${KEY} $OTHER b"}, HeaderEnv: []string{"KEY"},
		})
		if got != tc.want {
			t.Errorf("%+v: got %q", tc, got)
		}
		if all := strings.Join(told, "\n"); tc.told == "" && all != "" || !strings.Contains(all, tc.told) {
			t.Errorf("%+v: told %q", tc, all)
		}
		if asked.Method != http.MethodPost || asked.URL.String() != "/x?y=z" || asked.Header.Get("Content-Type") != "application/json" ||
			asked.Header.Get("X-Key") != "a value of KEY value of KEY  b" {
			t.Errorf("asked with %s %s %v", asked.Method, asked.URL, asked.Header)
		}
		if tc.claude != strings.Contains(body, `"hook_event_name":"PreToolUse"`) ||
			tc.claude == strings.Contains(body, `"moment":"before_call"`) {
			t.Errorf("asked %s", body)
		}
	}
	if got := ask(hook.Config{
		On: tool.PromptSaid, URL: server.URL + "/slow", Timeout: 20 * time.Millisecond,
		OnFailure: hook.Deny,
	}); !strings.Contains(got, "deny it failed, and nothing passes without it: it did not end within 20ms") {
		t.Errorf("slow: %q, %q", got, told)
	}
	server.CloseClientConnections()
	if got := ask(hook.Config{On: tool.BeforeCall, URL: "http://127.0.0.1:1/"}); got != "" || len(told) != 1 {
		t.Errorf("nobody there: %q, %q", got, told)
	}
}
