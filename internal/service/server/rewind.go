package server

import (
	"errors"
	"strconv"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/view/words"
)

// effectList lists the effects of a session that no rewind undoes.
type effectList struct {
	Effects []running.LastingEffect `json:"effects"`
}

func (c *call) effects(in one) (effectList, error) {
	if _, err := c.owner(in.ID); err != nil {
		return effectList{}, err
	}
	list, err := c.Rewind.Lasting(c, in.ID)
	return effectList{append([]running.LastingEffect{}, list...)}, err
}

// pointList lists the points that a session can be rewound to.
type pointList struct {
	Points []running.Point `json:"points"`
}

func (c *call) points(in one) (pointList, error) {
	if _, err := c.owner(in.ID); err != nil {
		return pointList{}, err
	}
	list, err := c.Rewind.Points(c, in.ID)
	return pointList{append([]running.Point{}, list...)}, err
}

// rewindRequest is a request to rewind.
type rewindRequest struct {
	ID           string `json:"-" path:"id"`
	To           uint64 `json:"to,omitempty" jsonschema:"number of the message to go back to before (default: the last message)"`
	Files        *bool  `json:"files,omitempty" jsonschema:"put files back (default: true)"`
	Conversation *bool  `json:"conversation,omitempty" jsonschema:"take the conversation back (default: true)"`
	Force        bool   `json:"force,omitempty" jsonschema:"also put back files that somebody else has changed since"`
	Redo         bool   `json:"redo,omitempty" jsonschema:"take the last rewind back instead"`
	DryRun       bool   `json:"dry_run,omitempty" jsonschema:"only say what would happen"`
}

// rewound is the result of a rewind, or of a preview.
type rewound struct {
	To      uint64             `json:"to,omitempty" jsonschema:"event that the conversation goes back to"`
	Changed []running.FileBack `json:"changed"`
	Kept    []running.FileBack `json:"kept" jsonschema:"files that stay as they are"`
	Done    bool               `json:"done"`
}

// rewind rewinds an idle task. If a message begins a run meanwhile, nothing is restored.
func (c *call) rewind(in rewindRequest) (rewound, error) {
	t, err := c.Find(in.ID)
	switch {
	case err != nil:
		return rewound{}, err
	case t.Stage != StageIdle || t.closed != "" || t.cancelled != "":
		return rewound{}, Conflict("task %s is %s; a task can be rewound while it is idle", t.ID, t.Stage)
	case in.Redo && in.To > 0:
		return rewound{}, Wrong("redo", "to is set too", "one of the two")
	}
	wants := func(said *bool) bool { return said == nil || *said }
	if !wants(in.Files) && !wants(in.Conversation) {
		return rewound{}, Wrong("conversation", "nothing to rewind", "files or conversation")
	}
	if c.travels(t) && in.Files == nil {
		in.Files = new(bool)
	}
	if c.travels(t) && wants(in.Files) {
		return rewound{}, Wrong("files", "this server has no checkpoints of workspaces, because they move between machines", "files: false")
	}
	if c.repeated() {
		return rewound{}, Conflict("this request was sent before; its rewind is done")
	}
	s, err := c.Rewind.Parked(c, t.Session)
	if err != nil {
		return rewound{}, err
	}
	out, err := c.back(s, t.ID, in, wants(in.Files), wants(in.Conversation))
	return out, errors.Join(err, s.Close())
}

func (c *call) back(s *inspan.Session, task string, in rewindRequest, files, conversation bool) (rewound, error) {
	to := "last"
	if in.To > 0 {
		to = strconv.FormatUint(in.To, 10)
	}
	if in.Redo {
		to = ""
	}
	way, err := c.Rewind.To(c, s.Status(), to, files, conversation)
	if _, misused := errors.AsType[words.Misuse](err); misused {
		return rewound{}, Wrong("to", "no message or event of this session", "a number of the list of points")
	}
	if _, off := errors.AsType[config.Error](err); off {
		return rewound{}, Wrong("files", "this server has no checkpoints of the workspace", "files: false")
	}
	if errors.Is(err, running.ErrNothingToRewind) || errors.Is(err, running.ErrNothingToRedo) {
		return rewound{}, Conflict("%v", err)
	}
	if err != nil {
		return rewound{}, err
	}
	out := rewound{To: way.To}
	if out.Changed, out.Kept = way.Files(); in.DryRun {
		return out, nil
	}
	err = s.Rewind(c, way.To, way.Restore(in.Force))
	switch {
	case errors.Is(err, inspan.ErrBusy), errors.Is(err, inspan.ErrUnreadMessage), running.Elsewhere(err):
		return rewound{}, Conflict("the agent works, or is about to start; interrupt it first")
	case err != nil:
		return rewound{}, err
	}
	out.Done = true
	_, err = c.record(ofRewind, task, in, func(e *Edit) error { // for the audit log
		e.Remove(ofRewind, task)
		return nil
	})
	return out, err
}
