// Package team shows who works for a session: the members, what each does, costs and waits for, and the tasks that they
// share. It is pure.
package team

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/view/words"
)

// Board is the team of a session.
type Board struct {
	Members []Member `json:"members"`
	Tasks   []Task   `json:"tasks"`
}

// Member is an agent that works or worked for the session.
type Member struct {
	Session  string  `json:"session"`
	Name     string  `json:"name" jsonschema:"the name that the lead gave it, or its kind and number"`
	Kind     string  `json:"kind"`
	State    string  `json:"state" jsonschema:"running, idle, broken off, or why its run ended"`
	Listens  bool    `json:"listens" jsonschema:"it works or is idle, so a message reaches it"`
	Task     string  `json:"task"`
	Root     string  `json:"root,omitempty" jsonschema:"its copy of the workspace, unless it works in that of the session"`
	Cost     float64 `json:"cost"`
	Unpriced bool    `json:"unpriced,omitempty" jsonschema:"the cost of some replies is unknown"`
	WaitsFor string  `json:"waits_for,omitempty"`
	Question string  `json:"question,omitempty" jsonschema:"id of the question of the session that asks for it"`
}

// Task is a task of the list that the session shares with its members.
type Task struct {
	ID     string    `json:"id"`
	Text   string    `json:"text"`
	State  string    `json:"state" jsonschema:"open, claimed, done, or what it waits for"`
	Who    string    `json:"who,omitempty" jsonschema:"name of the member that has claimed or finished it, or alone can claim it"`
	Check  string    `json:"check,omitempty" jsonschema:"command that must pass before it is done"`
	Passed bool      `json:"passed,omitempty" jsonschema:"the check was run and passed"`
	At     time.Time `json:"at,omitzero" jsonschema:"it can't be claimed before"`
}

// State returns the state of a member in a word or two.
func State(c inspan.Child) string {
	switch {
	case c.Open:
		return "running"
	case c.Returned == nil:
		return words.Ending("")
	case c.Returned.Idle && c.Returned.Reason != "":
		return "idle"
	}
	return words.Ending(c.Returned.Reason)
}

// Of returns the team of a session, with hidden characters spelled out in all that models wrote. It looks into the
// sessions of the members that work.
func Of(lead inspan.Status, look func(session string) (inspan.Status, error)) (Board, error) {
	b := Board{Members: []Member{}, Tasks: []Task{}}
	names := map[string]string{lead.Session: "the lead"}
	for _, c := range lead.Children {
		m := Member{
			Session: c.Child, Name: cmp.Or(c.Name, words.Agent(c.Agent, c.Child)), Kind: c.Agent, State: State(c), Task: text.VisibleLines(c.Task), Root: c.Root, Cost: c.Cost,
			Unpriced: c.Returned != nil && c.Returned.Unpriced, Listens: c.Open || c.Returned != nil && c.Returned.Idle,
		}
		if c.Open {
			own, err := look(c.Child)
			if err != nil {
				return b, fmt.Errorf("member %s: %w", m.Name, err)
			}
			m.Cost, m.Unpriced = own.Cost, own.Unpriced
			m.WaitsFor, m.Question = awaited(lead, own)
		}
		names[c.Child] = m.Name
		b.Members = append(b.Members, m)
	}
	for i := range lead.Tasks.List {
		t := &lead.Tasks.List[i]
		state := "open"
		switch waits := lead.Tasks.WaitsFor(t); {
		case t.Done:
			state = "done"
		case t.Holder != "":
			state = "claimed"
		case len(waits) > 0:
			state = "waits for " + strings.Join(waits, ", ")
		}
		b.Tasks = append(b.Tasks, Task{
			ID: t.ID, Text: text.VisibleLines(t.Text), State: state, Who: names[cmp.Or(t.Holder, t.For)], Check: text.VisibleLines(t.Check), Passed: t.Evidence != "", At: t.At,
		})
	}
	return b, nil
}

// awaited says what a member waits for, and which question of the lead asks for it.
func awaited(lead, member inspan.Status) (what, question string) {
	for _, q := range lead.Raised {
		if q.Child == member.Session {
			return "you: " + q.Tool, q.ID
		}
	}
	for _, p := range member.OpenCalls {
		return p.Call.Name, ""
	}
	if member.Asking {
		return "its model", ""
	}
	return "", ""
}

// Write prints the board as tables.
func (b Board) Write(out io.Writer) error {
	w := text.NewTable(out, "MEMBER", "KIND", "STATE", "COST", "WAITS FOR", "SESSION", "TASK")
	for _, m := range b.Members {
		waits := m.WaitsFor
		if m.Question != "" {
			waits += " (" + m.Question + ")"
		}
		w.Row(m.Name, m.Kind, m.State, words.Cost(m.Cost, m.Unpriced), waits, m.Session, words.OneLine(m.Task, 50))
	}
	if err := w.Flush(); err != nil || len(b.Tasks) == 0 {
		return err
	}
	fmt.Fprintln(out)
	w = text.NewTable(out, "TASK", "STATE", "WHO", "CHECK", "TEXT")
	for _, t := range b.Tasks {
		w.Row(t.ID, t.State, t.Who, words.OneLine(t.Checked(), 40), words.OneLine(t.Text, 60))
	}
	return w.Flush()
}

// Checked returns the check of a task, and whether it passed.
func (t Task) Checked() string {
	if t.Passed {
		return t.Check + " (passed)"
	}
	return t.Check
}

// Find returns the member of this name or session; ok is false if there is none.
func (b Board) Find(name string) (m Member, ok bool) {
	for _, m := range b.Members {
		if name != "" && (strings.EqualFold(m.Name, name) || m.Session == name || strings.HasSuffix(m.Session, "."+name)) {
			return m, true
		}
	}
	return Member{}, false
}

// Assign returns the event by which the lead gives a task to a member, or to all if name is "all", also a
// task that another member has.
func (b Board) Assign(lead, task, name string) (event.Tasked, error) {
	e := event.Tasked{Action: loop.TaskAssign, ID: task, By: lead}
	if name != "all" {
		m, ok := b.Find(name)
		if !ok {
			return e, words.Misuse{Err: fmt.Errorf("there is no member %q", name)}
		}
		e.For = m.Session
	}
	for _, t := range b.Tasks {
		if t.ID == task && t.State != "done" {
			return e, nil
		}
	}
	return e, words.Misuse{Err: fmt.Errorf("there is no open task %q", task)}
}
