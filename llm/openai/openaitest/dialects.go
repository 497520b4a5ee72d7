package openaitest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
)

// rules are what a server wants of a request. The zero value is OpenAI, as far
// as the shape of thoughts is not concerned.
type rules struct {
	names     []string // of Server.Dialect
	keyHeader string   // carries the key; empty: Authorization as a bearer token
	// fields of a request beside those that all take.
	fields []string
	// thoughts are the fields of a thought that a message of the model may have;
	// nil: any.
	thoughts    []string
	resultName  bool // a result may have a name
	nineIDs     bool // ids have nine letters and digits
	bridged     bool // no user behind results, and the model never speaks last
	needThought bool // calls come with reasoning_content
	needTools   bool // calls in the history need tools
	usage       bool // comes without being asked for
	mostTools   int  // that a request may have; 0: not known
	flat        bool // errors are not wrapped
	textError   bool // an error is a text
	habits      Habits
}

var nineID = regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)

// dialects are the servers that the fake can be.
func dialects() []rules {
	const options, newLimit, effort, cacheKey = "stream_options", "max_completion_tokens", "reasoning_effort", "prompt_cache_key"
	own := []string{options, newLimit, effort, cacheKey, "parallel_tool_calls", "user", "store", "metadata"}
	content, plain := []string{"reasoning_content"}, []string{"reasoning"}
	return []rules{
		{names: []string{"openai"}, fields: own, mostTools: 128, thoughts: []string{}, habits: Habits{Reasoning: "none"}},
		{names: []string{"azure"}, fields: own, mostTools: 128, thoughts: []string{}, keyHeader: "Api-Key", habits: Habits{Reasoning: "none"}},
		{
			names: []string{"openrouter"}, fields: []string{options, "reasoning", "session_id", "cache_control", "provider"}, usage: true,
			thoughts: []string{"reasoning", "reasoning_details"}, habits: Habits{Reasoning: "reasoning_details", Comments: true},
		},
		{names: []string{"huggingface"}, fields: []string{options, effort}, thoughts: content},
		{names: []string{"deepseek"}, fields: []string{options, effort, "thinking"}, thoughts: content, needThought: true},
		{
			names: []string{"groq", "cerebras"}, fields: []string{options, newLimit, effort},
			thoughts: plain, habits: Habits{Reasoning: "reasoning"},
		},
		{
			names: []string{"mistral"}, fields: []string{effort, cacheKey, "parallel_tool_calls", "random_seed"}, thoughts: []string{}, usage: true,
			resultName: true, nineIDs: true, bridged: true, flat: true, habits: Habits{Reasoning: "parts"},
		},
		{names: []string{"xai"}, mostTools: 200, fields: []string{options, newLimit, effort}, thoughts: content},
		{
			names: []string{"moonshot"}, fields: []string{options, cacheKey, "thinking"}, thoughts: content, needThought: true,
			habits: Habits{ChoiceUsage: true, SameIDs: true},
		},
		{names: []string{"zai"}, fields: []string{options, "thinking", "tool_stream"}, thoughts: content},
		{names: []string{"together"}, fields: []string{options, effort}, thoughts: plain, habits: Habits{Reasoning: "reasoning"}},
		{names: []string{"fireworks"}, fields: []string{options, effort}, thoughts: content},
		{names: []string{"litellm"}, fields: []string{options, effort}, thoughts: content, needTools: true},
		{
			names: []string{"vllm"}, fields: []string{options, effort},
			thoughts: []string{"reasoning", "reasoning_content"}, resultName: true, flat: true,
		},
		{names: []string{"llamacpp"}, fields: []string{options, effort}, thoughts: content, resultName: true},
		{names: []string{"lmstudio"}, fields: []string{options, effort}, thoughts: content, resultName: true, habits: Habits{WholeCalls: true}},
		{
			names: []string{"tgi"}, fields: []string{options, effort}, thoughts: plain, resultName: true, textError: true,
			habits: Habits{Reasoning: "reasoning", WholeCalls: true, ObjectArgs: true, NoIDs: true, NoDone: true, GrammarCalls: true},
		},
	}
}

// rulesOf returns the rules of a dialect. It panics if the fake can't be that.
func rulesOf(name string) rules {
	if name == "" {
		return rules{fields: dialects()[0].fields, mostTools: dialects()[0].mostTools}
	}
	list := dialects()
	i := slices.IndexFunc(list, func(r rules) bool { return slices.Contains(r.names, name) })
	if i < 0 {
		panic("openaitest: no rules for " + name)
	}
	return list[i]
}

// ValidateAs returns the objection of the server of that name to a request, nil
// if there is none. Its name is that of a Server's Dialect.
func ValidateAs(dialect string, body []byte) error {
	return rulesOf(dialect).validate(body, &request{})
}

// takes reports whether a request may have the field.
func (r rules) takes(field string) bool {
	common := []string{"model", "stream", "messages", "tools", "tool_choice", "max_tokens", "temperature", "top_p", "stop"}
	return slices.Contains(common, field) || slices.Contains(r.fields, field)
}

// history refuses what only some servers do.
func (r rules) history(req *request) error {
	calls := false
	for i, m := range req.Messages {
		if err := r.message(i, m); err != nil {
			return err
		}
		calls = calls || len(m.ToolCalls) > 0
		if r.bridged && i > 0 && m.Role == "user" && req.Messages[i-1].Role == "tool" {
			return refuse("Unexpected role 'user' after role 'tool'")
		}
	}
	switch {
	case r.bridged && req.Messages[len(req.Messages)-1].Role == "assistant":
		return refuse("Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant")
	case r.needTools && calls && req.Tools == nil:
		return refuse("litellm.UnsupportedParamsError: Anthropic expects the `tools=` param to be passed in.")
	}
	return nil
}

func (r rules) message(i int, m message) error {
	for field := range m.fields {
		switch field {
		case "role", "content", "tool_calls", "tool_call_id":
			continue
		case "name":
			if r.resultName || m.Role != "tool" {
				continue
			}
		case "reasoning_content", "reasoning", "reasoning_details":
			if r.thoughts == nil || slices.Contains(r.thoughts, field) {
				continue
			}
		}
		return refuse("property 'messages.%d.%s' is unsupported", i, field)
	}
	for _, c := range m.ToolCalls {
		if r.nineIDs && !nineID.MatchString(c.ID) {
			return refuse("Tool call id was %s but must be a-z, A-Z, 0-9, with a length of 9.", c.ID)
		}
	}
	if _, thought := m.fields["reasoning_content"]; r.needThought && len(m.ToolCalls) > 0 && !thought {
		return refuse("The reasoning_content in the thinking mode must be passed back to the API. (messages[%d])", i)
	}
	return nil
}

// errorBody is the body of an error in the form of the server.
func (r rules) errorBody(a Answer) []byte {
	switch {
	case a.Body != "" || !r.flat && !r.textError:
		return errorBody(a)
	case r.textError:
		return marshal(map[string]any{"error": a.Message, "error_type": a.Type})
	}
	return marshal(map[string]any{"object": "error", "message": a.Message, "type": a.Type, "param": nil, "code": a.Code})
}

func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("openaitest: %v", err)) // made here
	}
	return b
}
