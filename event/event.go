// Package event is the vocabulary in which everything that happens in a session is written down: an append-only
// list of events, each an envelope around one body.
//
// Use it to follow, show, count or search sessions, and to send inputs of a person ([Say], [Decided],
// [Cancelled]). Most other kinds are only written by the driver of a session, which [Log] enforces; don't
// create them to change a session. To store events elsewhere, implement [Log] and test it with
// harnesstest.TestLog.
//
// # Compatibility
//
// Kinds and fields are only ever added. Logs of all released versions stay readable and are never rewritten. A
// reader keeps kinds and fields that it does not know: a body of a later version decodes to [Unknown] and
// encodes to the same bytes. A log that needs a later version can be shown, and [Understood] says that it can't
// be continued. A reader that drops all transient events still sees the whole session.
package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Event is one fact. Only the log sets the envelope.
type Event struct {
	Seq     uint64    // 1, 2, 3, ... in a session; 0 means transient, never stored
	Time    time.Time // informative, to the millisecond; Seq defines the order
	Session string
	Body    Body
}

// Body is the content of an event. The set of bodies is closed; see bodies.go and calls.go.
type Body interface{ Kind() string }

// Transient reports whether the event is only shown and never stored. A reader that drops every transient event
// still sees a correct transcript.
func (e Event) Transient() bool { return e.Seq == 0 }

// timeLayout is RFC 3339 with milliseconds, always in UTC.
const timeLayout = "2006-01-02T15:04:05.000Z"

// Format is the version of the log format that this package writes, and the newest that it reads.
const Format = 1

// Understood returns nil if this version may continue a session that holds the event. Otherwise it returns an
// error that wraps [ErrTooNew]: the log has a later format, or the event is of an unknown kind that is marked
// as one that readers must understand. Check every event when folding a log; showing one needs no check.
func Understood(e Event) error {
	switch b := e.Body.(type) {
	case Opened:
		if b.Format > Format {
			return fmt.Errorf("%w: its log has format %d, and this version reads %d at most", ErrTooNew, b.Format, Format)
		}
	case Unknown:
		if b.Must {
			return fmt.Errorf("%w: event %d is of the kind %q, which this one must understand and does not", ErrTooNew, e.Seq, b.Name)
		}
	}
	return nil
}

// Encode returns the event as one line of JSON without a newline:
//
//	{"seq":1,"time":"...","session":"...","kind":"said","body":{...}}
//
// A kind that readers must understand is followed by "must":true.
func Encode(e Event) ([]byte, error) {
	var buf bytes.Buffer
	buf.WriteString(`{"seq":`)
	buf.WriteString(strconv.FormatUint(e.Seq, 10))
	buf.WriteString(`,"time":"`)
	buf.WriteString(e.Time.UTC().Format(timeLayout))
	buf.WriteString(`","session":`)
	session, err := json.Marshal(e.Session)
	if err != nil {
		return nil, err
	}
	buf.Write(session)
	if e.Body == nil {
		return nil, errors.New("encode event: no body")
	}
	kind, err := json.Marshal(e.Body.Kind())
	if err != nil {
		return nil, err
	}
	buf.WriteString(`,"kind":`)
	buf.Write(kind)
	u, unknown := e.Body.(Unknown)
	if u.Must {
		buf.WriteString(`,"must":true`)
	}
	buf.WriteString(`,"body":`)
	if unknown {
		buf.Write(u.Raw)
	} else {
		enc := json.NewEncoder(&buf)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(e.Body); err != nil {
			return nil, fmt.Errorf("encode %s: %w", e.Body.Kind(), err)
		}
		buf.Truncate(buf.Len() - 1) // the encoder adds a newline
	}
	buf.WriteByte('}')
	return buf.Bytes(), nil
}

// Decode reads the output of [Encode], with fields in any order. The event does not refer to line.
func Decode(line []byte) (Event, error) {
	if w, ok := cut(line); ok {
		if e, err := w.event(); err == nil {
			return e, nil
		}
	}
	var w wire
	if err := json.Unmarshal(line, &w); err != nil {
		return Event{}, fmt.Errorf("decode event: %w", err)
	}
	return w.event()
}

// MarshalJSON implements [json.Marshaler] with [Encode].
func (e Event) MarshalJSON() ([]byte, error) { return Encode(e) }

// UnmarshalJSON implements [json.Unmarshaler] with [Decode].
func (e *Event) UnmarshalJSON(data []byte) (err error) {
	*e, err = Decode(data)
	return err
}

// wire is the JSON form of an event.
type wire struct {
	Seq     uint64          `json:"seq"`
	Time    time.Time       `json:"time"`
	Session string          `json:"session"`
	Kind    string          `json:"kind"`
	Must    bool            `json:"must"`
	Body    json.RawMessage `json:"body"`
}

// event decodes the body, which need not be valid JSON.
func (w wire) event() (Event, error) {
	if w.Kind == "" || len(w.Body) == 0 {
		return Event{}, errors.New("decode event: no kind or no body")
	}
	body, err := decodeBody(w.Kind, w.Body)
	if err != nil {
		return Event{}, fmt.Errorf("decode %s: %w", w.Kind, err)
	}
	if u, ok := body.(Unknown); ok {
		u.Must = w.Must
		body = u
	}
	return Event{Seq: w.Seq, Time: w.Time, Session: w.Session, Body: body}, nil
}

// cut splits the envelope without a JSON parser, if it is spelled the way Encode spells it. The body may turn
// out not to be JSON. It makes reading a log twice as fast.
func cut(line []byte) (w wire, ok bool) {
	rest := line
	field := func(prefix string, end byte) []byte {
		after, found := bytes.CutPrefix(rest, []byte(prefix))
		n := bytes.IndexByte(after, end)
		if !found || n < 0 {
			rest = nil
			return nil
		}
		rest = after[n:]
		return after[:n]
	}
	seq := field(`{"seq":`, ',')
	stamp := field(`,"time":"`, '"')
	session := field(`","session":"`, '"')
	kind := field(`","kind":"`, '"')
	body, found := bytes.CutPrefix(rest, []byte(`","body":`))
	body, closed := bytes.CutSuffix(body, []byte(`}`))
	if !found || !closed || !plain(session) || !plain(kind) ||
		len(seq) > 1 && seq[0] == '0' { // not valid JSON
		return wire{}, false
	}
	var err1, err2 error
	w.Seq, err1 = strconv.ParseUint(string(seq), 10, 64)
	w.Time, err2 = time.Parse(timeLayout, string(stamp))
	w.Session, w.Kind, w.Body = string(session), string(kind), body
	same := string(w.Time.AppendFormat(nil, timeLayout)) == string(stamp) // Parse accepts more
	return w, err1 == nil && err2 == nil && same
}

// plain reports whether s needs no escape inside a JSON string.
func plain(s []byte) bool {
	for _, c := range s {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
