package geminitest

import (
	"encoding/json"
	"net/http"
)

// list answers a request for the list of models as the vendor does, and reports whether r is one. An embedding
// model is among them.
func (s *Server) list(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodGet || r.URL.Path != "/v1beta/models" {
		return false
	}
	if a := s.keyless(r); a != nil {
		fail(w, *a)
		return true
	}
	models := []map[string]any{{"name": "models/embedding-001", "supportedGenerationMethods": []string{"embedContent"}}}
	for _, id := range s.Models {
		models = append(models, map[string]any{
			"name": "models/" + id, "inputTokenLimit": 1048576, "outputTokenLimit": 65536,
			"supportedGenerationMethods": []string{"generateContent", "countTokens"},
		})
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	_ = json.NewEncoder(w).Encode(map[string]any{"models": models})
	return true
}

// keyless returns the answer to a request without the right key, nil if it has it.
func (s *Server) keyless(r *http.Request) *Answer {
	if s.Key == "" || r.Header.Get("X-Goog-Api-Key") == s.Key || r.Header.Get("Authorization") == "Bearer "+s.Key {
		return nil
	}
	return &Answer{
		Status: 400, Type: "INVALID_ARGUMENT", Message: "API key not valid. Please pass a valid API key.",
		Code: `[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com"}]`,
	}
}
