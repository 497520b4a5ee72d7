package oracle

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/semconv/v1.41.0/genaiconv"

	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/view/transcript"
)

// receiver starts the collector's receiver of OTLP, and returns its address and the received data.
func receiver(t *testing.T) (url string, got *consumertest.TracesSink, measured *consumertest.MetricsSink) {
	t.Helper()
	at := testkit.Address(t)
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig()
	settings := confmap.NewFromStringMap(map[string]any{"protocols": map[string]any{"http": map[string]any{"endpoint": at}}})
	if err := settings.Unmarshal(config); err != nil {
		t.Fatal(err)
	}
	got, measured = new(consumertest.TracesSink), new(consumertest.MetricsSink)
	set := receivertest.NewNopSettings(factory.Type())
	r, err := factory.CreateTraces(t.Context(), set, config, got)
	if err != nil {
		t.Fatal(err)
	}
	m, err := factory.CreateMetrics(t.Context(), set, config, measured) // the same server
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Start(t.Context(), componenttest.NewNopHost()), m.Start(t.Context(), componenttest.NewNopHost())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(r.Shutdown(t.Context()), m.Shutdown(t.Context())) })
	return "http://" + at, got, measured
}

// spans are all that a receiver has, by their ids, which are unique.
func spans(t *testing.T, got *consumertest.TracesSink) map[string]ptrace.Span {
	t.Helper()
	out := map[string]ptrace.Span{}
	for _, batch := range got.AllTraces() {
		for _, resource := range batch.ResourceSpans().All() {
			for _, scope := range resource.ScopeSpans().All() {
				for _, span := range scope.Spans().All() {
					if _, twice := out[span.SpanID().String()]; twice {
						t.Errorf("two spans have the id %s", span.SpanID())
					}
					out[span.SpanID().String()] = span
				}
			}
		}
	}
	return out
}

// known are the keys that a version of the conventions has, from its Go package.
func known(t *testing.T, version string) map[string]bool {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "go.opentelemetry.io/otel").Output()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "semconv", "v"+version, "attribute_group.go"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, m := range regexp.MustCompile(`attribute\.Key\("([^"]+)"\)`).FindAllStringSubmatch(string(raw), -1) {
		out[m[1]] = true
	}
	return out
}

// runner runs the program in a folder.
func runner(t *testing.T, self, home string, env ...string) func(args ...string) string {
	return func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), self, args...)
		cmd.Dir = home
		cmd.Env = append(os.Environ(), append(env, "HOME="+home, "INSPAN_CONFIG_DIR="+filepath.Join(home, ".config"),
			"INSPAN_STATE_DIR="+filepath.Join(home, ".state"))...)
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v %s", args[0], err, errs.String())
		}
		return string(out)
	}
}

// TestLiveIsReceived has the collector's receiver take a session with an agent while it runs, content
// included: it gets each span that a later export has, under the same id, and the metrics of the
// conventions in their units.
func TestLiveIsReceived(t *testing.T) {
	for _, protocol := range []string{"http/json", "http/protobuf"} {
		t.Run(protocol, func(t *testing.T) { liveIsReceived(t, protocol) })
	}
}

func liveIsReceived(t *testing.T, protocol string) {
	t.Helper()
	url, got, measured := receiver(t)
	self, home := testkit.Command(t), t.TempDir()
	live := runner(t, self, home, "OTEL_EXPORTER_OTLP_ENDPOINT="+url, "OTEL_SERVICE_NAME=mine", "OTEL_EXPORTER_OTLP_PROTOCOL="+protocol,
		"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true")
	live("run", "--model", "script", "--mode", "auto", "bash: sleep 1.5\ncall: spawn_agent {\"task\":\"bash: true\"}")
	now := spans(t, got)
	again, later, _ := receiver(t)
	runner(t, self, home)("trace", "export", "last", "--content", "--to", again)
	want, marks, keys := spans(t, later), 0, known(t, "1.41.0")
	for id, span := range now {
		if _, pending := span.Attributes().Get("inspan.pending"); pending {
			marks++
			if _, is := now[span.ParentSpanID().String()]; !is {
				t.Errorf("%s is a mark of nothing", span.Name())
			}
			continue
		}
		other, is := want[id]
		if !is || other.ParentSpanID() != span.ParentSpanID() || other.TraceID() != span.TraceID() || other.Attributes().Len() != span.Attributes().Len() {
			t.Errorf("live %s %v, later %v", span.Name(), span.Attributes().AsRaw(), is)
		}
		for key := range span.Attributes().All() {
			if !keys[key] && !strings.HasPrefix(key, "inspan.") {
				t.Errorf("%s has the attribute %s", span.Name(), key)
			}
		}
	}
	if len(now)-marks != len(want) || marks == 0 {
		t.Errorf("%d spans and %d marks live, %d later", len(now)-marks, marks, len(want))
	}
	units := map[string]string{
		genaiconv.ClientTokenUsage{}.Name():        genaiconv.ClientTokenUsage{}.Unit(),
		genaiconv.ClientOperationDuration{}.Name(): genaiconv.ClientOperationDuration{}.Unit(),
		"inspan.tool.duration":                     "s",
	}
	for _, batch := range measured.AllMetrics() {
		for _, metric := range batch.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
			measures(t, metric, keys)
			if unit, is := units[metric.Name()]; is && unit == metric.Unit() {
				delete(units, metric.Name())
			}
		}
	}
	if len(units) > 0 {
		t.Errorf("missing, or in another unit: %v", units)
	}
}

// measures checks the points of a metric.
func measures(t *testing.T, metric pmetric.Metric, keys map[string]bool) {
	t.Helper()
	for _, point := range metric.Histogram().DataPoints().All() {
		n := uint64(0)
		for _, count := range point.BucketCounts().All() {
			n += count
		}
		if n != point.Count() || n == 0 || point.BucketCounts().Len() != point.ExplicitBounds().Len()+1 {
			t.Errorf("%s: %d of %d in buckets", metric.Name(), n, point.Count())
		}
		for key := range point.Attributes().All() {
			if !keys[key] {
				t.Errorf("%s has the attribute %s", metric.Name(), key)
			}
		}
		required := []string{"gen_ai.operation.name", "gen_ai.provider.name"}
		if metric.Name() == "inspan.tool.duration" {
			required = []string{"gen_ai.tool.name"}
		} else if strings.HasSuffix(metric.Name(), "usage") {
			required = append(required, "gen_ai.token.type")
		}
		for _, key := range required {
			if _, is := point.Attributes().Get(key); !is {
				t.Errorf("%s lacks %s", metric.Name(), key)
			}
		}
	}
}

// TestTraceIsReceived exports a session with 300 calls and five subagents to the collector's receiver, in every version
// of the conventions: each span comes once, with its name and the required attributes.
func TestTraceIsReceived(t *testing.T) {
	home := t.TempDir()
	run := runner(t, testkit.Command(t), home)
	var steps strings.Builder
	for i := range 300 {
		if err := os.WriteFile(filepath.Join(home, fmt.Sprint("f", i)), []byte("text\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&steps, "%sread: f%d\n", []string{"", "+ "}[i%2], i)
	}
	for i := range 5 {
		fmt.Fprintf(&steps, "call: spawn_agent {\"task\":\"read: f%d\"}\n", i)
	}
	run("run", "--model", "script", "--mode", "auto", "--max-turns", "400", steps.String())

	var told transcript.Trace
	if err := json.Unmarshal([]byte(run("trace", "show", "--json", "last")), &told); err != nil {
		t.Fatal(err)
	}
	want := len(told.Spans)
	for _, agent := range told.Agents {
		want += len(agent.Spans)
	}
	if len(told.Agents) != 5 || want < 300 {
		t.Fatalf("%d agents, %d spans", len(told.Agents), want)
	}
	for _, version := range transcript.Semconvs() {
		url, got, _ := receiver(t)
		run("trace", "export", "last", "--to", url, "--otel-semconv", version)
		all := spans(t, got)
		if len(all) != want {
			t.Errorf("%s: %d spans were received of %d", version, len(all), want)
		}
		conform(t, version, all)
	}
}

// conform checks spans against a version of the conventions.
func conform(t *testing.T, version string, all map[string]ptrace.Span) {
	t.Helper()
	keys, roots, operations := known(t, version), 0, map[string]int{}
	provider := "gen_ai.provider.name"
	if !keys[provider] {
		provider = "gen_ai.system"
	}
	for _, span := range all {
		for key := range span.Attributes().All() {
			if !keys[key] && !strings.HasPrefix(key, "inspan.") {
				t.Errorf("%s: %s has the attribute %s", version, span.Name(), key)
			}
		}
		_, parent := all[span.ParentSpanID().String()]
		switch {
		case span.ParentSpanID().IsEmpty():
			roots++
		case !parent:
			t.Errorf("%s: the parent of %s is not there", version, span.Name())
		}
		if span.EndTimestamp() < span.StartTimestamp() {
			t.Errorf("%s: %s ends before it begins", version, span.Name())
		}
		operation, is := span.Attributes().Get("gen_ai.operation.name")
		if !is {
			continue
		}
		operations[operation.Str()]++
		required := map[string][]string{
			"chat": {provider, "gen_ai.request.model"}, "execute_tool": {"gen_ai.tool.name"}, "invoke_agent": {provider, "gen_ai.agent.name"},
		}[operation.Str()]
		for _, key := range required {
			if _, is := span.Attributes().Get(key); !is {
				t.Errorf("%s: %s lacks %s", version, span.Name(), key)
			}
		}
		if !strings.HasPrefix(span.Name(), operation.Str()+" ") {
			t.Errorf("%s: %s is no name for %s", version, span.Name(), operation.Str())
		}
	}
	if roots != 1 || operations["execute_tool"] < 300 || operations["invoke_agent"] < 6 || operations["chat"] < 150 {
		t.Errorf("%s: %d roots, %v", version, roots, operations)
	}
}
