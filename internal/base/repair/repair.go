// Package repair mends JSON that models write.
package repair

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Args turns the text that a model wrote into the arguments of a tool call: one compact JSON object without
// duplicate keys. It repairs what has one meaning only and reports false for all else, above all for anything that
// may have been cut off.
//
//	the model wrote                         it becomes
//	-----------------------------------     -------------------------------
//	nothing, white space, null              {}
//	a valid object                          the same, compact
//	"{\"a\":1}" (a string of JSON)          {"a":1}
//	```json {"a":1} ```, Sure: {"a":1}.     {"a":1}
//	{"a":1,}                                {"a":1}
//	{'a':'b'}, {a:"b"}                      {"a":"b"}
//	{"a":"two<newline>lines"}               {"a":"two\nlines"}
//	{"a":"\d"} (no such escape)             {"a":"\\d"}
//	{"a":True,"b":None}                     {"a":true,"b":null}
//	{"a":[{"b":"c"}  (only closers miss)    {"a":[{"b":"c"}]}
//	{"a":1}{"a":1} (the object twice)       {"a":1}
//	{"a":1,"a":1} (the same member twice)   {"a":1}
//
//	{"a":"b   {"a":   {"a":1,   {"a":12     rejected: cut off
//	{"a":1}{"a":2}   {"a":1,"a":2}          rejected: which one?
//	{"a":"say "hi""}   {"a" "b"}   [1]      rejected: no one meaning
//
// Args of its own output is that output.
func Args(raw string) (args json.RawMessage, ok bool) {
	raw = strings.TrimSpace(strings.TrimPrefix(raw, "\ufeff"))
	if raw == "" || raw == "null" {
		return json.RawMessage("{}"), true
	}
	if inner, ok := quotedObject(raw); ok {
		raw = inner
	}
	start := strings.IndexByte(raw, '{')
	if start < 0 || strings.ContainsAny(raw[:start], "[]}\"") {
		return nil, false
	}
	p := repairer{in: raw[start:]}
	args, ok = p.object(0)
	if !ok {
		return nil, false
	}
	return args, p.onlyProseFollows(args)
}

// quotedObject returns the object that raw holds as a JSON string.
func quotedObject(raw string) (string, bool) {
	var inner string
	if raw[0] != '"' || json.Unmarshal([]byte(raw), &inner) != nil {
		return "", false
	}
	inner = strings.TrimSpace(inner)
	return inner, strings.HasPrefix(inner, "{")
}

const maxRepairDepth = 500

// repairer reads almost-JSON. Its methods return the JSON that they have read, and false if it is ambiguous.
type repairer struct {
	in  string
	pos int
}

// onlyProseFollows reports whether nothing after the object raises doubt: words, a code fence, or the same object
// again.
func (p *repairer) onlyProseFollows(args json.RawMessage) bool {
	for {
		p.space()
		rest := p.in[p.pos:]
		if !strings.HasPrefix(rest, "{") {
			return !strings.ContainsAny(rest, "{}[]\"")
		}
		again, ok := p.object(0)
		if !ok || !bytes.Equal(again, args) {
			return false
		}
	}
}

func (p *repairer) space() {
	for p.pos < len(p.in) && strings.IndexByte(" \t\r\n", p.in[p.pos]) >= 0 {
		p.pos++
	}
}

// next skips white space and returns the next byte, 0 at the end.
func (p *repairer) next() byte {
	p.space()
	if p.pos == len(p.in) {
		return 0
	}
	return p.in[p.pos]
}

func (p *repairer) value(depth int) (json.RawMessage, bool) {
	switch c := p.next(); {
	case depth > maxRepairDepth:
		return nil, false
	case c == '{':
		return p.object(depth)
	case c == '[':
		return p.array(depth)
	case c == '"' || c == '\'':
		return p.text()
	}
	return p.literal()
}

func (p *repairer) object(depth int) (json.RawMessage, bool) {
	p.pos++
	out := []byte{'{'}
	seen := map[string]json.RawMessage{}
	for {
		c := p.next()
		if c == '}' || c == 0 && len(seen) > 0 {
			return p.close(out, '}')
		}
		key, ok := p.key(c)
		if !ok || p.next() != ':' {
			return nil, false
		}
		p.pos++
		val, ok := p.value(depth + 1)
		if !ok {
			return nil, false
		}
		var name string
		if json.Unmarshal(key, &name) != nil {
			return nil, false
		}
		if old, dup := seen[name]; dup && !bytes.Equal(old, val) {
			return nil, false
		} else if !dup {
			seen[name] = val
			out = append(append(append(comma(out), key...), ':'), val...)
		}
		if !p.separator('}') {
			return nil, false
		}
	}
}

// key reads the name of a member that begins with c: a text, or a word without quotes.
func (p *repairer) key(c byte) (json.RawMessage, bool) {
	if c == '"' || c == '\'' {
		return p.text()
	}
	word := p.in[p.pos:]
	word = word[:len(word)-len(strings.TrimLeftFunc(word, func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }))]
	if word == "" || unicode.IsDigit(rune(word[0])) {
		return nil, false
	}
	p.pos += len(word)
	return json.RawMessage(`"` + word + `"`), true
}

func (p *repairer) array(depth int) (json.RawMessage, bool) {
	p.pos++
	out := []byte{'['}
	for {
		if c := p.next(); c == ']' || c == 0 && len(out) > 1 {
			return p.close(out, ']')
		}
		val, ok := p.value(depth + 1)
		if !ok {
			return nil, false
		}
		out = append(comma(out), val...)
		if !p.separator(']') {
			return nil, false
		}
	}
}

// close ends a container, whose closer may be missing at the very end.
func (p *repairer) close(out []byte, closer byte) (json.RawMessage, bool) {
	if p.pos < len(p.in) {
		p.pos++
	}
	return append(out, closer), true
}

// separator reads the comma after a member. A comma as the last thing of all means that more was to come.
func (p *repairer) separator(closer byte) bool {
	switch p.next() {
	case ',':
		p.pos++
		return p.next() != 0
	case closer, 0:
		return true
	}
	return false
}

func comma(out []byte) []byte {
	if len(out) > 1 {
		out = append(out, ',')
	}
	return out
}

// literal reads a number or a word. One that ends with the input may be cut.
func (p *repairer) literal() (json.RawMessage, bool) {
	end := strings.IndexAny(p.in[p.pos:], ",]} \t\r\n")
	if end <= 0 {
		return nil, false
	}
	word := p.in[p.pos : p.pos+end]
	p.pos += end
	switch word {
	case "True":
		word = "true"
	case "False":
		word = "false"
	case "None":
		word = "null"
	}
	return json.RawMessage(word), json.Valid([]byte(word))
}

// text reads a string in either kind of quotes.
func (p *repairer) text() (json.RawMessage, bool) {
	quote := p.in[p.pos]
	p.pos++
	out := []byte{'"'}
	for p.pos < len(p.in) {
		switch c := p.in[p.pos]; {
		case c == quote:
			p.pos++
			return append(out, '"'), true
		case c == '\\':
			var ok bool
			if out, ok = p.escape(out); !ok {
				return nil, false
			}
		case c == '"':
			out = append(out, '\\', '"')
			p.pos++
		case c < ' ':
			out = append(out, control(c)...)
			p.pos++
		default:
			r, n := utf8.DecodeRuneInString(p.in[p.pos:])
			out = utf8.AppendRune(out, r)
			p.pos += n
		}
	}
	return nil, false
}

// escape reads an escape. One that JSON does not have stands for itself.
func (p *repairer) escape(out []byte) ([]byte, bool) {
	if p.pos+1 == len(p.in) {
		return nil, false
	}
	c := p.in[p.pos+1]
	switch {
	case c == '\'':
		out = append(out, '\'')
	case c == 'u':
		if p.pos+6 > len(p.in) || !json.Valid([]byte(`"`+p.in[p.pos:p.pos+6]+`"`)) {
			return nil, false
		}
		out = append(out, p.in[p.pos:p.pos+6]...)
		p.pos += 4
	case strings.IndexByte(`"\/bfnrt`, c) >= 0:
		out = append(out, '\\', c)
	default:
		p.pos++
		return append(out, '\\', '\\'), true
	}
	p.pos += 2
	return out, true
}

func control(c byte) []byte {
	b, _ := json.Marshal(string(rune(c)))
	return b[1 : len(b)-1]
}
