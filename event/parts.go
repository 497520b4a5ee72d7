package event

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/inspan/inspan/llm"
)

// intoParts decodes the bodies that make up most of a log. It decodes their parts separately, since
// encoding/json would scan them twice more.
func intoParts[B Body](raw json.RawMessage, parts func(*B) *llm.Parts) (Body, error) {
	var b B
	list, rest, ok := cutParts(raw)
	if ok && parts(&b).UnmarshalJSON(list) == nil && json.Unmarshal(rest, &b) == nil {
		return b, nil
	}
	return into[B](raw)
}

// WithoutParts returns the line of an event without the parts in its body. A line that is not spelled the way Encode spells it
// stays as it is.
func WithoutParts(line []byte) []byte {
	const name = `"body":`
	at := bytes.Index(line[:min(len(line), 512)], []byte(name))
	if at < 0 {
		return line
	}
	head, tail := line[:at+len(name)], line[at+len(name):]
	if body, closed := bytes.CutSuffix(tail, []byte("}")); closed {
		if _, rest, ok := cutParts(body); ok {
			return slices.Concat(head, rest, []byte("}"))
		}
	}
	return line
}

// cutParts cuts the list of parts out of an object that is spelled the way Encode spells it. If list and rest
// are valid JSON, so was raw.
func cutParts(raw []byte) (list, rest []byte, ok bool) {
	const name = `"parts":`
	at := bytes.Index(raw[:min(len(raw), 512)], []byte(name+"["))
	if at < 1 || raw[at-1] != '{' && raw[at-1] != ',' { // otherwise it is the end of another field's name
		return nil, nil, false
	}
	head, list := raw[:at], raw[at+len(name):]
	if bytes.Count(head, []byte("{"))+bytes.Count(head, []byte("[")) != 1 {
		return nil, nil, false // these may be the parts of something else
	}
	n := arrayLen(list)
	list, tail := list[:n], list[n:]
	switch {
	case bytes.HasPrefix(tail, []byte(`,"`)):
		tail = tail[1:]
	case string(tail) == "}" && bytes.HasSuffix(head, []byte(`",`)):
		head = head[:len(head)-1]
	case string(tail) != "}" || string(head) != "{":
		return nil, nil, false
	}
	return list, append(append(make([]byte, 0, len(head)+len(tail)), head...), tail...), true
}

// arrayLen returns the length of the JSON array at the beginning of s; 0 if it does not end.
func arrayLen(s []byte) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '[':
			depth++
		case ']':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"':
			n := stringLen(s[i:])
			if n == 0 {
				return 0
			}
			i += n - 1
		}
	}
	return 0
}

// stringLen returns the length of the JSON string at the beginning of s; 0 if it does not end.
func stringLen(s []byte) int {
	for i := 1; i < len(s); {
		n := bytes.IndexByte(s[i:], '"')
		if n < 0 {
			return 0
		}
		i += n + 1
		slashes := 0
		for s[i-2-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i
		}
	}
	return 0
}
