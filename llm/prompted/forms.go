package prompted

import (
	"strings"

	"github.com/inspan/inspan/internal/base/text"
)

// A form is a notation in which models write calls.
type form struct {
	open string
	// closers end it, in this order; each may be missing.
	closers []string
	// fence is the number of backticks of a fenced form.
	fence int
	// whole: it counts only if it is the whole reply.
	whole bool
	// named: the name of the tool follows the opening.
	named bool
	// block reads everything between the opening and the closer; nil means the form is read as it arrives. Each of
	// the closers ends it.
	block block
}

// sure reports whether a call of this form is certain once its name is read. The others need more text.
func (f form) sure() bool { return !f.whole && f.fence == 0 }

// forms lists the forms that begin with a mark; fenced ones are found by their fence.
//
//	what the model writes                            whose habit it is
//	---------------------------------------------    -----------------------------
//	<tool_call>{"name":…,"arguments":{…}}</tool_call> Hermes, Qwen, and what we ask for
//	<tools>{"name":…,"arguments":{…}}</tools>        Qwen2.5-Coder
//	<function=NAME>{…}</function>                    Llama 3.1 with own tools
//	<function=NAME><parameter=P>…</parameter>…       Qwen3-Coder, also in <tool_call>
//	[TOOL_CALLS] [{"name":…,"arguments":{…}}]        Mistral
//	<|python_tag|>{"name":…,"parameters":{…}}        Llama 3.1, as the whole reply
//	{"name":…,"parameters":{…}}, [{"name":…}]        the same and Mistral, without the mark
//	```json, ```tool_call, ``` around an object      models that were not trained for calls
//	the same, or ```xml, around one of the tags      the same
//	<tool_call>NAME<arg_key>K</arg_key>…             GLM 4.5
//	[TOOL_CALLS]NAME[ARGS]{…}                        Mistral since its tokenizer v11
//	<|tool_calls_section_begin|>…                    Kimi K2
//	<｜tool▁calls▁begin｜>…                           DeepSeek V3, R1, V3.1
//	<｜DSML｜function_calls><｜DSML｜invoke name=…       DeepSeek V3.2
//	<minimax:tool_call><invoke name=…                MiniMax M2; Claude has other tags around it
//	<|tool_call>call:NAME{…}<tool_call|>             Gemma 4
//	<|tool_call|>[{"name":…,"arguments":{…}}]        Granite, Phi-4-mini
//	<tool_calls>, <TOOLCALL>, <function_call> …      Hunyuan, MiniMax M1, Nemotron
//	<|START_ACTION|>[{"tool_name":…}]<|END_ACTION|>  Command R7B and Command A
//	<|action_start|><|plugin|>{"name":…}             InternLM
//	<seed:tool_call><function=NAME>…                 Seed-OSS
//	[NAME(key="value")], also in <|python_start|>    Llama 4, Llama 3.2, Olmo 3
//	<|channel|>commentary to=functions.NAME…         gpt-oss, see harmony.go
//
// One form may hold several objects. A call counts only if it names an offered tool; in a form that is not sure it must
// also have arguments. Anything else is text, as is everything in thoughts before the reply, in inline code or in
// another code block.
func forms() []form {
	const called = "</tool_call>"
	return []form{
		{open: "<tool_call>", closers: []string{called}},
		{open: "<tools>", closers: []string{"</tools>"}},
		{open: seedMark, closers: []string{"</seed:tool_call>"}},
		{open: "<|tool_call|>", closers: []string{"<|/tool_call|>"}},
		{open: "<tool_calls>", closers: []string{"</tool_calls>"}},
		{open: "<TOOLCALL>", closers: []string{"</TOOLCALL>"}},
		{open: "<TOOL_CALL>", closers: []string{"</TOOL_CALL>"}},
		{open: "<function_call>", closers: []string{"</function_call>"}},
		{open: "<tool_use>", closers: []string{"</tool_use>"}},
		{open: "<|START_ACTION|>", closers: []string{"<|END_ACTION|>"}},
		{open: "<|action_start|><|plugin|>", closers: []string{"<|action_end|>"}},
		{open: functionMark, closers: []string{functionEnd, called, "</seed:tool_call>"}, named: true},
		{open: "[TOOL_CALLS]"},
		{open: "<|python_tag|>", closers: []string{"<|eom_id|>", "<|eot_id|>"}, whole: true},
		{open: "{", whole: true},
		{open: "[", whole: true},
		{open: "<|tool_calls_section_begin|>", closers: []string{"<|tool_calls_section_end|>"}, block: kimiBlock},
		{open: "<|tool_call_begin|>", closers: []string{"<|tool_call_end|>"}, block: kimiBlock},
		{open: "<｜tool▁calls▁begin｜>", closers: []string{"<｜tool▁calls▁end｜>"}, block: deepseekBlock},
		{open: "<|tool▁calls▁begin|>", closers: []string{"<|tool▁calls▁end|>"}, block: deepseekBlock},
		{open: "<|tool_calls_begin|>", closers: []string{"<|tool_calls_end|>"}, block: deepseekBlock},
		{open: "<｜tool▁call▁begin｜>", closers: []string{"<｜tool▁call▁end｜>"}, block: deepseekBlock},
		{open: "<｜DSML｜function_calls>", closers: []string{"</｜DSML｜function_calls>"}, block: invokeBlock},
		{open: "<｜DSML｜tool_calls>", closers: []string{"</｜DSML｜tool_calls>"}, block: invokeBlock},
		{open: "<|DSML|function_calls>", closers: []string{"</|DSML|function_calls>"}, block: invokeBlock},
		{open: "<|DSML|tool_calls>", closers: []string{"</|DSML|tool_calls>"}, block: invokeBlock},
		lone("｜DSML｜"), lone("|DSML|"), lone(""),
		{open: "<minimax:tool_call>", closers: []string{"</minimax:tool_call>"}, block: invokeBlock},
		{open: "<function_calls>", closers: []string{"</function_calls>"}, block: invokeBlock},
		{open: "<|python_start|>", closers: []string{"<|python_end|>"}, block: pythonBlock},
		{open: "<|tool_call>", closers: []string{"<tool_call|>"}, block: gemmaBlock},
	}
}

// lone returns the form of an invocation without the tags around all of them.
func lone(prefix string) form {
	open := "<" + prefix + "invoke "
	return form{open: open, closers: []string{"</" + prefix + "invoke>"}, block: func(body string) []raw { return invokeBlock(open + body) }}
}

const (
	seedMark      = "<seed:tool_call>"
	functionMark  = "<function="
	functionEnd   = "</function>"
	parameterMark = "<parameter="
	parameterEnd  = "</parameter>"
	// maxName bounds the marks and names that the scanner waits for, in bytes.
	maxName = 128
	// madeUp opens results that a model invents behind its own calls.
	madeUp = "<tool_response>"
	space  = " \t\r\n"
)

// thoughts lists the marks around a model's thoughts before its reply.
func thoughts() [][2]string {
	var list [][2]string
	for _, name := range []string{"think", "thinking", "thought", "thoughts", "reasoning", "reason", "seed:think"} {
		list = append(list, [2]string{"<" + name + ">", "</" + name + ">"})
	}
	return append(list, [2]string{"◁think▷", "◁/think▷"}, [2]string{"[THINK]", "[/THINK]"}, [2]string{"<|START_THINKING|>", "<|END_THINKING|>"},
		[2]string{"<|channel>thought", "<channel|>"})
}

// templateMarks are the marks that templates put around a message, apart from those that anyMark matches. They are
// removed from its ends.
func templateMarks() []string {
	return []string{
		"<|im_start|>assistant", "<|im_assistant|>assistant<|im_middle|>", "<|start|>assistant", "<|channel|>final",
		"<|start_header_id|>assistant<|end_header_id|>", "<|header_start|>assistant<|header_end|>",
		"<|start_of_role|>assistant<|end_of_role|>", "<end_of_turn>", "<start_of_turn>model", "<turn|>", "<bos>", "<eos>", "<s>", "</s>",
		"[INST]", "[/INST]", "[EOS]", "[gMASK]<sop>", "[|assistant|]", "[|endofturn|]", "<seed:bos>assistant", "<seed:eos>", "[e~[",
	}
}

// anyMark matches a mark in the form that most templates use, and unfinished the beginning of one.
var (
	anyMark    = text.Pattern(`^<[|｜][\w▁]{1,40}[|｜]>`)
	unfinished = text.Pattern(`^<[|｜][\w▁]{0,40}[|｜]?$`)
)

// bare reports whether a text has nothing but marks of calls, as a reply that ends where a call should begin.
func bare(text string) bool {
	rest := strings.ReplaceAll(text, madeUp, "")
	for _, f := range forms() {
		if !f.whole {
			for _, mark := range append(f.closers, f.open) {
				rest = strings.ReplaceAll(rest, mark, "")
			}
		}
	}
	return rest != text && strings.TrimSpace(rest) == ""
}

// fenced reports whether a code block of this language may be a call.
func fenced(language string) bool {
	return language == "" || language == "json" || language == "tool_call" || language == "xml"
}
