package journeys_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/kernel/session"
)

// TestDrivenElsewhere checks that a run of a session that is driven elsewhere names the process, and the command that
// joins it.
func TestDrivenElsewhere(t *testing.T) {
	host, s := asking(t, &ledger{})
	log, err := (&session.Store{Dir: host.Dir}).Open(t.Context(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if err := log.Lease(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, err := range s.Run(t.Context()) {
		d, ok := errors.AsType[*inspan.DrivenError](err)
		if !ok || d.PID != os.Getpid() || d.Session != s.ID() || d.Since.IsZero() {
			t.Fatalf("%#v", err)
		}
		if want := fmt.Sprintf("process %d drives this session; join it: inspan attach %s", os.Getpid(), s.ID()); err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	}
	if got := (&inspan.DrivenError{
		Session: "s", PID: 7,
		Host: "far.invalid",
	}).Error(); got != "process 7 on far.invalid drives this session; join it: inspan attach s" {
		t.Error(got)
	}
	if got := (&inspan.DrivenError{Session: "s"}).Error(); got != "another process drives this session; join it: inspan attach s" {
		t.Error(got)
	}
}
