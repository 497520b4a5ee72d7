package openai

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/testkit/openaitest"
	"github.com/inspan/inspan/internal/testkit/wiretest"
	"github.com/inspan/inspan/llm"
)

// pages answers requests by their path; any other path is a 404.
type pages map[string]string

func (p pages) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body := http.StatusNotFound, "404 page not found"
	if page, ok := p[r.URL.Path]; ok && r.Method == http.MethodGet {
		status, body = http.StatusOK, page
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// price is one of a model that charges all input alike.
func price(input, output float64) llm.Prices {
	return llm.Prices{{Input: input, CacheRead: input, CacheWrite: input, Output: output}}
}

// TestDiscover reads lists as the servers document them.
func TestDiscover(t *testing.T) {
	const router = `{"object":"list","data":[{"id":"deepseek-ai/DeepSeek-V4-Pro","object":"model","owned_by":"deepseek-ai",
		"architecture":{"input_modalities":["text"],"output_modalities":["text"]},"providers":[
		{"provider":"novita","status":"live","context_length":1048576,"pricing":{"input":1.69,"output":3.38},"supports_tools":true,"throughput":24.6},
		{"provider":"together","status":"live","context_length":512000,"pricing":{"input":2.1,"output":4.4},"supports_tools":true},
		{"provider":"featherless-ai","status":"live","is_model_author":false},
		{"provider":"gone","status":"error","context_length":1024,"supports_tools":false},
		{"provider":"deepinfra","status":"live","context_length":65536,"supports_tools":false}]},
		{"id":"x/no-tools","providers":[{"provider":"a","status":"live","supports_tools":false}]}]}`
	pro := llm.Info{Provider: "openai", Model: "deepseek-ai/DeepSeek-V4-Pro", Window: 65536, Prices: price(2.1, 4.4)}
	for name, c := range map[string]struct {
		at    llm.Endpoint
		pages pages
		want  []llm.Info
	}{
		"vllm": {
			llm.Endpoint{Dialect: "vllm"},
			pages{"/v1/models": `{"object":"list","data":[{"id":"qwen3","object":"model","owned_by":"vllm","root":"Qwen/Qwen3-32B","parent":null,` +
				`"max_model_len":40960,"permission":[{"id":"modelperm-1"}]}]}`},
			[]llm.Info{{Model: "qwen3", Window: 40960}},
		},
		"llama.cpp": {
			llm.Endpoint{Dialect: "llamacpp"},
			pages{
				"/v1/models": `{"models":[{"name":"gguf","model":"gguf","capabilities":["completion"]}],"object":"list","data":[{"id":"gguf",` +
					`"object":"model","owned_by":"llamacpp","meta":{"n_ctx_train":131072,"n_params":8030261312}}]}`,
				"/props": `{"default_generation_settings":{"id":0,"n_ctx":8192},"total_slots":4,"modalities":{"vision":true},` +
					`"chat_template":"..."}`,
			},
			[]llm.Info{{Model: "gguf", Window: 8192, Images: true}},
		},
		"llama.cpp, older": {
			llm.Endpoint{Dialect: "llamacpp", BaseURL: "http://x:8080/v1/"},
			pages{"/v1/models": `{"data":[{"id":"gguf","meta":null}]}`, "/props": `{"n_ctx":4096}`},
			[]llm.Info{{Model: "gguf", Window: 4096}},
		},
		"llama.cpp that tells nothing": {
			llm.Endpoint{Dialect: "llamacpp"},
			pages{"/v1/models": `{"data":[{"id":"gguf","meta":{"n_ctx_train":32768}}]}`},
			[]llm.Info{{Model: "gguf", Window: 32768}},
		},
		"llama.cpp with many models": {
			llm.Endpoint{Dialect: "llamacpp"},
			pages{
				"/v1/models": `{"data":[{"id":"a","status":{"value":"loaded"},"meta":{"n_ctx":1024,"n_ctx_train":4096}},{"id":"b",` +
					`"status":{"value":"unloaded"}}]}`,
				"/props": `{"role":"router","default_generation_settings":{"params":null,"n_ctx":0}}`,
			},
			[]llm.Info{{Model: "a", Window: 1024}, {Model: "b"}},
		},
		"LM Studio": {
			llm.Endpoint{Dialect: "lmstudio"},
			pages{"/api/v0/models": `{"object":"list","data":[
				{"id":"qwen2-vl","type":"vlm","state":"loaded","max_context_length":32768,"loaded_context_length":4096,"capabilities":["tool_use"]},
				{"id":"llama","type":"llm","state":"not-loaded","max_context_length":131072},
				{"id":"nomic","type":"embeddings","state":"not-loaded","max_context_length":2048}]}`},
			[]llm.Info{{Model: "qwen2-vl", Window: 4096, Images: true}, {Model: "llama", Window: 131072}},
		},
		"LM Studio, API v1": {
			llm.Endpoint{Dialect: "lmstudio"},
			pages{
				"/api/v0/models": `{"error":"Unexpected endpoint or method. (GET /api/v0/models)"}`,
				"/api/v1/models": `{"models":[
					{"type":"llm","key":"gemma","loaded_instances":[{"id":"gemma","config":{"context_length":4096}}],"max_context_length":32768,"capabilities":{"vision":true,"trained_for_tool_use":false}},
					{"type":"embedding","key":"nomic","loaded_instances":[],"max_context_length":2048}]}`,
			},
			[]llm.Info{{Model: "gemma", Window: 4096, Images: true}},
		},
		"LM Studio, the wire only": {
			llm.Endpoint{Dialect: "lmstudio"},
			pages{"/v1/models": `{"data":[{"id":"a","object":"model"}]}`},
			[]llm.Info{{Model: "a"}},
		},
		"TGI": {
			llm.Endpoint{Dialect: "tgi"},
			pages{"/info": `{"model_id":"meta-llama/Llama-3.1-8B","max_concurrent_requests":128,"max_input_tokens":4095,"max_total_tokens":4096,` +
				`"version":"3.0.0"}`},
			[]llm.Info{{Model: "meta-llama/Llama-3.1-8B", Window: 4096}},
		},
		"TGI, older": {
			llm.Endpoint{Dialect: "tgi"},
			pages{"/info": `{"model_id":"a","max_input_length":1024}`},
			[]llm.Info{{Model: "a", Window: 1024}},
		},
		"TGI that is none": {
			llm.Endpoint{Dialect: "tgi"},
			pages{"/v1/models": `{"data":[{"id":"a","max_model_len":2048}]}`},
			[]llm.Info{{Model: "a", Window: 2048}},
		},
		"OpenRouter": {
			llm.Endpoint{BaseURL: "https://openrouter.ai/api/v1", Provider: "or"},
			pages{"/api/v1/models": `{"data":[
				{"id":"anthropic/claude-x","context_length":1000000,"architecture":{"input_modalities":["text","image"]},"top_provider":{"context_length":200000,"max_completion_tokens":64000,"is_moderated":true},
				 "pricing":{"prompt":"0.000003","completion":"0.000015","input_cache_read":"0.0000003","input_cache_write":"0.00000375","request":"0"},"per_request_limits":null,"supported_parameters":["tools","max_tokens"]},
				{"id":"x/plain","context_length":8192,"top_provider":{"context_length":null,"max_completion_tokens":null},"pricing":{"prompt":"0","completion":"0"},"supported_parameters":["max_tokens"]},
				{"id":"openrouter/auto","context_length":2000000,"pricing":{"prompt":"-1","completion":"-1"},"supported_parameters":["tools"]}]}`},
			[]llm.Info{
				{
					Provider: "or", Model: "anthropic/claude-x", Window: 200000, MaxOutput: 64000, Images: true,
					Prices: llm.Prices{{Input: 3, CacheRead: 0.3, CacheWrite: 3.75, Output: 15}},
				},
				{Provider: "or", Model: "x/plain", Window: 8192, NoTools: true, Prices: llm.Prices{{}}},
				{Provider: "or", Model: "openrouter/auto", Window: 2000000},
			},
		},
		"Groq": {
			llm.Endpoint{Dialect: "groq"},
			pages{"/openai/v1/models": `{"object":"list","data":[{"id":"openai/gpt-oss-120b","active":true,"context_window":131072,` +
				`"max_completion_tokens":65536,"public_apps":null}]}`},
			[]llm.Info{{Model: "openai/gpt-oss-120b", Window: 131072, MaxOutput: 65536}},
		},
		"Mistral": {
			llm.Endpoint{Dialect: "mistral"},
			pages{"/v1/models": `{"object":"list","data":[
				{"id":"mistral-medium","type":"base","capabilities":{"completion_chat":true,"function_calling":true,"vision":true,"fine_tuning":false},"max_context_length":131072},
				{"id":"plain","type":"base","capabilities":{"completion_chat":true,"function_calling":false},"max_context_length":32768},
				{"id":"mistral-embed","type":"base","capabilities":{"completion_chat":false},"max_context_length":8192}]}`},
			[]llm.Info{{Model: "mistral-medium", Window: 131072, Images: true}, {Model: "plain", Window: 32768, NoTools: true}},
		},
		"Moonshot": {
			llm.Endpoint{Dialect: "moonshot"},
			pages{"/v1/models": `{"data":[{"id":"kimi-k2.6","owned_by":"moonshot","context_length":262144,"supports_image_in":true,` +
				`"supports_reasoning":true}]}`},
			[]llm.Info{{Model: "kimi-k2.6", Window: 262144, Images: true}},
		},
		"Together": {
			llm.Endpoint{Dialect: "together"},
			pages{"/v1/models": `[{"id":"zai-org/GLM-5.2","type":"chat","context_length":262144,"pricing":{"hourly":0,"input":1.4,"output":4.4,` +
				`"base":0}},{"id":"flux","type":"image"}]`},
			[]llm.Info{{Model: "zai-org/GLM-5.2", Window: 262144, Prices: price(1.4, 4.4)}},
		},
		"Fireworks": {
			llm.Endpoint{Dialect: "fireworks"},
			pages{"/inference/v1/models": `{"data":[{"id":"accounts/fireworks/models/a","supports_chat":true,"supports_image_input":true,` +
				`"supports_tools":false,"context_length":131072},{"id":"e","supports_chat":false}]}`},
			[]llm.Info{{Model: "accounts/fireworks/models/a", Window: 131072, Images: true, NoTools: true}},
		},
		"Hugging Face": {
			llm.Endpoint{Dialect: "huggingface"},
			pages{"/v1/models": router},
			[]llm.Info{pro, {Model: "x/no-tools", NoTools: true}},
		},
		"Hugging Face, one provider": {
			llm.Endpoint{Dialect: "huggingface", ID: "deepseek-ai/DeepSeek-V4-Pro:novita"},
			pages{"/v1/models": router},
			[]llm.Info{
				{Model: "deepseek-ai/DeepSeek-V4-Pro:novita", Window: 1048576, Prices: price(1.69, 3.38)},
				pro,
				{Model: "x/no-tools", NoTools: true},
			},
		},
		"Hugging Face, one without tools": {
			llm.Endpoint{Dialect: "huggingface", ID: "deepseek-ai/DeepSeek-V4-Pro:deepinfra"},
			pages{"/v1/models": router},
			[]llm.Info{{Model: "deepseek-ai/DeepSeek-V4-Pro:deepinfra", Window: 65536, NoTools: true}, pro, {Model: "x/no-tools", NoTools: true}},
		},
		"Hugging Face, a policy": { // it names no provider
			llm.Endpoint{Dialect: "huggingface", ID: "deepseek-ai/DeepSeek-V4-Pro:cheapest"},
			pages{"/v1/models": router},
			[]llm.Info{pro, {Model: "x/no-tools", NoTools: true}},
		},
		"OpenAI": {
			llm.Endpoint{},
			pages{"/v1/models": `{"object":"list","data":[{"id":"gpt-unheard-of","object":"model","owned_by":"openai"}]}`},
			[]llm.Info{{Model: "gpt-unheard-of"}},
		},
		"nothing known": {
			llm.Endpoint{BaseURL: "http://x:9/api"},
			pages{"/api/models": `{"data":[{"id":"a","context_length":"8192","pricing":"free","capabilities":7},{"id":""},5,{"id":"b",` +
				`"max_model_len":{}}]}`},
			[]llm.Info{{Model: "a", Window: 8192}, {Model: "b"}},
		},
		"no models": {llm.Endpoint{Dialect: "vllm"}, pages{"/v1/models": `{"data":[]}`}, nil},
	} {
		c.at.HTTP = c.pages
		for i := range c.want {
			if c.want[i].Provider == "" {
				c.want[i].Provider = "openai"
			}
		}
		got, err := Discover(t.Context(), c.at)
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}

// TestDiscoverCatalog checks that facts missing in a list come from the catalog of OpenAI's models, and only for those.
func TestDiscoverCatalog(t *testing.T) {
	list := pages{"/openai/v1/models": `{"data":[{"id":"gpt-5"}]}`, "/v1/models": `{"data":[{"id":"gpt-5"}]}`}
	for _, at := range []llm.Endpoint{{}, {BaseURL: "https://x.openai.azure.com/openai/v1"}, {BaseURL: "http://x/v1"}} {
		at.HTTP = list
		got, err := Discover(t.Context(), at)
		own := !strings.HasPrefix(at.BaseURL, "http://x/")
		if err != nil || len(got) != 1 || (got[0].Window > 0) != own || got[0].Model != "gpt-5" {
			t.Errorf("%q: %+v, %v", at.BaseURL, got, err)
		}
	}
}

// TestDiscoverAll asks the fake of each server for its models.
func TestDiscoverAll(t *testing.T) {
	full := llm.Info{
		Provider: "mine", Model: "a/b", Window: 65536, MaxOutput: 4096, Images: true,
		Prices: llm.Prices{{Input: 1.5, CacheRead: 0.15, CacheWrite: 2, Output: 6}},
	}
	windows := []string{
		"openrouter", "huggingface", "groq", "mistral",
		"moonshot", "together", "fireworks", "vllm", "llamacpp", "lmstudio", "tgi",
	}
	for _, d := range Dialects() {
		server := &openaitest.Server{Dialect: d.Name, Models: []llm.Info{full}}
		got, err := Discover(t.Context(), llm.Endpoint{Provider: "mine", Dialect: d.Name, BaseURL: openaitest.Start(t, server)})
		if err != nil || len(got) != 1 || got[0].Model != full.Model || got[0].Provider != full.Provider || got[0].NoTools {
			t.Errorf("%s: %+v, %v", d.Name, got, err)
			continue
		}
		if tells := slices.Contains(windows, d.Name); tells != (got[0].Window == full.Window) {
			t.Errorf("%s: a window of %d", d.Name, got[0].Window)
		}
		if d.Name == "openrouter" {
			if diff := cmp.Diff(full, got[0]); diff != "" {
				t.Error(diff)
			}
		}
	}
}

func TestDiscoverErrors(t *testing.T) {
	for _, dialect := range []string{"vllm", "llamacpp", "lmstudio", "tgi", "huggingface"} {
		wiretest.TestDiscover(t, llm.Endpoint{Dialect: dialect}, Discover)
	}
	for name, c := range map[string]struct {
		at   llm.Endpoint
		want llm.Kind
	}{
		"loading": {
			llm.Endpoint{Dialect: "llamacpp", HTTP: answers(503, `{"error":{"code":503,"message":"Loading model"}}`)},
			llm.KindOverloaded,
		},
		"not there": {llm.Endpoint{HTTP: pages{}}, llm.KindInvalid},
		"no list":   {llm.Endpoint{HTTP: answers(200, `{"error":"Unexpected endpoint"}`)}, llm.KindInvalid},
		"no URL":    {llm.Endpoint{Dialect: "azure"}, llm.KindInvalid},
	} {
		if list, err := Discover(t.Context(), c.at); err == nil || llm.AsError(err).Kind != c.want || list != nil {
			t.Errorf("%s: %+v, %v, want %s", name, list, err, c.want)
		}
	}
}

func answers(status int, body string) http.RoundTripper {
	return roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
	})
}

func FuzzDiscover(f *testing.F) {
	f.Add(`{"data":[{"id":"a","context_length":1e300,"pricing":{"prompt":"1e308","completion":"NaN"}}]}`)
	f.Add(`[{"id":"a","providers":[{"provider":"p","context_length":-1,"pricing":{"input":"x","output":null}}]}]`)
	f.Add(`{"models":[{"key":"k","loaded_instances":[{}],"capabilities":[]}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		for _, d := range Dialects() {
			list, err := Discover(t.Context(), llm.Endpoint{Dialect: d.Name, ID: "a:p", BaseURL: "http://x/v1", HTTP: wiretest.Canned(body)})
			var e *llm.Error
			if err != nil && !errors.As(err, &e) {
				t.Fatalf("error is a %T", err)
			}
			for _, info := range list {
				if info.Model == "" || info.Provider == "" || info.Window < 0 || info.MaxOutput < 0 {
					t.Fatalf("%s: %+v", d.Name, info)
				}
				for _, p := range info.Prices {
					if !(p.Input >= 0 && p.Output >= 0 && p.CacheRead >= 0 && p.CacheWrite >= 0) {
						t.Fatalf("%s: %+v", d.Name, p)
					}
				}
			}
		}
	})
}

// TestIdentify tells self-hosted servers apart by answers that only one of them gives, and confuses none.
func TestIdentify(t *testing.T) {
	some := []llm.Info{{Model: "m", Window: 4096}}
	for _, c := range []struct {
		at   http.RoundTripper
		want string
	}{
		{openaitest.Transport(t, &openaitest.Server{Models: some}), ""},
		{openaitest.Transport(t, &openaitest.Server{Models: some, Dialect: "llamacpp"}), "llamacpp"},
		{openaitest.Transport(t, &openaitest.Server{Models: some, Dialect: "lmstudio"}), "lmstudio"},
		{openaitest.Transport(t, &openaitest.Server{Models: some, Dialect: "tgi"}), "tgi"},
		{pages{"/v1/models": `{"data": [{"id": "m", "owned_by": "vllm", "max_model_len": 4096}]}`}, "vllm"},
		{pages{"/health/liveliness": `"I'm alive!"`}, "litellm"},
		{pages{"/props": `{"error": "no such page"}`}, ""},
		{pages{"/info": `{"name": "something else"}`}, ""},
		{pages{}, ""},
	} {
		if got := Identify(t.Context(), llm.Endpoint{BaseURL: "http://here.invalid/v1", HTTP: c.at}).Name; got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
