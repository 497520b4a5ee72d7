package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/service/server"
)

// TestMetrics checks that the metrics count the work of tasks, for identities without a tenant alone. test/oracle reads
// them with Prometheus' own parser.
func TestMetrics(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	done := h.submit(server.Spec{Prompt: "bash: true\nread: none", Folder: h.root}).ID
	h.until(done, server.StageCompleted)
	waits := h.submit(server.Spec{Prompt: `call: bash {"command":"echo hi","outside":true}`}).ID
	h.until(waits, server.StageWaiting)
	scraper := h.identity("scraper", "", server.Viewer)
	status, text := scraper.do(scraper.request(t.Context(), "GET", "/metrics", nil))
	if status != http.StatusOK {
		t.Fatal(status, text)
	}
	for _, want := range []string{
		"# TYPE inspan_tasks gauge", `inspan_tasks{stage="completed"} 1`, `inspan_tasks{stage="waiting"} 1`, `inspan_tasks{stage="failed"} 0`,
		`inspan_tool_calls_total{tool="bash",outcome="ok"} 1`, `inspan_tool_calls_total{tool="read_file",outcome="failed"} 1`,
		`inspan_tool_calls_seconds_bucket{tool="bash",le="+Inf"} 1`, `inspan_tool_calls_seconds_count{tool="read_file"} 1`,
		`inspan_model_requests_total{model="script/commands",outcome="calls"} 3`,
		`inspan_model_requests_total{model="script/commands",outcome="end"} 1`,
		`inspan_model_tokens_total{model="script/commands",kind="output"} `,
	} {
		if !strings.Contains(text, "\n"+want) && !strings.HasPrefix(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
	red := h.identity("ann", "red", server.Admin)
	if status, text := red.do(red.request(t.Context(), "GET", "/metrics", nil)); status != http.StatusForbidden {
		t.Errorf("a tenant's: %d %.200s", status, text)
	}
	if t.Failed() {
		t.Log(text)
	}
}
