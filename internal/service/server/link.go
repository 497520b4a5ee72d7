package server

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/view/words"
)

// Requests of a [Remote], the limits on responses, and its behaviour while a server is unavailable.

const (
	patience   = 30 * time.Second
	beats      = 3                      // factor of its patience for which a stream may be silent
	mostAnswer = 64 << 20               // bytes of a response, and of a stream without an event
	standing   = time.Second            // age of a stream after which the server counts as back
	leastPause = 250 * time.Millisecond // before the first retry; doubled each time
	mostPause  = 10 * time.Second
)

var errTooMuch = fmt.Errorf("it sends more than %d MiB", mostAnswer>>20)

func (r *Remote) patience() time.Duration { return cmp.Or(r.Patience, patience) }

// fault returns an error for a wrong response of the server.
func (r *Remote) fault(format string, args ...any) error {
	return fmt.Errorf("the server at %s %w", r.URL, fmt.Errorf(format, args...))
}

// request sends a request. A refusal of the server is a [*Problem]. The body of the response is bounded in
// size, and in its pauses by idle.
func (r *Remote) request(
	ctx context.Context, method, path string, body any, idle time.Duration, headers ...string,
) (*http.Response, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	var in io.Reader = http.NoBody
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		in = bytes.NewReader(raw)
	}
	ctx, stop := context.WithCancelCause(ctx)
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(r.URL, "/")+path, in)
	if err != nil {
		stop(nil)
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+r.Token)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := r.wire().Do(req)
	if err != nil {
		stop(nil)
		return nil, r.unanswered(method, err)
	}
	quiet := r.fault("says nothing for %s", idle)
	res.Body = &answerBody{
		ReadCloser: res.Body, ctx: ctx, stop: stop, left: mostAnswer, idle: idle,
		quiet: time.AfterFunc(idle, func() { stop(quiet) }),
	}
	if res.StatusCode/100 == 2 {
		return res, nil
	}
	defer res.Body.Close()
	var said struct{ Error Problem }
	raw, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil || json.Unmarshal(raw, &said) != nil || said.Error.Message == "" {
		return nil, r.fault("answers %s, and not as inspan serve does", words.OneLine(res.Status, 60))
	}
	said.Error.Status = res.StatusCode
	if res.StatusCode == http.StatusNotFound {
		return nil, fmt.Errorf("%w: %w", &said.Error, fs.ErrNotExist)
	}
	return nil, &said.Error
}

// unanswered returns the error for a request without a response.
func (r *Remote) unanswered(method string, err error) error {
	if sent, is := errors.AsType[*url.Error](err); is {
		err = sent.Err // without the address that the person has given
	}
	if op, is := errors.AsType[*net.OpError](err); is && op.Op == "dial" {
		return fmt.Errorf("the server at %s can't be reached: %w", r.URL, err)
	}
	perhaps := ""
	if method == http.MethodPost {
		perhaps = "; it may have accepted the request"
	}
	return fmt.Errorf("the server at %s does not answer: %w%s", r.URL, err, perhaps)
}

// answerBody is the body of a response, with limits.
type answerBody struct {
	io.ReadCloser
	ctx   context.Context //nolint:containedctx // of its request
	stop  context.CancelCauseFunc
	left  int64
	idle  time.Duration
	quiet *time.Timer // cancels the request
}

// Read implements [io.Reader].
func (b *answerBody) Read(p []byte) (int, error) {
	b.quiet.Reset(b.idle)
	n, err := b.ReadCloser.Read(p)
	b.quiet.Stop() // the reader's own time does not count
	if b.left -= int64(n); b.left < 0 {
		return 0, errTooMuch
	}
	if cause := context.Cause(b.ctx); err != nil && cause != nil {
		err = cause
	}
	return n, err
}

// Close implements [io.Closer].
func (b *answerBody) Close() error {
	b.quiet.Stop()
	b.stop(nil)
	return b.ReadCloser.Close()
}

// Call sends a request and reads the response. Headers are names and values of further headers. A refusal of
// the server is a [*Problem].
func (r *Remote) Call(ctx context.Context, method, path string, body, into any, headers ...string) error {
	res, err := r.request(ctx, method, path, body, r.patience(), headers...)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		return fmt.Errorf("read the answer of the server at %s: %w", r.URL, err)
	}
	return nil
}

// Stream requests server-sent events after the one with an id; empty means from now on.
func (r *Remote) Stream(ctx context.Context, path, after string) (io.ReadCloser, error) {
	var headers []string
	if after != "" {
		headers = []string{"Last-Event-ID", after}
	}
	res, err := r.request(ctx, http.MethodGet, path, nil, beats*r.patience(), headers...)
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}

// Refused reports whether the server itself has refused, or sends something invalid: a retry changes nothing.
func Refused(err error) bool {
	p, is := errors.AsType[*Problem](err)
	later := []int{http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests}
	return errors.Is(err, errTooMuch) || is && p.Status/100 == 4 && !slices.Contains(later, p.Status)
}

// pause waits before a retry.
func pause(ctx context.Context, tries int) error {
	return keep.Sleep(ctx, min(mostPause, leastPause<<min(tries, 10)))
}

// link is the state of a followed session.
type link struct {
	lost error // why the server can't be reached now; nil means it can
	over bool  // the server no longer runs it
}

// Link reports whether the server has said that it no longer runs a followed session, and why the server can't be
// reached now; nil means it can.
func (r *Remote) Link(session string) (over bool, lost error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.links[session]
	return l.over, l.lost
}

// relink changes what is known of a followed session's link.
func (r *Remote) relink(session string, change func(*link)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.links[session]
	change(&l)
	if r.links == nil {
		r.links = map[string]link{}
	}
	r.links[session] = l
}

// found records that the server responds again. It says nothing of whether the session is over: an answer may be
// from before its end.
func (r *Remote) found(session string) { r.relink(session, func(l *link) { l.lost = nil }) }

// lose records why the server can't be reached.
func (r *Remote) lose(session string, err error) { r.relink(session, func(l *link) { l.lost = err }) }

// pageRead is a page of a session's events.
type pageRead struct {
	Events []json.RawMessage
	More   bool
}

// page reads events. If the session is followed, it waits for an unavailable server.
func (l *remoteLog) page(ctx context.Context, after uint64) (page pageRead, err error) {
	for tries := 0; ; tries++ {
		page = pageRead{}
		err := l.of.Call(ctx, http.MethodGet, l.path("/events?after=%d", after), nil, &page)
		if err == nil || Refused(err) || ctx.Err() != nil || !l.isFollowed() {
			return page, err
		}
		l.of.lose(l.id, err)
		if err := pause(ctx, tries); err != nil {
			return page, err
		}
	}
}

// send sends an input to the server.
func (l *remoteLog) send(ctx context.Context, in input, key string) (at accepted, err error) {
	var headers []string
	if key != "" {
		headers = []string{"Idempotency-Key", key}
	}
	for tries := 0; ; tries++ {
		err := l.of.Call(ctx, http.MethodPost, l.path("/events"), in, &at, headers...)
		if err == nil || key == "" || Refused(err) || ctx.Err() != nil {
			return at, err
		}
		l.of.lose(l.id, err)
		if err := pause(ctx, tries); err != nil {
			return at, err
		}
	}
}

func (l *remoteLog) isFollowed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.followed
}

// vain records the number after which events are awaited, and returns how often the server has reported events that
// then were not there.
func (l *remoteLog) vain(after uint64) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.followed && l.waited == after {
		l.empty++
	} else {
		l.empty = 0
	}
	l.followed, l.waited = true, after
	return l.empty
}

// Wait implements [event.Waiter].
func (l *remoteLog) Wait(ctx context.Context, after uint64) error {
	return l.stay(ctx, after, l.vain(after), func(e event.Event) bool { return e.Transient() })
}

// Follow implements [event.Follower].
func (l *remoteLog) Follow(ctx context.Context, after uint64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		l.vain(after)
		if err := l.stay(ctx, after, 0, func(e event.Event) bool { return yield(e, nil) }); err != nil && ctx.Err() == nil {
			yield(event.Event{}, err)
		}
	}
}

// stay follows the session, from the events after the given number, until take returns false. It retries a
// server that ends or can't be reached until that refuses; tries sets the first pause, as if so many retries
// had failed. It stops if the server says that it no longer runs the session.
func (l *remoteLog) stay(ctx context.Context, after uint64, tries int, take func(event.Event) bool) error {
	l.of.relink(l.id, func(at *link) { at.over = false })
	for ; ; tries++ {
		if tries > 0 {
			if err := pause(ctx, tries-1); err != nil {
				return err
			}
		}
		began, err := l.stream(ctx, after, func(e event.Event) bool {
			if !e.Transient() {
				after, tries = e.Seq, 0
			}
			return take(e)
		})
		if err == nil || ctx.Err() != nil || Refused(err) {
			return cmp.Or(ctx.Err(), err)
		}
		if began { // and has ended, possibly for a reason
			grown, over, lost := l.look(ctx, after)
			switch {
			case over && !grown:
				l.of.relink(l.id, func(at *link) { *at = link{over: true} })
				<-ctx.Done()
				return ctx.Err()
			case Refused(lost):
				return lost
			case lost == nil && tries < 2: // servers and proxies end streams now and then
				continue
			}
			err = cmp.Or(lost, l.of.fault("ends the stream of events: %w", err))
		}
		l.of.lose(l.id, err)
	}
}

// look asks for the state of a session whose stream has ended.
func (l *remoteLog) look(ctx context.Context, after uint64) (grown, over bool, err error) {
	info, err := l.of.info(ctx, l.id)
	if err != nil {
		return false, false, err
	}
	var page pageRead
	if err := l.of.Call(ctx, http.MethodGet, l.path("/events?limit=1&after=%d", after), nil, &page); err != nil {
		return false, false, err
	}
	return len(page.Events) > 0, !info.Driven, nil
}

// stream reads the events after the given number as they come, until take returns false. Began reports whether
// the server had begun to send.
func (l *remoteLog) stream(ctx context.Context, after uint64, take func(event.Event) bool) (began bool, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	path := l.path("/stream?live=true&after=%s", strconv.FormatUint(after, 10))
	res, err := l.of.request(ctx, http.MethodGet, path, nil, beats*l.of.patience())
	if err != nil {
		return false, err
	}
	defer res.Body.Close()
	var back *time.Timer
	lines := bufio.NewReaderSize(res.Body, 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return true, err
		}
		if back == nil {
			back = time.AfterFunc(standing, func() { l.of.found(l.id) })
			defer back.Stop()
		}
		raw, is := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data: "))
		if !is {
			continue
		}
		e, err := event.Decode(raw)
		if err != nil {
			return true, err
		}
		if body, bounded := res.Body.(*answerBody); bounded {
			body.left = mostAnswer
		}
		if !e.Transient() && e.Seq <= after {
			continue
		}
		if !e.Transient() {
			after = e.Seq
		}
		if !take(e) {
			return true, nil
		}
	}
}
