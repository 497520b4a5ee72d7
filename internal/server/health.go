package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"sync/atomic"
	"time"
)

// pulse is what health is told from. It shares no lock with any work.
type pulse struct {
	last atomic.Int64 // when something happened, in Unix seconds
	busy atomic.Int64 // tasks at work
}

func (p *pulse) beat() { p.last.Store(time.Now().Unix()) }

// health serves what asks whether the server lives. Nobody needs a token for that.
func (s *Server) health(mux *http.ServeMux) {
	mux.HandleFunc("GET /ping", s.ping)
	mux.HandleFunc("GET /readyz", s.ready)
}

// ping answers as the runtime contract of Bedrock AgentCore has it: busy as long as a task is at
// work, also while one call of it takes hours, and when something happened last.
func (s *Server) ping(w http.ResponseWriter, _ *http.Request) {
	state := "Healthy"
	if s.pulse.busy.Load() > 0 {
		state = "HealthyBusy"
	}
	Reply(w, http.StatusOK, map[string]any{"status": state, "time_of_last_update": s.pulse.last.Load()})
}

// noRoom is what anybody is told of a disk that is full; the operator and the audit log know which.
const noRoom = "the server has no room on its disk; tasks rest until it has"

// ready says whether tasks are taken.
func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	if s.isDraining() {
		w.Header().Set("Retry-After", "30")
		Reply(w, http.StatusServiceUnavailable, map[string]any{"ready": false, "why": "the server is shutting down"})
		return
	}
	if err := s.disk.trouble(); err != nil {
		w.Header().Set("Retry-After", "30")
		Reply(w, http.StatusServiceUnavailable, map[string]any{"ready": false, "why": noRoom})
		return
	}
	Reply(w, http.StatusOK, map[string]any{"ready": true})
}

// Reply answers with a value as JSON, which nobody on the way keeps.
func Reply(w http.ResponseWriter, status int, v any) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		status = http.StatusInternalServerError
		out.Reset()
		out.WriteString(`{"type":"error","error":{"type":"api_error","message":"the answer can't be written"}}`)
	}
	w.WriteHeader(status)
	_, _ = w.Write(bytes.TrimSuffix(out.Bytes(), []byte("\n"))) // whoever has gone need not know
}
