package command

import (
	"context"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/inspan/inspan/internal/front/console"
)

// unread is how long a process that was asked to end waits for a reader that takes nothing.
const unread = 2 * time.Second

// outlet is an output that may block, such as a pipe.
type outlet struct {
	io.Writer
	begun, done atomic.Int64 // writes
}

// Write implements [io.Writer].
func (o *outlet) Write(p []byte) (int, error) {
	o.begun.Add(1)
	defer o.done.Add(1)
	return o.Writer.Write(p)
}

// outletOf returns an outlet for output; a terminal stays what it is.
func (c *command) outletOf(w io.Writer) io.Writer {
	if isTerminal(w) {
		return w
	}
	o := &outlet{Writer: w}
	c.outlets = append(c.outlets, o)
	return o
}

// signals returns a context that ends when the process is asked to end. If its output blocks then, the process ends all the same.
func (c *command) signals(ctx context.Context) (context.Context, context.CancelFunc) {
	asked, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	var over atomic.Bool
	context.AfterFunc(asked, func() {
		if !over.Load() {
			c.endUnread()
		}
	})
	return asked, func() {
		over.Store(true)
		stop()
	}
}

// endUnread ends the process if no one reads its output, unless the command ends before.
func (c *command) endUnread() {
	look := time.NewTicker(unread / 20)
	defer look.Stop()
	since, before := time.Now(), int64(-1)
	for {
		select {
		case <-c.ended:
			return
		case <-look.C:
		}
		blocked, done := false, int64(0)
		for _, o := range c.outlets {
			n := o.done.Load()
			blocked = blocked || o.begun.Load() > n
			done += n
		}
		if !blocked || done != before {
			since, before = time.Now(), done
		} else if time.Since(since) >= unread {
			os.Exit(console.ExitCancelled)
		}
	}
}
