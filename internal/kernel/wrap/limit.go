package wrap

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/kernel/fault"
	"github.com/inspan/inspan/tool"
)

// Times for a call to work, and to stop after its context has ended. A call that delegates may take longer to stop,
// because its children have a grace of their own.
const (
	defaultTime    = 15 * time.Minute
	grace          = 10 * time.Second
	graceDelegated = 3 * grace
)

// Limit bounds the time that a call works, not counting waits for a person; 0 means 15 minutes. Tools that delegate or
// make nested calls are not bounded, because their children and nested calls are. A call that does not stop after its
// context has ended is abandoned, and its result is dropped.
func Limit(most time.Duration) Wrapper {
	if most <= 0 {
		most = defaultTime
	}
	return func(t tool.Tool) tool.Tool {
		run := t.Run
		t.Run = func(ctx context.Context, c *tool.Call) (tool.Result, error) {
			limited, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			limit, toStop := &keep.Deadline{Do: func() { cancel(fault.ErrTimeout) }}, graceDelegated
			defer limit.Stop()
			if !t.Delegates && !t.Calls {
				limit.Set(time.Now().Add(most))
				toStop = grace
			}
			own := *c // a copy, because an abandoned call may still change it
			if ask := c.Ask; ask != nil {
				own.Ask = func(ctx context.Context, question string, options []string) (string, error) {
					defer limit.Pause()()
					return ask(ctx, question, options)
				}
			}
			res, err := abandoning(limited, toStop, func() (tool.Result, error) { return run(limited, &own) })
			if err != nil && errors.Is(context.Cause(limited), fault.ErrTimeout) && ctx.Err() == nil {
				err = fmt.Errorf("stopped after %v, the longest a call may take: %w", most, err)
			}
			return res, err
		}
		return t
	}
}

// abandoning returns the result of run. Once ctx has ended, it waits no longer than toStop.
func abandoning(ctx context.Context, toStop time.Duration, run func() (tool.Result, error)) (tool.Result, error) {
	type outcome struct {
		res tool.Result
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		res, err := run()
		done <- outcome{res, err}
	}()
	select {
	case o := <-done:
		return o.res, o.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(toStop)
	defer timer.Stop()
	select {
	case o := <-done:
		return o.res, o.err
	case <-timer.C:
		return tool.Result{}, fault.ErrUnstoppable
	}
}
