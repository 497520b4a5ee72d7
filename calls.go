package inspan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/loop"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// runCalls runs a set of calls at once. The intent to run is stored before the
// first effect of any; each result is stored as soon as it is there.
func (d *driver) runCalls(ctx context.Context, calls []loop.Call) error {
	intents, err := d.checkpoint(ctx, calls, false)
	if err != nil {
		return err
	}
	for _, c := range calls {
		intents = append(intents, event.Started{Call: c.ID})
	}
	stored, err := d.decide(ctx, intents...)
	if err != nil || !stored {
		return err
	}
	watched, done := d.interruptible(ctx)
	results := make(chan event.Ended, len(calls))
	progress := make(chan event.Progress, 64)
	// The fold changes its own as soon as the first call ends.
	seen := maps.Clone(d.state.Seen)
	for _, c := range calls {
		call := d.call(c.Call, c.Args)
		if c.Tool != "" {
			call.Name, call.As = c.Tool, c.Name
		}
		call.Env = held(call, c.Effects, d.vault.Redact)
		call.Seen, call.Answer = seen, c.Answer
		call.Progress = func(text string) {
			select {
			case progress <- event.Progress{Call: c.ID, Text: text}:
			default: // whoever watches is behind; the result will hold it all
			}
		}
		if !d.agent.Unattended {
			call.Ask = d.asker(call)
		}
		go func() {
			end := d.runCall(watched, call)
			if tool.ReadOnly(c.Effects) {
				end = d.again(end)
			}
			results <- end
		}()
	}
	// A result that exists is stored, even if ctx has ended meanwhile.
	whole := context.WithoutCancel(ctx)
	err = d.collect(whole, len(calls), results, progress, done)
	if after, _ := d.checkpoint(whole, calls, true); err == nil && len(after) > 0 {
		err = d.record(whole, after...)
	}
	return errors.Join(err, ctx.Err())
}

// collect stores results until all calls have ended. If it can't go on it
// stops the calls and still waits for them.
func (d *driver) collect(ctx context.Context, left int, results <-chan event.Ended, progress <-chan event.Progress, done func()) error {
	defer done()
	var failed error
	for left > 0 {
		var err error
		select {
		case p := <-progress:
			if failed == nil {
				err = d.show(p)
			}
		case <-d.told:
			if failed == nil {
				err = d.catchUp(ctx)
			}
		case first := <-results:
			batch := []event.Body{first}
			for len(results) > 0 {
				batch = append(batch, <-results)
			}
			left -= len(batch)
			d.learn() // a tool may have got a token while it ran
			batch = append(batch, d.nested(batch)...)
			// The results are stored although nobody may be looking any more.
			if failed == nil || errors.Is(failed, errBroken) {
				err = d.record(ctx, batch...)
			}
		}
		if err != nil && failed == nil {
			failed = err
			done()
		}
	}
	return failed
}

// runCall runs one call and says how it ended.
func (d *driver) runCall(ctx context.Context, c *tool.Call) event.Ended {
	began := time.Now()
	end := event.Ended{Call: c.ID, Outcome: event.OutcomeOK}
	t, ok := d.tools[c.Name]
	if !ok {
		end.Outcome, end.Parts = event.OutcomeFailed, llm.Say(fmt.Sprintf("There is no tool %q any more.", c.Name))
		return end
	}
	c.Args = d.judgedArgs(c)
	res, err := t.Run(ctx, c)
	end.Parts, end.Files, end.Cwd, end.Exit, end.Todo = res.Parts, res.Files, res.Cwd, res.Exit, res.Todo
	end.Show, end.Untrusted, end.Lasting, end.Cost = res.Show, res.Untrusted, res.Lasting, res.Cost
	end.Millis = time.Since(began).Milliseconds()
	switch {
	case err != nil && ctx.Err() != nil:
		end.Outcome = event.OutcomeCancelled
		why := "Interrupted by the user while it ran."
		if !errors.Is(context.Cause(ctx), errInterrupted) {
			why = "The program was stopped while it ran."
		}
		end.Parts = append(end.Parts, llm.Text{Text: why})
	case err != nil:
		end.Outcome = event.OutcomeFailed
		end.Parts = append(end.Parts, llm.Text{Text: err.Error()})
	case len(end.Parts) == 0:
		end.Parts = llm.Say("(no output)")
	}
	return end
}
