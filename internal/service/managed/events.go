package managed

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/store"
)

func eventEndpoints() []endpoint {
	return []endpoint{
		post("sessions/{id}/events", reading((*door).sendEvents)).by(holders),
		get("sessions/{id}/events", func(d *door) (any, error) { return d.listEvents("") },
			"limit", "page", "order", "types", "types[]", "created_at[gt]", "created_at[gte]", "created_at[lt]", "created_at[lte]").by(holders),
		get("sessions/{id}/events/stream", func(d *door) (any, error) { return nil, d.streamEvents("") },
			"event_deltas", "event_deltas[]").by(holders),
	}
}

// step is one input of a client to a session.
type step struct {
	input
	key    string           // the client's key; a repeated one counts once
	answer *server.Decision // set if it answers a question
	allows *confirmation    // set if it lets a worker make the call
	sent   uint64           // number of the event, if it was sent before
}

// send sends a step, and returns the number of the event.
func (d *door) send(id string, s step) (uint64, error) {
	switch {
	case s.sent > 0:
		return s.sent, nil
	case s.answer != nil:
		return d.Decide(*s.answer)
	case s.allows != nil:
		return d.Note(id, ofConfirmation, s.question, s.allows)
	case s.kind == "system.message":
		return d.Inform(id, s.parts, systemKey+cmp.Or(s.key, rand.Text()))
	case s.kind == "user.interrupt":
		return d.Interrupt(id, "", s.key)
	case s.kind == "user.define_outcome":
		return d.define(id, s.outcome, s.key)
	}
	return d.Say(id, s.parts, s.key)
}

// steps reads the inputs of a request, and checks all before the first is sent: either all are accepted, or
// none.
func (d *door) steps(id string, inputs []input) ([]step, error) {
	h, err := d.history(id, "")
	if err != nil {
		return nil, err
	}
	var before map[string]event.Event
	own := d.Key()
	if own != "" {
		if before, err = d.Sent(id); err != nil {
			return nil, err
		}
	}
	steps, answered := make([]step, len(inputs)), map[string]bool{}
	for i, in := range inputs {
		steps[i] = step{input: in}
		if own != "" {
			steps[i].key = own + "/" + strconv.Itoa(i)
			steps[i].sent = cmp.Or(under(before, steps[i].key), h.fold.confirmed[steps[i].key])
		}
		if in.question == "" || steps[i].sent > 0 {
			continue
		}
		if answered[in.question] {
			return nil, conflict("event %s is answered twice", in.question)
		}
		answered[in.question] = true
		a, err := h.answer(id, in)
		if err != nil {
			return nil, err
		}
		if q, _ := h.fold.Open(in.question); q.worker && in.allow {
			steps[i].allows = &confirmation{Call: q.ID, Seq: q.Seq, Key: steps[i].key}
			continue
		}
		if err := d.Decidable(a); err != nil {
			return nil, err
		}
		a.Key, steps[i].answer = steps[i].key, &a
	}
	return steps, nil
}

// under returns the number of the event sent before under the key of an input; 0 means none.
func under(before map[string]event.Event, key string) uint64 {
	return cmp.Or(before[key].Seq, before[systemKey+key].Seq, before[outcomeKey+key].Seq)
}

// answer returns the decision in an input that answers the question of an event.
func (h history) answer(id string, in input) (a server.Decision, err error) {
	q, open := h.fold.Open(in.question)
	i := slices.IndexFunc(h.events, func(e Event) bool { return e.ID == in.question })
	switch {
	case !open && i < 0:
		return a, missing("event", in.question)
	case !open && in.kind == resultType:
		return a, invalid("tool_use_id", "event "+in.question+" waits for no result", "")
	case !open:
		return a, conflict("event %s waits for no answer", in.question)
	case q.worker || in.kind == resultType:
		return q.handled(id, in)
	case q.Custom != (in.kind == "user.custom_tool_result"):
		return a, invalid("type", "event "+in.question+" is "+h.events[i].Type,
			"user.custom_tool_result for custom tools, else user.tool_confirmation")
	}
	a = server.Decision{Task: id, Question: q.ID, Seq: q.Seq, Decision: "deny", Reason: in.reason}
	if in.allow || q.Custom {
		a.Decision, a.Reason, a.Answer, a.Failed = "allow", "", in.parts.Text(), in.failed
	}
	return a, nil
}

func (d *door) sendEvents(in struct {
	Events []json.RawMessage `json:"events"`
},
) (any, error) {
	id := d.r.PathValue("id")
	_, k, err := objectOf[keptSession](d.Object, ofSession, id)
	switch {
	case err != nil:
		return nil, err
	case k.isArchived():
		return nil, conflict("the session is archived")
	case len(in.Events) == 0 || len(in.Events) > mostEvents:
		return nil, invalid("events", fmt.Sprintf("there are %d", len(in.Events)), fmt.Sprintf("1 to %d", mostEvents))
	}
	inputs, err := d.inputs("events", in.Events)
	if err == nil {
		err = d.fit(k, inputs)
	}
	if err != nil {
		return nil, err
	}
	steps, err := d.steps(id, inputs)
	if err != nil {
		return nil, err
	}
	sent := map[uint64]bool{}
	for _, s := range steps {
		seq, err := d.send(id, s)
		if err != nil {
			return nil, err
		}
		sent[seq] = true
	}
	// The response has the events that the request has caused, as all clients see them.
	h, err := d.history(id, "")
	out := []Event{}
	for i, e := range h.events {
		if sent[h.seqs[i]] && (strings.HasPrefix(e.Type, "user.") || strings.HasPrefix(e.Type, "system.")) {
			out = append(out, e)
		}
	}
	return map[string]any{"data": d.loaded(id, out)}, err
}

// history is all events of a session, or of one of its threads.
type history struct {
	fold   *Fold
	events []Event
	seqs   []uint64 // numbers of our events that they come from
	last   uint64   // number of our last event
}

func (d *door) history(id, child string) (h history, err error) {
	t, fold, err := d.folding(id, child)
	h.fold = fold
	if err != nil {
		return h, err
	}
	of := cmp.Or(child, t.Session)
	if of == "" {
		h.end(t)
		return h, nil
	}
	for e, err := range store.Events(d, d.Sessions, of) {
		if err != nil {
			return h, err
		}
		h.last = e.Seq
		for _, out := range fold.Apply(e) {
			h.events, h.seqs = append(h.events, out), append(h.seqs, e.Seq)
		}
	}
	if child == "" {
		h.end(t)
	}
	return h, nil
}

// end adds the events that follow the log.
func (h *history) end(t server.Task) {
	for _, e := range ended(t) {
		h.events, h.seqs = append(h.events, e), append(h.seqs, 0)
	}
}

// ended returns the last events of a session whose task is over; none: it is not. If the session never began,
// no log has them.
func ended(t server.Task) (out []Event) {
	last := t.History[len(t.History)-1]
	if statusOf(last.Stage, inspan.Status{}) != terminated {
		return nil
	}
	if t.Session == "" && t.Why != "" {
		failed := problem("", t.Why, "terminal")
		out = append(out, Event{ID: "sevt_" + t.ID + "_failed", Type: "session.error", At: last.At, Fields: failed})
	}
	return append(out, Event{ID: "sevt_" + t.ID + "_end", Type: "session.status_terminated", At: last.At})
}

// folding returns a fold for the log of a session, or of one of its threads.
func (d *door) folding(id, child string) (server.Task, *Fold, error) {
	_, k, err := objectOf[keptSession](d.Object, ofSession, id)
	if err != nil {
		return server.Task{}, nil, err
	}
	t, err := d.Find(id)
	fold := &Fold{elsewhere: k.Elsewhere}
	if fold.equip(&k.Agent); k.First != nil {
		fold.equip(k.First)
	}
	if child != "" {
		fold.Thread, fold.Agent = threadPrefix+child, k.Agent.Name
	}
	return t, fold, err
}

// equip sets the agent's tools from here on.
func (f *Fold) equip(a *agent) {
	f.Custom, f.Servers, f.handed = nil, nil, nil
	for _, t := range a.Tools {
		switch {
		case t.Type == customType:
			f.Custom = append(f.Custom, t.Name)
		case t.Type == toolsetType && f.elsewhere:
			f.handed = t.handed()
		}
	}
	for _, s := range a.Servers {
		f.Servers = append(f.Servers, s.Name)
	}
}

func (d *door) listEvents(child string) (any, error) {
	within, err := d.within()
	if err != nil {
		return nil, err
	}
	order, err := d.choice("order", "asc", "desc")
	if err != nil {
		return nil, err
	}
	h, err := d.history(d.r.PathValue("id"), child)
	if err != nil {
		return nil, err
	}
	types := d.list("types")
	var found []int // indexes in the history, which only grows
	for i, e := range h.events {
		if within(e.At) && (len(types) == 0 || slices.Contains(types, e.Type)) {
			found = append(found, i)
		}
	}
	at := func(i int) int { return i }
	if order == "desc" {
		slices.Reverse(found)
		at = func(i int) int { return -i }
	}
	return pageOf(d, found, 1000, at, func(i int) (Event, error) { return d.loaded(d.r.PathValue("id"), h.events[i:i+1])[0], nil })
}

// loaded returns events with the data of their images.
func (d *door) loaded(id string, events []Event) []Event {
	for _, e := range events {
		list, _ := e.Fields["content"].([]block)
		for _, b := range list {
			if b.Source == nil || b.Source.digest == "" || len(b.Source.Data) > 0 {
				continue
			}
			if t, err := d.Find(id); err == nil {
				b.Source.Data, _ = d.Blob(t.Session, b.Source.digest) // a missing one is empty
			}
		}
	}
	return events
}

// streamEvents streams events: those after the id in Last-Event-ID, or new ones.
func (d *door) streamEvents(child string) error {
	deltas := d.list("event_deltas")
	for _, kind := range deltas {
		if kind != "agent.message" && kind != "agent.thinking" {
			return invalid("event_deltas", fmt.Sprintf("it is %q", words.OneLine(kind, 40)), "agent.message or agent.thinking")
		}
	}
	id, after := d.r.PathValue("id"), d.r.Header.Get("Last-Event-ID")
	h, err := d.history(id, child)
	if errors.Is(err, fs.ErrNotExist) {
		err = missing("session", id)
	}
	if err != nil {
		return err
	}
	if after != "" && !slices.ContainsFunc(h.events, func(e Event) bool { return e.ID == after }) {
		return invalid("Last-Event-ID", "the session has no event "+strconv.Quote(words.OneLine(after, 80)), "the id of an event")
	}
	t, fold, err := d.folding(id, child)
	if err != nil {
		return err
	}
	s := &stream{door: d, id: id, fold: fold, previews: previews{kinds: deltas}, now: h.last, after: after}
	if t.Session == "" && ended(t) != nil {
		s.SSE = server.NewSSE(d.w)
		s.end()
		return nil
	}
	holding, leave := d.whileHeld(id)
	defer leave()
	events, err := d.Follow(id, server.Feed{Child: child, Live: true})
	if err != nil {
		return err
	}
	s.SSE = server.NewSSE(d.w)
	for e := range events {
		if !holding() || s.pass(e) != nil {
			return nil //nolint:nilerr // the client has disconnected, or another worker has the session
		}
	}
	s.end()
	return nil
}

// stream is an event stream to a client.
type stream struct {
	*door
	*server.SSE
	id       string
	fold     *Fold
	previews previews
	now      uint64 // number of the last event before the stream
	after    string // id of the event after which it begins; empty means after now
}

// pass sends the client's form of one of our events.
func (s *stream) pass(e event.Event) error {
	switch {
	case e.Body == nil:
		return s.Beat()
	case e.Transient():
		for _, out := range s.previews.apply(s.fold, e) {
			if err := s.give("", out); err != nil {
				return err
			}
		}
		return nil
	}
	for _, out := range s.fold.Apply(e) {
		switch {
		case s.after == "" && e.Seq <= s.now:
		case s.after != "":
			if out.ID == s.after {
				s.after, s.now = "", 0
			}
		default:
			if err := s.give(out.ID, out); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *stream) give(id string, e Event) error {
	raw, err := json.Marshal(s.loaded(s.id, []Event{e})[0])
	if err != nil {
		return err
	}
	return s.Send(id, e.Type, raw)
}

// end tells the client why no more events come, unless the client has disconnected.
func (s *stream) end() {
	t, missed := s.Find(s.id)
	_, _, known := objectOf[keptSession](s.Object, ofSession, s.id)
	switch {
	case s.Err() != nil || missed != nil || !s.Known():
	case known != nil:
		_ = s.give("", Event{ID: "sevt_" + t.ID + "_deleted", Type: "session.deleted", At: t.History[len(t.History)-1].At})
	default:
		list := ended(t)
		list = list[1+slices.IndexFunc(list, func(e Event) bool { return e.ID == s.after }):]
		for _, e := range list {
			_ = s.give(e.ID, e)
		}
	}
}

// previews sends a client a reply in progress.
type previews struct {
	kinds   []string
	asked   uint64 // the previewed request
	begun   []string
	invalid bool // the client must drop the text sent so far
}

// apply returns the client's events for a transient event.
func (p *previews) apply(f *Fold, e event.Event) (out []Event) {
	delta, is := e.Body.(event.Delta)
	if !is || f.asked == 0 {
		return nil
	}
	if p.asked != f.asked {
		*p = previews{kinds: p.kinds, asked: f.asked}
	}
	p.invalid = p.invalid || delta.Void && len(p.begun) > 0
	if p.invalid {
		return nil // the coming message has it all
	}
	begin := func(kind, id string) bool {
		if !slices.Contains(p.kinds, kind) {
			return false
		}
		if !slices.Contains(p.begun, kind) {
			p.begun = append(p.begun, kind)
			out = append(out, Event{Type: "event_start", Fields: map[string]any{"event": map[string]any{"type": kind, "id": id}}})
		}
		return true
	}
	if delta.Reasoning != "" {
		begin("agent.thinking", f.thinkingID(f.asked))
	}
	if id := f.messageID(f.asked); delta.Text != "" && begin("agent.message", id) {
		out = append(out, Event{Type: "event_delta", Fields: map[string]any{"event_id": id, "delta": map[string]any{
			"type": "content_delta", "index": 0, "content": block{Type: "text", Text: delta.Text},
		}}})
	}
	return out
}
