package cost_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/view/cost"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/store"
)

// written makes a session, or a child of one, of bodies.
func written(t *testing.T, s store.Store, parent, name string, bodies ...event.Body) string {
	t.Helper()
	var l store.Log
	var err error
	if parent == "" {
		l, err = s.Create(t.Context())
	} else {
		l, _, err = s.Child(t.Context(), parent, name)
	}
	if err == nil {
		err = l.Lease(t.Context())
	}
	if err == nil {
		_, err = harnesstest.Write(t.Context(), l, bodies...)
	}
	if err = errors.Join(err, l.Close()); err != nil {
		t.Fatal(err)
	}
	return l.ID()
}

func explained(t *testing.T, s store.Store, q cost.Question) (cost.Report, map[string]cost.Money) {
	t.Helper()
	report, err := cost.Explain(t.Context(), s, q, func(text string) { t.Error(text) })
	if err != nil {
		t.Fatal(err)
	}
	rows, sum := map[string]cost.Money{}, cost.Money(0)
	for _, r := range report.Rows {
		rows[r.Key] = r.Dollars
		sum += r.Dollars
	}
	if sum != report.Total.Dollars {
		t.Errorf("rows of %v, a total of %v", sum, report.Total.Dollars)
	}
	return report, rows
}

// TestTree checks that a session and those that have worked for it add up, each once, even if the log of one is gone.
func TestTree(t *testing.T) {
	s := new(store.Memory)
	one := llm.Usage{Output: 1}
	childOf := func(parent, name string) string {
		id, err := store.ChildID(parent, name)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	l, err := s.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	top := l.ID()
	helper, gone := childOf(top, "a"), childOf(top, "b")
	if err := l.Lease(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := harnesstest.Write(t.Context(), l, append(opening(), by("home/m", one, 1, llm.Call{ID: "1", Name: "spawn_agent"}),
		event.Spawned{Child: helper, Agent: "explore"}, event.Spawned{Child: gone, Agent: "tidy"},
		event.Returned{Child: helper, Usage: one, Cost: 6}, event.Returned{Child: gone, Usage: one, Cost: 8}, ended("1", "x"))...); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	deep := childOf(helper, "c")
	written(t, s, top, "a", event.Opened{Parent: top}, event.Spawned{Child: deep, Agent: "deep"}, by("home/m", one, 2))
	written(t, s, helper, "c", event.Opened{Parent: helper}, by("home/m", one, 4))
	written(t, s, "", "", event.Opened{}, by("home/m", one, 100))

	report, rows := explained(t, s, cost.Question{Session: top, By: cost.Causes})
	for cause, want := range map[string]float64{"reply": 1, "subagent: explore": 2, "subagent: deep": 4, "subagent: tidy": 8} {
		if rows[cause] != cost.Of(want) {
			t.Errorf("%s: %v, want %v", cause, rows[cause], want)
		}
	}
	first := report.Costliest[0]
	if report.Total.Dollars != cost.Of(15) || first.Key != "subagent: tidy" || !strings.Contains(first.Advice, "agents.small") {
		t.Errorf("%v, %+v", report.Total, report.Costliest[0])
	}
	_, rows = explained(t, s, cost.Question{Session: top, By: "session"})
	if rows[helper] != cost.Of(2) || rows[deep] != cost.Of(4) || rows[gone] != cost.Of(8) {
		t.Error(rows)
	}
	if report, _ := explained(t, s, cost.Question{By: cost.Causes}); report.Total.Dollars != cost.Of(107) {
		t.Errorf("all sessions: %v", report.Total.Dollars)
	}
}

// TestDays checks which days count.
func TestDays(t *testing.T) {
	s := new(store.Memory)
	written(t, s, "", "", event.Opened{}, by("home/m", llm.Usage{Output: 1}, 1))
	now := time.Now()
	for name, tt := range map[string]struct {
		q    cost.Question
		want float64
	}{
		"today":          {cost.Question{Day: now}, 1},
		"yesterday":      {cost.Question{Day: now.AddDate(0, 0, -1)}, 0},
		"since today":    {cost.Question{Since: now}, 1},
		"since tomorrow": {cost.Question{Since: now.AddDate(0, 0, 2)}, 0},
	} {
		tt.q.By = "day"
		if report, _ := explained(t, s, tt.q); report.Total.Dollars != cost.Of(tt.want) {
			t.Errorf("%s: %v", name, report.Total.Dollars)
		}
	}
}

// TestAdviceIsTrue checks that advice names only settings that there are.
func TestAdviceIsTrue(t *testing.T) {
	named := 0
	for _, text := range cost.Advice() {
		parts := strings.Split(text, "`")
		for i := 1; i < len(parts); i += 2 {
			if strings.HasPrefix(parts[i], "/") {
				continue
			}
			named++
			if err := config.CheckKey(parts[i]); err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
	if named < 8 {
		t.Errorf("%d settings are named", named)
	}
}
