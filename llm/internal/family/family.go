// Package family has the properties that the models of one family share on any server. The properties of a server
// belong to its adapter.
//
// The ways in which families write calls and thoughts into their text are not here: any model may fall into the
// habits of any other, so package prompted reads all forms from all models.
package family

import (
	"slices"
	"strings"
)

// Family is a set of properties of models from one origin. The zero value stands for an unknown model.
type Family struct {
	Name string
	// EmptyThought: the model's messages have reasoning_content once there are tools, even without a thought.
	EmptyThought bool
	// KeepsThoughts: thoughts that it wrote into its text go back in the text.
	KeepsThoughts bool
	// NineIDs: ids of calls have nine letters and digits.
	NineIDs bool
	// OneChannel: a message with calls has either a text or a thought.
	OneChannel bool
	// OneCall: a message has at most one call.
	OneCall bool
	// Bridge: the model speaks after results of tools, never the user.
	Bridge bool
}

// families is the table. A model belongs to the first family with a word in its name.
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
		// platform.minimax.io/docs/guides/text-m2-function-call: the content goes back unchanged
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
// The words before the last "/" count as well, because some servers name models by a version alone, but the last
// part takes precedence: in "nousresearch/deephermes-mistral" it decides.
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

// named reports whether name contains a word. One of up to three letters must begin at a boundary; others may follow
// another name, as in "codellama".
func named(name, word string) bool {
	i := strings.Index(name, word)
	return i >= 0 && (len(word) > 3 || i == 0 || name[i-1] < 'a' || name[i-1] > 'z')
}
