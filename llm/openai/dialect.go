package openai

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/internal/family"
	"github.com/inspan/inspan/llm/internal/wire"
)

// Dialect names one of the servers that speak the wire, with its address.
type Dialect struct {
	Name    string
	BaseURL string // empty if each account has its own
	KeyEnv  string // the variable that usually holds the key; empty means no key is needed
	Local   bool   // people run it themselves; BaseURL has its default port
}

// Dialects returns the servers that are known by name: presets for people, and the values of
// [llm.Endpoint.Dialect].
func Dialects() []Dialect {
	rows := dialects()
	list := make([]Dialect, len(rows))
	for i, row := range rows {
		list[i] = row.Dialect
	}
	return list
}

// DialectOf returns the server that at.Dialect names or, if that is empty, the server at the host of BaseURL;
// without a BaseURL it is OpenAI. Any other host gets the zero Dialect, which is the common ground of most
// imitators. An unknown name is an error.
func DialectOf(at llm.Endpoint) (Dialect, error) {
	d, err := dialectOf(at)
	return d.Dialect, err
}

// dialect is the set of differences of one server. The zero value is a server about which nothing is known.
type dialect struct {
	Dialect
	hosts []string // its hosts, and all their subdomains

	own       bool   // it serves OpenAI's models under OpenAI's names
	keyHeader string // header with the key; empty means Authorization
	limit     string // field with the maximum length of the reply; empty means max_tokens
	// session is the field, and sessionHeader the header, whose value routes a conversation to the cache that it
	// has filled.
	session, sessionHeader string
	effort                 effort
	takesEffort            func(id string, tools bool) bool // nil means every model does
	noUsageOption          bool                             // stream_options is refused; usage is sent anyway

	nineIDs      bool        // ids of calls have nine letters and digits, instead of up to 40
	resultName   bool        // templates of its models need the tool's name in a result
	bridge       bool        // the model speaks after results of tools, never the user
	emptyThought bool        // the model's messages have reasoning_content once there are tools, even without a thought
	images       wire.Images // what one request may have of them
	oneCall      bool        // a message has at most one call
	oneChannel   bool        // a message with calls has either a text or a thought
	mockTools    bool        // calls in the history need tools in the request
	cacheMark    bool        // Claude caches at cache_control marks

	bareOverflow   bool                                               // 400 and 413 without a body mean that the prompt is too long
	silentOverflow bool                                               // an overlong prompt is accepted and cut
	list           func(*lister, context.Context) ([]llm.Info, error) // nil means the common endpoint
	sign           func(*lister, context.Context) bool                // whether the server is this one; nil means nothing tells
}

// ownImages are the limits of OpenAI and Azure: 500 images and 50 MB of them in a request (OpenAI's guide "Images and
// vision").
func ownImages() wire.Images { return wire.Images{Count: 500, Bytes: 50 << 20} }

// dialects returns the rows of the table, in the order of [Dialects].
func dialects() []dialect { return append(vendors(), servers()...) }

// vendors are the services that host models.
func vendors() []dialect {
	const newLimit, cacheKey = "max_completion_tokens", "prompt_cache_key"
	return []dialect{
		{
			Dialect: Dialect{Name: "openai", BaseURL: "https://api.openai.com/v1", KeyEnv: "OPENAI_API_KEY"}, hosts: []string{"openai.com"},
			own: true, limit: newLimit, session: cacheKey, takesEffort: ownEffort, images: ownImages(),
		},
		{ // learn.microsoft.com/azure/foundry/openai/api-version-lifecycle; base URL https://RESOURCE.openai.azure.com/openai/v1
			Dialect: Dialect{Name: "azure", KeyEnv: "AZURE_OPENAI_API_KEY"},
			hosts:   []string{"openai.azure.com", "services.ai.azure.com", "cognitiveservices.azure.com"},
			own:     true, keyHeader: "Api-Key", limit: newLimit, session: cacheKey, takesEffort: ownEffort, images: ownImages(),
		},
		{ // openrouter.ai/docs/guides/best-practices/prompt-caching
			Dialect: Dialect{Name: "openrouter", BaseURL: "https://openrouter.ai/api/v1", KeyEnv: "OPENROUTER_API_KEY"},
			hosts:   []string{"openrouter.ai"},
			session: "session_id", effort: effortObject, cacheMark: true,
			list: (*lister).openrouter,
		},
		{ // huggingface.co/docs/inference-providers
			Dialect: Dialect{Name: "huggingface", BaseURL: "https://router.huggingface.co/v1", KeyEnv: "HF_TOKEN"},
			hosts:   []string{"router.huggingface.co"},
			list:    (*lister).huggingface,
		},
		{ // api-docs.deepseek.com/guides/thinking_mode
			Dialect: Dialect{Name: "deepseek", BaseURL: "https://api.deepseek.com", KeyEnv: "DEEPSEEK_API_KEY"}, hosts: []string{"deepseek.com"},
			emptyThought: true,
		},
		{ // console.groq.com/docs/api-reference
			Dialect: Dialect{Name: "groq", BaseURL: "https://api.groq.com/openai/v1", KeyEnv: "GROQ_API_KEY"}, hosts: []string{"groq.com"},
			limit: newLimit, takesEffort: gptOSS,
		},
		{ // docs.mistral.ai/api
			Dialect: Dialect{Name: "mistral", BaseURL: "https://api.mistral.ai/v1", KeyEnv: "MISTRAL_API_KEY"}, hosts: []string{"mistral.ai"},
			session: cacheKey, effort: effortHigh, noUsageOption: true, nineIDs: true, resultName: true, bridge: true,
			images: wire.Images{Count: 8}, // docs.mistral.ai/capabilities/vision
		},
		{ // docs.x.ai/developers/advanced-api-usage/prompt-caching
			Dialect: Dialect{Name: "xai", BaseURL: "https://api.x.ai/v1", KeyEnv: "XAI_API_KEY"}, hosts: []string{"x.ai"},
			sessionHeader: "X-Grok-Conv-Id", takesEffort: reasoningGrok,
		},
		{ // platform.moonshot.ai/docs
			Dialect: Dialect{Name: "moonshot", BaseURL: "https://api.moonshot.ai/v1", KeyEnv: "MOONSHOT_API_KEY"},
			hosts:   []string{"moonshot.ai", "moonshot.cn"},
			session: cacheKey, effort: effortUnasked, emptyThought: true,
		},
		{ // docs.z.ai/guides/capabilities/thinking-mode
			Dialect: Dialect{Name: "zai", BaseURL: "https://api.z.ai/api/paas/v4", KeyEnv: "ZAI_API_KEY"}, hosts: []string{"z.ai", "bigmodel.cn"},
			effort: effortSwitch, silentOverflow: true,
		},
		{ // docs.together.ai/reference
			Dialect: Dialect{Name: "together", BaseURL: "https://api.together.ai/v1", KeyEnv: "TOGETHER_API_KEY"},
			hosts:   []string{"together.ai", "together.xyz"},
		},
		{ // docs.fireworks.ai/api-reference
			Dialect: Dialect{Name: "fireworks", BaseURL: "https://api.fireworks.ai/inference/v1", KeyEnv: "FIREWORKS_API_KEY"},
			hosts:   []string{"fireworks.ai"},
		},
		{ // inference-docs.cerebras.ai/api-reference
			Dialect: Dialect{Name: "cerebras", BaseURL: "https://api.cerebras.ai/v1", KeyEnv: "CEREBRAS_API_KEY"}, hosts: []string{"cerebras.ai"},
			limit: newLimit, bareOverflow: true,
		},
	}
}

// servers are the programs that people run.
func servers() []dialect {
	return []dialect{
		{ // docs.litellm.ai/docs/proxy
			Dialect:   Dialect{Name: "litellm", BaseURL: "http://localhost:4000/v1", KeyEnv: "LITELLM_API_KEY", Local: true},
			mockTools: true, sign: (*lister).isLiteLLM,
		},
		{ // docs.vllm.ai/en/stable/serving/openai_compatible_server
			Dialect:    Dialect{Name: "vllm", BaseURL: "http://localhost:8000/v1", Local: true},
			resultName: true, sign: (*lister).isVLLM,
		},
		{ // github.com/ggml-org/llama.cpp/tree/master/tools/server
			Dialect:    Dialect{Name: "llamacpp", BaseURL: "http://localhost:8080/v1", Local: true},
			resultName: true, list: (*lister).llamacpp, sign: (*lister).isLlamacpp,
		},
		{ // lmstudio.ai/docs/developer
			Dialect:    Dialect{Name: "lmstudio", BaseURL: "http://localhost:1234/v1", Local: true},
			resultName: true, silentOverflow: true, list: (*lister).lmstudio, sign: (*lister).isLMStudio,
		},
		{ // huggingface.co/docs/text-generation-inference/reference/api_reference
			Dialect:    Dialect{Name: "tgi", BaseURL: "http://localhost:3000/v1", Local: true},
			resultName: true, list: (*lister).tgi, sign: (*lister).isTGI,
		},
	}
}

func dialectOf(at llm.Endpoint) (dialect, error) {
	rows := dialects()
	find := func(match func(dialect) bool) (dialect, bool) {
		i := slices.IndexFunc(rows, match)
		if i < 0 {
			// An unknown gateway may have Claude after it.
			return dialect{mockTools: true}, false
		}
		return rows[i], true
	}
	name := at.Dialect
	if name == "" && at.BaseURL == "" {
		name = "openai"
	}
	if name == "" {
		d, _ := find(func(d dialect) bool { return d.at(at.BaseURL) })
		return d.forModel(at.ID), nil
	}
	d, ok := find(func(d dialect) bool { return d.Name == name })
	if !ok {
		return d, fmt.Errorf("unknown dialect %q: known are %s", name, strings.Join(names(rows), ", "))
	}
	return d.forModel(at.ID), nil
}

func names(rows []dialect) []string {
	list := make([]string, len(rows))
	for i, d := range rows {
		list[i] = d.Name
	}
	return list
}

// at reports whether base is an address of the server.
func (d dialect) at(base string) bool {
	u, err := url.Parse(base)
	return err == nil && slices.ContainsFunc(d.hosts, func(domain string) bool {
		return u.Hostname() == domain || strings.HasSuffix(u.Hostname(), "."+domain)
	})
}

// forModel adds the requirements of the model's family. OpenAI serves only its own models, also under names that
// people gave to tuned ones.
func (d dialect) forModel(id string) dialect {
	f := family.Of(id)
	if d.Name == "openai" {
		return d
	}
	d.nineIDs, d.bridge, d.emptyThought = d.nineIDs || f.NineIDs, d.bridge || f.Bridge, d.emptyThought || f.EmptyThought
	d.oneChannel, d.oneCall = f.OneChannel, f.OneCall
	return d
}

// ids returns the rule for the ids of calls.
func (d dialect) ids() func(string) string {
	if d.nineIDs {
		return nineLetters
	}
	return idUpTo40
}

func containsAny(s string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(s, p) })
}
