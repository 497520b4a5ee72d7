package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/kin"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/view/cost"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/store"
)

// Sessions are those of tasks and of the subagents that work for them. A [Remote] store uses these endpoints.

// sessionInfo is a session in a list.
type sessionInfo struct {
	ID       string            `json:"id"`
	Parent   string            `json:"parent,omitempty" jsonschema:"session that this one works for"`
	Task     string            `json:"task"`
	Stage    event.Stage       `json:"stage" jsonschema:"stage of the task"`
	Title    string            `json:"title,omitempty"`
	Preview  string            `json:"preview,omitempty" jsonschema:"beginning of the first message"`
	Root     string            `json:"root" jsonschema:"the workspace"`
	Created  time.Time         `json:"created"`
	Modified time.Time         `json:"modified"`
	Events   uint64            `json:"events"`
	Stop     event.Reason      `json:"stop,omitempty" jsonschema:"why the last run stopped"`
	Labels   map[string]string `json:"labels,omitempty"`
	Driven   bool              `json:"driven" jsonschema:"the server runs it, or will when somebody says something"`
}

type sessionList struct {
	Sessions []sessionInfo `json:"sessions"`
}

// owner returns the task of a session, if the visitor sees it.
func (v *Visit) owner(session string) (Task, error) {
	t, err := v.lists(session)
	if err == nil && t.ID == "" {
		err = v.there(session)
	}
	return t, err
}

// lists is owner for a session that is known to exist.
func (v *Visit) lists(session string) (Task, error) {
	for at := session; at != ""; at = kin.Parent(at) {
		if t, known := v.book.taskOf(at); known && v.who.sees(t.Tenant, t.place) && (!v.Ours || !t.left()) {
			return t, nil
		}
	}
	return v.ours(session)
}

func (c *call) sessions(nothing) (sessionList, error) {
	all, err := c.Sessions.List(c)
	if err != nil {
		return sessionList{}, err
	}
	out := sessionList{Sessions: []sessionInfo{}}
	for _, info := range all {
		if t, err := c.lists(info.ID); err == nil {
			out.Sessions = append(out.Sessions, sessionInfo{
				ID: info.ID, Parent: info.Parent, Task: t.ID, Stage: t.Stage, Title: info.Title, Preview: info.Preview, Root: info.Root,
				Created: info.Created, Modified: info.Modified, Events: info.Events, Stop: info.Stop, Labels: info.Labels, Driven: !over(t.Stage),
			})
		}
	}
	return out, nil
}

// part is a request for a part of a session.
type part struct {
	ID    string `json:"-" path:"id"`
	After string `json:"-" query:"after"`
	Limit *int   `json:"-" query:"limit"`
}

// pageOfEvents is a page of a session: each event in the form of docs/EVENTS.md.
type pageOfEvents struct {
	Events []any `json:"events"`
	More   bool  `json:"more" jsonschema:"further events follow the last one"`
}

func (c *call) readEvents(in part) (out pageOfEvents, err error) {
	out.Events = []any{}
	after, err := lastEventID(c.r)
	if err != nil {
		return out, err
	}
	limit, err := most(in.Limit, mostListed)
	if err != nil {
		return out, err
	}
	if _, err := c.owner(in.ID); err != nil {
		return out, err
	}
	log, err := c.Sessions.Open(c, in.ID)
	if err != nil {
		return out, err
	}
	defer log.Close()
	for e, err := range log.Read(c, after) {
		if err != nil {
			return out, err
		}
		if len(out.Events) == limit {
			out.More = true
			break
		}
		raw, err := event.Encode(e)
		if err != nil {
			return out, err
		}
		out.Events = append(out.Events, json.RawMessage(raw))
	}
	return out, nil
}

// trace is a page of the timeline of a session.
type trace struct {
	Spans []transcript.Span `json:"spans" jsonschema:"in the order in which they began"`
	More  bool              `json:"more" jsonschema:"further spans follow the last one: those after its seq"`
}

func (c *call) trace(in part) (out trace, err error) {
	out.Spans = []transcript.Span{}
	after, err := lastEventID(c.r)
	if err != nil {
		return out, err
	}
	limit, err := most(in.Limit, mostListed)
	if err != nil {
		return out, err
	}
	if _, err := c.owner(in.ID); err != nil {
		return out, err
	}
	var spans transcript.Spans
	if err := spans.Read(store.Events(c, c.Sessions, in.ID)); err != nil {
		return out, err
	}
	for _, span := range spans.List() {
		if span.Seq <= after {
			continue
		}
		if n := len(out.Spans); n >= limit && out.Spans[n-1].Seq != span.Seq { // one event can begin two
			out.More = true
			break
		}
		out.Spans = append(out.Spans, span)
	}
	return out, nil
}

func (c *call) followSession(in followed) error {
	after, err := lastEventID(c.r)
	if err != nil {
		return err
	}
	t, err := c.owner(in.ID)
	if err != nil {
		return err
	}
	events, err := c.followed(in.ID, t.ID, Feed{After: after, Live: in.Live})
	if err != nil {
		return err
	}
	c.stream(events)
	return nil
}

// input is one event that a client appends, in the form of docs/EVENTS.md: said, steered, withdrawn, decided,
// cancelled, titled or pinned. By is the sender.
type input struct {
	ID   string          `json:"-" path:"id"`
	Kind string          `json:"kind" jsonschema:"said, steered, withdrawn, decided, cancelled, titled or pinned"`
	Body json.RawMessage `json:"body" jsonschema:"fields of the event; the server sets by"`
}

// appendInput adds an input to a session.
func (c *call) appendInput(in input) (accepted, error) {
	t, err := c.owner(in.ID)
	if err != nil {
		return accepted{}, err
	}
	e, err := event.Decode(fmt.Appendf(nil, `{"seq":1,"time":%q,"session":%q,"kind":%q,"body":%s}`,
		time.Now().UTC().Format(time.RFC3339Nano), in.ID, in.Kind, in.Body))
	if err != nil {
		return accepted{}, Wrong("body", "it can't be read: "+err.Error(), "the fields of the event")
	}
	body, err := c.own(e.Body)
	if err == nil {
		err = whole(body, in.Body)
	}
	if err != nil {
		return accepted{}, err
	}
	d, decides := body.(event.Decided)
	seq := uint64(0)
	switch {
	case t.Session != in.ID:
		seq, err = c.tellMember(t, in.ID, body)
	case decides:
		return c.decided(t, d)
	default:
		seq, err = c.tellFamily(t, in.ID, body)
	}
	return accepted{seq}, err
}

// own returns an input in the name of the visitor, if it is one that clients may send.
func (c *call) own(body event.Body) (event.Body, error) {
	switch b := body.(type) {
	case event.Said:
		b.By, b.Origin, b.Message = c.who.name, "", c.Key()
		return b, nil
	case event.Steered:
		b.By, b.Origin, b.Why, b.Message = c.who.name, event.OriginPerson, nil, c.Key()
		return b, nil
	case event.Cancelled:
		b.By, b.Limit, b.Message = c.who.name, "", c.Key()
		return b, nil
	case event.Decided, event.Withdrawn, event.Titled, event.Pinned:
		return b, nil
	}
	return nil, Wrong("kind", "it is "+words.OneLine(strconv.Quote(body.Kind()), 80),
		"said, steered, withdrawn, decided, cancelled, titled or pinned")
}

// whole reports an input whose body lacks a field or has an unknown one.
func whole(body event.Body, raw json.RawMessage) error {
	if err := DecodeRaw(raw, reflect.New(reflect.TypeOf(body)).Interface()); err != nil {
		return Within("body", err)
	}
	if err := clean("body", reflect.ValueOf(body)); err != nil {
		return err
	}
	var has map[string]json.RawMessage
	_ = json.Unmarshal(raw, &has) // it is an object, because it was decoded before
	for kind, needed := range map[string]string{
		event.Steered{}.Kind(): "parts", event.Decided{}.Kind(): "allow", event.Withdrawn{}.Kind(): "of",
		event.Titled{}.Kind(): "title", event.Pinned{}.Kind(): "on",
	} {
		if _, there := has[needed]; kind == body.Kind() && !there {
			return Wrong("body."+needed, "it is missing", "the event's fields, as docs/EVENTS.md has them")
		}
	}
	return nil
}

// decided decides like [Visit.Decide].
func (c *call) decided(t Task, d event.Decided) (accepted, error) {
	in := Decision{Task: t.ID, Question: d.Call, Seq: d.Question, Also: d.Also, Decision: "deny", Reason: d.Reason}
	if d.Allow {
		in.Decision, in.Answer = "allow", d.Answer
		in.For = string(d.Scope)
		if d.Reach != "" {
			in.For = string(d.Reach)
		}
		if d.Scope == event.ScopeProject || d.Scope == event.ScopeAlways {
			return accepted{}, Wrong("scope", "over the API a decision holds for the session at most", "session")
		}
	}
	if t.ID != "" {
		return c.decide(in)
	}
	in.Key = c.Key()
	seq, err := c.decideIn(t, in)
	return accepted{seq}, err
}

// costs is a request for the costs of a session.
type costs struct {
	ID string `json:"-" path:"id"`
	By string `json:"-" query:"by"`
}

type costRows struct {
	Rows  []cost.Row `json:"rows" jsonschema:"by what was asked for, the dearest first"`
	Total cost.Row   `json:"total"`
}

// cost sums up the costs of a session and its subagents.
func (c *call) cost(in costs) (out costRows, err error) {
	out.Rows = []cost.Row{}
	if in.By == "" {
		in.By = "model"
	}
	if !slices.Contains(cost.Groupings(), in.By) {
		return out, Wrong("by", "it is "+words.OneLine(strconv.Quote(in.By), 80), fmt.Sprint("one of ", cost.Groupings()))
	}
	if _, err := c.owner(in.ID); err != nil {
		return out, err
	}
	ids, err := c.Sessions.IDs(c)
	if err != nil {
		return out, err
	}
	var tallies []cost.Tally
	for _, id := range ids {
		if id != in.ID && !worksFor(id, in.ID) {
			continue
		}
		of, err := cost.Tallies(id, store.Events(c, c.Sessions, id))
		if err != nil {
			return out, err
		}
		tallies = append(tallies, of...)
	}
	rows, err := cost.Group(tallies, in.By)
	out.Rows, out.Total = append(out.Rows, rows...), cost.Sum(tallies)
	return out, err
}

// spend explains the costs of a session and its subagents.
func (c *call) spend(in one) (cost.Report, error) {
	if _, err := c.owner(in.ID); err != nil {
		return cost.Report{}, err
	}
	var faults []error
	out, err := cost.Explain(c, c.Sessions, cost.Question{Session: in.ID, By: cost.Causes}, func(why string) {
		faults = append(faults, errors.New(why))
	})
	return out, errors.Join(append(faults, err)...) // a partial report would look complete
}

// worksFor reports whether a session works for another, directly or not.
func worksFor(id, other string) bool {
	for at := kin.Parent(id); at != ""; at = kin.Parent(at) {
		if at == other {
			return true
		}
	}
	return false
}

// blobOf is a request for a blob of a session.
type blobOf struct {
	ID     string `json:"-" path:"id"`
	Digest string `json:"-" path:"digest"`
}

const mostBlob = 32 << 20 // bytes of a blob that is sent

type blob struct {
	Data []byte `json:"data" jsonschema:"in base64"`
}

func (c *call) blob(in blobOf) (blob, error) {
	data, err := c.Blob(in.ID, in.Digest)
	return blob{data}, err
}

// Blob reads a blob of a session that the visitor sees.
func (v *Visit) Blob(session, name string) ([]byte, error) {
	if _, err := v.owner(session); err != nil {
		return nil, err
	}
	log, err := v.Sessions.Open(v, session)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	from, err := running.Readable(log.Blobs()).Get(v, name)
	if err != nil {
		return nil, Missing("blob", name)
	}
	data, err := io.ReadAll(io.LimitReader(from, mostBlob+1))
	if err := errors.Join(err, from.Close()); err != nil {
		return nil, err
	}
	if len(data) > mostBlob {
		return nil, Conflict("blob %s has more than %d bytes", name, mostBlob)
	}
	return data, nil
}
