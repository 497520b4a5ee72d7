package inspan

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/inspan/inspan/store"
)

// DrivenError says that another process drives the session, so that this process can't run it.
// [Session.Send] reaches the other process.
type DrivenError struct {
	Session string
	PID     int    // 0: not known
	Host    string // that the process runs on
	Since   time.Time
}

// Error names the process and the command that joins it.
func (e *DrivenError) Error() string {
	who := "another process"
	if e.PID > 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}
	if here, err := os.Hostname(); err != nil || e.Host != here && e.Host != "" {
		who += " on " + e.Host
	}
	return fmt.Sprintf("%s drives this session; join it: inspan attach %s", who, e.Session)
}

// driven turns the error of a lease into a DrivenError, if another process holds the lease.
func driven(id string, err error) error {
	if busy, ok := errors.AsType[*store.BusyError](err); ok {
		return &DrivenError{Session: id, PID: busy.PID, Host: busy.Host, Since: busy.Since}
	}
	return err
}
