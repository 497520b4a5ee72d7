package prompted_test

import (
	"encoding/json"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/prompted"
)

// habit is a reply of a family as a server passes it on that has no parser for it, or a broken one.
type habit struct {
	name, text string
	want       string
	stop       llm.Stop // empty means calls
}

// habits are the forms in which the chat templates of the families have calls and thoughts written:
// tokenizer_config.json and chat_template.jinja of the models named at huggingface.co, and the parsers of
// vLLM (vllm/tool_parsers), SGLang (srt/function_call) and llama.cpp (common/chat.cpp) that read them.
func habits() []habit {
	const fence = "```"
	said := func(name, text, want string) habit { return habit{name, text, want, llm.StopSpoken} }
	end := func(name, text, want string) habit { return habit{name, text, want, llm.StopEnd} }
	return []habit{
		// NousResearch/Hermes-3, Qwen/Qwen3-32B
		{"hermes", "I read.\n<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>", `I read. ⏎ read{"path":"a"}`, ""},
		{"qwen, two", "<think>\nhm\n</think>\n\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>\n<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"b\"}}\n</tool_call><|im_end|>", "(\nhm\n) ⏎ now{} ⏎ read{\"path\":\"b\"}", ""},
		// Qwen/Qwen2.5-Coder-7B-Instruct: a fence, or nothing around it
		{"qwen coder, a fence", fence + "json\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n" + fence, `read{"path":"a"}`, ""},
		{"qwen coder, bare", `{"name": "read", "arguments": {"path": "a"}}`, `read{"path":"a"}`, ""},
		{"qwen coder, the braces of a template", `{{"name": "read", "arguments": {"path": "a"}}}`, `read{"path":"a"}`, ""},
		{"qwen coder, and one more", "{{\"name\": \"read\", \"arguments\": {\"path\": \"a}}\"}}}}\n", `read{"path":"a}}"}`, ""},
		end("an answer in doubled braces", `{{"age": 3}}`, `{{"age": 3}}`),
		end("doubled braces that are no call", `Write {{"name": "Ann"}} there.`, `Write {{"name": "Ann"}} there.`),
		// Qwen/Qwen3-Coder-30B-A3B-Instruct; the first mark is often missing
		{"qwen3 coder", "<tool_call>\n<function=read>\n<parameter=path>\na\n</parameter>\n</function>\n</tool_call>", `read{"path":"a"}`, ""},
		{"qwen3 coder, no start", "I read.\n<function=read>\n<parameter=path>\na\n</parameter>\n</function>\n</tool_call>", `I read. ⏎ read{"path":"a"}`, ""},
		// Qwen/Qwen3-30B-A3B-Thinking-2507: the template has the start of the thought
		end("qwen thinking", "secret\n</think>\n\nThe answer", "(secret) ⏎ The answer"),
		// zai-org/GLM-4.5, and GLM-4.7 without newlines
		{"glm", "<tool_call>read\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n</tool_call>", `read{"path":"a"}`, ""},
		{"glm 4.7, two", "<tool_call>now</tool_call><tool_call>read<arg_key>path</arg_key><arg_value>x < y</arg_value></tool_call>", `now{} ⏎ read{"path":"x < y"}`, ""},
		{"glm, a mark in the name", "<tool_call>{\"name\": \"read</arg_value>\", \"arguments\": {\"path\": \"a\"}}</tool_call><|observation|>", `read{"path":"a"}`, ""},
		// mistralai/Mistral-Small-3.1 and Devstral (tokenizer v11 and later)
		{"mistral", `[TOOL_CALLS][{"name": "read", "arguments": {"path": "a"}, "id": "abcdefghi"}]</s>`, `read{"path":"a"}`, ""},
		{"mistral v11", `On it.[TOOL_CALLS]read[ARGS]{"path": "a"}[TOOL_CALLS]now[CALL_ID]abcdefghi[ARGS]{}</s>`, `On it. ⏎ read{"path":"a"} ⏎ now{}`, ""},
		end("magistral", "[THINK]hm[/THINK]Yes.", "(hm) ⏎ Yes."),
		// moonshotai/Kimi-K2-Instruct
		{"kimi", "Reading.<|tool_calls_section_begin|><|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>{\"path\": \"a\"}<|tool_call_end|><|tool_call_begin|>functions.now:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|><|im_end|>", `Reading. ⏎ read{"path":"a"} ⏎ now{}`, ""},
		{"kimi, not closed", "<|tool_calls_section_begin|><|tool_call_begin|>functions.now:3<|tool_call_argument_begin|>{}<|tool_call_end|>", `now{}`, ""},
		// deepseek-ai/DeepSeek-V3-0324, DeepSeek-R1, DeepSeek-V3.1, DeepSeek-V3.2
		{"deepseek v3", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read\n" + fence + "json\n{\"path\": \"a\"}\n" + fence + "<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>", `read{"path":"a"}`, ""},
		{"deepseek v3.1", "<think>so</think><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read<｜tool▁sep｜>{\"path\": \"a\"}<｜tool▁call▁end｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>", `(so) ⏎ read{"path":"a"} ⏎ now{}`, ""},
		{"deepseek v3.2", "Go.\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"read\">\n<｜DSML｜parameter name=\"path\" string=\"true\">a</｜DSML｜parameter>\n<｜DSML｜parameter name=\"n\" string=\"false\">3</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>", `Go. ⏎ read{"path":"a","n":3}`, ""},
		// MiniMaxAI/MiniMax-M2
		{"minimax", "<think>\nok\n</think>\n<minimax:tool_call>\n<invoke name=\"read\">\n<parameter name=\"path\">a</parameter>\n</invoke>\n</minimax:tool_call>", "(\nok\n) ⏎ read{\"path\":\"a\"}", ""},
		{"claude's tags", "<function_calls>\n<invoke name=\"now\">\n</invoke>\n</function_calls>", `now{}`, ""},
		// openai/gpt-oss-20b
		{"gpt-oss", "<|channel|>analysis<|message|>I look.<|end|><|start|>assistant<|channel|>commentary to=functions.read <|constrain|>json<|message|>{\"path\": \"a\"}<|call|>", `(I look.) ⏎ read{"path":"a"}`, ""},
		{"gpt-oss, to the tool first", "<|start|>assistant to=functions.now<|channel|>commentary json<|message|>{}", `now{}`, ""},
		end("gpt-oss, an answer", "<|channel|>analysis<|message|>I know.<|end|><|start|>assistant<|channel|>final<|message|>The answer<|return|>", "(I know.) ⏎ The answer"),
		// meta-llama/Llama-3.1-8B-Instruct, Llama-3.3-70B-Instruct
		{"llama", `<|python_tag|>{"name": "read", "parameters": {"path": "a"}}<|eom_id|>`, `read{"path":"a"}`, ""},
		{"llama, bare", `{"type": "function", "name": "read", "parameters": {"path": "a"}}<|eot_id|>`, `read{"path":"a"}`, ""},
		{"llama, own tags", `<function=read>{"path": "a"}</function>`, `read{"path":"a"}`, ""},
		// meta-llama/Llama-4-Scout-17B-16E-Instruct, and Llama-3.2 with its own prompt format
		{"llama 4", `<|python_start|>[read(path="a, [b]", n=3), now()]<|python_end|><|eot|>`, `read{"path":"a, [b]","n":3} ⏎ now{}`, ""},
		{"llama 3.2", `[read(path='it\'s', n=None)]`, `read{"path":"it's","n":null}`, ""},
		// ibm-granite/granite-3.3-8b-instruct, microsoft/Phi-4-mini-instruct
		{"granite", `<|tool_call|>[{"name": "read", "arguments": {"path": "a"}}]<|end_of_text|>`, `read{"path":"a"}`, ""},
		{"phi-4-mini", `<|tool_call|>[{"name": "now", "arguments": {}}]<|/tool_call|>`, `now{}`, ""},
		// CohereLabs/c4ai-command-r7b-12-2024
		{"command r7b", "<|START_THINKING|>hm<|END_THINKING|><|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"read\", \"parameters\": {\"path\": \"a\"}}\n]<|END_ACTION|><|END_OF_TURN_TOKEN|>", `(hm) ⏎ read{"path":"a"}`, ""},
		// tencent/Hunyuan-A13B-Instruct, nvidia/Llama-3_1-Nemotron-Ultra-253B-v1, internlm/internlm3-8b-instruct
		{"hunyuan", `<tool_calls>[{"name": "read", "arguments": {"path": "a"}}]</tool_calls>`, `read{"path":"a"}`, ""},
		{"nemotron", `<TOOLCALL>[{"name": "read", "arguments": {"path": "a"}}]</TOOLCALL>`, `read{"path":"a"}`, ""},
		{"internlm", `<|action_start|><|plugin|>{"name": "read", "parameters": {"path": "a"}}<|action_end|>`, `read{"path":"a"}`, ""},
		// ByteDance-Seed/Seed-OSS-36B-Instruct
		{"seed-oss, a call", "<seed:tool_call>\n<function=read>\n<parameter=path>a</parameter>\n</function>\n</seed:tool_call><seed:eos>", `read{"path":"a"}`, ""},
		{"an invocation alone", "Go.\n<invoke name=\"read\">\n<parameter name=\"path\">a</parameter>\n</invoke>", `Go. ⏎ read{"path":"a"}`, ""},
		{"langchain", `{"action": "read", "action_input": {"path": "a"}}`, `read{"path":"a"}`, ""},
		{"as Anthropic's API has it", `{"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a"}}`, `read{"path":"a"}`, ""},
		said("functools", `functools[{"name": "read", "arguments": {"path": "a"}}]`, `functools[{"name": "read", "arguments": {"path": "a"}}]`),
		said("react", "Action: read\nAction Input: {\"path\": \"a\"}", "Action: read\nAction Input: {\"path\": \"a\"}"),
		said("tags with the name of the tool", "<read>\n<path>a</path>\n</read>", "<read>\n<path>a</path>\n</read>"),
		said("python", fence+"tool_code\nprint(read(path=\"a\"))\n"+fence, fence+"tool_code\nprint(read(path=\"a\"))\n"+fence),
		said("in an object of its own", `{"tool_calls": [{"function": {"name": "read", "arguments": "{\"path\": \"a\"}"}}]}`, `{"tool_calls": [{"function": {"name": "read", "arguments": "{\"path\": \"a\"}"}}]}`),
		said("harmony without marks", `commentary to=functions.read json{"path": "a"}`, `commentary to=functions.read json{"path": "a"}`),
		end("a list in brackets", "[now we go](https://x.org), [a(b)]", "[now we go](https://x.org), [a(b)]"),
		end("words about a tool", "I could read(path) or now(), with {\"path\": 1, \"x\": 2}.", "I could read(path) or now(), with {\"path\": 1, \"x\": 2}."),
		// google/gemma-4-26b-a4b-it
		{"gemma 4", "<|channel>thought\nhm<channel|><|tool_call>call:read{path:<|\"|>a<|\"|>,n:3}<tool_call|>", "(\nhm) ⏎ read{\"path\":\"a\",\"n\":3}", ""},
		// moonshotai/Kimi-VL, ByteDance-Seed/Seed-OSS, CohereLabs/command-a-reasoning
		end("kimi-vl", "◁think▷hm◁/think▷Yes.", "(hm) ⏎ Yes."),
		end("seed-oss", "<seed:think>hm</seed:think>Yes.", "(hm) ⏎ Yes."),
		end("command-a", "<|START_THINKING|>hm<|END_THINKING|><|START_RESPONSE|>Yes.<|END_RESPONSE|>", "(hm) ⏎ Yes."),

		{"call in the thoughts, and nothing else", "<think>I run <tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call></think>", "(I run <tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call>) ⏎ now{}", ""},
		end("a call in the thoughts", "<think>I could <tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call></think>No need.", "(I could <tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call>) ⏎ No need."),
		said("prose, then a fence", "I run this:\n"+fence+"json\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n"+fence+"\n", "I run this:\n"+fence+"json\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n"+fence+"\n"),
		// Qwen/Qwen2.5-Coder-1.5B-Instruct: it says that it has used a tool, and has not
		said("arguments alone", "I used the `read` tool:\n"+fence+"json\n{\n  \"path\": \"a\"\n}\n"+fence+"\nIt says x.",
			"I used the `read` tool:\n"+fence+"json\n{\n  \"path\": \"a\"\n}\n"+fence+"\nIt says x."),
		end("arguments of no tool", "Put this into the file:\n"+fence+"json\n{\"path\": \"a\"}\n"+fence, "Put this into the file:\n"+fence+"json\n{\"path\": \"a\"}\n"+fence),
		end("no arguments of the tool", "What I read:\n"+fence+"json\n{\"path\": \"a\", \"age\": 3}\n"+fence, "What I read:\n"+fence+"json\n{\"path\": \"a\", \"age\": 3}\n"+fence),
		end("less than the tool needs", "What I read:\n"+fence+"json\n{\"n\": 3}\n"+fence, "What I read:\n"+fence+"json\n{\"n\": 3}\n"+fence),
		said("a call, then prose", "<tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call>\nis what I would call.", "<tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call>\nis what I would call."),
		said("a tool that is not offered", `<tool_call>{"name":"ls","arguments":{}}</tool_call>`, `<tool_call>{"name":"ls","arguments":{}}</tool_call>`),
		said("a call that is broken off", "<tool_call>{\"na", "<tool_call>{\"na"),
		said("a call of Kimi that is none", "<|tool_calls_section_begin|>x<|tool_calls_section_end|>", "<|tool_calls_section_begin|>x<|tool_calls_section_end|>"),
		end("words about it", "Write `<tool_call>` and `</think>` around it.", "Write `<tool_call>` and `</think>` around it."),
		end("an answer in JSON", `{"name": "Ann", "age": 3}`, `{"name": "Ann", "age": 3}`),
		end("a program", fence+"xml\n<a></a>\n"+fence+"\nif a < b && c[0] {", fence+"xml\n<a></a>\n"+fence+"\nif a < b && c[0] {"),
		end("a mark alone", "<|im_start|>", ""),
		end("a mark of any template alone", "<|END_OF_TURN_TOKEN|>", ""),
		end("a mark in brackets alone", "[/INST]", ""),
		end("the start of a call alone", "<tool_call>", ""),
		end("the end of a call alone", "</tool_call>\n", ""),
		end("a mark of any template behind", "Yes.<|im_sep|>", "Yes."),
		end("a mark around", "<|im_start|>assistant\nYes.<|im_end|>\n", "Yes."),
		end("a mark within", "It writes </s> at the end.", "It writes </s> at the end."),
		end("a thought that is not closed", "<think>hm", "(hm)"),
		{"cut in a call", "Go <tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call>", "Go <tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call>", llm.StopLength},
	}
}

// TestFamilies checks texts of models that write calls into the text although they accept tools, with the stream cut at
// any bytes. No call is shown as text before it is known to be one.
func TestFamilies(t *testing.T) {
	for _, h := range habits() {
		t.Run(h.name, func(t *testing.T) {
			stop := h.stop
			if stop == llm.StopSpoken {
				stop = llm.StopEnd
			}
			at := func(pieces ...string) outcome {
				schema := json.RawMessage(`{"type":"object","properties":{"path":{},"n":{}},"required":["path"]}`)
				req := llm.Request{Tools: []llm.ToolSpec{{Name: "read", Schema: schema}, {Name: "now"}}}
				return heard(t, &prompted.Model{Model: &talker{pieces: pieces, stop: stop}}, req)
			}
			whole := at(h.text)
			if got := show(whole.Parts); got != h.want {
				t.Errorf("got  %s\nwant %s", got, h.want)
			}
			want := h.stop
			if want == "" {
				want = llm.StopCalls
			}
			if whole.Stop != want {
				t.Errorf("Stop = %q, want %q", whole.Stop, want)
			}
			for i := range len(h.text) {
				if diff := gocmp.Diff(whole, at(h.text[:i], h.text[i:])); diff != "" {
					t.Fatalf("cut at %d:\n%s", i, diff)
				}
			}
			single := make([]string, len(h.text))
			for i := range len(h.text) {
				single[i] = h.text[i : i+1]
			}
			if diff := gocmp.Diff(whole, at(single...)); diff != "" {
				t.Errorf("in single bytes:\n%s", diff)
			}
		})
	}
}

// TestOnce checks that a call which came in the model's own way is made once, whatever the text repeats.
func TestOnce(t *testing.T) {
	native := llm.Call{ID: "x", Name: "functions.read<|channel|>commentary", Args: []byte(`{"path": "a"}`)}
	for text, want := range map[string]string{
		"Go.\n<tool_call>{\"name\":\"read\",\"arguments\":{\"path\":\"a\"}}</tool_call>": `Go. ⏎ read{"path": "a"}`,
		"<tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call>":                     "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call> ⏎ read{\"path\": \"a\"}",
		"plain": `plain ⏎ read{"path": "a"}`,
	} {
		req := llm.Request{Tools: []llm.ToolSpec{{Name: "read"}, {Name: "now"}}}
		m := &prompted.Model{Model: &talker{pieces: []string{text}, stop: llm.StopCalls, calls: llm.Parts{native}}}
		r := last(t, m, req)
		if got := show(r.Parts); got != want || r.Stop != llm.StopCalls {
			t.Errorf("%q: %s, %s\nwant %s", text, got, r.Stop, want)
		}
	}
}

// TestThoughtsGoBack checks which families get thoughts back that stood in the text.
func TestThoughtsGoBack(t *testing.T) {
	for id, want := range map[string]string{"minimax/MiniMax-M2": "<think>hm</think>", "Qwen/Qwen3-32B": ""} {
		inner := &talker{pieces: []string{"<think>hm</think>Yes."}, id: id}
		m := &prompted.Model{Model: inner}
		reply := last(t, m, llm.Request{})
		if got := show(reply.Parts); got != "(hm) ⏎ Yes." {
			t.Errorf("%s: %s", id, got)
		}
		reply.Parts[0] = llm.Reasoning{Text: "hm", Opaque: reply.Parts[0].(llm.Reasoning).Opaque, Route: "p/" + id}
		last(t, m, llm.Request{Messages: []llm.Message{{Role: llm.Assistant, Parts: reply.Parts}}})
		if got := inner.asked.Messages[0].Parts.Text(); got != want+"Yes." || strings.Contains(got, "(") {
			t.Errorf("%s got back %q", id, got)
		}
	}
}

// TestNamesOfCalls checks that the name of a call loses what templates leave on it, and finds its tool.
func TestNamesOfCalls(t *testing.T) {
	for name, want := range map[string]string{
		"functions.read": "read", "functions.read:0": "read", "functions.read_0": "read", "functions_read": "read", "mcp__functions__read": "read",
		"read<|channel|>commentary": "read", "assistant<|channel|>commentary to=functions.read": "read", "read</arg_value>": "read",
		"<|tool_call_begin|>read": "read", "<function=read>": "read", "READ": "read", " `read`\n": "read",
		"exec_command<|channel|>json": "exec_command", "mcp__other__read": "mcp__other__read", "reading": "reading",
	} {
		m := &prompted.Model{Model: &talker{calls: llm.Parts{llm.Call{ID: "1", Name: name, Args: json.RawMessage("{}")}}, stop: llm.StopCalls}}
		got := heard(t, m, llm.Request{Tools: []llm.ToolSpec{{Name: "read"}, {Name: "now"}}})
		if calls := got.Parts.Calls(); len(calls) != 1 || calls[0].Name != want {
			t.Errorf("%q became %v, want %q", name, calls, want)
		}
	}
}
