package managed

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/safety/shell"
	"github.com/inspan/inspan/internal/service/server"
)

// Worker makes the calls of the sessions of a self-hosted environment on this machine. It only calls the
// server, which never calls it. The fields must not change once it runs.
type Worker struct {
	Remote      *server.Remote
	Environment string
	AtOnce      int // number of concurrent sessions; 0 means one
	// Call makes a call of one of our tools, and returns the text for the model. An error is the result of a
	// failed call.
	Call func(ctx context.Context, name string, args json.RawMessage) (string, error)
	// Say is called with messages for a person.
	Say func(string)
}

const (
	leastTry = time.Second // pause before a retry
	mostTry  = 30 * time.Second
)

// Run works until ctx ends, or until the server refuses. Then it finishes running calls and releases their
// sessions, so that other workers can take them at once.
func (w *Worker) Run(ctx context.Context) error {
	host, _ := os.Hostname()
	w.Say(fmt.Sprintf("working for environment %s of %s", w.Environment, w.Remote.URL))
	errs := make([]error, max(1, w.AtOnce))
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			if errs[i] = w.attend(ctx, fmt.Sprintf("%s-%d-%d", host, os.Getpid(), i)); errs[i] != nil {
				stop()
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// at returns a path below the environment's work.
func (w *Worker) at(rest string) string {
	return "/v1/environments/" + url.PathEscape(w.Environment) + "/work/" + rest
}

// attend handles one item after another until ctx ends.
func (w *Worker) attend(ctx context.Context, name string) error {
	away := leastTry
	for ctx.Err() == nil {
		item, err := w.next(ctx, name)
		switch {
		case ctx.Err() != nil && err != nil:
			return nil //nolint:nilerr // it is asked to end
		case server.Refused(err):
			return err
		case err != nil:
			if away == leastTry {
				w.Say(err.Error() + "; trying again")
			}
			if keep.Sleep(ctx, away) != nil {
				return nil //nolint:nilerr // it is asked to end
			}
			away = min(2*away, mostTry)
			continue
		}
		if away = leastTry; item != nil {
			item.work(ctx)
		}
	}
	return nil
}

// item is a work item that the worker holds.
type item struct {
	*Worker
	id, session string
	remote      *server.Remote // with the credential of the item
	cut         string         // id of the last call that the previous worker began; without a result, its end is unknown

	open  []*workerCall // those without a result
	rests bool          // the session waits for no call
}

// workerCall is a call by the session's model.
type workerCall struct {
	id   string // of its event
	name string
	args json.RawMessage
	asks bool // it must be confirmed first
}

// next requests an item; nil means there is none now.
func (w *Worker) next(ctx context.Context, name string) (*item, error) {
	var out struct {
		ID     string
		Secret string
		Data   struct{ ID, Type string }

		Metadata map[string]string
	}
	path := w.at(fmt.Sprintf("poll?block_ms=%d", mostBlock))
	if err := w.Remote.Call(ctx, http.MethodGet, path, nil, &out, "Anthropic-Worker-ID", name); err != nil || out.ID == "" {
		return nil, err
	}
	raw, err := base64.RawURLEncoding.DecodeString(out.Secret)
	var secret struct {
		Token string `json:"sessions_token"`
	}
	if err == nil {
		err = json.Unmarshal(raw, &secret)
	}
	if err != nil || secret.Token == "" {
		return nil, errors.New("the server gives no credential for the session")
	}
	i := &item{
		Worker: w, id: out.ID, session: out.Data.ID, remote: &server.Remote{URL: w.Remote.URL, Token: secret.Token},
	}
	// The next worker that polls takes an item that is not acknowledged.
	err = w.Remote.Call(ctx, http.MethodPost, w.at(i.id+"/ack"), nil, &out)
	i.cut = out.Metadata[begunCall]
	return i, err
}

// begunCall is the key in the metadata of an item for the call that its worker has begun last.
const begunCall = "inspan_call"

// errCut is the error for a call that another worker had begun and that has no result.
var errCut = errors.New("the worker that made this call went before it told how it ended, so what it did is not known; " +
	"it was not made again; look at what is there before you repeat anything")

// errLeaseLost says that another worker holds the item.
var errLeaseLost = errors.New("the lease is lost; another worker continues")

// errLetGo says that the server wants the item back.
var errLetGo = errors.New("the server wants the worker to release the session")

// work makes the calls of the session until that is idle, or ctx ends. Running calls are finished.
func (i *item) work(ctx context.Context) {
	i.Say("working for session " + i.session)
	held, drop := context.WithCancelCause(context.WithoutCancel(ctx))
	asked, stop := context.WithCancelCause(held) // begins no more calls
	defer context.AfterFunc(ctx, func() { stop(ctx.Err()) })()
	beating := make(chan struct{})
	go func() {
		defer close(beating)
		i.beat(held, drop, stop)
	}()
	err := i.follow(held, asked)
	if cause := context.Cause(held); cause != nil {
		err = cause
	}
	if !errors.Is(err, errLeaseLost) {
		grace, end := context.WithTimeout(context.WithoutCancel(ctx), leastTry*10)
		stopped := i.remote.Call(grace, http.MethodPost, i.at(i.id+"/stop"), map[string]any{"force": true}, &struct{}{})
		end()
		if err == nil {
			err = stopped
		}
	}
	drop(nil)
	<-beating
	switch {
	case err != nil:
		i.Say("session " + i.session + ": " + err.Error())
	default:
		i.Say("session " + i.session + " is idle")
	}
}

// beat extends the lease until held ends. It calls drop when the lease is lost, and stop when the server wants
// the session back.
func (i *item) beat(held context.Context, drop, stop context.CancelCauseFunc) {
	last, until := noHeartbeat, time.Now().Add(usualLease)
	for {
		var out struct {
			Last     string `json:"last_heartbeat"`
			Extended bool   `json:"lease_extended"`
			State    string `json:"state"`
			TTL      int    `json:"ttl_seconds"`
		}
		limit, end := context.WithDeadline(held, until)
		err := i.remote.Call(limit, http.MethodPost, i.at(i.id+"/heartbeat?expected_last_heartbeat="+url.QueryEscape(last)), nil, &out)
		end()
		pause := leastTry
		switch {
		case held.Err() != nil:
			return
		case server.Refused(err), err == nil && !out.Extended, time.Now().After(until):
			drop(errLeaseLost)
			return
		case err == nil:
			ttl := time.Duration(out.TTL) * time.Second
			last, until, pause = out.Last, time.Now().Add(ttl), ttl/3
			if out.State == "stopping" {
				stop(errLetGo)
			}
		}
		if keep.Sleep(held, pause) != nil {
			return
		}
	}
}

// follow makes the calls of the session until that is idle or asked ends. Running calls are finished, unless
// held ends too.
func (i *item) follow(held, asked context.Context) error {
	reading, end := context.WithCancel(held)
	batches, failed := make(chan []json.RawMessage), make(chan error, 1)
	read := make(chan struct{})
	go func() {
		defer close(read)
		failed <- i.read(reading, batches)
	}()
	defer func() { end(); <-read }()
	var now *making
	defer func() { now.end() }()
	for known := false; ; {
		over := asked.Done()
		switch {
		case now != nil:
			over = nil
		case asked.Err() != nil:
			return context.Cause(asked)
		case known:
			c := i.due()
			if c == nil && i.rests {
				return nil
			}
			if c != nil {
				now = i.begin(held, c)
				over = nil
			}
		}
		select {
		case batch := <-batches:
			for _, raw := range batch {
				i.apply(raw)
			}
			if known = true; now != nil && !slices.Contains(i.open, now.call) {
				now.cancel() // it was interrupted
			}
		case err := <-now.over():
			i.open = slices.DeleteFunc(i.open, func(o *workerCall) bool { return o == now.call })
			now.end()
			if now = nil; err != nil {
				return err
			}
		case err := <-failed:
			return err
		case <-over:
			return context.Cause(asked)
		}
	}
}

// making is a call in progress.
type making struct {
	call   *workerCall
	cancel context.CancelFunc
	made   chan error
	ended  chan struct{}
}

// begin begins a call.
func (i *item) begin(held context.Context, c *workerCall) *making {
	ctx, cancel := context.WithCancel(held)
	m := &making{c, cancel, make(chan error, 1), make(chan struct{})}
	go func() {
		defer close(m.ended)
		m.made <- i.runCall(ctx, c)
	}()
	return m
}

// over returns a channel that gets a value when the call has ended; nil means there is none.
func (m *making) over() <-chan error {
	if m == nil {
		return nil
	}
	return m.made
}

// end cancels the call, if it has not ended, and waits for its end.
func (m *making) end() {
	if m != nil {
		m.cancel()
		<-m.ended
	}
}

// due returns the call to make next; nil means there is none.
func (i *item) due() *workerCall {
	at := slices.IndexFunc(i.open, func(c *workerCall) bool { return !c.asks })
	if at < 0 {
		return nil
	}
	return i.open[at]
}

// runCall makes a call and sends its result. An error says that work on the item can't continue.
func (i *item) runCall(ctx context.Context, c *workerCall) error {
	name, args, err := oursOf(c.name, c.args)
	var said string
	if err == nil && !onlyReads(name, args) {
		switch c.id {
		case i.cut:
			err = errCut
		default:
			if refused := i.note(ctx, c.id); refused != nil || ctx.Err() != nil {
				return refused
			}
		}
	}
	if err == nil {
		i.Say("session " + i.session + " calls " + c.name)
		said, err = i.Call(ctx, name, args)
	}
	failed := err != nil
	if failed {
		said = strings.TrimSpace(said + "\n" + err.Error())
	}
	if said == "" {
		said = "(no output)"
	}
	result := map[string]any{
		"type": resultType, "tool_use_id": c.id, "is_error": failed, "content": []any{map[string]any{"type": "text", "text": said}},
	}
	body := map[string]any{"events": []any{result}}
	for away := leastTry; ctx.Err() == nil; away = min(2*away, mostTry) {
		err = i.remote.Call(ctx, http.MethodPost, i.events(), body, &struct{}{}, "Idempotency-Key", c.id)
		if p := (*server.Problem)(nil); err == nil || errors.As(err, &p) && p.Status == http.StatusBadRequest {
			return nil // there is a result, or it is no longer wanted
		}
		if server.Refused(err) {
			return err
		}
		_ = keep.Sleep(ctx, away)
	}
	return nil // it was cancelled
}

// note makes the server record the call that is about to be made, for the next worker if this one fails.
func (i *item) note(ctx context.Context, call string) error {
	body := map[string]any{"metadata": map[string]string{begunCall: call}}
	for away := leastTry; ; away = min(2*away, mostTry) {
		err := i.remote.Call(ctx, http.MethodPost, i.at(i.id), body, &struct{}{})
		switch p := (*server.Problem)(nil); {
		case errors.As(err, &p) && p.Status == http.StatusForbidden:
			return nil // an older server does not support it for workers
		case err == nil, server.Refused(err):
			return err
		}
		if keep.Sleep(ctx, away) != nil {
			return nil //nolint:nilerr // it was cancelled
		}
	}
}

// onlyReads reports whether a call of one of our tools changes nothing, so that it can be repeated.
func onlyReads(name string, args json.RawMessage) bool {
	switch name {
	case "read_file", "find_files", "search_files":
		return true
	case "bash":
		var in struct{ Command string }
		return json.Unmarshal(args, &in) == nil && shell.Explain(in.Command, shell.Place{}).Class == shell.Read
	}
	return false
}

func (i *item) events() string { return "/v1/sessions/" + url.PathEscape(i.session) + "/events" }

// read sends the events of the session, first the past ones, until ctx ends or the server refuses.
func (i *item) read(ctx context.Context, to chan<- []json.RawMessage) error {
	last, known := "", false
	for away := leastTry; ; away = min(2*away, mostTry) {
		batch, err := []json.RawMessage(nil), error(nil)
		if !known {
			batch, err = i.history(ctx)
		}
		if err == nil && !known {
			known, away = true, leastTry
			if len(batch) > 0 {
				last = idOf(batch[len(batch)-1])
			}
			select {
			case to <- batch:
			case <-ctx.Done():
			}
		}
		if err == nil {
			last, err = i.stream(ctx, last, to)
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case server.Refused(err):
			return err
		}
		_ = keep.Sleep(ctx, away)
	}
}

// history returns the events of the session up to now.
func (i *item) history(ctx context.Context) (all []json.RawMessage, err error) {
	for next := ""; ; {
		var out page[json.RawMessage]
		if err := i.remote.Call(ctx, http.MethodGet, i.events()+"?limit=1000"+next, nil, &out); err != nil {
			return nil, err
		}
		if all = append(all, out.Data...); out.Next == nil {
			return all, nil
		}
		next = "&page=" + url.QueryEscape(*out.Next)
	}
}

// stream sends the events after one, and returns the last one that it has sent.
func (i *item) stream(ctx context.Context, last string, to chan<- []json.RawMessage) (string, error) {
	body, err := i.remote.Stream(ctx, i.events()+"/stream", last)
	if err != nil {
		return last, err
	}
	defer body.Close()
	for lines := bufio.NewReader(body); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return last, fmt.Errorf("the stream of events has ended: %w", err)
		}
		raw, is := bytes.CutPrefix(line, []byte("data: "))
		if !is {
			continue
		}
		select {
		case to <- []json.RawMessage{bytes.TrimSpace(raw)}:
			last = cmp.Or(idOf(raw), last)
		case <-ctx.Done():
			return last, ctx.Err()
		}
	}
}

// idOf returns the id of an event.
func idOf(raw []byte) string {
	var e struct{ ID string }
	_ = json.Unmarshal(raw, &e)
	return e.ID
}

// apply folds an event.
func (i *item) apply(raw []byte) {
	var e struct {
		ID, Type, Name, Result string
		Input                  json.RawMessage
		Permission             string                `json:"evaluated_permission"`
		Of                     string                `json:"tool_use_id"`
		Reason                 struct{ Type string } `json:"stop_reason"`
	}
	if json.Unmarshal(raw, &e) != nil {
		return
	}
	settled := func(c *workerCall) bool { return c.id == e.Of }
	switch e.Type {
	case "agent.tool_use":
		if _, _, err := oursOf(e.Name, e.Input); !errors.Is(err, errNotHanded) && e.Permission != "deny" {
			i.open = append(i.open, &workerCall{e.ID, e.Name, e.Input, e.Permission != "allow"})
		}
	case "user.tool_confirmation":
		if at := slices.IndexFunc(i.open, settled); at >= 0 && e.Result == "allow" {
			i.open[at].asks = false
			return
		}
		i.open = slices.DeleteFunc(i.open, settled)
	case resultType, "agent.tool_result":
		i.open = slices.DeleteFunc(i.open, settled)
	case "user.interrupt":
		i.open = nil
	case "session.status_running":
		i.rests = false
	case "session.status_idle":
		i.rests = e.Reason.Type != "requires_action"
	case "session.status_terminated", "session.deleted":
		i.rests, i.open = true, nil
	}
}
