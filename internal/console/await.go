package console

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
)

// RunOn is Run for a process that nobody sits at: where calls wait it says so, and
// goes on when somebody has answered from elsewhere. Meanwhile the session is seen to
// be driven. A signal that comes then ends the command and leaves the question open.
func (c *Console) RunOn(ctx context.Context, s *inspan.Session, inputs ...event.Body) int {
	for {
		code := c.Run(ctx, s, inputs...)
		if code != ExitWaiting {
			return code
		}
		if err := await(ctx, s); err != nil {
			return c.Fail(ExitCode("waiting", "", err), err)
		}
		inputs = nil
	}
}

// await returns when the run can go on.
func await(ctx context.Context, s *inspan.Session) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err := s.Await(ctx)
	if ctx.Err() != nil {
		return errors.New("ended while it asks; the question stays open")
	}
	return err
}
