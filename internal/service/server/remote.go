package server

import (
	"bytes"
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
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// Remote is the store of another server, as far as its token may see it: sessions can be listed, read,
// followed, and sent inputs. It can't drive, make or remove one. The fields must not change once it is in use;
// it is safe for concurrent use and must not be copied.
//
// No wait for the server is unlimited, and nothing that it sends is stored without a limit. While the server
// can't be reached, requests for a followed session are retried, see [Remote.Link].
type Remote struct {
	URL      string // of the server, such as http://127.0.0.1:8080
	Token    string
	Patience time.Duration // longest silence of the server after a request; 0 means 30 seconds

	once   sync.Once
	client *http.Client

	mu    sync.Mutex
	links map[string]link // of the followed sessions
}

var _ store.Store = (*Remote)(nil)

var errRemote = errors.New("this can't be done over a server")

// Check reports what is wrong with the address, before a token is sent there.
func (r *Remote) Check() error {
	u, err := url.Parse(r.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("%q is not the address of a server; write it as https://HOST or http://127.0.0.1:8080", r.URL)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("the address of a server must have only a scheme, a host and a port")
	case u.Scheme == "http" && !netguard.IsHere(u.Hostname()):
		return errors.New("the token would travel unencrypted; use https, or a tunnel to a loopback address")
	}
	return nil
}

// wire returns the HTTP client. Requests to this machine use no proxy.
func (r *Remote) wire() *http.Client {
	r.once.Do(func() {
		t := &http.Transport{
			Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, TLSHandshakeTimeout: r.patience(),
			DialContext:           (&net.Dialer{Timeout: r.patience()}).DialContext,
			ResponseHeaderTimeout: r.patience(), MaxResponseHeaderBytes: 64 << 10, IdleConnTimeout: time.Minute,
		}
		if u, err := url.Parse(r.URL); err == nil && netguard.IsHere(u.Hostname()) {
			t.Proxy = nil
		}
		r.client = &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	})
	return r.client
}

// Alive reports whether the server answers. It sends no token.
func (r *Remote) Alive(ctx context.Context) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL+"/ping", nil)
	if err != nil {
		return false
	}
	res, err := r.wire().Do(req)
	if err != nil {
		return false
	}
	_ = res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// Close closes an open task there, which then ends.
func (r *Remote) Close(ctx context.Context, task string) error {
	return r.Call(ctx, http.MethodPost, "/api/v1/tasks/"+url.PathEscape(task)+"/close", nil, &Task{})
}

// Copy makes a task there continue a copy of a session of an open task, and returns the id of the copy.
func (r *Remote) Copy(ctx context.Context, session string) (string, error) {
	t, err := r.Task(ctx, session)
	if err != nil {
		return "", err
	}
	if t, err = r.Submit(ctx, Spec{Fork: &Fork{Task: t.ID}, Open: true}); err == nil {
		t, err = r.Await(ctx, t.ID)
	}
	return t.Session, err
}

// Points lists the points where a session there can be rewound to, oldest first.
func (r *Remote) Points(ctx context.Context, session string) ([]running.Point, error) {
	var out pointList
	err := r.Call(ctx, http.MethodGet, "/api/v1/sessions/"+url.PathEscape(session)+"/points", nil, &out)
	return out.Points, err
}

// Rewind rewinds a session there to before a message, or only reports the effects.
func (r *Remote) Rewind(ctx context.Context, session string, to uint64, files, conversation, only bool) ([]string, error) {
	t, err := r.Task(ctx, session)
	if err != nil {
		return nil, err
	}
	var out rewound
	in := rewindRequest{To: to, Files: &files, Conversation: &conversation, DryRun: only}
	if err := r.Call(ctx, http.MethodPost, "/api/v1/tasks/"+url.PathEscape(t.ID)+"/rewind", in, &out); err != nil {
		return nil, err
	}
	return running.WayLines(out.To, out.Changed, out.Kept, false), nil
}

// Submit submits a task there.
func (r *Remote) Submit(ctx context.Context, spec Spec) (t Task, err error) {
	err = r.Call(ctx, http.MethodPost, "/api/v1/tasks", spec, &t)
	return t, err
}

// Await waits until a task has a session, or is over without one.
func (r *Remote) Await(ctx context.Context, id string) (t Task, err error) {
	t, err = r.await(ctx, id, func(t Task) bool { return t.Session != "" || over(t.Stage) })
	if err == nil && t.Session == "" {
		err = fmt.Errorf("task %s is %s: %s", id, t.Stage, t.Why)
	}
	return t, err
}

// await waits until wanted is true for a task.
func (r *Remote) await(ctx context.Context, id string, wanted func(Task) bool) (t Task, err error) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		t = Task{}
		if err := r.Call(ctx, http.MethodGet, "/api/v1/tasks/"+url.PathEscape(id), nil, &t); err != nil || wanted(t) {
			return t, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return t, ctx.Err()
		}
	}
}

// Task reads the task there that has a session.
func (r *Remote) Task(ctx context.Context, session string) (t Task, err error) {
	info, err := r.info(ctx, session)
	if err != nil {
		return t, err
	}
	err = r.Call(ctx, http.MethodGet, "/api/v1/tasks/"+url.PathEscape(info.Task), nil, &t)
	return t, err
}

// Resolve returns the id of the session there that a person means, see [store.Resolve].
func (r *Remote) Resolve(ctx context.Context, text string) (string, error) {
	id, err := store.Resolve(ctx, r, text)
	if p := (*Problem)(nil); errors.Is(err, fs.ErrNotExist) && !errors.As(err, &p) { // in words of this server
		err = fmt.Errorf("no session matches %q on the server; list the running ones with: %s",
			words.OneLine(text, 80), words.Command(r.URL, "ps"))
	}
	return id, err
}

// Events yields the events of a session there, see [store.Events].
func (r *Remote) Events(ctx context.Context, id string) iter.Seq2[event.Event, error] {
	return store.Events(ctx, r, id)
}

func (r *Remote) list(ctx context.Context) ([]sessionInfo, error) {
	var out sessionList
	err := r.Call(ctx, http.MethodGet, "/api/v1/sessions", nil, &out)
	return out.Sessions, err
}

// info reads the server's information about a session.
func (r *Remote) info(ctx context.Context, id string) (sessionInfo, error) {
	all, err := r.all(ctx)
	if err != nil {
		return sessionInfo{}, err
	}
	if info, there := all[id]; there {
		return info, nil
	}
	return sessionInfo{}, fmt.Errorf("session %s on the server: %w", id, fs.ErrNotExist)
}

func (r *Remote) all(ctx context.Context) (map[string]sessionInfo, error) {
	list, err := r.list(ctx)
	out := map[string]sessionInfo{}
	for _, info := range list {
		out[info.ID] = info
	}
	return out, err
}

// IDs implements [store.Store].
func (r *Remote) IDs(ctx context.Context) ([]string, error) {
	list, err := r.list(ctx)
	out := make([]string, 0, len(list))
	for _, info := range list {
		out = append(out, info.ID)
	}
	return out, err
}

// List implements [store.Store].
func (r *Remote) List(ctx context.Context) ([]store.Info, error) {
	list, err := r.list(ctx)
	out := make([]store.Info, 0, len(list))
	for _, i := range list {
		out = append(out, store.Info{
			ID: i.ID, Title: i.Title, Root: i.Root, Parent: i.Parent, Created: i.Created, Modified: i.Modified, Events: i.Events,
			Preview: i.Preview, Stop: i.Stop, Labels: i.Labels, Empty: i.Events == 0,
		})
	}
	return out, err
}

// Holder implements [store.Store]. The server drives each session that is not over.
func (r *Remote) Holder(ctx context.Context, id string) (*store.Holder, error) {
	info, err := r.info(ctx, id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil || !info.Driven {
		return nil, err
	}
	return r.holder(info), nil
}

func (r *Remote) holder(info sessionInfo) *store.Holder {
	return &store.Holder{Session: info.ID, Host: "server " + r.URL, Since: info.Modified}
}

// Held implements [store.Store].
func (r *Remote) Held(ctx context.Context) (out []store.Holder, err error) {
	list, err := r.list(ctx)
	for _, info := range list {
		if info.Driven && info.Parent == "" {
			out = append(out, *r.holder(info))
		}
	}
	return out, err
}

// Standings returns the states of the sessions there, as the page shows them.
func (r *Remote) Standings(ctx context.Context) (map[string]running.Standing, error) {
	var shown board
	err := r.Call(ctx, http.MethodGet, fmt.Sprintf("/api/v1/board?limit=%d", mostListed), nil, &shown)
	out := map[string]running.Standing{}
	for _, row := range shown.Sessions {
		out[row.Session] = row.State
	}
	return out, err
}

// Open implements [store.Store].
func (r *Remote) Open(ctx context.Context, id string) (store.Log, error) {
	if !store.IsID(id) {
		return nil, fmt.Errorf("session %q: %w", id, fs.ErrNotExist)
	}
	var first pageOfEvents
	if err := r.Call(ctx, http.MethodGet, "/api/v1/sessions/"+id+"/events?limit=1", nil, &first); err != nil {
		return nil, err
	}
	return &remoteLog{of: r, id: id}, nil
}

// Search implements [store.Store]: it yields only an error, because it is not supported.
func (r *Remote) Search(context.Context, *regexp.Regexp) iter.Seq2[store.Hit, error] {
	return func(yield func(store.Hit, error) bool) { yield(store.Hit{}, errRemote) }
}

// Usage implements [store.Store]: it is not supported.
func (r *Remote) Usage(context.Context, string) (int64, error) { return 0, errRemote }

// Create implements [store.Store]: it is not supported.
func (r *Remote) Create(context.Context) (store.Log, error) { return nil, errRemote }

// Child implements [store.Store]: it is not supported.
func (r *Remote) Child(context.Context, string, string) (store.Log, bool, error) {
	return nil, false, errRemote
}

// Fork implements [store.Store]: it is not supported.
func (r *Remote) Fork(context.Context, string, uint64) (store.Log, error) { return nil, errRemote }

// Remove implements [store.Store]: it is not supported.
func (r *Remote) Remove(context.Context, string) error { return errRemote }

// remoteLog is the log of a session there.
type remoteLog struct {
	of *Remote
	id string

	mu       sync.Mutex
	followed bool   // a caller waits for it to grow, and so for an unavailable server
	waited   uint64 // the number after which there were events, by the server's last response
	empty    int    // consecutive times that there were none
}

func (l *remoteLog) ID() string                            { return l.id }
func (l *remoteLog) Blobs() tool.Blobs                     { return remoteBlobs{l} }
func (l *remoteLog) Close() error                          { return nil }
func (l *remoteLog) Start(context.Context) (uint64, error) { return 0, nil }
func (l *remoteLog) Lease(context.Context) error           { return errRemote }
func (l *remoteLog) Release() error                        { return nil }
func (l *remoteLog) path(format string, args ...any) string {
	return "/api/v1/sessions/" + l.id + fmt.Sprintf(format, args...)
}

func (l *remoteLog) AppendAs(context.Context, event.Driver, ...event.Body) ([]event.Event, error) {
	return nil, event.ErrNotDriver
}

// Append implements [event.Log] for inputs. The server records the sender. For an input with a key (see
// [loop.Key]) it waits for an unavailable server: however often the input is sent, it counts once.
func (l *remoteLog) Append(ctx context.Context, bodies ...event.Body) (out []event.Event, err error) {
	for _, b := range bodies {
		raw, err := json.Marshal(b)
		if err != nil {
			return out, err
		}
		at, err := l.send(ctx, input{Kind: b.Kind(), Body: raw}, loop.Key(b))
		if err != nil {
			return out, err
		}
		out = append(out, event.Event{Seq: at.Seq, Time: time.Now(), Session: l.id, Body: b})
	}
	return out, nil
}

// Read implements [event.Log].
func (l *remoteLog) Read(ctx context.Context, after uint64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for more := true; more; {
			page, err := l.page(ctx, after)
			if err == nil && page.More && len(page.Events) == 0 {
				err = l.of.fault("says that there are more events, and sends none")
			}
			if err != nil {
				yield(event.Event{}, err)
				return
			}
			for _, raw := range page.Events {
				e, err := event.Decode(raw)
				if err == nil && e.Seq <= after {
					err = l.of.fault("sends event %d behind event %d", e.Seq, after)
				}
				if !yield(e, err) || err != nil {
					return
				}
				after = e.Seq
				l.of.found(l.id)
			}
			more = page.More
		}
	}
}

// remoteBlobs are the blobs of a session there.
type remoteBlobs struct{ log *remoteLog }

// Get implements [tool.Blobs].
func (b remoteBlobs) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	var out blob
	err := b.log.of.Call(ctx, http.MethodGet, b.log.path("/blobs/%s", url.PathEscape(name)), nil, &out)
	return io.NopCloser(bytes.NewReader(out.Data)), err
}

// Put implements [tool.Blobs]: it is not supported.
func (b remoteBlobs) Put(context.Context, io.Reader) (string, error) { return "", errRemote }

// TokenOf returns the token for a server: the value of INSPAN_REMOTE_TOKEN, or the content of a file.
func TokenOf(file string) (string, error) {
	if file == "" {
		if token := os.Getenv("INSPAN_REMOTE_TOKEN"); token != "" {
			return token, nil
		}
		return "", errors.New("no token for the server; set INSPAN_REMOTE_TOKEN, or pass --token-file")
	}
	raw, err := keep.Read(file)
	if err != nil {
		return "", fmt.Errorf("read the token for the server: %w", err)
	}
	return strings.TrimSpace(string(raw)), nil
}
