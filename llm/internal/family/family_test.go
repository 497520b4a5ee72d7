package family_test

import (
	"testing"

	"github.com/inspan/inspan/llm/internal/family"
)

// TestOf checks that a family is found however a server spells its models.
func TestOf(t *testing.T) {
	for id, want := range map[string]string{
		"deepseek/deepseek-chat": "deepseek", "DeepSeek-V3.1": "deepseek", "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B": "deepseek",
		"accounts/fireworks/models/deepseek-v3p1": "deepseek", "deepseek-r1:14b": "deepseek",
		"qwen2.5-coder:7b": "qwen", "Qwen/Qwen3-32B": "qwen", "qwq:32b": "qwen", "hf.co/unsloth/Qwen3-Coder-30B-A3B-Instruct-GGUF:Q4_K_M": "qwen",
		"accounts/fireworks/models/glm-4p5": "glm", "z-ai/glm-4.7": "glm", "zai-org/GLM-4.5-Air": "glm",
		"moonshotai/Kimi-K2-Instruct": "kimi", "kimi-k2:1t-cloud": "kimi", "moonshot-v1-128k": "kimi",
		"mistral-large-latest": "mistral", "mistralai/Devstral-Small": "mistral", "open-mixtral-8x22b": "mistral",
		"meta-llama/Llama-3.3-70B-Instruct": "llama", "codellama:7b": "llama", "@cf/meta/llama-4-scout-17b": "llama",
		"NousResearch/Hermes-3-Llama-3.1-8B": "hermes", "openai/gpt-oss-120b": "gpt-oss", "gpt-oss:20b": "gpt-oss",
		"MiniMaxAI/MiniMax-M2": "minimax", "google/gemma-3-27b-it": "gemma", "moonshotai/some-model": "kimi",
		"gpt-5.6": "", "claude-opus-5-5": "", "gemini-3-pro": "", "m": "", "": "",
	} {
		if got := family.Of(id).Name; got != want {
			t.Errorf("%q is of %q, want %q", id, got, want)
		}
	}
}

// TestWants checks the requirements of the families that have some.
func TestWants(t *testing.T) {
	for id, want := range map[string]family.Family{
		"openrouter/deepseek-v4":        {Name: "deepseek", EmptyThought: true},
		"deepseek-r1-distill-llama-70b": {Name: "deepseek"},
		"kimi-k2-thinking":              {Name: "kimi", EmptyThought: true},
		"minimax-m2":                    {Name: "minimax", KeepsThoughts: true},
		"codestral-2508":                {Name: "mistral", NineIDs: true, Bridge: true},
		"llama3.2":                      {Name: "llama", OneCall: true},
		"meta-llama/Llama-4-Scout":      {Name: "llama"},
		"gpt-oss:20b":                   {Name: "gpt-oss", OneChannel: true, OneCall: true},
	} {
		if got := family.Of(id); got != want {
			t.Errorf("%s: %+v, want %+v", id, got, want)
		}
	}
}
