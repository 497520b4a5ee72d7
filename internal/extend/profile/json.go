package profile

import (
	"bytes"
	"encoding/json"
	"slices"
)

// member is a member of an object.
type member struct {
	name  string
	value json.RawMessage // compact
}

// members returns the members of an object in order, the last of each name; none if raw is something else.
func members(raw json.RawMessage) []member {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') || !json.Valid(raw) {
		return nil
	}
	var out []member
	for dec.More() {
		tok, err := dec.Token()
		name, _ := tok.(string)
		var value json.RawMessage
		if err != nil || dec.Decode(&value) != nil {
			return nil
		}
		m := member{name, compact(value)}
		if i := slices.IndexFunc(out, func(o member) bool { return o.name == name }); i >= 0 {
			out[i] = m
		} else {
			out = append(out, m)
		}
	}
	return out
}

// list returns the elements of a list, nil if raw is something else.
func list(raw json.RawMessage) []json.RawMessage {
	var out []json.RawMessage
	if json.Unmarshal(raw, &out) != nil {
		return nil
	}
	for i := range out {
		out[i] = compact(out[i])
	}
	return out
}

// stringOf returns the text that raw is.
func stringOf(raw json.RawMessage) (s string, ok bool) {
	ok = len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil
	return s, ok
}

// words formats a value for a model.
func words(raw json.RawMessage) string {
	if s, ok := stringOf(raw); ok {
		return s
	}
	return string(raw)
}

// compact returns valid JSON without white space.
func compact(raw json.RawMessage) json.RawMessage {
	var buf bytes.Buffer
	_ = json.Compact(&buf, raw) // it was decoded before
	return buf.Bytes()
}

func quote(s string) json.RawMessage {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a text always has a JSON form
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

func array(list []json.RawMessage) json.RawMessage {
	return slices.Concat([]byte("["), bytes.Join(raws(list), []byte(",")), []byte("]"))
}

func raws(list []json.RawMessage) [][]byte {
	out := make([][]byte, len(list))
	for i, v := range list {
		out[i] = v
	}
	return out
}

// object writes a JSON object member by member.
type object struct{ buf bytes.Buffer }

func (o *object) add(name string, value json.RawMessage) {
	if o.buf.Len() > 0 {
		o.buf.WriteByte(',')
	}
	o.buf.Write(quote(name))
	o.buf.WriteByte(':')
	o.buf.Write(value)
}

func (o *object) done() json.RawMessage {
	return slices.Concat([]byte("{"), o.buf.Bytes(), []byte("}"))
}
