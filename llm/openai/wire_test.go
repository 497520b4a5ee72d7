package openai

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/testkit/openaitest"
	"github.com/inspan/inspan/internal/testkit/wiretest"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/internal/family"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestGoldenRequests(t *testing.T) {
	thoughtful := func(m *Model, opaque string) llm.Request {
		return llm.Request{
			System: []string{"One.", " ", "Two."}, Effort: "low", MaxOutput: 900, Session: "s-1",
			Tools: []llm.ToolSpec{{Name: "read", Description: "Read.", Schema: json.RawMessage(`{ "type": "object", "properties": {} }`)}, {Name: "now"}},
			Messages: []llm.Message{
				{Role: llm.User, Parts: llm.Parts{llm.Text{Text: "Look <here>"}, llm.Image{MediaType: "image/png", Data: []byte("png")}}},
				{Role: llm.Assistant, Parts: llm.Parts{
					llm.Reasoning{Text: "hm", Opaque: json.RawMessage(opaque), Route: m.Info().Route()},
					llm.Reasoning{Text: "x", Opaque: json.RawMessage(`{"type":"thinking"}`), Route: "other/model"},
					llm.Call{ID: "call_1", Name: "read", Args: json.RawMessage(`{"path": "a\u003cb"}`)},
					llm.Call{ID: strings.Repeat("x", 41), Name: "read", Args: json.RawMessage(`{}`)},
				}},
				{Role: llm.User, Parts: llm.Parts{
					llm.Text{Text: "Also this."},
					llm.Result{CallID: "call_1", Name: "read", Parts: llm.Parts{
						llm.Text{Text: "text"},
						llm.Image{MediaType: "image/png", Data: []byte("png")},
					}},
					llm.Result{CallID: strings.Repeat("x", 41), Name: "read", Parts: llm.Say("no such file"), Error: true},
				}},
				{Role: llm.Assistant, Parts: llm.Parts{
					llm.Text{Text: "A"},
					llm.Reasoning{Text: "end", Opaque: json.RawMessage(opaque), Route: m.Info().Route()},
					llm.Text{Text: "B"},
				}},
				{Role: llm.User, Parts: llm.Say("Go on.")},
				{Role: llm.User, Parts: llm.Say("Now.")},
			},
		}
	}
	table := map[string]wiretest.Golden{}
	for name, c := range map[string]struct {
		m      Model
		opaque string
	}{
		"vendor":   {Model{ID: "gpt-6-sol"}, `{"reasoning":"hm"}`},
		"deepseek": {Model{ID: "deepseek-v4-pro", BaseURL: "https://api.deepseek.com"}, `{"reasoning_content":"hm"}`},
		"openrouter": {
			Model{ID: "x/y", BaseURL: "https://openrouter.ai/api/v1"},
			`{"reasoning_details":[{"type":"reasoning.text","text":"hm"}]}`,
		},
	} {
		table[name] = wiretest.Golden{Model: chat(c.m), Request: thoughtful(&c.m, c.opaque)}
	}
	table["mistral"] = wiretest.Golden{
		Model: chat(Model{ID: "mistral-large-latest", Dialect: "mistral"}), Request: worked(),
		Valid: func(body []byte) error { return openaitest.ValidateAs("mistral", body) },
	}
	for name, m := range map[string]Responses{
		"responses":         {ID: "gpt-6-sol"},
		"responses-foreign": {ID: "gpt-6-sol"},
		"responses-plain":   {ID: "gpt-4.1"},
		"responses-local":   {ID: "qwen3", BaseURL: "http://localhost:8000/v1"},
	} {
		route := m.Info().Route()
		if name == "responses-foreign" {
			route = "other/model"
		}
		table[name] = wiretest.Golden{Model: responses(m), Request: talk(route)}
	}
	wiretest.TestRequests(t, *update, table)
}

// families are models of each family after servers that render its template or serve it. The models named have the
// templates (tokenizer_config.json or chat_template.jinja at huggingface.co) that the requests are for; what these,
// or the servers, refuse stands after them:
//
//   - deepseek: deepseek-ai/DeepSeek-V3-0324, -R1-0528 and -V3.1; api-docs.deepseek.com (thoughts go back)
//   - qwen: Qwen/Qwen2.5-Coder-7B-Instruct, Qwen3-32B, Qwen3-Coder-30B-A3B-Instruct and Qwen3.5 ("System message
//     must be at the beginning", "No user query found in messages")
//   - gpt-oss: openai/gpt-oss-20b; llama.cpp and Ollama render the same ("Cannot pass both content and thinking"; of
//     several calls the first is shown)
//   - glm: zai-org/GLM-4.5, GLM-4.6 and GLM-4.7; docs.z.ai (someone has asked)
//   - kimi: moonshotai/Kimi-K2-Instruct, Kimi-K2-Instruct-0905 and Kimi-K2-Thinking; platform.moonshot.ai (thoughts go back)
//   - mistral: mistralai/Mistral-Small-3.2, Devstral-Small-2507 and Mistral-Nemo-Instruct-2407 ("Tool call IDs should
//     be alphanumeric strings with length 9", roles that alternate); docs.mistral.ai
//   - llama: meta-llama/Llama-3.1-8B-Instruct, Llama-3.2-3B-Instruct and Llama-3.3-70B-Instruct ("This model only
//     supports single tool-calls at once")
//   - gemma: google/gemma-2-9b-it, gemma-3-27b-it and gemma-4-26b-a4b-it ("Conversation roles must alternate")
//   - hermes: NousResearch/Hermes-2-Pro-Llama-3-8B, Hermes-3-Llama-3.1-8B and Hermes-4-70B
//   - minimax: MiniMaxAI/MiniMax-M1-80k, MiniMax-M2 and MiniMax-M2.5; platform.minimax.io
func families() map[string]Model {
	return map[string]Model{
		"deepseek": {ID: "deepseek-ai/DeepSeek-V3.1", Dialect: "vllm"},
		"qwen":     {ID: "Qwen/Qwen3-Coder-30B-A3B-Instruct", Dialect: "vllm"},
		"gpt-oss":  {ID: "gpt-oss-20b", Dialect: "llamacpp"},
		"glm":      {ID: "glm-4.7", Dialect: "zai"},
		"kimi":     {ID: "moonshotai/Kimi-K2-Thinking", Dialect: "vllm"},
		"mistral":  {ID: "mistralai/Devstral-Small-2507", Dialect: "vllm"},
		"llama":    {ID: "meta-llama/Llama-3.3-70B-Instruct", Dialect: "vllm"},
		"gemma":    {ID: "gemma-3-27b-it", Dialect: "llamacpp"},
		"hermes":   {ID: "NousResearch/Hermes-4-70B", Dialect: "lmstudio"},
		"minimax":  {ID: "MiniMaxAI/MiniMax-M2", Dialect: "vllm"},
	}
}

// TestFamilyRequests checks how each family gets one conversation: a thought, a text and two calls of its own, calls of
// another model with ids that not all accept, and two messages of the person in a row.
func TestFamilyRequests(t *testing.T) {
	table := map[string]wiretest.Golden{}
	for name, m := range families() {
		if got := family.Of(m.ID).Name; got != name {
			t.Errorf("%s is of %s", m.ID, got)
		}
		route := m.Info().Route()
		two := func(first, second string, parts ...llm.Part) []llm.Message {
			return []llm.Message{
				{Role: llm.Assistant, Parts: append(parts,
					llm.Call{ID: first, Name: "read", Args: json.RawMessage(`{"path":"a"}`)}, llm.Call{ID: second, Name: "now", Args: json.RawMessage(`{}`)})},
				{Role: llm.User, Parts: llm.Parts{
					llm.Result{CallID: first, Name: "read", Parts: llm.Say("text")},
					llm.Result{CallID: second, Name: "now", Parts: llm.Say("it is late"), Error: true},
				}},
			}
		}
		req := llm.Request{
			System: []string{"Be brief."}, MaxOutput: 900,
			Tools: []llm.ToolSpec{
				{Name: "read", Description: "Read.", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)}, {Name: "now"},
			},
			Messages: slices.Concat(
				[]llm.Message{{Role: llm.User, Parts: llm.Say("Look.")}},
				two("call_1", "call_2", llm.Reasoning{Text: "hm", Opaque: json.RawMessage(`{"reasoning_content":"hm"}`), Route: route}, llm.Text{Text: "I look."}),
				two("toolu_01ABCDEFGHIJKLMNOPQRSTUV|x", "call_4", llm.Reasoning{Text: "other", Opaque: json.RawMessage(`{"type":"thinking"}`), Route: "other/model"}),
				[]llm.Message{
					{Role: llm.Assistant, Parts: llm.Say("Done.")}, {Role: llm.User, Parts: llm.Say("Thanks.")}, {Role: llm.User, Parts: llm.Say("And now?")},
				}),
		}
		dialect := m.Dialect
		table["family-"+name] = wiretest.Golden{
			Model: chat(m), Request: req, Valid: func(body []byte) error { return openaitest.ValidateAs(dialect, body) },
		}
	}
	wiretest.TestRequests(t, *update, table)
}

// chat makes a model that sends with a transport.
func chat(m Model) func(http.RoundTripper) llm.Model {
	return func(tr http.RoundTripper) llm.Model {
		m.HTTP = tr
		return &m
	}
}

// responses makes one of the other wire.
func responses(m Responses) func(http.RoundTripper) llm.Model {
	return func(tr http.RoundTripper) llm.Model {
		m.HTTP = tr
		return &m
	}
}

// TestForeignThought checks that DeepSeek gets an empty thought where another model made the calls.
func TestForeignThought(t *testing.T) {
	m := &Model{ID: "d", BaseURL: "https://api.deepseek.com"}
	got := string(encoded(m, llm.Request{Messages: []llm.Message{
		{Role: llm.Assistant, Parts: llm.Parts{llm.Call{ID: "a", Name: "now", Args: json.RawMessage(`{}`)}}},
	}}))
	if !strings.Contains(got, `"reasoning_content":""`) {
		t.Error(got)
	}
}

func TestCatalog(t *testing.T) {
	if i := (&Model{ID: "gpt-5-2025-08-07"}).Info(); i.Window != 400_000 || i.Prices[0].Input != 1.25 || !i.Images {
		t.Errorf("got %+v", i)
	}
	for _, m := range []*Model{{ID: "gpt-5-unknown"}, {ID: "gpt-5", BaseURL: "http://localhost:1/v1"}} {
		if i := m.Info(); i.Window != 0 || i.Prices != nil || i.Images {
			t.Errorf("%s at %q: %+v", m.ID, m.BaseURL, i)
		}
	}
}

// delta is the data line of a chunk with one delta.
func delta(fields string) string {
	return `data: {"choices":[{"index":0,"delta":{` + fields + `}}]}` + "\n\n"
}

func finish(reason string) string {
	return `data: {"choices":[{"index":0,"delta":{},"finish_reason":` + reason + `}]}` + "\n\n"
}

const done = "data: [DONE]\n\n"

// earlier is a request with a tool after a call of the past.
func earlier() llm.Request {
	return llm.Request{Tools: []llm.ToolSpec{{Name: "look"}}, Messages: []llm.Message{{Role: llm.Assistant, Parts: llm.Parts{llm.Call{ID: "call_0", Name: "old"}}}}}
}

// encoded returns the body that m sends.
func encoded(m *Model, req llm.Request) []byte {
	d, _ := dialectOf(llm.Endpoint(*m))
	return encode(m.Info(), d, newAliases(req, d.ids()), req)
}

func encodedResponses(m *Responses, req llm.Request) []byte {
	d, _ := dialectOf(llm.Endpoint(*m))
	return encodeResponses(m.Info(), d, newAliases(req, idUpTo64), req)
}

func decodeAll(r io.Reader) (llm.Reply, string, error) {
	d := newDecoder("p/m", earlier(), newAliases(earlier(), idUpTo40))
	var text strings.Builder
	ok, err := d.run(r, func(c llm.Chunk) bool {
		text.WriteString(c.Text + c.Reasoning)
		return true
	})
	if !ok && err == nil {
		err = errors.New("neither done nor failed")
	}
	return d.reply, text.String(), err
}

// TestToolDeltas checks which deviations of imitators are accepted.
func TestToolDeltas(t *testing.T) {
	tool := func(s string) string { return delta(`"tool_calls":[` + s + `]`) }
	cases := map[string]struct {
		stream string
		want   string // id name args, one call a line
	}{
		"vendor": {
			tool(`{"index":0,"id":"a","function":{"name":"f","arguments":""}}`) + tool(`{"index":0,"function":{"arguments":"{\"x\":"}}`) +
				tool(`{"index":1,"id":"b","function":{"name":"g","arguments":""}}`) + tool(`{"index":0,"function":{"arguments":"1}"}}`),
			"a f {\"x\":1}\nb g {}",
		},
		"id and name resent": {
			tool(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}`) +
				tool(`{"index":0,"id":"a","function":{"name":"f","arguments":":1}"}}`),
			`a f {"x":1}`,
		},
		"new id in every delta": {
			tool(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}`) + tool(`{"index":0,"id":"b","function":{"arguments":":1}"}}`),
			`a f {"x":1}`,
		},
		"no index": {
			tool(`{"id":"a","function":{"name":"f","arguments":"{\"x\""}}`) + tool(`{"function":{"arguments":":1}"}}`) +
				tool(`{"id":"b","function":{"name":"g","arguments":"{}"}}`),
			"a f {\"x\":1}\nb g {}",
		},
		"no index, no id": {
			tool(`{"function":{"name":"f","arguments":"{\"x\":1}"}}`) + tool(`{"function":{"name":"g","arguments":"{}"}}`),
			"call_1_0 f {\"x\":1}\ncall_1_1 g {}",
		},
		"all numbered 0": {
			tool(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`) +
				tool(`{"index":0,"id":"b","function":{"name":"g","arguments":"{}"}}`),
			"a f {\"x\":1}\nb g {}",
		},
		"all numbered 0, no id": {
			tool(`{"index":0,"function":{"name":"f","arguments":"{\"x\":1}"}}`) + tool(`{"index":0,"function":{"name":"g","arguments":"{}"}}`),
			"call_1_0 f {\"x\":1}\ncall_1_1 g {}",
		},
		"id of the history": {tool(`{"index":0,"id":"call_0","function":{"name":"f","arguments":"{}"}}`), `call_1_0 f {}`},
		"object":            {tool(`{"index":0,"id":"a","function":{"name":"f","arguments":{"x":1}}}`), `a f {"x":1}`},
		"null":              {tool(`{"index":0,"id":"a","function":{"name":"f","arguments":null}}`), `a f {}`},
		"double":            {tool(`{"index":0,"id":"a","function":{"name":"f","arguments":"\"{\\\"x\\\":1}\""}}`), `a f {"x":1}`},
		"not a list":        {delta(`"tool_calls":{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), `a f {}`},
		"one id for all": {
			tool(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`) + tool(`{"index":0,"id":"a","function":{"name":"g","arguments":"{\"x\":2}"}}`),
			"a f {\"x\":1}\ncall_1_1 g {\"x\":2}",
		},
		"the same twice":    {strings.Repeat(tool(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`), 2), `a f {"x":1}`},
		"numbers as words":  {tool(`{"index":"0","id":7,"function":{"name":"f","arguments":"{\"x\":"}}`) + tool(`{"index":"0","function":{"arguments":"1}"}}`), `7 f {"x":1}`},
		"name in pieces":    {tool(`{"index":0,"id":"a","function":{"name":"lo"}}`) + tool(`{"index":0,"function":{"name":"ok","arguments":"{}"}}`), `a look {}`},
		"an empty object":   {tool(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`) + tool(`{"index":0,"function":{"arguments":"{\"x\":"}}`) + tool(`{"index":0,"function":{"arguments":"1}"}}`), `a f {"x":1}`},
		"each piece longer": {tool(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}`) + tool(`{"index":0,"function":{"arguments":"{\"x\":1"}}`) + tool(`{"index":0,"function":{"arguments":"{\"x\":1}"}}`), `a f {"x":1}`},
		"no wrapper":        {tool(`{"index":0,"id":"a","name":"f","arguments":{"x":1}}`), `a f {"x":1}`},
		"other names":       {tool(`{"index":0,"id":"a","function":{"name":"f","parameters":{"x":1}}}`) + tool(`{"index":1,"id":"b","function":{"name":"g","input":"{}"}}`), "a f {\"x\":1}\nb g {}"},
		"again as a message": {
			tool(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`) + `data: {"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}` + "\n\n",
			`a f {}`,
		},
		"function_call": {delta(`"function_call":{"name":"f","arguments":"{\"x\""}`) +
			delta(`"function_call":{"arguments":":1}"}`), `call_1_0 f {"x":1}`},
	}
	for name, c := range cases {
		r, _, err := decodeAll(strings.NewReader(c.stream + finish(`"stop"`) + done))
		var got []string
		for _, k := range r.Calls() {
			got = append(got, k.ID+" "+k.Name+" "+string(k.Args)+k.Invalid)
		}
		if diff := cmp.Diff(c.want, strings.Join(got, "\n")); diff != "" || err != nil || r.Stop != llm.StopCalls {
			t.Errorf("%s: %v, stop %q\n%s", name, err, r.Stop, diff)
		}
	}
}

func TestStops(t *testing.T) {
	text := delta(`"content":"x"`)
	wiretest.TestStops(t, wired(), map[string]string{
		text + finish(`"stop"`) + done:                          "end",
		text + finish(`"stop"`):                                 "end",
		text + finish(`null`) + done:                            "end",
		text + done:                                             "end",
		text + finish(`"eos_token"`) + done:                     "end",
		text + finish(`"null"`) + done:                          "end",
		text + finish(`"tool_calls"`) + done:                    "end", // without a call
		text + finish(`"length"`) + done:                        "length",
		text + finish(`"model_context_window_exceeded"`) + done: "window",
		text + finish(`"sensitive"`) + done:                     "refusal",
		text + finish(`"content_filter"`) + done:                "refusal",
		delta(`"refusal":"no"`) + finish(`"stop"`) + done:       "refusal",
		text + finish(`"brand_new"`) + done:                     "other",
		text:                                                    "stream_cut",
		"":                                                      "stream_cut",
		text + finish(`"error"`) + done:                         "transient",
		text + finish(`"network_error"`) + done:                 "transient",
		text + `data: {"id":"gen-1","error":{"code":"server_error","message":"Provider ` +
			`disconnected"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}` + "\n\n": "transient",
		`data: {"error":{"code":402,"message":"Insufficient credits"}}` +
			"\n\n": "billing",
		text + finish(`"insufficient_system_resource"`) +
			done: "overloaded",
		text + `data: {"error":{"code":502,"message":"Provider returned error"}}` +
			"\n\n": "transient",
		text + `data: {"error":{"code":429,"message":"slow down"}}` +
			"\n\n": "rate_limited",
		text + `data: {"error":"out of memory"}` +
			"\n\n": "transient",
		text + "data: {broken\n\n": "stream_cut",
		"event: error\ndata: {\"message\":\"slow down\",\"code\":429}\n\n":                                 "rate_limited",
		text + `data: {"choices":[{"finish_reason":"error","error":{"code":429,"message":"x"}}]}` + "\n\n": "rate_limited",
	})
}

func TestReasoningFields(t *testing.T) {
	cases := []struct{ stream, text, opaque string }{
		{delta(`"reasoning_content":"a"`) + delta(`"reasoning_content":"b"`), "ab", `{"reasoning_content":"ab"}`},
		{delta(`"reasoning":"a"`) + delta(`"reasoning":"b"`), "ab", `{"reasoning":"ab"}`},
		{delta(`"reasoning_text":"a"`), "a", `{"reasoning":"a"}`},
		{delta(`"thinking":{"content":"a"}`), "a", `{"reasoning":"a"}`},
		{delta(`"reasoning":{"summary":"a"}`) + delta(`"reasoning":null`), "a", `{"reasoning":"a"}`},
		{delta(`"reasoning_content":[{"type":"text","text":"a"},"b"]`), "ab", `{"reasoning_content":"ab"}`},
		{
			delta(`"reasoning":"a","reasoning_details":[{"type":"reasoning.text","text":"a","index":0}]`) +
				delta(`"reasoning_details":[{"type":"reasoning.text","text":"b","signature":"s","index":0}]`) +
				delta(`"reasoning_details":[{"type":"reasoning.encrypted","data":"zz","index":1}]`),
			"a", `{"reasoning_details":[{"type":"reasoning.text","text":"ab","signature":"s","index":0},{"type":"reasoning.encrypted","data":"zz",` +
				`"index":1}]}`,
		},
		{delta(`"reasoning_content":"","tool_calls":[{"index":0,"id":"a","function":{"name":"f"}}]`), "", `{"reasoning_content":""}`},
	}
	for _, c := range cases {
		r, _, err := decodeAll(strings.NewReader(c.stream + done))
		if err != nil || len(r.Parts) == 0 {
			t.Fatalf("%s: %v", c.stream, err)
		}
		p, _ := r.Parts[0].(llm.Reasoning)
		if p.Text != c.text || string(p.Opaque) != c.opaque || p.Route != "p/m" {
			t.Errorf("%s = %q %s", c.stream, p.Text, p.Opaque)
		}
	}
	if r, _, err := decodeAll(strings.NewReader(delta(`"reasoning_content":"","content":"<think>x</think>y"`) + done)); err != nil ||
		len(r.Parts) != 1 || r.Parts.Text() != "<think>x</think>y" {
		t.Errorf("got %+v, %v", r.Parts, err)
	}
}

func TestUsage(t *testing.T) {
	table := map[string]llm.Usage{}
	for usage, want := range map[string]llm.Usage{
		`{"prompt_tokens":100,"completion_tokens":9,"prompt_tokens_details":{"cached_tokens":60},` +
			`"completion_tokens_details":{"reasoning_tokens":4}}`: {
			Input: 40, CacheRead: 60, Output: 9, Reasoning: 4,
		},
		`{"prompt_tokens":100,"completion_tokens":9,"prompt_cache_hit_tokens":60,"prompt_cache_miss_tokens":40}`: {
			Input:     40,
			CacheRead: 60, Output: 9,
		},
		`{"prompt_tokens":100,"completion_tokens":9,"cached_tokens":60}`: {
			Input:     40,
			CacheRead: 60, Output: 9,
		},
		`{"prompt_tokens":10,"completion_tokens":9,"prompt_tokens_details":{"cached_tokens":60}}`:     {CacheRead: 10, Output: 9},
		`{"prompt_tokens":10,"completion_tokens":9,"prompt_tokens_details":null}`:                     {Input: 10, Output: 9},
		`{"prompt_tokens":10.0,"completion_tokens":"9","prompt_tokens_details":{"cached_tokens":-1}}`: {Input: 10, Output: 9},
		`{"input_tokens":10,"output_tokens":9}`:                                                       {Input: 10, Output: 9},
	} {
		table[finish(`"stop"`)+`data: {"choices":[],"usage":`+usage+"}\n\n"+done] = want
		table[`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":`+usage+"}]}\n\n"+done] = want
		table[finish(`"stop"`)+`data: {"choices":[],"x_groq":{"usage":`+usage+"}}\n\n"+done] = want
	}
	for tier, want := range map[string]string{`"flex"`: "flex", `"default"`: "", `null`: "", `"Scale"`: "scale"} {
		table[`data: {"service_tier":`+tier+`,"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":3}}`+"\n\n"+done] = llm.Usage{
			Input: 3, Tier: want,
		}
	}
	wiretest.TestUsage(t, wired(), table)
}

// TestBadText checks that invalid UTF-8 becomes the replacement character, with and without escapes in the text.
func TestBadText(t *testing.T) {
	for _, text := range []string{"a\xff\xfeb", "a\xff\xfe\\u0062"} {
		r, shown, err := decodeAll(strings.NewReader(delta(`"content":"`+text+`"`) + done))
		if want := "a\ufffd\ufffdb"; err != nil || shown != want || r.Parts.Text() != want {
			t.Errorf("%q: %q, %q, %v", text, shown, r.Parts.Text(), err)
		}
	}
}

func greeting() llm.Request {
	return llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: llm.Say("hi")}}}
}

func ask(t *testing.T, m llm.Model, req llm.Request) (llm.Reply, *llm.Error) {
	t.Helper()
	for c, err := range m.Stream(t.Context(), req) {
		if err != nil {
			return llm.Reply{}, llm.AsError(err)
		}
		if c.Reply != nil {
			return *c.Reply, nil
		}
	}
	t.Fatal("no end")
	return llm.Reply{}, nil
}

// TestContents checks what is read of a text in another form than a string, or in other frames.
func TestContents(t *testing.T) {
	for _, stream := range []string{
		delta(`"content":{"type":"text","text":"hello"}`) + finish(`"stop"`) + done,
		delta(`"content":["hel",{"text":"lo"}]`) + finish(`"stop"`) + done,
		delta(`"content":"hello"`) + `data: {"choices":[{"message":{"content":"hello"},"finish_reason":"stop"}]}` + "\n\n" + done,
		"data: \n\n" + delta(`"content":"hello"`) + finish(`"stop"`) + done,
		strings.ReplaceAll(delta(`"content":"hello"`)+finish(`"stop"`)+done, "\n\n", "\n"),
	} {
		if r, text, err := decodeAll(strings.NewReader(stream)); err != nil || text != "hello" || r.Parts.Text() != "hello" || r.Stop != llm.StopEnd {
			t.Errorf("%s: %q, stop %q, %v", stream, text, r.Stop, err)
		}
	}
	for _, body := range []string{
		`{"choices":[{"delta":{"content":"hel"}}]}` + "\n" + `{"choices":[{"delta":{"content":"lo"},"finish_reason":"stop"}]}` + "\n",
		"\ufeff\n" + `{"choices":[{"message":{"content":"hello"},"finish_reason":"stop"}]}`,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }))
		t.Cleanup(server.Close)
		if r, err := ask(t, &Model{ID: "m", BaseURL: server.URL}, greeting()); err != nil || r.Parts.Text() != "hello" {
			t.Errorf("%s: %+v, %v", body, r, err)
		}
	}
}

func TestNotStreamed(t *testing.T) {
	server := &openaitest.Server{Habits: openaitest.Habits{NotStreamed: true}, Answer: func(*http.Request, []byte) openaitest.Answer {
		return openaitest.Answer{
			Parts: llm.Parts{llm.Text{Text: "hello"}, llm.Call{ID: "a", Name: "now", Args: json.RawMessage(`{}`)}},
			Usage: llm.Usage{Input: 5, Output: 2},
		}
	}}
	r, err := ask(t, &Model{ID: "m", BaseURL: openaitest.Start(t, server)}, greeting())
	if err != nil || r.Parts.Text() != "hello" || len(r.Calls()) != 1 || r.Stop != llm.StopCalls || r.Usage.Input != 5 || r.RequestID == "" {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestNoUsage(t *testing.T) {
	server := &openaitest.Server{Habits: openaitest.Habits{NoUsage: true}, Answer: func(*http.Request, []byte) openaitest.Answer {
		return openaitest.Answer{Parts: llm.Say(strings.Repeat("word", 10))}
	}}
	r, err := ask(t, &Model{ID: "m", BaseURL: openaitest.Start(t, server)}, greeting())
	if err != nil || !r.Usage.Estimated || r.Usage.Output != 10 || r.Usage.Input == 0 {
		t.Errorf("got %+v, %v", r.Usage, err)
	}
}

func TestArgumentHabits(t *testing.T) {
	for _, h := range []openaitest.Habits{{WholeCalls: true, ObjectArgs: true}, {WholeCalls: true, DoubleArgs: true}} {
		server := &openaitest.Server{Habits: h, Answer: func(*http.Request, []byte) openaitest.Answer {
			return openaitest.Answer{Parts: llm.Parts{llm.Call{ID: "a", Name: "f", Args: json.RawMessage(`{"x":"1"}`)}}}
		}}
		if r, err := ask(t, &Model{ID: "m", BaseURL: openaitest.Start(t, server)}, greeting()); err != nil ||
			string(r.Calls()[0].Args) != `{"x":"1"}` {
			t.Errorf("%+v: got %+v, %v", h, r, err)
		}
	}
}

func sampleStream() string {
	return ": OPENROUTER PROCESSING\n\n" + delta(`"role":"assistant","content":""`) +
		delta(`"reasoning_content":"hm"`) + delta(`"content":"hé😀"`) +
		delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]`) +
		delta(`"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]`) + finish(`"tool_calls"`) +
		`data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5}}` + "\n\n" + done
}

func wired() wiretest.WireParams {
	const end = `"finish_reason":"tool_calls"}]}`
	sample := sampleStream()
	return wiretest.WireParams{
		Decode: decodeAll, Sample: sample, Shown: "hmhé😀", Complete: strings.Index(sample, end) + len(end), Trailer: true, OwnIDs: true,
		Reply: llm.Reply{
			Parts: llm.Parts{
				llm.Reasoning{Text: "hm", Opaque: json.RawMessage(`{"reasoning_content":"hm"}`), Route: "p/m"},
				llm.Text{Text: "hé😀"},
				llm.Call{ID: "a", Name: "f", Args: json.RawMessage(`{"x":1}`)},
			},
			Stop: llm.StopCalls, Usage: llm.Usage{Input: 10, Output: 5}, Route: "p/m",
		},
	}
}

func TestCutAnywhere(t *testing.T) { wiretest.TestCuts(t, wired()) }

func FuzzDecode(f *testing.F) { wiretest.FuzzWire(f, wired()) }

func TestKeyStaysSecret(t *testing.T) {
	const key, other = "sk-very-secret", "azure-secret"
	var bases []string
	for _, answer := range []openaitest.Answer{
		{Status: 401, Code: "invalid_api_key", Message: "Incorrect API key provided: " + key + ", " + other},
		{Status: 500, Body: "oops: Authorization: Bearer " + key + " " + other},
		{Parts: llm.Say("x"), ErrorAt: 2, Message: "key " + key},
	} {
		bases = append(bases, openaitest.Start(t, &openaitest.Server{Answer: func(*http.Request, []byte) openaitest.Answer { return answer }}))
	}
	wiretest.TestSecrets(t, []string{key, other}, func(base string) llm.Model {
		return &Model{
			ID: "m", BaseURL: base, Header: http.Header{"Api-Key": {other}},
			Key: func(context.Context) (string, error) { return key, nil },
		}
	}, bases...)
}

// TestKey sends the key the vendor's way, or as a bearer token.
func TestKey(t *testing.T) {
	for _, c := range []struct {
		dialect string
		bearer  bool
		header  string
	}{{"openai", false, "Authorization"}, {"azure", false, "Api-Key"}, {"azure", true, "Authorization"}} {
		at := llm.Endpoint{ID: "m", Dialect: c.dialect, Bearer: c.bearer, BaseURL: "http://x/openai/v1"}
		for _, model := range []func(llm.Endpoint) llm.Model{
			func(at llm.Endpoint) llm.Model { m := Model(at); return &m },
			func(at llm.Endpoint) llm.Model { m := Responses(at); return &m },
			func(at llm.Endpoint) llm.Model { return listing(at) },
		} {
			wiretest.TestKey(t, c.header, func(tr http.RoundTripper, key func(context.Context) (string, error)) llm.Model {
				at.HTTP, at.Key = tr, key
				return model(at)
			})
		}
	}
}

// listing is a model that answers with the list of models.
type listing llm.Endpoint

func (l listing) Info() llm.Info { return llm.Info{} }

func (l listing) Stream(ctx context.Context, _ llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		_, err := Discover(ctx, llm.Endpoint(l))
		yield(llm.Chunk{}, err)
	}
}

func TestKeepAlive(t *testing.T) {
	wiretest.TestKeepAlive(t, &openaitest.Server{}, func(base string, tr http.RoundTripper) llm.Model {
		return &Model{ID: "m", BaseURL: base, HTTP: tr}
	})
	wiretest.TestKeepAlive(t, &openaitest.Responses{}, func(base string, tr http.RoundTripper) llm.Model {
		return &Responses{ID: "m", BaseURL: base, HTTP: tr}
	})
}
