package prompted

// A form is a way in which models write calls.
type form struct {
	open string
	// closers end it, in this order; each may be missing.
	closers []string
	// fence is the number of backticks of a fenced form.
	fence int
	// whole: it counts only as all of a reply.
	whole bool
	// named: the name of the tool follows what opens it.
	named bool
}

// sure reports whether a call of this form is one as soon as its name is read.
// Of the others more must be seen.
func (f form) sure() bool { return !f.whole && f.fence == 0 }

// forms are those that begin with a mark; fenced ones are found by their fence.
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
//
// Several objects may stand in one form. A call counts only if it names a tool
// that is offered; and in the last four, if it has arguments. Anything else is
// text, and so is whatever stands in thoughts before the reply, in a line of code or in
// another block.
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
	}
}

const (
	functionMark  = "<function="
	functionEnd   = "</function>"
	parameterMark = "<parameter="
	parameterEnd  = "</parameter>"
	// maxName bounds the marks and names that are waited for, in bytes.
	maxName = 128
	// madeUp opens results that a model writes itself, behind its own calls.
	madeUp = "<tool_response>"
	space  = " \t\r\n"
)

// thoughts are the tags around what models think aloud before they reply.
func thoughts() []string { return []string{"think", "thinking", "thought", "reasoning"} }

// fenced reports whether a code block of this language may be a call.
func fenced(language string) bool {
	return language == "" || language == "json" || language == "tool_call" || language == "xml"
}
