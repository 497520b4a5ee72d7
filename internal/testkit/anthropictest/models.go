package anthropictest

import (
	"encoding/json"
	"net/http"
)

// list answers a request for the list of models as the vendor does, and reports whether r is one.
func (s *Server) list(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodGet || r.URL.Path != "/v1/models" || s.Dialect != "" {
		return false
	}
	if s.Key != "" && r.Header.Get("X-Api-Key") != s.Key {
		s.fail(w, Answer{Status: 401, Type: "authentication_error", Message: "invalid x-api-key"})
		return true
	}
	if r.Header.Get("Anthropic-Version") == "" {
		s.fail(w, Answer{Status: 400, Type: "invalid_request_error", Message: "anthropic-version: header is required"})
		return true
	}
	data := []map[string]any{}
	for _, id := range s.Models {
		data = append(data, map[string]any{"type": "model", "id": id, "display_name": id, "created_at": "2026-05-01T00:00:00Z"})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"data": data, "has_more": false})
	return true
}
