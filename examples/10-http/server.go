package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"strconv"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
)

// server has no state of its own: sessions are on disk, so any process with the same host can stream a session and
// accept answers for it.
type server struct {
	host *inspan.Host
	root string
}

// begin starts a session with the task in the body, and responds with its id.
func (s *server) begin(w http.ResponseWriter, r *http.Request) {
	task, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	session, err := s.host.New(r.Context(), s.root)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	go func() {
		defer session.Close()
		run := inspan.Conductor{Session: session, AnswerWait: -1} // waits for answers from other requests
		if err := run.Run(context.Background(), event.Say(string(task))); err != nil {
			log.Print(err)
		}
	}()
	fmt.Fprint(w, session.ID())
}

// events streams the events since the last one that the client saw, and then new ones as they happen.
func (s *server) events(w http.ResponseWriter, r *http.Request) {
	watch, err := s.host.Watch(r.Context(), r.PathValue("id"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	defer watch.Close()
	after, _ := strconv.ParseUint(r.Header.Get("Last-Event-ID"), 10, 64) // 0 means from the beginning
	w.Header().Set("Content-Type", "text/event-stream")
	for e, err := range watch.Events(r.Context(), after) {
		if err != nil {
			return // the client reconnects
		}
		data, _ := json.Marshal(e.Body)
		fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", e.Seq, e.Body.Kind(), data)
		_ = http.NewResponseController(w).Flush()
	}
}

// answer accepts a decision on a question, such as {"call":"c1","question":9,"allow":true}.
func (s *server) answer(w http.ResponseWriter, r *http.Request) {
	var d event.Decided
	if err := json.NewDecoder(r.Body).Decode(&d); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	watch, err := s.host.Watch(r.Context(), r.PathValue("id"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	defer watch.Close()
	if err := watch.Send(r.Context(), d); err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
	}
}
