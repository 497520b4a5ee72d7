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

// How long a call may work, and how long it may take to stop when told to. A call that delegates may take
// longer, since its workers have their own grace.
const (
	defaultTime    = 15 * time.Minute
	grace          = 10 * time.Second
	graceDelegated = 3 * grace
)

// Limit bounds the time that a call works, not counting waits for a person; 0 means 15 minutes. Tools that
// delegate or make calls are not bounded here, since their workers have bounds of their own. A call that does
// not stop when told to is abandoned, and its result is dropped.
func Limit(most time.Duration) Wrapper {
	if most <= 0 {
		most = defaultTime
	}
	return func(t tool.Tool) tool.Tool {
		run := t.Run
		t.Run = func(ctx context.Context, c *tool.Call) (tool.Result, error) {
			limited, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			limit, patience := &keep.Deadline{Do: func() { cancel(fault.ErrTimeout) }}, graceDelegated
			defer limit.Stop()
			if !t.Delegates && !t.Calls {
				limit.Set(time.Now().Add(most))
				patience = grace
			}
			own := *c // an abandoned call must not change what others see
			if ask := c.Ask; ask != nil {
				own.Ask = func(ctx context.Context, question string, options []string) (string, error) {
					defer limit.Pause()()
					return ask(ctx, question, options)
				}
			}
			res, err := abandoning(limited, patience, func() (tool.Result, error) { return run(limited, &own) })
			if err != nil && errors.Is(context.Cause(limited), fault.ErrTimeout) && ctx.Err() == nil {
				err = fmt.Errorf("stopped after %v, the longest a call may take: %w", most, err)
			}
			return res, err
		}
		return t
	}
}

// abandoning returns the result of run, but waits no longer than patience once ctx has ended.
func abandoning(ctx context.Context, patience time.Duration, run func() (tool.Result, error)) (tool.Result, error) {
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
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case o := <-done:
		return o.res, o.err
	case <-timer.C:
		return tool.Result{}, fault.ErrUnstoppable
	}
}
