package redact

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/rawjson"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// MapText returns the body with f applied to every text in it: in fields, lists, maps, parts and pointers, and
// to the strings, keys and numbers of raw JSON. The body itself does not change.
//
// A string is text unless it is known to be something else. Named string types, such as [event.Outcome], are fixed
// words of this program and stay. So do ids, digests, the workspace, names of models, data signed by a vendor,
// and snapshots. A field that is added later counts as text.
func MapText(body event.Body, f func(string) string) event.Body {
	if to, changed := mapped(reflect.ValueOf(body), f); changed {
		return to.Interface().(event.Body)
	}
	return body
}

// identity reports whether a field holds an identifier instead of text. Changing it would break references in
// the log, at a vendor or on the disk.
func identity(owner reflect.Type, field string) bool {
	return calls(owner, field) || stored(owner, field) || vendors(owner, field)
}

// calls reports whether a field is the id of a call, a session, a task, a job or a message.
func calls(owner reflect.Type, field string) bool {
	switch owner {
	case reflect.TypeFor[event.Decided]():
		return field == "Call" || field == "Message"
	case reflect.TypeFor[event.Cancelled]():
		return field == "Message"
	case reflect.TypeFor[event.Said](), reflect.TypeFor[event.Steered]():
		return field == "Message" || field == "Context"
	case reflect.TypeFor[event.Judged](), reflect.TypeFor[event.Started](), reflect.TypeFor[event.Wanted]():
		return field == "Call" || field == "Parent" || field == "Asked"
	case reflect.TypeFor[event.Waiting](), reflect.TypeFor[event.Progress]():
		return field == "Call"
	case reflect.TypeFor[event.Ended]():
		return field == "Call" || field == "Parent" || field == "EndedJobs"
	case reflect.TypeFor[event.Raised]():
		return field == "ID" || field == "Child" || field == "Call"
	case reflect.TypeFor[event.Tasked]():
		return field == "ID" || field == "By" || field == "Call" || field == "After" || field == "For"
	case reflect.TypeFor[event.Spawned](), reflect.TypeFor[event.Returned]():
		return field == "Child" || field == "Call" || field == "Name"
	case reflect.TypeFor[event.Finished]():
		return field == "Job"
	case reflect.TypeFor[tool.Job](), reflect.TypeFor[llm.Call]():
		return field == "ID" || field == "Wire"
	case reflect.TypeFor[llm.Result]():
		return field == "CallID"
	case reflect.TypeFor[event.Claimed]():
		return field == "Writer"
	case reflect.TypeFor[event.StepStarted]():
		return field == "Step" || field == "Parent"
	case reflect.TypeFor[event.StepEnded]():
		return field == "Step"
	case reflect.TypeFor[event.Recorded]():
		return field == "Of" || field == "ID" || field == "By" || field == "Key" || field == "Sent"
	case reflect.TypeFor[event.Staged]():
		return field == "Task" || field == "Session" || field == "By"
	}
	return false
}

// stored reports whether a field names something stored elsewhere: the folder of a session, another session,
// content by its digest, a checkpoint. Snapshots are made from text that was mapped already.
func stored(owner reflect.Type, field string) bool {
	switch owner {
	case reflect.TypeFor[event.Opened]():
		return field == "Root" || field == "Parent" || field == "Traceparent"
	case reflect.TypeFor[event.Spawned]():
		return field == "Root"
	case reflect.TypeFor[event.Forked]():
		return field == "From"
	case reflect.TypeFor[tool.File](), reflect.TypeFor[llm.Image](), reflect.TypeFor[event.Stopped](), reflect.TypeFor[event.StepBlob]():
		return field == "Digest"
	case reflect.TypeFor[event.Started]():
		return field == "Sum"
	case reflect.TypeFor[tool.Proposal](), reflect.TypeFor[event.Source]():
		return field == "Blob"
	case reflect.TypeFor[event.Checkpoint]():
		return field == "ID"
	case reflect.TypeFor[event.Workspace]():
		return field == "Copy" || field == "Manifest"
	case reflect.TypeFor[event.Restored]():
		return field == "To" || field == "Before" || field == "After"
	case reflect.TypeFor[event.Compacted](), reflect.TypeFor[event.Rewound]():
		return field == "Snapshot"
	case reflect.TypeFor[event.Unknown]():
		return field == "Name"
	}
	return false
}

// vendors reports whether a field is the name of a model, or data signed by its vendor.
func vendors(owner reflect.Type, field string) bool {
	switch owner {
	case reflect.TypeFor[event.Asked](), reflect.TypeFor[event.Replied](), reflect.TypeFor[event.Failed](), reflect.TypeFor[event.Switched](),
		reflect.TypeFor[event.Judged](), reflect.TypeFor[event.Compacted](), reflect.TypeFor[event.Spawned]():
		return field == "Route"
	case reflect.TypeFor[event.Routed]():
		return field == "Route" || field == "From" || field == "Judge"
	case reflect.TypeFor[llm.Reasoning]():
		return field == "Opaque" || field == "Route"
	case reflect.TypeFor[llm.Consulted]():
		return field == "Route"
	case reflect.TypeFor[event.Corpus]():
		return field == "Small"
	}
	return false
}

// mapped returns v with f applied to its texts, and whether any changed. It copies only what changes.
func mapped(v reflect.Value, f func(string) string) (to reflect.Value, changed bool) {
	switch v.Kind() {
	case reflect.String:
		if v.Type() != reflect.TypeFor[string]() {
			return v, false
		}
		from := v.String()
		to := f(from)
		return reflect.ValueOf(to), to != from
	case reflect.Struct:
		return mappedStruct(v, f)
	case reflect.Slice, reflect.Array:
		return mappedList(v, f)
	case reflect.Map:
		return mappedMap(v, f)
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return v, false
		}
		in, changed := mapped(v.Elem(), f)
		if !changed {
			return v, false
		}
		if v.Kind() == reflect.Interface {
			return in, true
		}
		p := reflect.New(in.Type())
		p.Elem().Set(in)
		return p, true
	}
	return v, false
}

func mappedStruct(v reflect.Value, f func(string) string) (reflect.Value, bool) {
	t := v.Type()
	if t == reflect.TypeFor[time.Time]() {
		return v, false
	}
	out, changed := v, false
	for i := range v.NumField() {
		field := v.Field(i)
		if !field.CanInterface() || !textual(field) || identity(t, t.Field(i).Name) {
			continue
		}
		to, differs := mapped(field, f)
		if !differs {
			continue
		}
		if !changed {
			out, changed = reflect.New(t).Elem(), true
			out.Set(v)
		}
		out.Field(i).Set(to)
	}
	return out, changed
}

// textual reports whether a value of this type may hold text, so that others need not be searched.
func textual(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String, reflect.Slice, reflect.Map:
		return v.Len() > 0
	case reflect.Pointer, reflect.Interface:
		return !v.IsNil()
	}
	return v.Kind() == reflect.Struct || v.Kind() == reflect.Array
}

func mappedList(v reflect.Value, f func(string) string) (reflect.Value, bool) {
	switch v.Type() {
	case reflect.TypeFor[json.RawMessage]():
		to, changed := mappedJSON(v.Bytes(), f)
		return reflect.ValueOf(to), changed
	case reflect.TypeFor[[]byte](): // the data of an image
		return v, false
	}
	out, changed := v, false
	for i := range v.Len() {
		to, differs := mapped(v.Index(i), f)
		if !differs {
			continue
		}
		if !changed {
			out, changed = reflect.New(v.Type()).Elem(), true
			if v.Kind() == reflect.Slice {
				out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			}
			reflect.Copy(out, v)
		}
		out.Index(i).Set(to)
	}
	return out, changed
}

func mappedMap(v reflect.Value, f func(string) string) (reflect.Value, bool) {
	out, changed := reflect.MakeMapWithSize(v.Type(), v.Len()), false
	for entries := v.MapRange(); entries.Next(); {
		key, keyed := mapped(entries.Key(), f)
		value, valued := mapped(entries.Value(), f)
		out.SetMapIndex(key, value)
		changed = changed || keyed || valued
	}
	if !changed {
		return v, false
	}
	return out, true
}

// mappedJSON maps the strings of JSON, including names of fields, and numbers; a number that changes becomes a
// string. All other bytes stay. Text that is not JSON is mapped as a whole.
func mappedJSON(raw json.RawMessage, f func(string) string) (json.RawMessage, bool) {
	if !json.Valid(raw) {
		to := f(string(raw))
		return json.RawMessage(to), to != string(raw)
	}
	var out bytes.Buffer
	done := 0
	for i := 0; i < len(raw); {
		n := tokenLen(raw[i:])
		if to, changed := mappedToken(raw[i:i+n], f); changed {
			out.Write(raw[done:i])
			out.Write(to)
			done = i + n
		}
		i += n
	}
	if done == 0 {
		return raw, false
	}
	out.Write(raw[done:])
	return out.Bytes(), true
}

// tokenLen returns the length of the string or number at the beginning of valid JSON; 1 for anything else.
func tokenLen(raw []byte) int {
	if raw[0] == '"' {
		return rawjson.StringLen(raw)
	}
	n := 0
	for n < len(raw) && strings.IndexByte("+-.0123456789eE", raw[n]) >= 0 {
		n++
	}
	return max(n, 1)
}

func mappedToken(token []byte, f func(string) string) (to []byte, changed bool) {
	if len(token) == 1 {
		return nil, false
	}
	from := string(token)
	if token[0] == '"' && json.Unmarshal(token, &from) != nil {
		return nil, false
	}
	text := f(from)
	if text == from {
		return nil, false
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(text) != nil {
		return nil, false
	}
	return bytes.TrimSpace(b.Bytes()), true
}
