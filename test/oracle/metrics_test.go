package oracle

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	names "github.com/prometheus/common/model"
)

// TestMetricsAreRead checks that Prometheus' own parser reads the measures of a server that has worked, and that its
// linter has nothing to say.
func TestMetricsAreRead(t *testing.T) {
	s := serve(t)
	send := func(method, path, body string) []byte {
		req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+s.token)
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode/100 != 2 {
			t.Fatal(resp.Status, string(raw), err)
		}
		return raw
	}
	send("POST", "/invocations", `{"prompt":"bash: true\nread: none"}`)
	raw := send("GET", "/metrics", "")
	parser := expfmt.NewTextParser(names.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	calls := families["inspan_tool_calls_seconds"]
	if calls == nil || len(calls.Metric) != 2 || calls.Metric[0].GetHistogram().GetSampleCount() != 1 || families["inspan_tasks"] == nil {
		t.Errorf("%v", families)
	}
	problems, err := promlint.New(bytes.NewReader(raw)).Lint()
	if err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
}
