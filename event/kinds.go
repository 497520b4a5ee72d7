package event

import (
	"encoding/json"
	"errors"

	"github.com/inspan/inspan/llm"
)

// Unknown is a body of a kind that this version does not know.
type Unknown struct {
	Name string
	Raw  json.RawMessage
	Must bool // a reader that does not understand it must not continue the session, see [Understood]
}

// Kind returns the kind's name in the log.
func (Opened) Kind() string    { return "opened" }
func (Forked) Kind() string    { return "forked" }
func (Titled) Kind() string    { return "titled" }
func (Pinned) Kind() string    { return "pinned" }
func (Moved) Kind() string     { return "moved" }
func (Said) Kind() string      { return "said" }
func (Withdrawn) Kind() string { return "withdrawn" }
func (Steered) Kind() string   { return "steered" }
func (Decided) Kind() string   { return "decided" }
func (Cancelled) Kind() string { return "cancelled" }
func (Claimed) Kind() string   { return "claimed" }
func (Asked) Kind() string     { return "asked" }
func (Replied) Kind() string   { return "replied" }
func (Failed) Kind() string    { return "failed" }
func (Routed) Kind() string    { return "routed" }
func (Hooked) Kind() string    { return "hooked" }
func (Healed) Kind() string    { return "healed" }
func (Pruned) Kind() string    { return "pruned" }
func (Judged) Kind() string    { return "judged" }
func (Waiting) Kind() string   { return "waiting" }
func (Started) Kind() string   { return "started" }
func (Ended) Kind() string     { return "ended" }
func (Added) Kind() string     { return "added" }
func (Switched) Kind() string  { return "switched" }
func (Stopped) Kind() string   { return "stopped" }
func (Note) Kind() string      { return "note" }
func (Served) Kind() string    { return "served" }
func (Delta) Kind() string     { return "delta" }
func (Progress) Kind() string  { return "progress" }
func (u Unknown) Kind() string { return u.Name }

// decodeBody decodes a body by its kind.
func decodeBody(kind string, raw json.RawMessage) (Body, error) {
	switch kind {
	case "opened":
		return into[Opened](raw)
	case "forked":
		return into[Forked](raw)
	case "titled":
		return into[Titled](raw)
	case "pinned":
		return into[Pinned](raw)
	case "moved":
		return into[Moved](raw)
	case "said":
		return intoParts(raw, func(b *Said) *llm.Parts { return &b.Parts })
	case Withdrawn{}.Kind():
		return into[Withdrawn](raw)
	case "steered":
		body, err := intoParts(raw, func(b *Steered) *llm.Parts { return &b.Parts })
		if s, ok := body.(Steered); ok && s.Origin == "" {
			s.Origin = OriginPerson // see Steered.stored
			body = s
		}
		return body, err
	case "decided":
		return into[Decided](raw)
	case "cancelled":
		return into[Cancelled](raw)
	case "claimed":
		return into[Claimed](raw)
	case "asked":
		return into[Asked](raw)
	case "replied":
		return intoParts(raw, func(b *Replied) *llm.Parts { return &b.Parts })
	case "failed":
		return into[Failed](raw)
	case "routed":
		return into[Routed](raw)
	case Hooked{}.Kind():
		return into[Hooked](raw)
	case "healed":
		return into[Healed](raw)
	case Pruned{}.Kind():
		return into[Pruned](raw)
	case "judged":
		return into[Judged](raw)
	case "waiting":
		return into[Waiting](raw)
	case Wanted{}.Kind():
		return into[Wanted](raw)
	case "started":
		return into[Started](raw)
	case "ended":
		return intoParts(raw, func(b *Ended) *llm.Parts { return &b.Parts })
	case "added":
		return into[Added](raw)
	case "switched":
		return into[Switched](raw)
	case "compacted":
		return into[Compacted](raw)
	case Checkpoint{}.Kind():
		return into[Checkpoint](raw)
	case Workspace{}.Kind():
		return into[Workspace](raw)
	case Restored{}.Kind():
		return into[Restored](raw)
	case Rewound{}.Kind():
		return into[Rewound](raw)
	case Compact{}.Kind():
		return into[Compact](raw)
	case Kept{}.Kind():
		return into[Kept](raw)
	case Spawned{}.Kind():
		return into[Spawned](raw)
	case Raised{}.Kind():
		return into[Raised](raw)
	case Returned{}.Kind():
		return intoParts(raw, func(b *Returned) *llm.Parts { return &b.Parts })
	case Paused{}.Kind():
		return into[Paused](raw)
	case Tasked{}.Kind():
		return into[Tasked](raw)
	case Finished{}.Kind():
		return into[Finished](raw)
	case StepStarted{}.Kind():
		return into[StepStarted](raw)
	case StepEnded{}.Kind():
		return into[StepEnded](raw)
	case Recorded{}.Kind():
		return into[Recorded](raw)
	case Staged{}.Kind():
		return into[Staged](raw)
	case "stopped":
		return into[Stopped](raw)
	case "note":
		return into[Note](raw)
	case Served{}.Kind():
		return into[Served](raw)
	case "delta":
		return into[Delta](raw)
	case "progress":
		return into[Progress](raw)
	}
	if !json.Valid(raw) {
		return nil, errors.New("not JSON")
	}
	return Unknown{Name: kind, Raw: append(json.RawMessage(nil), raw...)}, nil
}

func into[B Body](raw json.RawMessage) (Body, error) {
	var b B
	err := json.Unmarshal(raw, &b)
	return b, err
}

// Synced reports whether a stored body must survive power loss before anyone acts on it: words and decisions of
// a person, the intent and the result of a call, and the end of a run. Others are written at once and synced
// with the next of these.
func Synced(b Body) bool {
	switch b.(type) {
	case Said, Withdrawn, Steered, Decided, Cancelled, Started, Ended, Compacted, Restored, Rewound, Stopped, Spawned, Returned, Paused,
		StepStarted, StepEnded, Recorded, Staged:
		return true
	}
	return false
}

// Input reports whether any process may append the body. All others are for the driver that holds the session's
// lease.
func Input(b Body) bool {
	switch b.(type) {
	case Said, Withdrawn, Steered, Decided, Cancelled, Titled, Pinned, Moved, Compact, Spawned, Raised, Returned, Paused, Tasked, Finished,
		Recorded, Staged:
		return true
	}
	return false
}
