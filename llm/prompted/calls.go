package prompted

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/repair"
	"github.com/inspan/inspan/llm"
)

// A verdict is the conclusion from the beginning of an object.
type verdict int

const (
	unknown verdict = iota // none yet
	foreign                // it is not a call of an offered tool
	late                   // none before its end
	known                  // the tool's name and the start of the arguments are known
)

// head reads the beginning of an object, whose quotes may be single or double.
func (s *scanner) head() verdict {
	c := s.call
	at := c.start
	list := s.buf[at] == '['
	if list {
		at = skip(s.buf, at+1, space)
		if at == len(s.buf) {
			return unknown
		}
		if s.buf[at] != '{' {
			return foreign
		}
	}
	name := ""
	for at++; ; {
		key, value, v := s.member(at)
		if v != known {
			return v
		}
		switch {
		case slices.Contains(nameKeys(), key) && s.buf[value] != '{', key == "type", key == "id", key == "tool_call_id":
			word, next, v := quoted(s.buf, value)
			if v != known {
				return v
			}
			if at = next; slices.Contains(nameKeys(), key) {
				name = word
			}
			if offered, ok := s.tool(name); ok {
				name = offered
			} else if name != "" {
				return foreign
			}
		case key != "function" && !slices.Contains(argsKeys(), key):
			return foreign
		case list || name == "" || key == "function":
			return late
		default:
			c.name, c.args, c.shown = name, value, value
			return known
		}
	}
}

// member finds the key of the next member of an object and the start of its value.
func (s *scanner) member(at int) (key string, value int, v verdict) {
	at = skip(s.buf, at, space+",")
	if at < len(s.buf) && s.buf[at] == '}' {
		return "", 0, late
	}
	key, at, v = quoted(s.buf, at)
	if v != known {
		return "", 0, v
	}
	if at = skip(s.buf, at, space); at == len(s.buf) {
		return "", 0, unknown
	}
	if s.buf[at] != ':' {
		return "", 0, foreign
	}
	if at = skip(s.buf, at+1, space); at == len(s.buf) {
		return "", 0, unknown
	}
	return key, at, known
}

// quoted reads a short quoted text; v may be unknown or foreign.
func quoted(buf []byte, at int) (word string, next int, v verdict) {
	if at == len(buf) {
		return "", 0, unknown
	}
	if buf[at] != '"' && buf[at] != '\'' {
		return "", 0, foreign
	}
	n := bytes.IndexByte(buf[at+1:min(len(buf), at+1+maxName)], buf[at])
	switch {
	case n >= 0:
		return string(buf[at+1 : at+1+n]), at + n + 2, known
	case len(buf) < at+1+maxName:
		return "", 0, unknown
	}
	return "", 0, foreign
}

// skip returns the first offset from at on whose byte is not in set.
func skip(buf []byte, at int, set string) int {
	for at < len(buf) && strings.IndexByte(set, buf[at]) >= 0 {
		at++
	}
	return at
}

// balance finds the end of an object or a list as it arrives. Texts may have single or double quotes.
type balance struct {
	pos    int // end of the part that was read
	depth  int
	inner  int // end of the first value that begins at from; 0 means not found yet
	quote  byte
	escape bool
}

// feed reads more and reports whether the end is reached.
func (b *balance) feed(buf []byte, from int) bool {
	for b.pos < len(buf) {
		c := buf[b.pos]
		b.pos++
		switch {
		case b.escape:
			b.escape = false
		case b.quote != 0 && c == '\\':
			b.escape = true
		case b.quote != 0:
			if c == b.quote {
				b.quote = 0
			}
		case c == '"' || c == '\'':
			b.quote = c
		case c == '{' || c == '[':
			b.depth++
		case c == '}' || c == ']':
			b.depth--
			if b.depth == 1 && b.inner == 0 && from > 0 && b.pos > from {
				b.inner = b.pos
			}
			if b.depth == 0 {
				return true
			}
		}
	}
	return false
}

// nameKeys and argsKeys are the keys of a call that is written as an object: of OpenAI and most open models, of
// Llama, Command, LangChain and Anthropic.
func nameKeys() []string { return []string{"name", "function", "tool_name", "tool", "action"} }

func argsKeys() []string { return []string{"arguments", "parameters", "input", "args", "action_input"} }

// envelope is such an object.
type envelope map[string]json.RawMessage

// first returns the value of the first of these keys that is there; nil means none is.
func (e envelope) first(keys []string) json.RawMessage {
	for _, key := range keys {
		if v, ok := e[key]; ok {
			return v
		}
	}
	return nil
}

// read makes calls from a body. It reports false if one of them is not a call of an offered tool, or can't be read.
func (s *scanner) read(text string, cut bool) ([]llm.Call, bool) {
	c := s.call
	switch {
	case c.form.named:
		return []llm.Call{newCall(c.name, text, cut)}, true
	case cut:
		return nil, false
	}
	if strings.HasPrefix(text, "{") {
		text = "[" + text
	}
	object, ok := repair.Args(`{"calls":` + text) // it adds closing brackets
	var list struct{ Calls []envelope }
	if !ok || json.Unmarshal(object, &list) != nil || len(list.Calls) == 0 {
		return nil, false
	}
	calls := make([]llm.Call, len(list.Calls))
	for i, e := range list.Calls {
		if calls[i], ok = s.envelope(e); !ok {
			return nil, false
		}
	}
	return calls, true
}

func (s *scanner) envelope(e envelope) (llm.Call, bool) {
	var inner envelope
	if json.Unmarshal(e["function"], &inner) == nil {
		e = inner
	}
	var called string
	_ = json.Unmarshal(e.first(nameKeys()), &called) // no text is no tool
	args := e.first(argsKeys())
	name, offered := s.tool(called)
	if !offered || args == nil && !s.call.form.sure() {
		return llm.Call{}, false
	}
	return newCall(name, string(args), false), true
}

// salvage makes a call from a body that can't be read as a whole, if it has reached the arguments.
func (c *candidate) salvage(text string, cut bool) ([]llm.Call, bool) {
	if c.args == 0 || c.args-c.start > len(text) {
		return nil, false
	}
	raw := strings.TrimSpace(text[c.args-c.start:])
	if !cut {
		raw = strings.TrimSpace(strings.TrimSuffix(raw, "}")) // the closing brace of the call
	}
	return []llm.Call{newCall(c.name, cmp.Or(raw, text), cut)}, true
}

// newCall returns a call with these arguments, which may be cut off.
func newCall(name, raw string, cut bool) llm.Call {
	if raw = strings.TrimSpace(raw); !cut {
		if args, ok := repair.Args(raw); ok {
			return llm.Call{Name: name, Args: args}
		}
	}
	return llm.Call{Name: name, Args: json.RawMessage("{}"), Invalid: raw}
}

// parameters makes a call from tagged parameters. All values are texts, which the check of arguments converts.
func (c *candidate) parameters(text string, cut bool) []llm.Call {
	raw := "{"
	rest := strings.TrimSpace(text)
	for rest != "" && !cut {
		name, value, behind, ok := parameter(rest)
		if !ok {
			return []llm.Call{newCall(c.name, text, true)}
		}
		if raw != "{" {
			raw += ","
		}
		raw += compact(name) + ":" + compact(value)
		rest = behind
	}
	if cut {
		return []llm.Call{newCall(c.name, text, true)}
	}
	return []llm.Call{newCall(c.name, raw+"}", false)}
}

// parameter reads the first of several tagged parameters. It ends at a closing tag that is followed by another
// parameter or by nothing.
func parameter(text string) (name, value, rest string, ok bool) {
	text, ok = strings.CutPrefix(text, parameterMark)
	name, text, found := strings.Cut(text, ">")
	for at := 0; ok && found; {
		n := strings.Index(text[at:], parameterEnd)
		if n < 0 {
			break
		}
		at += n
		rest = strings.TrimSpace(text[at+len(parameterEnd):])
		if rest == "" || strings.HasPrefix(rest, parameterMark) {
			value = strings.TrimSuffix(strings.TrimPrefix(text[:at], "\n"), "\n")
			return name, value, rest, true
		}
		at++
	}
	return "", "", "", false
}
