// Package rawjson cuts JSON without parsing it, where a parser would take most of the time, and decodes it without
// letting anything pass.
package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// Strict decodes data, which is one JSON value and nothing else. Unknown fields are errors.
func Strict(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		if errors.Is(err, io.EOF) {
			return errors.New("it is empty")
		}
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows its end")
	}
	return nil
}

// CutList cuts the list in the field called name out of an object without white space between its tokens. The field
// begins within the first 512 bytes. If list and rest are valid JSON, so was raw.
func CutList(raw []byte, name string) (list, rest []byte, ok bool) {
	name = `"` + name + `":`
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
			n := StringLen(s[i:])
			if n == 0 {
				return 0
			}
			i += n - 1
		}
	}
	return 0
}

// StringLen returns the length of the JSON string at the beginning of s; 0 if it does not end.
func StringLen(s []byte) int {
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
