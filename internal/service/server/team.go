package server

import (
	"errors"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/kin"
	"github.com/inspan/inspan/internal/view/team"
	"github.com/inspan/inspan/internal/view/words"
)

// team returns who works for a session, and their tasks.
func (c *call) team(in one) (team.Board, error) {
	if _, err := c.owner(in.ID); err != nil {
		return team.Board{}, err
	}
	lead, err := c.status(in.ID)
	if err != nil {
		return team.Board{}, err
	}
	return team.Of(lead, c.status)
}

// assignment gives a task of a team to a member.
type assignment struct {
	ID   string `json:"-" path:"id"`
	Task string `json:"-" path:"task"`
	To   string `json:"to" jsonschema:"name or session of a member, or all"`
}

func (c *call) assign(in assignment) (accepted, error) {
	t, err := c.owner(in.ID)
	if err != nil {
		return accepted{}, err
	}
	board, err := c.team(one{ID: in.ID})
	if err != nil {
		return accepted{}, err
	}
	b, err := board.Assign(in.ID, in.Task, in.To)
	if misuse, is := errors.AsType[words.Misuse](err); is {
		return accepted{}, Conflict("%s", misuse)
	}
	if err != nil {
		return accepted{}, err
	}
	seq, err := c.tellFamily(t, in.ID, b)
	return accepted{seq}, err
}

// tellFamily appends an input to the session of a task, or of an agent that works for it.
func (c *call) tellFamily(t Task, id string, input event.Body) (uint64, error) {
	switch {
	case t.ID == "":
		return c.write(id, input)
	case t.Session == id:
		return c.tell(t.ID, input)
	}
	if err := t.accepts(); err != nil {
		return 0, err
	}
	return c.write(id, input)
}

// tellMember appends an input to the session of an agent that works for another: words for it, or an interrupt. Only one
// that works or is idle reads them. Its questions are those of the session that it works for.
func (c *call) tellMember(t Task, id string, input event.Body) (uint64, error) {
	lead := kin.Parent(id)
	switch input.(type) {
	case event.Steered, event.Cancelled:
	default:
		return 0, Conflict("session %s works for %s and takes only steered and cancelled; send the rest there", id, lead)
	}
	board, err := c.team(one{ID: lead})
	if err != nil {
		return 0, err
	}
	if m, ok := board.Find(id); !ok || !m.Listens {
		return 0, Conflict("session %s has ended and reads no messages; send it to %s", id, lead)
	}
	return c.tellFamily(t, id, input)
}
