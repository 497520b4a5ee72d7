package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/store"
)

// elsewhere is a server that answers as the test says, and a store of it.
func elsewhere(t *testing.T, answer http.HandlerFunc) *server.Remote {
	t.Helper()
	h := httptest.NewServer(answer)
	t.Cleanup(h.Close)
	return &server.Remote{URL: h.URL, Token: "t"}
}

// TestRemoteBounds checks that nothing that a server sends or leaves out is waited for without end or kept without
// bounds, and that the error says which it was.
func TestRemoteBounds(t *testing.T) {
	silent := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"silence":       {silent, "does not answer: "},
		"silence in it": {func(w http.ResponseWriter, r *http.Request) { begun(w, "{"); silent(w, r) }, "says nothing for 2s"},
		"no end":        {func(w http.ResponseWriter, _ *http.Request) { begun(w, `{"sessions":[`); endless(w) }, "sends more than 64 MiB"},
		"no JSON":       {func(w http.ResponseWriter, _ *http.Request) { begun(w, "hello") }, "read the answer of the server at http://127.0.0.1"},
		"a stranger": {
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
			"answers 502 Bad Gateway, and not as inspan serve does",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := elsewhere(t, tc.answer)
			if strings.Contains(name, "silence") {
				r.Patience = 2 * time.Second // which a connection on a busy machine takes less than
			}
			if _, err := r.IDs(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

func begun(w http.ResponseWriter, text string) {
	_, _ = io.WriteString(w, text)
	_ = http.NewResponseController(w).Flush()
}

// endless sends blanks until its client leaves.
func endless(w http.ResponseWriter) {
	blanks := strings.Repeat(" ", 1<<20)
	for {
		if _, err := io.WriteString(w, blanks); err != nil {
			return
		}
	}
}

const aSession = "20261121-140312-abcd"

// one is an event of that session with a number.
func one(seq int) string {
	return fmt.Sprintf(`{"seq":%d,"time":"2026-11-21T14:03:12Z","session":%q,"kind":"titled","body":{"title":"x"}}`, seq, aSession)
}

// TestRemoteProgress checks that pages that lead nowhere end the reading of a session.
func TestRemoteProgress(t *testing.T) {
	for page, want := range map[string]string{
		`{"events":[],"more":true}`:                         "says that there are more events, and sends none",
		`{"events":[` + one(1) + `],"more":true}`:           "sends event 1 behind event 1",
		`{"events":[` + one(2) + `,` + one(1) + `]}`:        "sends event 1 behind event 2",
		`{"events":[` + strings.Repeat(" ", 1<<10) + `]`:    "unexpected end of JSON",
		`{"events":[{"seq":"x"}],"more":true,"extra":true}`: "seq",
	} {
		r := elsewhere(t, func(w http.ResponseWriter, _ *http.Request) { begun(w, page) })
		log, err := r.Open(t.Context(), aSession)
		if err == nil {
			for _, e := range log.Read(t.Context(), 0) {
				err = e
			}
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %s", page, err, want)
		}
	}
}

// TestRemotePauses checks that a server whose streams lead nowhere is asked again, but not at once, and that the
// session counts as out of reach.
func TestRemotePauses(t *testing.T) {
	for name, stream := range map[string]func(w http.ResponseWriter){
		"empty":         func(http.ResponseWriter) {},
		"without event": func(w http.ResponseWriter) { begun(w, "retry: 1000\n\n: \n\n") },
		"old events":    func(w http.ResponseWriter) { begun(w, "id: 0\n\nid: 1\n\nid: 1\n\n") },
		"promises":      func(w http.ResponseWriter) { begun(w, "id: 2\n\n") },
		"no end":        func(w http.ResponseWriter) { begun(w, "data: "); endless(w) },
		"hidden events": func(w http.ResponseWriter) { begun(w, "data: "+strings.Repeat("x", 64<<10-6)+"id: 2\n\n") },
		"refusing": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusServiceUnavailable)
			begun(w, `{"error":{"type":"overloaded_error","message":"the server is shutting down"}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var streams, others atomic.Int32
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			r := elsewhere(t, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case strings.HasSuffix(r.URL.Path, "/stream"):
					if streams.Add(1) == 1 {
						time.AfterFunc(900*time.Millisecond, stop)
					}
					stream(w)
				case strings.HasSuffix(r.URL.Path, "/sessions"):
					others.Add(1)
					begun(w, `{"sessions":[{"id":"`+aSession+`","driven":true}]}`)
				case r.URL.Query().Get("after") == "0" || r.URL.Query().Get("after") == "":
					begun(w, `{"events":[`+one(1)+`]}`)
				default:
					others.Add(1)
					begun(w, `{"events":[]}`)
				}
			})
			w, err := (&inspan.Host{Store: r}).Watch(t.Context(), aSession)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			for e, err := range w.Events(ctx, 1) {
				if name == "no end" && err != nil && strings.Contains(err.Error(), "sends more than") {
					break // on a fast machine
				}
				t.Errorf("event %d, %v", e.Seq, err)
			}
			if n, m := streams.Load(), others.Load(); n < 1 || n > 6 || m > 20 {
				t.Errorf("asked for %d streams and %d other things", n, m)
			}
		})
	}
}

// TestRemoteComesBack checks that a session is followed beyond a time in which its server can't be reached, that this
// is reported, and that only the server's word ends it.
func TestRemoteComesBack(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	id := h.submit(server.Spec{Open: true, Prompt: "say: heron", Folder: h.root}).ID
	session := h.until(id, server.StageIdle).Session
	to, err := url.Parse(h.h.URL)
	if err != nil {
		t.Fatal(err)
	}
	var away atomic.Bool
	through := httputil.NewSingleHostReverseProxy(to)
	through.FlushInterval = -1
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		r.Host = to.Host
		through.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	r := &server.Remote{URL: front.URL, Token: h.token}
	w, err := (&inspan.Host{Store: r}).Watch(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ctx, stop := context.WithCancel(t.Context())
	events, done := make(chan event.Event, 100), make(chan struct{})
	go func() {
		defer close(done)
		for e, err := range w.Events(ctx, w.Status().Seq) {
			if err != nil {
				t.Error(err)
			}
			events <- e
		}
	}()
	defer func() { stop(); <-done }()
	say := func() {
		t.Helper()
		if err := w.Send(t.Context(), event.Steered{Origin: event.OriginPerson, Parts: llm.Say("say: again")}); err != nil {
			t.Fatal(err)
		}
		<-events
	}
	say()
	away.Store(true)
	front.CloseClientConnections()
	linked(t, r, session, func(over bool, lost error) bool { return lost != nil && !over })
	if err := w.Send(t.Context(), event.Steered{Origin: event.OriginPerson, Parts: llm.Say("say: lost")}); err == nil {
		t.Error("what was said to nobody has arrived")
	}
	away.Store(false)
	linked(t, r, session, func(_ bool, lost error) bool { return lost == nil })
	say()
	if err := r.Close(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	linked(t, r, session, func(over bool, _ error) bool { return over })
	for _, err := range store.Events(t.Context(), r, session) { // an answer to a reader does not bring the session back
		if err != nil {
			t.Fatal(err)
		}
	}
	if over, _ := r.Link(session); !over {
		t.Error("a session that is over can be read, and counts as running")
	}
	stop()
	<-done
	here := 0
	for _, err := range store.Events(t.Context(), h.s.Sessions, session) {
		if here++; err != nil {
			t.Fatal(err)
		}
	}
	if seq := w.Status().Seq; seq != uint64(here) {
		t.Errorf("%d events of %d were seen", seq, here)
	}
}

// linked waits until a session is linked as it is wanted.
func linked(t *testing.T, r *server.Remote, session string, wanted func(over bool, lost error) bool) {
	t.Helper()
	testkit.WaitFor(t, "the link", func() bool { return wanted(r.Link(session)) },
		func() string { return fmt.Sprint(r.Link(session)) })
}
