package transcript

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"time"
)

// Measures sums up spans as OTLP metrics: durations of requests and of tool calls, and tokens of requests. The metrics
// are cumulative, which every receiver accepts. They contain names of models and tools, but no content.
type Measures struct {
	OTLP
	Since time.Time // when the sums were zero

	all     map[string]*measure // by name and attributes
	changed bool
}

// measure is a histogram.
type measure struct {
	name, unit, what string
	attributes       otlpValues
	bounds           []float64
	counts           []int // one more than bounds
	n                int
	sum              float64
}

const (
	tokenUsage        = "gen_ai.client.token.usage"
	operationDuration = "gen_ai.client.operation.duration"
	toolDuration      = "inspan.tool.duration" // the conventions have no name for it
)

// Add counts a span if it has ended.
func (m *Measures) Add(span Span) {
	c, err := m.conventions()
	if err != nil || span.End.IsZero() {
		return
	}
	took := max(0, span.End.Sub(span.Start).Seconds())
	switch span.Kind {
	case SpanModel:
		provider, model := c.providerAndModel(span)
		a := otlpValues{}.text("gen_ai.operation.name", "chat").text(c.provider, provider).text("gen_ai.request.model", model)
		m.record(measure{name: operationDuration, unit: "s", what: "GenAI operation duration.", attributes: failed(span, a)}, took)
		if u := span.Usage; u != nil {
			for _, of := range []struct {
				kind string
				n    int
			}{{"input", u.Prompt()}, {"output", u.Output}} {
				typed := slices.Clone(a).text("gen_ai.token.type", of.kind)
				m.record(measure{name: tokenUsage, unit: "{token}", what: "Number of input and output tokens used.", attributes: typed}, float64(of.n))
			}
		}
	case SpanCall:
		a := failed(span, otlpValues{}.text("gen_ai.operation.name", "execute_tool").text("gen_ai.tool.name", span.Name))
		m.record(measure{name: toolDuration, unit: "s", what: "Duration of a tool call.", attributes: a}, took)
	}
}

// failed adds error.type if the span failed.
func failed(span Span, a otlpValues) otlpValues {
	if !span.Failed() {
		return a
	}
	return slices.Clone(a).text("error.type", cmp.Or(span.Class, span.Outcome))
}

// record adds a value to a histogram.
func (m *Measures) record(of measure, value float64) {
	key := fmt.Sprint(of.name, of.attributes)
	now := m.all[key]
	if now == nil {
		of.bounds = bounds(of.unit)
		of.counts = make([]int, len(of.bounds)+1)
		now = &of
		if m.all == nil {
			m.all = map[string]*measure{}
		}
		m.all[key] = now
	}
	now.counts[sort.SearchFloat64s(now.bounds, value)]++
	now.n++
	now.sum += value
	m.changed = true
}

// bounds returns the bucket bounds that the conventions recommend.
func bounds(unit string) []float64 {
	first, factor := 0.01, 2.0
	if unit != "s" {
		first, factor = 1, 4
	}
	out := []float64{first}
	for len(out) < 14 {
		out = append(out, out[len(out)-1]*factor)
	}
	return out
}

// Changed reports whether there is anything new to send.
func (m *Measures) Changed() bool { return m.changed }

// Sent records that everything so far was sent.
func (m *Measures) Sent() { m.changed = false }

type otlpMetrics struct {
	Resources []otlpResourceMetrics `json:"resourceMetrics"`
}

type otlpResourceMetrics struct {
	Resource otlpAttributes     `json:"resource"`
	Scopes   []otlpScopeMetrics `json:"scopeMetrics"`
}

type otlpScopeMetrics struct {
	Scope   otlpScopeName `json:"scope"`
	Metrics []otlpMetric  `json:"metrics"`
	Schema  string        `json:"schemaUrl"`
}

type otlpMetric struct {
	Name      string `json:"name"`
	What      string `json:"description"`
	Unit      string `json:"unit"`
	Histogram struct {
		Temporality int         `json:"aggregationTemporality"`
		Points      []otlpPoint `json:"dataPoints"`
	} `json:"histogram"`
}

type otlpPoint struct {
	Attributes otlpValues `json:"attributes"`
	Start      string     `json:"startTimeUnixNano"`
	Time       string     `json:"timeUnixNano"`
	Count      string     `json:"count"`
	Sum        float64    `json:"sum"`
	Counts     []string   `json:"bucketCounts"`
	Bounds     []float64  `json:"explicitBounds"`
}

const otlpCumulative = 2 // the number in opentelemetry-proto

// Request returns a request for the metrics endpoint of a receiver, as JSON.
func (m *Measures) Request(now time.Time) ([]byte, error) {
	c, err := m.conventions()
	if err != nil {
		return nil, err
	}
	var list []otlpMetric
	for _, name := range []string{operationDuration, tokenUsage, toolDuration} {
		if metric := m.metric(name, now); metric.Name != "" {
			list = append(list, metric)
		}
	}
	return json.Marshal(otlpMetrics{[]otlpResourceMetrics{{
		Resource: m.owner(), Scopes: []otlpScopeMetrics{{Scope: otlpScopeName{"inspan", m.Release}, Metrics: list, Schema: schemas + c.version}},
	}}})
}

// metric returns a metric with all its points; its name is empty if there are none.
func (m *Measures) metric(name string, now time.Time) (out otlpMetric) {
	for _, of := range m.all {
		if of.name != name {
			continue
		}
		out.Name, out.What, out.Unit, out.Histogram.Temporality = name, of.what, of.unit, otlpCumulative
		point := otlpPoint{
			Attributes: of.attributes, Start: otlpTime(m.Since), Time: otlpTime(now), Count: strconv.Itoa(of.n), Sum: of.sum, Bounds: of.bounds,
		}
		for _, n := range of.counts {
			point.Counts = append(point.Counts, strconv.Itoa(n))
		}
		out.Histogram.Points = append(out.Histogram.Points, point)
	}
	return out
}
