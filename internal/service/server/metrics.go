package server

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
)

// Metrics for Prometheus, in its text format (version 0.0.4). They count events of the runs in this process
// since the server began, except the numbers of tasks, which come from the book. They cover all tenants.

// meters count the events of runs here. Its lock is never held for long. The zero value is ready.
type meters struct {
	mu       sync.Mutex
	requests map[string]*meter            // by model
	calls    map[string]*meter            // by tool
	tokens   map[[2]string]int            // by model and kind
	dollars  map[string]float64           // by model
	tools    map[string]map[string]string // of unfinished calls, by session and call
}

// meter counts operations by outcome, and their durations.
type meter struct {
	outcomes map[string]int
	within   []int // the number between the bound before and the one at the same index; the last is above all bounds
	seconds  float64
}

// meterBounds returns the bounds of the histograms, in seconds.
func meterBounds() []float64 { return []float64{0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300} }

func (m *meter) add(outcome string, millis int64) {
	if m.outcomes == nil {
		m.outcomes, m.within = map[string]int{}, make([]int, len(meterBounds())+1)
	}
	m.outcomes[outcome]++
	seconds := float64(millis) / 1000
	m.seconds += seconds
	i, _ := slices.BinarySearch(meterBounds(), seconds)
	m.within[i]++
}

// count counts an event of a run.
func (m *meters) count(e event.Event) {
	if e.Transient() {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.requests == nil {
		m.requests, m.calls, m.tokens = map[string]*meter{}, map[string]*meter{}, map[[2]string]int{}
		m.dollars, m.tools = map[string]float64{}, map[string]map[string]string{}
	}
	switch b := e.Body.(type) {
	case event.Replied:
		meterFor(m.requests, b.Route).add(string(b.Stop), b.Millis)
		m.spent(b.Route, b.Usage, b.Cost)
		for _, c := range b.Parts.Calls() {
			m.called(e.Session, c.ID, c.Name)
		}
	case event.Failed:
		meterFor(m.requests, cmp.Or(b.Route, "none")).add(string(b.Cause), b.Millis)
		m.spent(b.Route, b.Usage, b.Cost)
	case event.Judged:
		m.called(e.Session, b.Call, b.Tool)
	case event.Ended:
		meterFor(m.calls, cmp.Or(m.tools[e.Session][b.Call], "unknown")).add(string(b.Outcome), b.Millis)
		delete(m.tools[e.Session], b.Call)
	case event.Stopped:
		delete(m.tools, e.Session)
	}
}

func (m *meters) called(session, call, tool string) {
	if tool == "" {
		return
	}
	if m.tools[session] == nil {
		m.tools[session] = map[string]string{}
	}
	m.tools[session][call] = tool
}

func (m *meters) spent(model string, u llm.Usage, dollars float64) {
	for kind, n := range map[string]int{"input": u.Input, "cache_read": u.CacheRead, "cache_write": u.CacheWrite, "output": u.Output} {
		if n > 0 {
			m.tokens[[2]string{model, kind}] += n
		}
	}
	if dollars > 0 {
		m.dollars[model] += dollars
	}
}

// maxMeters limits the number of distinct names: models make up tool names.
const maxMeters = 200

func meterFor(all map[string]*meter, name string) *meter {
	if all[name] == nil && len(all) >= maxMeters {
		name = "other"
	}
	if all[name] == nil {
		all[name] = &meter{}
	}
	return all[name]
}

// plainText is a response that is not JSON.
type plainText string

// metrics returns all metrics.
func (c *call) metrics(nothing) (plainText, error) {
	if c.who.tenant != "" || c.who.confined() {
		return "", Forbidden("metrics cover all tenants; only an identity without a tenant can read them")
	}
	var out exposition
	out.begin("inspan_tasks", "gauge", "Tasks by stage.")
	byStage := map[event.Stage]int{}
	c.book.list("", 1, func(t *Task) bool { byStage[t.Stage]++; return false })
	for _, stage := range stages() {
		out.line("inspan_tasks", float64(byStage[stage]), "stage", string(stage))
	}
	m := &c.meters
	m.mu.Lock()
	defer m.mu.Unlock()
	out.meters("inspan_model_requests", "Requests to models", "model", m.requests)
	out.begin("inspan_model_tokens_total", "counter", "Tokens of requests to models.")
	kinds := slices.Collect(maps.Keys(m.tokens))
	slices.SortFunc(kinds, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	for _, k := range kinds {
		out.line("inspan_model_tokens_total", float64(m.tokens[k]), "model", k[0], "kind", k[1])
	}
	out.begin("inspan_model_cost_dollars_total", "counter", "US dollars that requests to models have cost.")
	for _, model := range slices.Sorted(maps.Keys(m.dollars)) {
		out.line("inspan_model_cost_dollars_total", m.dollars[model], "model", model)
	}
	out.meters("inspan_tool_calls", "Tool calls", "tool", m.calls)
	return plainText(out.String()), nil
}

// exposition is a text in Prometheus' format.
type exposition struct{ strings.Builder }

func (x *exposition) begin(name, kind, help string) {
	fmt.Fprintf(x, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// line writes a value with its labels, which are names and values in turn.
func (x *exposition) line(name string, value float64, labels ...string) {
	x.WriteString(name)
	for i := 0; i+1 < len(labels); i += 2 {
		x.WriteString(map[bool]string{true: "{", false: ","}[i == 0])
		fmt.Fprintf(x, "%s=%q", labels[i], exposed(labels[i+1]))
	}
	if len(labels) > 0 {
		x.WriteString("}")
	}
	x.WriteString(" " + strconv.FormatFloat(value, 'g', -1, 64) + "\n")
}

// exposed replaces what is not printable in a label's value: the format has fewer escapes than Go.
func exposed(value string) string {
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return '?'
		}
		return r
	}, value)
}

// meters writes the counters and histograms of meters.
func (x *exposition) meters(name, what, label string, all map[string]*meter) {
	keys := slices.Sorted(maps.Keys(all))
	x.begin(name+"_total", "counter", what+" by outcome.")
	for _, key := range keys {
		for _, outcome := range slices.Sorted(maps.Keys(all[key].outcomes)) {
			x.line(name+"_total", float64(all[key].outcomes[outcome]), label, key, "outcome", outcome)
		}
	}
	x.begin(name+"_seconds", "histogram", what+": how long they took.")
	for _, key := range keys {
		n := 0
		for i, bound := range meterBounds() {
			n += all[key].within[i]
			x.line(name+"_seconds_bucket", float64(n), label, key, "le", strconv.FormatFloat(bound, 'g', -1, 64))
		}
		n += all[key].within[len(meterBounds())]
		x.line(name+"_seconds_bucket", float64(n), label, key, "le", "+Inf")
		x.line(name+"_seconds_sum", all[key].seconds, label, key)
		x.line(name+"_seconds_count", float64(n), label, key)
	}
}
