package server

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/kin"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/lab/eval"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
)

// The board shows all sessions at a glance, and the inbox shows the questions in them that wait for a person.
// They are those of 'inspan board' ([running.Board]), with the tasks of the sessions, limited to those that the
// visitor may see.

// boardRow is a session on the board.
type boardRow struct {
	Session  string           `json:"session,omitempty" jsonschema:"none yet: the task waits for its turn"`
	Task     string           `json:"task,omitempty"`
	State    running.Standing `json:"state" jsonschema:"waiting, running, idle, failed or done"`
	Stage    event.Stage      `json:"stage,omitempty" jsonschema:"stage of the task"`
	Words    string           `json:"words,omitempty" jsonschema:"its question, the reason for its failure, or the last message to it"`
	Title    string           `json:"title"`
	Root     string           `json:"root,omitempty"`
	Modified time.Time        `json:"modified"`
	Agents   int              `json:"agents,omitempty" jsonschema:"sessions that work for it"`
	Cost     float64          `json:"cost,omitempty" jsonschema:"US dollars"`
	Unpriced bool             `json:"unpriced,omitempty"`
}

// boardWanted is a request for the board.
type boardWanted struct {
	State string `json:"-" query:"state"`
	Text  string `json:"-" query:"text"`
	Limit *int   `json:"-" query:"limit"`
}

type board struct {
	Sessions []boardRow               `json:"sessions" jsonschema:"waiting ones, then running ones, then the rest, each by their latest change"`
	More     bool                     `json:"more" jsonschema:"there are further ones"`
	Counts   map[running.Standing]int `json:"counts" jsonschema:"sessions by state, without the filter"`
	Inbox    []openQuestion           `json:"inbox" jsonschema:"all open questions, the oldest session's first"`
	Evals    []eval.Standing          `json:"evals,omitempty" jsonschema:"the last runs of evaluations, the newest first, without their tasks"`
	Role     Role                     `json:"role" jsonschema:"role of the visitor"`
	Efforts  []string                 `json:"efforts" jsonschema:"of reasoning, that a task can name"`
	Folders  []string                 `json:"folders,omitempty" jsonschema:"folders that tasks can name; only for identities that see all tenants"`
}

func (c *call) board(in boardWanted) (board, error) {
	out := board{Sessions: []boardRow{}, Counts: map[running.Standing]int{}, Inbox: []openQuestion{}}
	limit, err := most(in.Limit, 100)
	if err != nil {
		return out, err
	}
	if states := c.all.Standings(); in.State != "" && !slices.Contains(states, running.Standing(in.State)) {
		return out, Wrong("state", fmt.Sprintf("it is %q", words.OneLine(in.State, 80)), fmt.Sprint("one of ", states))
	}
	if out.Role, out.Efforts = c.who.role, llm.Efforts(); c.who.root {
		out.Folders = c.Folders
	}
	rows, err := c.glance()
	if err != nil {
		return out, err
	}
	if out.Evals, err = c.evals(); err != nil {
		return out, err
	}
	wanted := strings.ToLower(in.Text)
	for _, r := range rows {
		out.Inbox = append(out.Inbox, r.asks(shower{painter: &c.painter})...)
		state := r.state()
		out.Counts[state]++
		switch {
		case in.State != "" && state != running.Standing(in.State), !r.has(wanted):
		case len(out.Sessions) == limit:
			out.More = true
		default:
			out.Sessions = append(out.Sessions, r.shown(state))
		}
	}
	slices.SortStableFunc(out.Inbox, func(a, b openQuestion) int { return strings.Compare(a.Session, b.Session) }) // ids begin with their time
	return out, nil
}

// seen is a session that the visitor sees, with its task if it has one, or a task without a session.
type seen struct {
	*running.Row
	task *Task
}

// glance returns everything that the visitor sees: tasks without a session, and sessions that don't work for
// another. It reads only sessions that may have a question or are among the first, and again after they grow.
func (c *call) glance() (out []seen, err error) {
	for _, t := range c.Unfinished(func(t *Task) bool { return t.Session == "" }) {
		out = append(out, seen{&running.Row{Name: cmp.Or(t.Spec.Prompt, t.Spec.GitHub, t.ID), Root: t.Workspace, Modified: t.Created, Words: t.Why}, &t})
	}
	rows, err := c.all.List(c)
	if err != nil {
		return nil, err
	}
	visible := c.visible(rows)
	var look []string
	for i, s := range visible {
		if s.Stale && (s.Open || i < mostLooked) {
			look = append(look, s.ID)
		}
	}
	if len(look) > 0 {
		visible = c.visible(c.all.Look(c, look...))
	}
	return append(out, visible...), c.Err()
}

// visible returns those of the given sessions that the visitor may see.
func (c *call) visible(rows []running.Row) []seen {
	out, none := make([]seen, 0, len(rows)), &Task{}
	for i := range rows {
		switch t, hidden := c.lists(rows[i].ID); {
		case hidden != nil:
		case t.ID == "":
			out = append(out, seen{&rows[i], none})
		default:
			out = append(out, seen{&rows[i], &t})
		}
	}
	return out
}

// mostLooked is the number of sessions whose costs and last words are shown.
const mostLooked = 100

// state returns the state of the session, from its task if it has one.
func (s seen) state() running.Standing { return s.task.standing(s.Standing, len(s.Questions) > 0) }

// standing returns the state of the task's session, which without the task would be another.
func (t *Task) standing(without running.Standing, asks bool) running.Standing {
	switch {
	case t.Stage == StageCompleted:
		return running.StandsDone
	case over(t.Stage):
		return running.StandsFailed
	case t.ID == "", asks:
		return without
	case t.Stage == StageIdle:
		return running.StandsIdle
	}
	return running.StandsRunning
}

func (s seen) asks(show shower) (out []openQuestion) {
	if over(s.task.Stage) {
		return nil
	}
	of := Task{ID: s.task.ID, Session: s.ID}
	for _, p := range s.Questions {
		q := show.question(of, p)
		q.Title, q.Root = words.OneLine(cmp.Or(s.task.Spec.Title, s.Name), 200), text.Visible(s.Root)
		out = append(out, q)
	}
	return out
}

// has reports whether the session's name, folder or the like contains a text in lower case.
func (s seen) has(text string) bool {
	if text == "" {
		return true
	}
	for _, field := range []string{s.task.Spec.Title, s.Name, s.Root, s.ID, s.task.ID} {
		if strings.Contains(strings.ToLower(field), text) {
			return true
		}
	}
	return false
}

func (s seen) shown(state running.Standing) boardRow {
	return boardRow{
		Session: s.ID, Task: s.task.ID, Stage: s.task.Stage, State: state, Title: words.OneLine(cmp.Or(s.task.Spec.Title, s.Name), 200),
		Root: text.Visible(s.Root), Words: words.OneLine(s.Words, 200), Modified: s.Modified, Agents: s.Agents, Cost: s.Cost, Unpriced: s.Unpriced,
	}
}

// sought is a request to search the sessions.
type sought struct {
	Text  string `json:"-" query:"text"`
	Limit *int   `json:"-" query:"limit"`
}

type searchPage struct {
	Hits []searchHit `json:"hits" jsonschema:"the newest session first"`
	More bool        `json:"more" jsonschema:"there are further ones"`
}

type searchHit struct {
	Session string    `json:"session"`
	Title   string    `json:"title,omitempty" jsonschema:"of the session, or of the one that it works for"`
	Root    string    `json:"root,omitempty" jsonschema:"the workspace"`
	Seq     uint64    `json:"seq" jsonschema:"number of the event"`
	Time    time.Time `json:"time"`
	Kind    string    `json:"kind"`
	By      string    `json:"by,omitempty" jsonschema:"who said it; without a name, and for said and steered, a person here"`
	Text    string    `json:"text" jsonschema:"the place with some text around it"`
}

// search finds a text, ignoring case, in everything said to agents, by them and by tools.
func (c *call) search(in sought) (searchPage, error) {
	out := searchPage{Hits: []searchHit{}}
	limit, err := most(in.Limit, 100)
	if err != nil || strings.TrimSpace(in.Text) == "" {
		return out, err
	}
	rows, err := c.all.List(c)
	if err != nil {
		return out, err
	}
	names := map[string]running.Row{}
	for _, r := range rows {
		names[r.ID] = r
	}
	mine := map[string]*Task{} // by the session, as far as it was met; nil means the visitor may not see it
	for h, err := range c.Sessions.Search(c, regexp.MustCompile("(?i)"+regexp.QuoteMeta(in.Text))) {
		if c.Err() != nil {
			return out, c.Err()
		}
		task, known := mine[h.Session]
		if !known {
			if t, hidden := c.lists(h.Session); hidden == nil {
				task = &t
			}
			mine[h.Session] = task
		}
		if err != nil || task == nil { // unreadable sessions have no hits
			continue
		}
		if len(out.Hits) == limit {
			out.More = true
			return out, nil
		}
		lead := names[kin.Lead(h.Session)]
		out.Hits = append(out.Hits, searchHit{
			Session: h.Session, Title: words.OneLine(cmp.Or(task.Spec.Title, lead.Name), 200), Root: text.Visible(lead.Root),
			Seq: h.Seq, Time: h.Time, Kind: h.Kind, By: text.Visible(h.By), Text: words.OneLine(h.Text, 300),
		})
	}
	return out, nil
}
