package openaitest

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/inspan/inspan/llm"
)

// Lists are GET requests. Each server tells of its models in its own words, and
// most tell little.

// models answers a GET request; it returns nil if the server has nothing there.
func (s *Server) models(path string) any {
	switch {
	case s.Dialect == "tgi" && strings.HasSuffix(path, "/info") && len(s.Models) > 0:
		return map[string]any{"model_id": s.Models[0].Model, "max_total_tokens": s.Models[0].Window, "max_input_tokens": s.Models[0].Window - 1}
	case s.Dialect == "tgi":
		return nil
	case s.Dialect == "llamacpp" && path == "/props" && len(s.Models) > 0:
		return map[string]any{
			"default_generation_settings": map[string]any{"n_ctx": s.Models[0].Window},
			"modalities":                  map[string]any{"vision": s.Models[0].Images},
		}
	case s.Dialect == "lmstudio" && strings.HasPrefix(path, "/api/") && path != "/api/v0/models":
		return map[string]any{"error": "Unexpected endpoint or method. (GET " + path + ")"}
	case !strings.HasSuffix(path, "/models"):
		return nil
	}
	list := make([]any, len(s.Models))
	for i, m := range s.Models {
		entry := map[string]any{"id": m.Model, "object": "model", "created": 1795000000, "owned_by": "fake"}
		if s.Dialect != "lmstudio" || strings.HasPrefix(path, "/api/") {
			tell(entry, s.Dialect, m)
		}
		list[i] = entry
	}
	if s.Dialect == "together" {
		return list
	}
	return map[string]any{"object": "list", "data": list}
}

// tell adds the server's facts about a model to an entry.
func tell(e map[string]any, dialect string, m llm.Info) {
	inputs := []string{"text"}
	if m.Images {
		inputs = append(inputs, "image")
	}
	switch dialect {
	case "openrouter":
		e["context_length"] = m.Window
		e["architecture"] = map[string]any{"input_modalities": inputs}
		e["top_provider"] = map[string]any{"context_length": m.Window, "max_completion_tokens": m.MaxOutput}
		e["supported_parameters"] = parameters(m)
		e["pricing"] = tokenPrices(m.Prices)
	case "huggingface":
		e["architecture"] = map[string]any{"input_modalities": inputs}
		e["providers"] = []any{
			map[string]any{"provider": "large", "status": "live", "context_length": 2 * m.Window, "supports_tools": !m.NoTools},
			map[string]any{
				"provider": "small", "status": "live", "context_length": m.Window,
				"supports_tools": !m.NoTools, "pricing": millionPrices(m.Prices),
			},
			map[string]any{"provider": "silent", "status": "error"},
		}
	case "groq":
		e["context_window"], e["max_completion_tokens"], e["active"] = m.Window, m.MaxOutput, true
	case "mistral":
		e["max_context_length"], e["type"] = m.Window, "base"
		e["capabilities"] = map[string]any{"completion_chat": true, "function_calling": !m.NoTools, "vision": m.Images}
	case "moonshot":
		e["context_length"], e["supports_image_in"] = m.Window, m.Images
	case "together":
		e["context_length"], e["type"], e["pricing"] = m.Window, "chat", millionPrices(m.Prices)
	case "fireworks":
		e["context_length"], e["supports_chat"], e["supports_image_input"], e["supports_tools"] = m.Window, true, m.Images, !m.NoTools
	case "vllm":
		e["max_model_len"] = m.Window
	case "llamacpp":
		e["meta"] = map[string]any{"n_ctx_train": 4 * m.Window}
	case "lmstudio":
		e["type"], e["state"], e["loaded_context_length"], e["max_context_length"] = "llm", "loaded", m.Window, 4*m.Window
		if m.Images {
			e["type"] = "vlm"
		}
	}
}

func parameters(m llm.Info) []string {
	if m.NoTools {
		return []string{"max_tokens"}
	}
	return []string{"max_tokens", "tools", "tool_choice"}
}

func tokenPrices(p llm.Prices) any {
	if len(p) == 0 {
		return map[string]any{"prompt": "-1", "completion": "-1"}
	}
	each := func(million float64) string { return strconv.FormatFloat(million/1e6, 'f', -1, 64) }
	return map[string]any{
		"prompt": each(p[0].Input), "completion": each(p[0].Output), "input_cache_read": each(p[0].CacheRead),
		"input_cache_write": each(p[0].CacheWrite),
	}
}

func millionPrices(p llm.Prices) any {
	if len(p) == 0 {
		return nil
	}
	return map[string]any{"input": p[0].Input, "output": p[0].Output}
}

// serveModels answers a GET request.
func (s *Server) serveModels(w http.ResponseWriter, r *http.Request) {
	answer := s.models(r.URL.Path)
	if answer == nil {
		fail(w, Answer{Status: http.StatusNotFound, Body: "404 page not found"})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(marshal(answer))
}
