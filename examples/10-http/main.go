// An HTTP server with coding agents. A client submits a task, follows the session as server-sent events and answers
// its questions. The id of an event is its number in the session, so a client that lost its connection continues
// after the last event that it saw; browsers do this on their own. The server is in server.go; this program is its
// own client, in client.go.
package main

import (
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/inspan/inspan/coding"
	"github.com/inspan/inspan/llm/script"
)

func main() {
	sandbox := coding.Init()
	dir, err := os.MkdirTemp("", "inspan-http-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	s := &server{root: filepath.Join(dir, "work")}
	if err := os.Mkdir(s.root, 0o700); err != nil {
		log.Fatal(err)
	}
	s.host, err = coding.Agent(coding.Options{Sandbox: sandbox, Root: s.root, State: filepath.Join(dir, "state"), Model: &script.Model{}})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux() // a real server authenticates its clients
	mux.HandleFunc("POST /sessions", s.begin)
	mux.HandleFunc("GET /sessions/{id}/events", s.events)
	mux.HandleFunc("POST /sessions/{id}/answers", s.answer)
	web := httptest.NewServer(mux)
	defer web.Close()
	if err := visit(web.URL); err != nil {
		log.Fatal(err)
	}
}
