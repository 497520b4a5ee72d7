package inspan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/loop"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// usualParallel is how many calls run at once where the agent does not say.
const usualParallel = 16

// calls are those that a driver runs. Each has its own goroutine, which does nothing but
// run it; everything else is done by the driver, between two events.
//
// Checkpoints stand around calls that change something: one is taken before the first of
// them starts, and one when none of them runs any more and the loop has no call to start.
type calls struct {
	ctx      context.Context // of those that run
	stop     context.CancelCauseFunc
	running  map[string]doing // by id
	results  chan event.Ended
	progress chan event.Progress
	span     bool              // a checkpoint was taken before calls, and none after
	seen     map[string]string // of the state, for calls; nil: it has changed
	before   *view             // results that the model sees; nil: it sees others
}

// doing is what counts of a call while it runs.
type doing struct {
	changes   bool // it may change the workspace, itself or by others
	delegates bool // it takes no room, as there is a bound of its own for those who work
}

func newCalls(parallel int) *calls {
	if parallel <= 0 {
		parallel = usualParallel
	}
	return &calls{
		stop: func(error) {}, running: map[string]doing{},
		results: make(chan event.Ended, parallel), progress: make(chan event.Progress, 64),
	}
}

// fitting are the first of the calls, as far as there is room for them.
func (d *driver) fitting(calls []loop.Call) []loop.Call {
	room := cap(d.calls.results)
	for _, now := range d.calls.running {
		if !now.delegates {
			room--
		}
	}
	for i, c := range calls {
		if d.doing(c).delegates {
			continue
		}
		if room--; room < 0 {
			return calls[:i]
		}
	}
	return calls
}

func (d *driver) doing(c loop.Call) doing {
	delegates := d.tools[cmp.Or(c.Tool, c.Name)].Delegates
	return doing{changes: delegates || changes(c.Effects), delegates: delegates}
}

// changes reports whether effects may change the workspace: what is thrown away does not.
func changes(effects []tool.Effect) bool {
	return slices.ContainsFunc(effects, func(e tool.Effect) bool { return !e.Throwaway && !tool.ReadOnly([]tool.Effect{e}) })
}

// changing reports whether one that runs may change the workspace.
func (c *calls) changing() bool {
	for _, now := range c.running {
		if now.changes {
			return true
		}
	}
	return false
}

// start starts the first of the calls for which there is room. The intent to run is
// stored before the first effect of any.
func (d *driver) start(ctx context.Context, calls []loop.Call) error {
	calls = d.fitting(calls)
	if len(calls) == 0 {
		return d.await(ctx)
	}
	changes := slices.ContainsFunc(calls, func(c loop.Call) bool { return d.doing(c).changes })
	if changes && !d.calls.span && d.keeps() {
		return d.checkpoint(ctx, false)
	}
	var intents []event.Body
	for _, c := range calls {
		intents = append(intents, event.Started{Call: c.ID})
	}
	stored, err := d.decide(ctx, intents...)
	if err != nil || !stored {
		return err
	}
	if len(d.calls.running) == 0 {
		d.calls.ctx, d.calls.stop = context.WithCancelCause(ctx)
	}
	d.heed()
	for _, c := range calls {
		d.launch(c)
	}
	return nil
}

// launch runs a call beside the driver.
func (d *driver) launch(c loop.Call) {
	d.calls.running[c.ID] = d.doing(c)
	if d.calls.seen == nil {
		d.calls.seen = d.seen() // the fold changes its own as soon as the first call ends
	}
	if d.calls.before == nil {
		d.calls.before = &view{messages: d.state.Messages}
	}
	ctx, before, call := d.calls.ctx, d.calls.before, d.runnable(c)
	go func() {
		end := d.runCall(ctx, call)
		if tool.ReadOnly(c.Effects) {
			end = before.again(end)
		}
		d.calls.results <- end
	}()
}

// runnable is a call as its tool gets it.
func (d *driver) runnable(c loop.Call) *tool.Call {
	call := d.call(c.Call, c.Args)
	if c.Tool != "" {
		call.Name, call.As = c.Tool, c.Name
	}
	call.Env = held(call, c.Effects, d.rules().Pass(), d.vault)
	call.Cwd, call.Seen, call.Answer = d.cwd(), d.calls.seen, c.Answer
	progress := d.calls.progress
	call.Progress = func(text string) {
		select {
		case progress <- event.Progress{Call: c.ID, Text: text}:
		default: // whoever watches is behind; the result will hold it all
		}
	}
	call.Finished = d.jobEnded
	if !d.agent.Unattended {
		call.Ask = d.asker(call)
	}
	return call
}

// await lets calls and children work until a call has ended, somebody has appended to the
// log, or it is too late for an answer.
func (d *driver) await(ctx context.Context) error {
	w, ok := d.log.(event.Waiter)
	if !ok && len(d.calls.running) == 0 {
		return errors.New("the log can't be waited for, which what goes on in the background needs")
	}
	listening, stop := context.WithCancel(ctx)
	grown, after := make(chan error, 1), d.state.Seq
	var listener sync.WaitGroup
	if ok {
		listener.Go(func() { grown <- w.Wait(listening, after) })
	}
	defer listener.Wait()
	defer stop()
	late, stopLate := at(d.state.Due())
	defer stopLate()
	if until := d.state.Patience(); !until.IsZero() && !until.Equal(d.awaits) {
		d.awaits = until
		return d.record(ctx, event.Note{Topic: "jobs", Text: d.state.Awaited()})
	}
	enough, stopEnough := at(d.state.Patience())
	defer stopEnough()
	for {
		select {
		case p := <-d.calls.progress:
			if err := d.show(p); err != nil {
				return err
			}
			continue
		case end := <-d.calls.results:
			return d.ended(ctx, end)
		case err := <-grown:
			return errors.Join(err, d.catchUp(ctx))
		case <-late:
			_, err := d.decide(ctx, overdue(d.state.Waiting())...)
			return err
		case <-enough:
			return d.impatient(ctx)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// at rings when a time has come; never if it is zero.
func at(t time.Time) (rings <-chan time.Time, stop func() bool) {
	if t.IsZero() {
		return nil, func() bool { return false }
	}
	timer := time.NewTimer(time.Until(t))
	return timer.C, timer.Stop
}

// ended stores the result of a call, and of those that have ended meanwhile. A result
// that exists is stored, even if ctx has ended.
func (d *driver) ended(ctx context.Context, first event.Ended) error {
	batch := []event.Body{first}
	for len(d.calls.results) > 0 {
		batch = append(batch, <-d.calls.results)
	}
	for _, end := range batch {
		delete(d.calls.running, end.(event.Ended).Call)
	}
	if len(d.calls.running) == 0 {
		d.calls.stop(nil)
	}
	d.learn() // a tool may have got a token while it ran
	return d.record(context.WithoutCancel(ctx), append(batch, d.nested(batch)...)...)
}

// heed stops the calls of a run that was interrupted.
func (d *driver) heed() {
	if d.state.Run.Cancelled {
		d.calls.stop(d.interrupt())
	}
}

// quit stops the calls when the driver ends with an error, and waits for them. What they
// bring is stored, unless the error says that nothing can be stored any more.
func (d *driver) quit(ctx context.Context, failed error) {
	if ctx.Err() != nil || errors.Is(failed, errBroken) {
		failed = nil
	}
	whole := context.WithoutCancel(ctx)
	d.calls.stop(context.Canceled)
	for len(d.calls.running) > 0 {
		end := <-d.calls.results
		delete(d.calls.running, end.Call)
		if failed == nil {
			failed = d.ended(whole, end)
		}
		if errors.Is(failed, errBroken) {
			failed = nil // nobody looks, and the rest is stored all the same
		}
	}
	if failed == nil && d.calls.span {
		_ = d.checkpoint(whole, true)
	}
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
	if ctx.Err() != nil {
		end.Outcome, end.Parts = event.OutcomeCancelled, llm.Say("Not run: it was stopped before it began.")
		return end
	}
	res, err := t.Run(ctx, c)
	end.Parts, end.Files, end.Cwd, end.Exit, end.Todo = res.Parts, res.Files, res.Cwd, res.Exit, res.Todo
	end.Show, end.Untrusted, end.Lasting, end.Cost = res.Show, res.Untrusted, res.Lasting, res.Cost
	end.Job, end.Left, end.Told = res.Job, res.Left, res.Told
	d.began(end.Job)
	end.Millis = time.Since(began).Milliseconds()
	switch {
	case errors.Is(err, errLeft):
		end.Outcome = event.OutcomeUnknown
		end.Parts = append(end.Parts, llm.Text{Text: "Outcome unknown: " + err.Error() + ". Check before you repeat it."})
	case err != nil && ctx.Err() != nil:
		end.Outcome = event.OutcomeCancelled
		end.Parts = append(end.Parts, llm.Text{Text: whyStopped(context.Cause(ctx))})
	case err != nil:
		end.Outcome = event.OutcomeFailed
		end.Parts = append(end.Parts, llm.Text{Text: err.Error()})
	case len(end.Parts) == 0:
		end.Parts = llm.Say("(no output)")
	}
	return end
}

// whyStopped tells the model why a call was stopped.
func whyStopped(cause error) string {
	switch {
	case errors.Is(cause, errLate):
		return "Stopped while it ran: the time of the run is used up."
	case errors.Is(cause, errInterrupted):
		return "Interrupted by the user while it ran."
	}
	return "The program was stopped while it ran."
}
