package prompted

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
	// block reads everything between the opening and the closer; nil: the form is read as it arrives. Each of the
	// closers ends it.
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
		{open: functionMark, closers: []string{functionEnd, called}, named: true},
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
		{open: "<minimax:tool_call>", closers: []string{"</minimax:tool_call>"}, block: invokeBlock},
		{open: "<function_calls>", closers: []string{"</function_calls>"}, block: invokeBlock},
		{open: "<|tool_call>", closers: []string{"<tool_call|>"}, block: gemmaBlock},
	}
}

const (
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

// templateMarks are the marks that templates put around a message. They are removed from its ends.
func templateMarks() []string {
	return []string{
		"<|im_start|>assistant", "<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|endoftext|>", "<|end_of_turn|>",
		"<end_of_turn>", "<start_of_turn>model", "<eos>", "</s>", "<|end|>", "<|return|>", "<|call|>", "<|assistant|>", "<|user|>", "<|observation|>",
		"<|begin_of_text|>", "<|start_header_id|>assistant<|end_header_id|>", "<｜end▁of▁sentence｜>", "<｜begin▁of▁sentence｜>", "<｜Assistant｜>",
		"<|end_of_sentence|>", "[/INST]", "<|END_RESPONSE|>", "<|START_RESPONSE|>", "<turn|>", "<|start|>assistant", "<|start|>", "<|channel|>final", "<|channel|>", "<|message|>",
	}
}

// fenced reports whether a code block of this language may be a call.
func fenced(language string) bool {
	return language == "" || language == "json" || language == "tool_call" || language == "xml"
}
