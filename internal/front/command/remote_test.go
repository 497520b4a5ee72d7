//go:build linux

package command

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/testkit"
)

// TestRemoteInterrupted checks that a person who interrupts a command while a server accepts its task learns that there
// may be a task.
func TestRemoteInterrupted(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]string{
		http.MethodPost: "interrupt signal received; the task may have been submitted, look for it with: inspan ps --remote ",
		http.MethodGet:  "interrupt signal received; the task was submitted, look for it with: inspan ps --remote ",
	} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			asked := make(chan bool, 1)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // else no one notices that the client disconnected
				if r.Method != method {
					w.WriteHeader(http.StatusCreated)
					fmt.Fprint(w, `{"id":"task_1"}`)
					return
				}
				asked <- true
				<-r.Context().Done() // it is never answered
			}))
			t.Cleanup(server.Close)
			h := withoutModel(t)
			cmd := h.command(t.Context(), "run", "--remote", server.URL, "say: hello")
			cmd.Env = append(cmd.Env, "INSPAN_REMOTE_TOKEN=token")
			run := testkit.Start(t, cmd)
			testkit.Receive(t, "the request", asked)
			if err := run.Cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			run.Ends(1)
			if said := run.Printed(); !strings.Contains(said, want+server.URL) {
				t.Errorf("it says %q", said)
			}
		})
	}
}
