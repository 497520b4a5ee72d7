package server

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/text"
	"github.com/inspan/inspan/internal/words"
	"github.com/inspan/inspan/store"
)

// The board is what all sessions do at a glance, and the inbox what waits for a person in them. Both
// are read from the list of sessions and the book. Only a session that may go on is looked into, and
// that again only when it has grown.

// States of sessions on the board.
const (
	stateWaiting = "waiting" // for a person
	stateRunning = "running"
	stateCutOff  = "cut off" // nobody goes on with a run that has not stopped
	stateIdle    = "idle"    // takes messages
	stateDone    = "done"
	stateFailed  = "failed"
	stateEmpty   = "empty" // nobody has said anything
)

func boardStates() []string {
	return []string{stateWaiting, stateRunning, stateCutOff, stateIdle, stateDone, stateFailed, stateEmpty}
}

// boardRow is a session on the board.
type boardRow struct {
	Session  string      `json:"session,omitempty" jsonschema:"none yet: the task waits for its turn"`
	Task     string      `json:"task,omitempty"`
	State    string      `json:"state" jsonschema:"waiting, running, cut off, idle, done, failed or empty"`
	Stage    event.Stage `json:"stage,omitempty" jsonschema:"stage of the task"`
	Why      string      `json:"why,omitempty" jsonschema:"how it has ended or why it waits"`
	Title    string      `json:"title,omitempty"`
	Root     string      `json:"root,omitempty"`
	Modified time.Time   `json:"modified"`
	Events   uint64      `json:"events"`
	Agents   int         `json:"agents,omitempty" jsonschema:"sessions that work for it"`
}

// boardWanted asks for the board.
type boardWanted struct {
	State string `json:"-" query:"state"`
	Text  string `json:"-" query:"text"`
	Limit *int   `json:"-" query:"limit"`
}

type board struct {
	Sessions []boardRow      `json:"sessions" jsonschema:"the one that changed last first"`
	More     bool            `json:"more" jsonschema:"there are further ones"`
	Counts   map[string]int  `json:"counts" jsonschema:"sessions by state, whatever is filtered"`
	Inbox    []shownQuestion `json:"inbox" jsonschema:"all open questions, the oldest first"`
	Folders  []string        `json:"folders,omitempty" jsonschema:"in which tasks may work, for whoever sees all tenants"`
}

func (c *call) board(in boardWanted) (board, error) {
	out := board{Sessions: []boardRow{}, Counts: map[string]int{}, Inbox: []shownQuestion{}}
	limit, err := most(in.Limit, 100)
	if err != nil {
		return out, err
	}
	if c.who.root {
		out.Folders = c.Folders
	}
	if in.State != "" && !slices.Contains(boardStates(), in.State) {
		return out, Wrong("state", fmt.Sprintf("it is %q", words.OneLine(in.State, 80)), strings.Join(boardStates(), ", "))
	}
	rows, err := c.rows(&out)
	if err != nil {
		return out, err
	}
	for _, row := range rows {
		out.Counts[row.State]++
		switch {
		case in.State != "" && row.State != in.State, !row.has(in.Text):
		case len(out.Sessions) == limit:
			out.More = true
		default:
			out.Sessions = append(out.Sessions, row)
		}
	}
	slices.SortStableFunc(out.Inbox, func(a, b shownQuestion) int { return cmp.Compare(a.Session, b.Session) }) // ids begin with their time
	return out, nil
}

// has reports whether a row has a text in what people know it by.
func (r *boardRow) has(text string) bool {
	if text == "" {
		return true
	}
	for _, field := range []string{r.Title, r.Root, r.Session, r.Task} {
		if strings.Contains(strings.ToLower(field), strings.ToLower(text)) {
			return true
		}
	}
	return false
}

// rows are all sessions that the visitor sees and that work for no other, and tasks without one.
// Their questions go to the inbox.
func (c *call) rows(out *board) ([]boardRow, error) {
	list, err := c.Sessions.List(c)
	if err != nil {
		return nil, err
	}
	held, err := c.Sessions.Held(c)
	if err != nil {
		return nil, err
	}
	driven, agents := map[string]bool{}, map[string]int{}
	for _, h := range held {
		driven[h.Session] = true
	}
	var rows []boardRow
	for _, t := range c.Unfinished(func(t *Task) bool { return t.Session == "" }) {
		row := boardRow{
			Task: t.ID, State: stateRunning, Stage: t.Stage, Why: words.OneLine(t.Why, 200), Modified: t.Created, Root: text.Visible(t.Workspace),
			Title: words.OneLine(cmp.Or(t.Spec.Title, t.Spec.Prompt, t.Spec.GitHub), 200),
		}
		rows = append(rows, row)
	}
	for _, info := range list {
		if info.Parent != "" {
			agents[info.Parent]++
			continue
		}
		t, err := c.owner(info.ID)
		if err != nil {
			continue
		}
		row, asked, err := c.row(info, t, driven[info.ID])
		if err != nil {
			return nil, err
		}
		rows, out.Inbox = append(rows, row), append(out.Inbox, asked...)
	}
	for i := range rows {
		rows[i].Agents = agents[rows[i].Session]
	}
	return rows, nil
}

// row is a session on the board, and what it asks.
func (c *call) row(info store.Info, t Task, driven bool) (boardRow, []shownQuestion, error) {
	row := boardRow{
		Session: info.ID, Task: t.ID, Stage: t.Stage, Title: words.OneLine(cmp.Or(t.Spec.Title, info.Name()), 200), Root: text.Visible(info.Root),
		Modified: info.Modified, Events: info.Events,
	}
	asked, err := c.glances.at(c, info, t)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // somebody has removed it
	}
	switch {
	case t.ID != "" && over(t.Stage):
		asked = nil
		if row.State = stateDone; t.Stage != event.StageCompleted {
			row.State = stateFailed
		}
		row.Why = words.OneLine(cmp.Or(t.Why, string(t.Stage)), 200)
	case len(asked) > 0:
		row.State, row.Why = stateWaiting, words.OneLine(asked[0].Tool+" "+asked[0].Why, 200)
	case t.Stage == event.StageIdle:
		row.State = stateIdle
	case t.ID != "", driven && info.Stop == "" && !info.Empty:
		row.State = stateRunning
	case driven:
		row.State = stateIdle
	case info.Empty:
		row.State = stateEmpty
	case info.Stop == "":
		row.State = stateCutOff
	case info.Stop == event.ReasonDone:
		row.State = stateDone
	default:
		row.State = stateFailed
	}
	if row.Why == "" {
		row.Why = strings.ReplaceAll(string(info.Stop), "_", " ")
	}
	return row, asked, err
}

// glances are the questions of sessions that may have some, as of their last look. The zero value is
// ready.
type glances struct {
	mu  sync.Mutex
	all map[string]glance // by session
}

type glance struct {
	events uint64
	asked  []shownQuestion
}

// at are the open questions of a session.
func (g *glances) at(c *call, info store.Info, t Task) ([]shownQuestion, error) {
	if info.Stop != "" || info.Empty || info.Damage != nil {
		return nil, nil
	}
	g.mu.Lock()
	known, ok := g.all[info.ID]
	g.mu.Unlock()
	if ok && known.events == info.Events {
		return known.asked, nil
	}
	st, err := c.status(info.ID)
	if err != nil {
		return nil, err
	}
	known = glance{events: info.Events}
	for _, p := range st.Questions() {
		known.asked = append(known.asked, showQuestion(t, p))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.all == nil {
		g.all = map[string]glance{}
	}
	g.all[info.ID] = known
	return known.asked, nil
}

// sought asks where something was said.
type sought struct {
	Text  string `json:"-" query:"text"`
	Limit *int   `json:"-" query:"limit"`
}

type found struct {
	Hits []hit `json:"hits" jsonschema:"the newest session first"`
	More bool  `json:"more" jsonschema:"there are further ones"`
}

type hit struct {
	Session string    `json:"session"`
	Seq     uint64    `json:"seq" jsonschema:"number of the event"`
	Time    time.Time `json:"time"`
	Kind    string    `json:"kind"`
	Text    string    `json:"text" jsonschema:"the place with some text around it"`
}

// search finds a text in all that was ever said to agents, by them and by tools, whatever its case.
func (c *call) search(in sought) (found, error) {
	out := found{Hits: []hit{}}
	limit, err := most(in.Limit, 100)
	if err != nil || strings.TrimSpace(in.Text) == "" {
		return out, err
	}
	seen := map[string]bool{}
	for h, err := range c.Sessions.Search(c, regexp.MustCompile("(?i)"+regexp.QuoteMeta(in.Text))) {
		if c.Err() != nil {
			return out, c.Err()
		}
		mine, looked := seen[h.Session]
		if !looked {
			_, hidden := c.owner(h.Session)
			mine = hidden == nil
			seen[h.Session] = mine
		}
		switch {
		case err != nil || !mine: // what can't be read is not found
		case len(out.Hits) == limit:
			out.More = true
			return out, nil
		default:
			out.Hits = append(out.Hits, hit{h.Session, h.Seq, h.Time, h.Kind, words.OneLine(h.Text, 300)})
		}
	}
	return out, nil
}
