package transcript

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
)

// ATIF writes the session as one trajectory in the Agent Trajectory Interchange Format, version 1.7 (Harbor RFC 0001).
// Blobs returns the path of an image from its digest. Rewound steps stay, because they cost money, and are marked in
// extra. It reads the events twice.
func ATIF(w io.Writer, events iter.Seq2[event.Event, error], blobs func(digest string) string) error {
	gone, err := Rewound(events)
	if err != nil {
		return err
	}
	t := trajectory{Schema: "ATIF-v1.7", blobs: blobs, steps: map[string]int{}, gone: gone}
	for e, err := range events {
		if err != nil {
			return err
		}
		t.add(e)
	}
	if len(t.Steps) == 0 {
		return fmt.Errorf("nothing was said in this session yet")
	}
	t.Final.Steps = len(t.Steps)
	if !t.unknown {
		t.Final.Cost = &t.cost
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(t)
}

type trajectory struct {
	Schema  string      `json:"schema_version"`
	Session string      `json:"session_id"`
	ID      string      `json:"trajectory_id"`
	Agent   atifAgent   `json:"agent"`
	Steps   []*atifStep `json:"steps"`
	Final   atifTotals  `json:"final_metrics"`
	Extra   *atifEnd    `json:"extra,omitempty"`
	blobs   func(string) string
	gone    func(seq uint64) bool
	steps   map[string]int // index of the step that made a call, by call id
	cost    float64
	unknown bool // the cost lacks replies of unknown price
}

type atifAgent struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Model   string `json:"model_name,omitempty"`
	Tools   []any  `json:"tool_definitions,omitempty"`
}

type atifEnd struct {
	Reason event.Reason `json:"stop_reason"`
	Detail string       `json:"stop_detail,omitempty"`
}

type atifStep struct {
	ID          int              `json:"step_id"`
	Time        string           `json:"timestamp"`
	Source      string           `json:"source"`
	Model       string           `json:"model_name,omitempty"`
	Message     any              `json:"message"` // string, or content parts
	Reasoning   string           `json:"reasoning_content,omitempty"`
	Calls       []atifCall       `json:"tool_calls,omitempty"`
	Observation *atifObservation `json:"observation,omitempty"`
	Metrics     *atifMetrics     `json:"metrics,omitempty"`
	LLMCalls    *int             `json:"llm_call_count,omitempty"`
	Extra       map[string]any   `json:"extra,omitempty"`
}

type atifCall struct {
	ID   string          `json:"tool_call_id"`
	Name string          `json:"function_name"`
	Args json.RawMessage `json:"arguments"`
}

type atifObservation struct {
	Results []atifResult `json:"results"`
}

type atifResult struct {
	Call    string         `json:"source_call_id"`
	Content any            `json:"content"`
	Extra   map[string]any `json:"extra,omitempty"`
}

type atifMetrics struct {
	Prompt     int            `json:"prompt_tokens"`
	Completion int            `json:"completion_tokens"`
	Cached     int            `json:"cached_tokens"`
	Cost       *float64       `json:"cost_usd,omitempty"`
	Extra      map[string]any `json:"extra,omitempty"`
}

type atifTotals struct {
	Prompt     int      `json:"total_prompt_tokens"`
	Completion int      `json:"total_completion_tokens"`
	Cached     int      `json:"total_cached_tokens"`
	Cost       *float64 `json:"total_cost_usd,omitempty"` // nil if the price of a reply is unknown
	Steps      int      `json:"total_steps"`
}

func (t *trajectory) add(e event.Event) {
	switch b := e.Body.(type) {
	case event.Opened:
		name, version, _ := strings.Cut(b.App, " ")
		t.Agent.Name, t.Agent.Version = name, version
		t.Session, t.ID = e.Session, e.Session
	case event.Forked:
		t.Session, t.ID = e.Session, e.Session
	case event.Switched:
		t.switched(b)
	case event.Added:
		t.step(e, "system", llm.Say(b.Text))
	case event.Said:
		if len(b.Parts) > 0 {
			t.step(e, "user", b.Parts)
		}
	case event.Steered:
		t.step(e, "user", b.Parts)
	case event.Replied:
		t.replied(e, b)
	case event.Ended:
		t.ended(b)
	case event.StepEnded:
		told, _ := words.Told(b)
		t.step(e, "system", llm.Say(told))
	case event.Stopped:
		t.Extra = &atifEnd{b.Reason, b.Detail}
	}
}

func (t *trajectory) switched(b event.Switched) {
	if b.Route != "" {
		t.Agent.Model = b.Route
	}
	if b.Tools == nil {
		return
	}
	t.Agent.Tools = nil
	for _, spec := range b.Tools {
		t.Agent.Tools = append(t.Agent.Tools, map[string]any{"type": "function", "function": map[string]any{
			"name": spec.Name, "description": spec.Description, "parameters": spec.Schema,
		}})
	}
}

func (t *trajectory) step(e event.Event, source string, parts llm.Parts) *atifStep {
	s := &atifStep{ID: len(t.Steps) + 1, Time: e.Time.Format(time.RFC3339Nano), Source: source, Message: t.content(parts)}
	if e.Seq > 0 && t.gone(e.Seq) {
		s.Extra = map[string]any{"rewound": true}
	}
	t.Steps = append(t.Steps, s)
	return s
}

func (t *trajectory) replied(e event.Event, b event.Replied) {
	s := t.step(e, "agent", b.Parts)
	one := 1
	s.Model, s.LLMCalls = b.Route, &one
	for _, part := range b.Parts {
		switch p := part.(type) {
		case llm.Reasoning:
			s.Reasoning += p.Text
		case llm.Call:
			t.steps[p.ID] = len(t.Steps) - 1
			s.Calls = append(s.Calls, atifCall{p.ID, p.Name, p.Args})
		}
	}
	u := b.Usage
	s.Metrics = &atifMetrics{Prompt: u.Prompt(), Completion: u.Output, Cached: u.CacheRead, Extra: map[string]any{
		"stop": b.Stop, "cache_write_tokens": u.CacheWrite, "reasoning_tokens": u.Reasoning,
	}}
	if !b.Unpriced {
		s.Metrics.Cost = &b.Cost
	}
	t.Final.Prompt += u.Prompt()
	t.Final.Completion += u.Output
	t.Final.Cached += u.CacheRead
	t.cost += b.Cost
	t.unknown = t.unknown || b.Unpriced
}

func (t *trajectory) ended(b event.Ended) {
	at, ok := t.steps[b.Call]
	if !ok {
		return
	}
	s := t.Steps[at]
	if s.Observation == nil {
		s.Observation = &atifObservation{}
	}
	s.Observation.Results = append(s.Observation.Results, atifResult{
		Call: b.Call, Content: t.content(b.Parts), Extra: map[string]any{"outcome": b.Outcome, "milliseconds": b.Millis},
	})
}

// content returns a string, or a list of parts if there are stored images.
func (t *trajectory) content(parts llm.Parts) any {
	var list []map[string]any
	images := false
	for _, part := range parts {
		switch p := part.(type) {
		case llm.Text:
			list = append(list, map[string]any{"type": "text", "text": p.Text})
		case llm.Image:
			if p.Digest != "" {
				images = true
				list = append(list, map[string]any{"type": "image", "source": map[string]any{"media_type": p.MediaType, "path": t.blobs(p.Digest)}})
			}
		}
	}
	if images {
		return list
	}
	return parts.Text()
}
