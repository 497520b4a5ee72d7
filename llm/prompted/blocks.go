package prompted

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/llm"
)

// A block reads a form as a whole, once its end has arrived.
type block func(body string) []raw

// raw is a call as it was written. An empty name means that the block could not be read.
type raw struct{ name, args string }

// inBlock looks for the end of a block. An end that may be inside an argument is skipped in favour of a later one
// if the text before it can't be read.
func (s *scanner) inBlock() bool {
	c := s.call
	for _, closer := range c.form.closers {
		for {
			n := bytes.Index(s.buf[c.seen:], []byte(closer))
			if n < 0 {
				c.seen = max(c.seen, len(s.buf)-len(closer)+1)
				break
			}
			end := c.seen + n
			if calls := s.block(string(s.buf[c.start:end])); calls != nil {
				return s.add(calls, true, end)
			}
			c.seen = end + 1
		}
	}
	if !s.final {
		return false
	}
	calls := s.block(string(s.buf[c.start:]))
	return s.add(calls, calls != nil && !s.cut, len(s.buf))
}

// block reads the body of a block: calls of offered tools, or nil.
func (s *scanner) block(body string) []llm.Call {
	var calls []llm.Call
	for _, r := range s.call.form.block(body) {
		name, ok := s.tool(r.name)
		if !ok {
			return nil
		}
		calls = append(calls, newCall(name, r.args, false))
	}
	return calls
}

// Marks of DeepSeek's templates use fullwidth bars and low lines; some servers write plain ones.
const (
	bar = `[|｜]`
	low = `[_▁]`
	// prefix is that of the tags of DeepSeek and Claude; others have none.
	prefix = `(?:` + bar + `DSML` + bar + `|antml:)?`
)

var (
	deepseekCall = text.Pattern(`(?s)<` + bar + `tool` + low + `call` + low + `begin` + bar + `>(.*?)(?:<` + bar + `tool` + low + `call` + low + `end` + bar + `>|$)`)
	deepseekSep  = text.Pattern(`<` + bar + `tool` + low + `sep` + bar + `>`)
	kimiCall     = text.Pattern(`(?s)<\|tool_call_begin\|>(.*?)<\|tool_call_argument_begin\|>(.*?)(?:<\|tool_call_end\|>|$)`)
	invokeCall   = text.Pattern(`(?s)<` + prefix + `invoke name="([^"]*)"\s*>(.*?)(?:</` + prefix + `invoke>|$)`)
	invokeValue  = text.Pattern(`(?s)<` + prefix + `parameter name="([^"]*)"([^>]*)>(.*?)</` + prefix + `parameter>`)
	glmValue     = text.Pattern(`(?s)\s*<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)</arg_value>\s*`)
	gemmaKey     = text.Pattern(`([{,]\s*)([A-Za-z_][A-Za-z0-9_]*)\s*:`)
	keyword      = text.Pattern(`(?s)^\s*([A-Za-z_]\w*)\s*=(.*)$`)
	// pythonic matches a list of calls in Python, perhapsPythonic the beginning of one.
	pythonic        = text.Pattern(`^\[\s*[A-Za-z_][\w.:-]*\(`)
	perhapsPythonic = text.Pattern(`^\[\s*(?:[A-Za-z_][\w.:-]*)?$`)
	callID          = text.Pattern(`(?s)^([^\[{]*)(?:\[CALL_ID\][^\[{]*)?(?:\[ARGS\])?(.*)$`)
)

// deepseekBlock reads "function<sep>NAME" with a fenced object, as V3 and R1 write it, and "NAME<sep>{…}" of V3.1.
// The first mark may have been consumed with the opening of the block.
func deepseekBlock(body string) (calls []raw) {
	for _, m := range deepseekCall().FindAllStringSubmatch("<｜tool▁call▁begin｜>"+strings.TrimSpace(trimFirst(body, deepseekCall())), -1) {
		parts := deepseekSep().Split(m[1], 2)
		if len(parts) < 2 {
			return []raw{{}}
		}
		name, args := strings.TrimSpace(parts[0]), parts[1]
		if head, rest, fenced := strings.Cut(args, "```"); fenced && strings.TrimSpace(head) != "" {
			name = strings.TrimSpace(head)
			args = strings.TrimPrefix(rest, "json")
			args, _, _ = strings.Cut(args, "\n```")
		}
		calls = append(calls, raw{name, args})
	}
	return calls
}

// trimFirst removes the leading mark of body if it is that of a call.
func trimFirst(body string, call *regexp.Regexp) string {
	trimmed := strings.TrimSpace(body)
	if at := call.FindStringIndex(trimmed); at != nil && at[0] == 0 {
		_, rest, _ := strings.Cut(trimmed, ">")
		return rest
	}
	return trimmed
}

// kimiBlock reads "functions.NAME:INDEX<|tool_call_argument_begin|>{…}".
func kimiBlock(body string) (calls []raw) {
	for _, m := range kimiCall().FindAllStringSubmatch("<|tool_call_begin|>"+trimFirst(body, kimiCall()), -1) {
		calls = append(calls, raw{m[1], m[2]})
	}
	if calls == nil {
		calls = []raw{{}}
	}
	return calls
}

// invokeBlock reads invoke and parameter tags: MiniMax's, DeepSeek's DSML, and Claude's.
func invokeBlock(body string) (calls []raw) {
	for _, m := range invokeCall().FindAllStringSubmatch(body, -1) {
		args := "{"
		for _, v := range invokeValue().FindAllStringSubmatch(m[2], -1) {
			value := v[3]
			if !strings.Contains(v[2], `string="false"`) || !json.Valid([]byte(value)) {
				value = compact(strings.TrimSuffix(strings.TrimPrefix(value, "\n"), "\n"))
			}
			args += comma(args) + compact(v[1]) + ":" + value
		}
		if args == "{" && strings.Contains(m[2], "parameter") {
			return []raw{{}}
		}
		calls = append(calls, raw{m[1], args + "}"})
	}
	if calls == nil {
		calls = []raw{{}}
	}
	return calls
}

func comma(list string) string {
	if len(list) > 1 {
		return ","
	}
	return ""
}

// glmBlock reads a name and its arg_key and arg_value tags. Values are texts, which the check of arguments
// converts.
func glmBlock(body string) []raw {
	body = strings.TrimSpace(body)
	at := strings.Index(body, "<arg_key>")
	if at < 0 {
		at = len(body)
	}
	args := "{"
	rest := body[at:]
	for rest != "" {
		m := glmValue().FindStringSubmatchIndex(rest)
		if m == nil || m[0] != 0 {
			return []raw{{}}
		}
		args += comma(args) + compact(strings.TrimSpace(rest[m[2]:m[3]])) + ":" + compact(rest[m[4]:m[5]])
		rest = rest[m[1]:]
	}
	return []raw{{body[:at], args + "}"}}
}

// mistralBlock reads the text after [TOOL_CALLS] if it is a name: NAME[ARGS]{…}, with the next call behind a mark
// of its own.
func mistralBlock(body string) (calls []raw) {
	for part := range strings.SplitSeq(body, "[TOOL_CALLS]") {
		m := callID().FindStringSubmatch(strings.TrimSpace(part))
		if m == nil || !strings.HasPrefix(strings.TrimSpace(m[2]), "{") {
			return []raw{{}}
		}
		calls = append(calls, raw{m[1], strings.TrimSuffix(strings.TrimSpace(m[2]), "</s>")})
	}
	return calls
}

// gemmaBlock reads Gemma 4's call:NAME{key:<|"|>text<|"|>}.
func gemmaBlock(body string) []raw {
	body, found := strings.CutPrefix(strings.TrimSpace(body), "call:")
	name, args, braces := strings.Cut(body, "{")
	if !found || !braces {
		return []raw{{}}
	}
	out := ""
	for i, piece := range strings.Split("{"+args, `<|"|>`) {
		if i%2 == 0 {
			out += gemmaKey().ReplaceAllString(piece, `$1"$2":`)
		} else {
			out += compact(piece)
		}
	}
	return []raw{{name, out}}
}

// pythonBlock reads calls in Python with arguments by keyword: [NAME(key="value"), …].
func pythonBlock(body string) (calls []raw) {
	rest := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(body), "["))
	for rest != "" && rest != "]" {
		open := strings.IndexByte(rest, '(')
		if open < 0 {
			return []raw{{}}
		}
		name, args := rest[:open], "{"
		rest = rest[open+1:]
		for rest != "" && rest[0] != ')' {
			end := outside(rest, ",)")
			m := keyword().FindStringSubmatch(rest[:end])
			if m == nil || end == len(rest) {
				return []raw{{}}
			}
			args += comma(args) + compact(m[1]) + ":" + strings.TrimSpace(m[2])
			rest = strings.TrimLeft(rest[end:], ","+space)
		}
		calls = append(calls, raw{name, args + "}"})
		rest = strings.TrimLeft(strings.TrimPrefix(rest, ")"), ","+space)
	}
	return calls
}

// outside returns the offset of the first of the characters that is neither in quotes nor in brackets; the length of
// the text if there is none.
func outside(text, characters string) int {
	var quote byte
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case depth == 0 && strings.IndexByte(characters, c) >= 0:
			return i
		case c == '"' || c == '\'':
			quote = c
		case strings.IndexByte("([{", c) >= 0:
			depth++
		case strings.IndexByte(")]}", c) >= 0:
			depth--
		}
	}
	return len(text)
}
