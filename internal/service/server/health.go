package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/inspan/inspan/store"
)

// pulse is the source of the health endpoints. It shares no lock with any work.
type pulse struct {
	last atomic.Int64 // last activity, in Unix seconds
	busy atomic.Int64 // tasks at work
}

func (p *pulse) beat() { p.last.Store(time.Now().Unix()) }

// health is the response of ping.
type health struct {
	Status string `json:"status" jsonschema:"Healthy, or HealthyBusy while tasks work"`
	Last   int64  `json:"time_of_last_update" jsonschema:"when something happened, in seconds since 1970"`
}

// ping responds as the runtime contract of Bedrock AgentCore requires: busy while a task is at work, also
// during a call that takes hours, and the time of the last activity.
func (s *Server) ping() endpoint {
	says := map[int]reflect.Type{http.StatusOK: reflect.TypeFor[health]()}
	return plain("ping", "/ping", "", "Tell whether the server lives, and whether tasks work.", says, func(w http.ResponseWriter, _ *http.Request) {
		now := health{Status: "Healthy", Last: s.pulse.last.Load()}
		if s.pulse.busy.Load() > 0 {
			now.Status = "HealthyBusy"
		}
		Reply(w, http.StatusOK, now)
	})
}

// noRoom is the public message for a full disk; the operator and the audit log get the details.
const noRoom = "the server has no room on its disk; tasks rest until it has"

// readiness tells whether the server accepts tasks.
type readiness struct {
	Ready bool   `json:"ready"`
	Why   string `json:"why,omitempty" jsonschema:"why not"`
}

// ready reports whether the server accepts tasks.
func (s *Server) ready() endpoint {
	says := map[int]reflect.Type{http.StatusOK: reflect.TypeFor[readiness](), http.StatusServiceUnavailable: reflect.TypeFor[readiness]()}
	return plain("ready", "/readyz", "", "Tell whether tasks are taken.", says, func(w http.ResponseWriter, r *http.Request) {
		now, status := readiness{Ready: true}, http.StatusOK
		switch {
		case s.isDraining():
			now = readiness{Why: "the server is shutting down"}
		case s.disk.trouble() != nil:
			now = readiness{Why: noRoom}
		default:
			ctx, stop := context.WithTimeout(r.Context(), storeAnswers)
			defer stop()
			id, err := store.BookID(bookName)
			if err == nil {
				_, err = s.Sessions.Holder(ctx, id)
			}
			if err != nil {
				now = readiness{Why: store.ErrUnavailable.Error()}
			}
		}
		if !now.Ready {
			status = http.StatusServiceUnavailable
			w.Header().Set("Retry-After", "30")
		}
		Reply(w, status, now)
	})
}

// storeAnswers is how long a store may take to respond.
const storeAnswers = 2 * time.Second

// plain returns an endpoint that writes its response itself.
func plain(name, path string, role Role, doc string, says map[int]reflect.Type, f http.HandlerFunc) endpoint {
	in := reflect.TypeFor[nothing]()
	return endpoint{name: name, method: http.MethodGet, path: path, role: role, doc: doc, in: in, out: in, says: says, plain: f}
}

// replyText responds with text that must not be cached.
func replyText(w http.ResponseWriter, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8") // the form that Prometheus expects
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	_, _ = io.WriteString(w, text)
}

// Reply responds with a value as JSON that must not be cached.
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
	_, _ = w.Write(bytes.TrimSuffix(out.Bytes(), []byte("\n"))) // the client may have disconnected
}
