package openaitest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// rules are a server's requirements for a request. The zero value is OpenAI, except for the shape of thoughts.
type rules struct {
	names     []string // of Server.Dialect
	keyHeader string   // carries the key; empty means Authorization as a bearer token
	// fields of a request in addition to those that all take.
	fields []string
	// thoughts are the fields of a thought that a message of the model may have; nil means any.
	thoughts    []string
	resultName  bool // a result may have a name
	nineIDs     bool // ids have nine letters and digits
	bridged     bool // no user after results, and the model never speaks last
	needThought bool // what the model says comes with reasoning_content, where there are tools
	developer   bool // there is a role of that name
	firstSystem bool // there is one system message at most, which is the first
	needUser    bool // someone has asked
	alternates  bool // neither a user nor a model speaks twice in a row
	noBlank     bool // no text is blank
	onlyText    bool // there are no images
	asksLast    bool // the model does not speak last
	wordChoice  bool // tool_choice is a word
	oneChannel  bool // models of gpt-oss have no message with calls, a text and a thought
	oneCall     bool // models of Llama 3 and gpt-oss have no message with several calls
	uniqueIDs   bool // no id stands for two calls
	mostImages  int  // of a request; 0 means unknown
	mostTurns   int  // messages of a request; 0 means unknown
	needTools   bool // calls in the history need tools
	usage       bool // comes without being asked for
	mostTools   int  // that a request may have; 0 means unknown
	flat        bool // errors are not wrapped
	textError   bool // an error is a text
	habits      Habits
}

var nineID = regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)

// mostImages and mostImageBytes are the limits of OpenAI for one request.
const (
	mostImages     = 500
	mostImageBytes = 50 << 20
)

// dialects are the servers that the fake can be. Their further refusals are known from their documents and from
// reports:
//
//   - system messages that are not the first: vllm-project/vllm#41114, itayinbarr/fish-ai#622
//   - roles that don't alternate: vllm-project/vllm#6862
//   - no message of a user: lmstudio-ai/lmstudio-bug-tracker#1586, sst/opencode#2557 (Z.ai, code 1214)
//   - a role developer: lmstudio-ai/lmstudio-bug-tracker#669; tool_choice as an object: #670 there
//   - the model speaks last: ggml-org/llama.cpp#20861
//   - several calls in a message: the chat templates of Llama 3 (meta-llama/Llama-3.1-8B-Instruct) refuse
//     them, that of gpt-oss drops all but the first
//   - text, thought and calls of gpt-oss in one message: ggml-org/llama.cpp#17040
//   - images: 1jehuang/jcode#310 (DeepSeek); 8 at most: Mistral, badlogic/pi#120
//   - thoughts that are left out: badlogic/pi#3636, openclaude#878 (DeepSeek, also where nothing was thought),
//     mastra-ai/mastra#12592 (Moonshot)
//   - blank texts, and equal ids anywhere in the talk: MoonshotAI/kimi-cli#2035, MoonshotAI/kimi-code#1985
//   - ids of Mistral: nearai/ironclaw#1241; a user after results: onyx-dot-app/onyx#6458; fields that it does not
//     know: charmbracelet/crush#1590; a message with neither text nor calls: solbrowse#16
//   - 500 images of 50 MB at most: platform.openai.com/docs/guides/images-vision
//   - 2,048 messages at most: learn.microsoft.com/azure/ai-foundry/openai/quotas-limits
//   - 128 tools at most at Groq: gsd-2#4376
func dialects() []rules {
	const options, newLimit, effort, cacheKey = "stream_options", "max_completion_tokens", "reasoning_effort", "prompt_cache_key"
	own := []string{options, newLimit, effort, cacheKey, "parallel_tool_calls", "user", "store", "metadata"}
	content, plain := []string{"reasoning_content"}, []string{"reasoning"}
	return []rules{
		{names: []string{"openai"}, fields: own, developer: true, mostTools: 128, mostImages: mostImages, thoughts: []string{}, habits: Habits{Reasoning: "none"}},
		{
			names: []string{"azure"}, fields: own, mostTools: 128, mostImages: mostImages, mostTurns: 2048, developer: true, thoughts: []string{}, keyHeader: "Api-Key",
			habits: Habits{Reasoning: "none"},
		},
		{
			names: []string{"openrouter"}, fields: []string{options, "reasoning", "session_id", "cache_control", "provider"}, usage: true,
			thoughts: []string{"reasoning", "reasoning_details"}, habits: Habits{Reasoning: "reasoning_details", Comments: true},
		},
		{names: []string{"huggingface"}, fields: []string{options, effort}, thoughts: content},
		{names: []string{"deepseek"}, fields: []string{options, effort, "thinking"}, thoughts: content, needThought: true, onlyText: true},
		{
			names: []string{"groq", "cerebras"}, fields: []string{options, newLimit, effort}, mostTools: 128,
			thoughts: plain, habits: Habits{Reasoning: "reasoning"},
		},
		{
			names: []string{"mistral"}, fields: []string{effort, cacheKey, "parallel_tool_calls", "random_seed"}, thoughts: []string{}, usage: true,
			resultName: true, nineIDs: true, bridged: true, firstSystem: true, alternates: true, noBlank: true, mostImages: 8, flat: true, habits: Habits{Reasoning: "parts"},
		},
		{names: []string{"xai"}, mostTools: 200, fields: []string{options, newLimit, effort}, thoughts: content},
		{
			names: []string{"moonshot"}, fields: []string{options, cacheKey, "thinking"}, thoughts: content, needThought: true, noBlank: true, uniqueIDs: true,
			habits: Habits{ChoiceUsage: true, SameIDs: true},
		},
		{names: []string{"zai"}, fields: []string{options, "thinking", "tool_stream"}, thoughts: content, needUser: true},
		{names: []string{"together"}, fields: []string{options, effort}, thoughts: plain, habits: Habits{Reasoning: "reasoning"}},
		{names: []string{"fireworks"}, fields: []string{options, effort}, thoughts: content},
		{names: []string{"litellm"}, fields: []string{options, effort}, thoughts: content, needTools: true},
		{
			names: []string{"vllm"}, fields: []string{options, effort},
			thoughts: []string{"reasoning", "reasoning_content"}, resultName: true, firstSystem: true, alternates: true, needUser: true, oneCall: true, flat: true,
		},
		{
			names: []string{"llamacpp"}, fields: []string{options, effort}, thoughts: content, resultName: true, firstSystem: true, alternates: true,
			asksLast: true, oneChannel: true, oneCall: true,
		},
		{
			names: []string{"lmstudio"}, fields: []string{options, effort}, thoughts: content, resultName: true, firstSystem: true, needUser: true,
			wordChoice: true, oneChannel: true, oneCall: true, habits: Habits{WholeCalls: true},
		},
		{
			names: []string{"tgi"}, fields: []string{options, effort}, thoughts: plain, resultName: true, textError: true,
			habits: Habits{Reasoning: "reasoning", WholeCalls: true, ObjectArgs: true, NoIDs: true, NoDone: true, GrammarCalls: true},
		},
	}
}

// rulesOf returns the rules of a dialect. It panics for an unknown one.
func rulesOf(name string) rules {
	if name == "" {
		return rules{fields: dialects()[0].fields, mostTools: dialects()[0].mostTools, developer: true}
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

// history refuses histories that only some servers refuse.
func (r rules) history(req *request) error {
	calls, users, images, imageBytes, ids, before := false, 0, 0, 0, map[string]bool{}, ""
	for i, m := range req.Messages {
		if err := r.message(i, m); err != nil {
			return err
		}
		switch {
		case m.Role == "system" && i > 0 && r.firstSystem:
			return refuse("System message must be at the beginning. (messages[%d])", i)
		case r.alternates && m.Role == before && (m.Role == "user" || m.Role == "assistant"):
			return refuse("Conversation roles must alternate user/assistant/user/assistant/... (messages[%d])", i)
		case r.bridged && m.Role == "user" && before == "tool":
			return refuse("Unexpected role 'user' after role 'tool'")
		case m.Role == "user":
			users++
		}
		for _, c := range m.ToolCalls {
			if r.uniqueIDs && ids[c.ID] {
				return refuse("tool_call_id %s is duplicated", c.ID)
			}
			ids[c.ID] = true
		}
		for _, p := range m.parts() {
			if p.Type == "image_url" {
				images++
				imageBytes += len(p.ImageURL.URL)
			}
		}
		_, thought := m.fields["reasoning_content"]
		if r.needThought && m.Role == "assistant" && (req.Tools != nil || len(m.ToolCalls) > 0) && !thought {
			return refuse("The reasoning_content in the thinking mode must be passed back to the API. (messages[%d])", i)
		}
		if single := strings.ToLower(req.Model); r.oneCall && len(m.ToolCalls) > 1 && (strings.Contains(single, "llama-3") || strings.Contains(single, "gpt-oss")) {
			return refuse("This model only supports single tool-calls at once! (messages[%d])", i)
		}
		if r.oneChannel && strings.Contains(req.Model, "gpt-oss") && thought && m.text() != "" && len(m.ToolCalls) > 0 {
			return refuse("Cannot pass both content and thinking in an assistant message with tool calls! (messages[%d])", i)
		}
		calls, before = calls || len(m.ToolCalls) > 0, m.Role
	}
	_, word := req.ToolChoice.(string)
	switch {
	case r.bridged && before == "assistant":
		return refuse("Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant")
	case r.asksLast && before == "assistant":
		return refuse("Assistant response prefill is incompatible with enable_thinking.")
	case r.needTools && calls && req.Tools == nil:
		return refuse("litellm.UnsupportedParamsError: Anthropic expects the `tools=` param to be passed in.")
	case r.needUser && users == 0:
		return refuse("Error rendering prompt with jinja template: \"No user query found in messages.\"")
	case r.wordChoice && req.ToolChoice != nil && !word:
		return refuse("Invalid tool_choice type: 'object'. Supported string values: none, auto, required")
	case r.onlyText && images > 0:
		return refuse("Failed to deserialize the JSON body into the target type: messages: unknown variant `image_url`, expected `text`")
	case r.mostImages == mostImages && imageBytes > mostImageBytes:
		return refuse("The total size of the images exceeds the limit of 50MB.")
	case r.mostImages > 0 && images > r.mostImages:
		return refuse("Too many images: %d, at most %d", images, r.mostImages)
	case r.mostTurns > 0 && len(req.Messages) > r.mostTurns:
		return refuse("Invalid 'messages': array too long. Expected an array with maximum length %d, but got an array with length %d instead.",
			r.mostTurns, len(req.Messages))
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
	if m.Role == "developer" && !r.developer {
		return refuse("Unexpected message role: developer (messages[%d])", i)
	}
	if r.noBlank && m.Role != "tool" {
		texts := m.parts()
		if s := m.text(); len(m.Content) > 0 && m.Content[0] == '"' {
			texts = []part{{Type: "text", Text: s}}
		}
		for _, p := range texts {
			if p.Type == "text" && strings.TrimSpace(p.Text) == "" {
				return refuse("Invalid request: text content is empty (messages[%d])", i)
			}
		}
	}
	for _, c := range m.ToolCalls {
		if r.nineIDs && !nineID.MatchString(c.ID) {
			return refuse("Tool call id was %s but must be a-z, A-Z, 0-9, with a length of 9.", c.ID)
		}
	}
	return nil
}

// errorBody returns the body of an error in the server's form.
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
