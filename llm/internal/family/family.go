// Package family knows what the models of one family want and write, whoever serves them. What one
// server wants is a matter of its adapter.
//
// How families write calls and thoughts into their text is not here: any model may fall into the
// habit of any other, so that package prompted reads all forms from all of them.
package family

import (
	"slices"
	"strings"
)

// Family is what models of one origin have in common. The zero value is a model of which nothing is
// known.
type Family struct {
	Name string
	// EmptyThought: what the model says has reasoning_content where there are tools, even if nothing was thought.
	EmptyThought bool
	// KeepsThoughts: thoughts that it wrote into its text go back there.
	KeepsThoughts bool
	// NineIDs: ids of calls have nine letters and digits.
	NineIDs bool
	// OneChannel: a message with calls has a text or a thought, not both.
	OneChannel bool
	// OneCall: a message has one call at most.
	OneCall bool
	// Bridge: results of tools are followed by the model, never by the user.
	Bridge bool
}

// families is the table. A model belongs to the first one of which a word is in its name.
func families() []struct {
	words []string
	Family
} {
	type row = struct {
		words []string
		Family
	}
	return []row{
		// A distilled R1 is another family's model with DeepSeek's thoughts: its template knows no field for them.
		{[]string{"r1-distill"}, Family{Name: "deepseek"}},
		// api-docs.deepseek.com/guides/thinking_mode: "must be passed back"; behind gateways too.
		{[]string{"deepseek"}, Family{Name: "deepseek", EmptyThought: true}},
		// platform.moonshot.ai/docs/guide/use-kimi-k2-thinking-model
		{[]string{"kimi", "moonshot"}, Family{Name: "kimi", EmptyThought: true}},
		// platform.minimax.io/docs/guides/text-m2-function-call: the content goes back as it came
		{[]string{"minimax"}, Family{Name: "minimax", KeepsThoughts: true}},
		// docs.mistral.ai/capabilities/function_calling, and the templates of the open models
		{
			[]string{"mistral", "ministral", "magistral", "mixtral", "devstral", "codestral", "pixtral", "voxtral"},
			Family{Name: "mistral", NineIDs: true, Bridge: true},
		},
		// huggingface.co/openai/gpt-oss-20b, chat_template.jinja: "Cannot pass both content and thinking in an assistant
		// message with tool calls!", and of several calls it shows the first
		{[]string{"gpt-oss"}, Family{Name: "gpt-oss", OneChannel: true, OneCall: true}},
		{[]string{"hermes"}, Family{Name: "hermes"}},
		{[]string{"qwen", "qwq", "qvq"}, Family{Name: "qwen"}},
		{[]string{"glm", "chatglm"}, Family{Name: "glm"}},
		{[]string{"llama-4", "llama4"}, Family{Name: "llama"}},
		// huggingface.co/meta-llama/Llama-3.1-8B-Instruct, -3.2-3B-Instruct and -3.3-70B-Instruct, tokenizer_config.json:
		// "This model only supports single tool-calls at once!"
		{[]string{"llama"}, Family{Name: "llama", OneCall: true}},
		{[]string{"gemma"}, Family{Name: "gemma"}},
	}
}

// Of returns the family of a model by its name, however a server spells it:
//
//	deepseek/deepseek-chat   Qwen/Qwen3-32B   qwen2.5-coder:7b   accounts/fireworks/models/glm-4p5
//
// The words before the last "/" count as well, as some servers name models by a version alone, but the
// last part goes first: "nousresearch/deephermes-mistral" is what stands behind the "/".
func Of(id string) Family {
	id = strings.ToLower(id)
	at := strings.LastIndexByte(id, '/') + 1
	for _, part := range []string{id[at:], id[:at]} {
		for _, f := range families() {
			if slices.ContainsFunc(f.words, func(w string) bool { return named(part, w) }) {
				return f.Family
			}
		}
	}
	return Family{}
}

// named reports whether name has a word. What stands before it is no letter, or another name glued to
// it, as in "codellama".
func named(name, word string) bool {
	i := strings.Index(name, word)
	return i >= 0 && (len(word) > 3 || i == 0 || name[i-1] < 'a' || name[i-1] > 'z')
}
