package heal

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
)

// refuses matches words of a refusal, in lower case.
var refuses = text.Pattern(`unsupported|not support|unrecogni[sz]ed|unknown|not permitted|extra inputs|extra_forbidden|unexpected|not allowed|` +
	`invalid|deprecated|not available|not enabled|incompatible|must be|cannot|can't|missing|not a valid|too many|maximum|at most|range of|only|not one of|refused|disallowed`)

// needed lists the fields that a request can't omit, and those that hold the conversation.
func needed() []string {
	return []string{
		"model", "messages", "input", "contents", "content", "role", "type", "text", "parts", "tools", "function", "functions", "function_declarations",
		"functiondeclarations", "functionresponse", "functioncall", "response", "name", "description", "parameters", "input_schema", "tool_calls",
		"tool_call_id", "call_id", "id", "arguments", "args", "output", "tool_use_id", "tool_name", "image_url", "url", "source", "data", "media_type",
		"inlinedata", "inline_data", "mimetype", "mime_type", "system", "instructions", "systeminstruction", "stream", "summary", "signature",
		"thoughtsignature", "encrypted_content", "images", "options", "generationconfig", "title",
	}
}

// closed lists the fields whose content was written by a tool's author or a model. Their content has no fields of
// the request.
func closed() []string {
	return []string{"parameters", "input_schema", "parametersJsonSchema", "arguments", "args", "response", "properties", "output"}
}

var (
	toolAt  = text.Pattern(`tools?[.\[](\d+)`)
	atMost  = text.Pattern(`(?:at most|<=|less than or equal to|maximum (?:value |allowed )?(?:is|of)|can only afford|range of max_tokens should be \[\d+,|\[1,|: \d+ >)\s*(\d+)`)
	quoted  = text.Pattern("['\"`]([A-Za-z0-9_.:-]{1,128})['\"`]")
	newRole = text.Pattern(`\b(system|developer|user)\b`)
	// noThought matches words of a model that does not think.
	noThought = text.Pattern(`(?:thinking|reasoning)(?: mode)?(?: is| are)? (?:not enabled|not supported|not available|unsupported)|(?:not|n't) support (?:extended )?(?:thinking|reasoning)\b`)
	// noSystem matches words for system prompts that are refused without naming the role.
	noSystem = text.Pattern(`(?:developer|system) (?:instruction|prompt)s?(?: is| are)? (?:not enabled|not supported|not allowed|unsupported)|only user and (?:assistant|model) roles`)
	capital  = text.Pattern(`[A-Z]`)
)

// thoughtFields are the fields that make a model think, the outermost first.
func thoughtFields() []string {
	return []string{"thinkingConfig", "thinking", "think", "enable_thinking", "reasoning", "reasoning_effort"}
}

// read returns the fact that a refusal of a request states, trying the most certain kind first: a renamed field, a
// missing one, a role, a tool, and any optional field of the request. A field whose name is an English word counts
// only if it is marked as a name, and not if the conversation was refused.
func read(sent []byte, refusal string, conversation bool) (Fact, bool) {
	body := members(sent)
	words := strings.ToLower(refusal)
	if body == nil || !refuses().MatchString(words) {
		return Fact{}, false
	}
	for _, other := range [][2]string{{"max_tokens", "max_completion_tokens"}, {"max_completion_tokens", "max_tokens"}, {"reasoning_content", "reasoning"}} {
		if body.get(other[0]) != nil && names(words, other[0]) && names(words, other[1]) {
			return Fact{Field: other[0], To: "as " + other[1]}, true
		}
	}
	if m := atMost().FindStringSubmatch(words); m != nil {
		for _, field := range []string{"max_tokens", "max_completion_tokens", "max_output_tokens"} {
			var now int
			n, err := strconv.Atoi(m[1])
			if json.Unmarshal(body.get(field), &now) == nil && err == nil && n > 0 && n < now && (names(words, field) || strings.Contains(words, "afford")) {
				return Fact{Field: field, To: m[1]}, true
			}
		}
	}
	if names(words, "reasoning_content") && (strings.Contains(words, "must be passed") || strings.Contains(words, "missing")) {
		return Fact{Field: "reasoning_content", To: `""`}, true
	}
	if f, found := role(body, words); found {
		return f, true
	}
	optional := fields(sent, nil)
	if body.get("system") != nil { // Anthropic can't do without it
		optional = slices.DeleteFunc(optional, func(name string) bool { return name == "max_tokens" })
	}
	best := ""
	for _, name := range optional {
		plain := strings.ToLower(name) == name && !strings.Contains(name, "_")
		if plain && (conversation || !marked(words, name)) {
			continue
		}
		if spelled(words, name) && len(name) > len(best) {
			best = name
		}
	}
	if best != "" {
		return Fact{Field: best}, true
	}
	if noThought().MatchString(words) {
		for _, name := range thoughtFields() {
			if slices.Contains(optional, name) {
				return Fact{Field: name}, true
			}
		}
	}
	if f, found := tool(body, refusal); found {
		return f, true
	}
	at := place([]byte(refusal))
	return Fact{Field: at}, slices.Contains(optional, at) && body.get(at) != nil
}

// spelled reports whether a text has a name as a word, in snake case, in camel case, or as several words.
func spelled(words, name string) bool {
	snake := strings.ToLower(capital().ReplaceAllString(name, "_$0"))
	apart := strings.ReplaceAll(snake, "_", " ")
	return names(words, strings.ToLower(name)) || names(words, snake) || names(words, strings.ReplaceAll(snake, "_", "")) ||
		apart != snake && !strings.HasPrefix(apart, "max ") && names(words, apart)
}

// place returns the field that a refusal names in its structure: OpenAI's param, pydantic's loc, Google's field of
// a violation. Empty means none.
func place(refusal json.RawMessage) string {
	for _, e := range elements(refusal) {
		if at := place(e); at != "" {
			return at
		}
	}
	of := members(refusal)
	for _, name := range []string{"param", "loc", "field"} {
		var at string
		_ = json.Unmarshal(of.get(name), &at) // stays "" if it is not text
		var path []any
		_ = json.Unmarshal(of.get(name), &path) // stays empty if it is not a list
		for _, part := range path {
			if part != "body" || at != "" {
				at = strings.TrimPrefix(fmt.Sprintf("%s.%v", at, part), ".")
			}
		}
		if at != "" {
			return at[:min(len(at), 200)]
		}
	}
	for _, m := range of {
		if at := place(m.value); at != "" {
			return at
		}
	}
	return ""
}

// names reports whether a text has a name as a word, even in camel case or snake case.
func names(words, name string) bool {
	for at := 0; ; {
		n := strings.Index(words[at:], name)
		if n < 0 {
			return false
		}
		at += n
		end := at + len(name)
		if (at == 0 || !inName(words[at-1])) && (end == len(words) || !inName(words[end])) {
			return true
		}
		at = end
	}
}

// marked reports whether a text has a name in quotes, in a path, or called a parameter.
func marked(words, name string) bool {
	name = regexp.QuoteMeta(name)
	return regexp.MustCompile("['\"`\\].]" + name + "['\"`.:\\[]|(?:^|\\W)" + name + "[.:]|(?:parameter|argument|field|param|option|setting|key)s?:? " + name + `\b|\b` + name +
		" (?:parameter|argument|field|option)").MatchString(words)
}

func inName(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
}

// fields appends the optional fields of a request.
func fields(raw []byte, into []string) []string {
	for _, e := range elements(raw) {
		into = fields(e, into)
	}
	for _, m := range members(raw) {
		if !slices.Contains(needed(), strings.ToLower(m.key)) && !slices.Contains(into, m.key) {
			into = append(into, m.key)
		}
		if !slices.Contains(closed(), m.key) && (m.key != "input" || m.value[0] == '[') {
			into = fields(m.value, into)
		}
	}
	return into
}

// role reads the refusal of a role that the request has.
func role(body object, words string) (Fact, bool) {
	if noSystem().MatchString(words) {
		return Fact{Field: "role system", To: "as user"}, true
	}
	if !strings.Contains(words, "role") && !strings.Contains(words, "system message") {
		return Fact{}, false
	}
	has := map[string]bool{}
	for _, e := range append(elements(body.get("messages")), elements(body.get("input"))...) {
		var name string
		_ = json.Unmarshal(members(e).get("role"), &name) // stays "" if there is none
		has[name] = true
	}
	for _, name := range newRole().FindAllString(words, -1) {
		switch {
		case name == "developer" && has[name]:
			return Fact{Field: "role developer", To: "as system"}, true
		case name == "system" && has[name] && strings.Contains(words, "developer") && !strings.Contains(words, "not one of"):
			return Fact{Field: "role system", To: "as developer"}, true
		case name == "system" && has[name]:
			return Fact{Field: "role system", To: "as user"}, true
		}
	}
	return Fact{}, false
}

// tool reads the refusal of one tool, by its position or its name.
func tool(body object, refusal string) (Fact, bool) {
	var offered []string
	for _, e := range elements(body.get("tools")) {
		offered = append(offered, toolName(e))
	}
	if m := toolAt().FindStringSubmatch(strings.ToLower(refusal)); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil && n < len(offered) && offered[n] != "" {
			return Fact{Field: "tool " + offered[n]}, true
		}
	}
	if !strings.Contains(strings.ToLower(refusal), "schema") && !strings.Contains(strings.ToLower(refusal), "function") {
		return Fact{}, false
	}
	for _, m := range quoted().FindAllStringSubmatch(refusal, -1) {
		if slices.Contains(offered, m[1]) {
			return Fact{Field: "tool " + m[1]}, true
		}
	}
	return Fact{}, false
}

// toolName returns the name of a tool in any of the wire formats.
func toolName(raw json.RawMessage) string {
	o := members(raw)
	if inner := members(o.get("function")); inner != nil {
		o = inner
	}
	var name string
	_ = json.Unmarshal(o.get("name"), &name) // stays "" for a vendor's own tool
	return name
}

// apply applies facts to the body of a request.
func apply(body []byte, facts []Fact) []byte {
	for _, f := range facts {
		if o := members(body); o != nil {
			body = f.apply(o).encode()
		}
	}
	return body
}

func (f Fact) apply(body object) object {
	name, isTool := strings.CutPrefix(f.Field, "tool ")
	from, isRole := strings.CutPrefix(f.Field, "role ")
	if system := members(body.get("systemInstruction")); isRole && from == "system" && system != nil {
		return spoken(body, elements(system.get("parts")))
	}
	for i, m := range body {
		switch {
		case isTool && m.key == "tools":
			left := slices.DeleteFunc(elements(m.value), func(e json.RawMessage) bool { return toolName(e) == name })
			body[i].value = list(left)
		case isRole && (m.key == "messages" || m.key == "input"):
			body[i].value = recast(m.value, from, strings.TrimPrefix(f.To, "as "))
		case f.Field == "reasoning_content" && f.To == `""` && m.key == "messages":
			body[i].value = thought(m.value)
		}
	}
	if isTool {
		return slices.DeleteFunc(body, func(m member) bool { return m.key == "tools" && string(m.value) == "[]" })
	}
	if isRole || f.To == `""` {
		return body
	}
	return members(f.change(body.encode()))
}

// change removes, renames or replaces a field at any depth.
func (f Fact) change(raw json.RawMessage) json.RawMessage {
	if of := elements(raw); of != nil {
		for i, e := range of {
			of[i] = f.change(e)
		}
		return list(of)
	}
	o := members(raw)
	if o == nil {
		return raw
	}
	out := object{}
	for _, m := range o {
		switch {
		case m.key != f.Field:
			if !slices.Contains(closed(), m.key) && (m.key != "input" || m.value[0] == '[') {
				m.value = f.change(m.value)
			}
			out = append(out, m)
		case strings.HasPrefix(f.To, "as "):
			out = append(out, member{f.To[3:], m.value})
		case f.To != "":
			out = append(out, member{m.key, json.RawMessage(f.To)})
		}
	}
	return out.encode()
}

// recast changes the role of messages. Those that become a user's are merged into the front of the first user
// message, because many templates require alternating roles.
func recast(raw json.RawMessage, from, to string) json.RawMessage {
	of := elements(raw)
	var out []json.RawMessage
	lead := ""
	for _, e := range of {
		o := members(e)
		var role, text string
		_ = json.Unmarshal(o.get("role"), &role)    // stays "" if there is none
		_ = json.Unmarshal(o.get("content"), &text) // stays "" if it is not text
		for i, m := range o {
			switch {
			case m.key == "role" && role == from:
				o[i].value, _ = json.Marshal(to)
			case m.key == "content" && role == "user" && lead != "" && text != "":
				o[i].value, _ = json.Marshal(lead + "\n\n" + text)
				lead = ""
			}
		}
		if role == from && to == "user" && text != "" {
			lead = strings.TrimPrefix(lead+"\n\n"+text, "\n\n")
			continue
		}
		if o != nil {
			e = o.encode()
		}
		out = append(out, e)
	}
	if lead != "" {
		text, _ := json.Marshal(lead)
		out = append([]json.RawMessage{object{{"role", json.RawMessage(`"user"`)}, {"content", text}}.encode()}, out...)
	}
	return list(out)
}

// spoken returns a request of Gemini with the system instruction at the front of the first message.
func spoken(body object, system []json.RawMessage) object {
	body = slices.DeleteFunc(body, func(m member) bool { return m.key == "systemInstruction" })
	for i, m := range body {
		contents := elements(m.value)
		if m.key != "contents" || len(contents) == 0 {
			continue
		}
		first := members(contents[0])
		for j, f := range first {
			if f.key == "parts" {
				first[j].value = list(slices.Concat(system, elements(f.value)))
			}
		}
		contents[0] = first.encode()
		body[i].value = list(contents)
	}
	return body
}

// thought gives each message of the model a reasoning_content.
func thought(raw json.RawMessage) json.RawMessage {
	of := elements(raw)
	for i, e := range of {
		o := members(e)
		if string(o.get("role")) == `"assistant"` && o.get("reasoning_content") == nil {
			of[i] = append(o, member{"reasoning_content", json.RawMessage(`""`)}).encode()
		}
	}
	return list(of)
}
