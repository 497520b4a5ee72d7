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

// RunOn is like Run for a process without a person: if calls wait it says so, and continues when someone has
// answered from elsewhere. Meanwhile others see that the session is driven. A signal during the wait ends the
// command and leaves the question open.
func (c *Console) RunOn(ctx context.Context, s *inspan.Session, inputs ...event.Body) int {
	signalled, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	for {
		code := c.Run(ctx, s, inputs...)
		if code != ExitWaiting {
			return code
		}
		err := s.Await(signalled)
		if signalled.Err() != nil {
			err = errors.New("stopped while a question was open; it stays open")
		}
		if err != nil {
			return c.Fail(ExitCode("waiting", "", err), err)
		}
		inputs = nil
	}
}
