package managed

import (
	"slices"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/service/server"
)

// sessionView is a session as clients see it.
type sessionView struct {
	ID          string            `json:"id"`
	Type        string            `json:"type"`
	Title       *string           `json:"title"`
	Status      string            `json:"status"`
	Agent       sessionAgent      `json:"agent"`
	Environment string            `json:"environment_id"`
	Metadata    map[string]string `json:"metadata"`
	Resources   []map[string]any  `json:"resources"`
	Vaults      []string          `json:"vault_ids"`
	Deployment  *string           `json:"deployment_id"`
	Outcomes    []map[string]any  `json:"outcome_evaluations"`
	Stats       map[string]any    `json:"stats"`
	Usage       map[string]any    `json:"usage"`
	Budget      *budget           `json:"budget"`
	CreatedAt   string            `json:"created_at"`
	UpdatedAt   string            `json:"updated_at"`
	ArchivedAt  *string           `json:"archived_at"`
}

// Statuses of sessions.
const (
	idle       = "idle"
	running    = "running"
	terminated = "terminated"
)

// statusOf returns the status of a session. Its log is newer than the stage of its task.
func statusOf(stage event.Stage, st inspan.Status) string {
	switch {
	case stage == server.StageCompleted, stage == server.StageFailed, stage == server.StageCancelled, stage == server.StageTimedOut:
		return terminated
	case st.Active && len(st.Questions()) == 0:
		return running
	}
	return idle
}

// isOver reports whether a task is over.
func isOver(t server.Task) bool { return statusOf(t.Stage, inspan.Status{}) == terminated }

// shownSession returns a session as clients see it.
func (d *door) shownSession(o server.Object, k keptSession) (sessionView, error) {
	t, err := d.Find(o.ID)
	if err != nil {
		return sessionView{}, err
	}
	st, err := d.Status(o.ID)
	if err != nil {
		return sessionView{}, err
	}
	a, err := k.Agent.inSession()
	if err != nil {
		return sessionView{}, err
	}
	v := sessionView{
		ID: o.ID, Type: "session", Title: orNull(k.Title), Status: statusOf(t.Stage, st), Agent: a, Environment: k.Environment,
		Deployment: orNull(k.Deployment), Metadata: k.Metadata, Resources: []map[string]any{}, Vaults: append([]string{}, k.Vaults...),
		Outcomes: []map[string]any{}, Budget: k.Budget, Usage: usageOf(st), Stats: map[string]any{"duration_seconds": lasted(t).Seconds()},
	}
	v.CreatedAt, v.UpdatedAt, v.ArchivedAt = k.stamps(o)
	if v.Metadata == nil {
		v.Metadata = map[string]string{}
	}
	for _, r := range k.Resources {
		v.Resources = append(v.Resources, r.view())
	}
	if k.Elsewhere && st.Active && v.Status == idle {
		h, err := d.history(o.ID, "")
		if err != nil {
			return v, err
		}
		if !slices.ContainsFunc(h.fold.open, question.waits) {
			v.Status = running // workers make its calls
		}
	}
	if k.Outcomes {
		if err := d.addOutcomes(&v); err != nil {
			return v, err
		}
	}
	return v, nil
}

// addOutcomes adds the outcomes of a session. It counts as running while they are graded.
func (d *door) addOutcomes(v *sessionView) error {
	h, err := d.history(v.ID, "")
	if err != nil {
		return err
	}
	for _, o := range h.fold.list() {
		v.Outcomes = append(v.Outcomes, o.view())
	}
	if o := h.fold.outcome(); o != nil && v.Status == idle && len(h.fold.open) == 0 {
		v.Status = running
	}
	return nil
}

// lasted returns how long a task has existed.
func lasted(t server.Task) time.Duration {
	end := time.Now()
	if last := t.History[len(t.History)-1]; statusOf(last.Stage, inspan.Status{}) == terminated {
		end = last.At
	}
	return end.Sub(t.Created).Truncate(time.Millisecond)
}

// usageOf returns the usage of a session.
func usageOf(st inspan.Status) map[string]any {
	u := map[string]any{
		"input_tokens": st.Usage.Input, "output_tokens": st.Usage.Output, "cache_read_input_tokens": st.Usage.CacheRead,
		"cache_creation": map[string]any{"ephemeral_5m_input_tokens": st.Usage.CacheWrite, "ephemeral_1h_input_tokens": 0},
	}
	if !st.Unpriced {
		u["list_cost"] = dollars(st.Cost)
	}
	return u
}
