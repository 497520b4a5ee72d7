package server_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/store"
)

// TestRemoteIsLive checks that a follower elsewhere gets the text of a reply while it is written, before the reply, and
// that its status matches the events that it has seen.
func TestRemoteIsLive(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	session := h.until(h.submit(server.Spec{Open: true, Prompt: "say: heron", Folder: h.root}).ID, server.StageIdle).Session
	w, err := (&inspan.Host{Store: h.remote()}).Watch(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if w.Context().Tokens == 0 {
		t.Error("the next prompt is empty")
	}
	say := func(text string) {
		t.Helper()
		if err := w.Send(t.Context(), event.Steered{Origin: event.OriginPerson, Parts: llm.Say(text)}); err != nil {
			t.Fatal(err)
		}
	}
	say("say: egret")
	written, last := "", w.Status().Seq
	for e, err := range w.Live(t.Context(), last) {
		if err != nil {
			t.Fatal(err)
		}
		if !e.Transient() && e.Seq != last+1 {
			t.Errorf("event %d behind event %d", e.Seq, last)
		}
		last = max(last, e.Seq)
		switch b := e.Body.(type) {
		case event.Delta:
			written += b.Text
		case event.Stopped: // the stream stands by now
			// What is written is not in the log: some of it may come late, or not at all.
			if strings.TrimPrefix(written, "egret") == "egrets and herons" || written == "egrets and herons" {
				return
			}
			if w.Status().Active || written != "" && written != "egret" {
				t.Fatalf("active %v, written %q", w.Status().Active, written)
			}
			say("say: egrets and herons")
		}
	}
}

// TestKeyedInputsArriveOnce checks that an input with a key is sent until the server has taken it, and counts once
// although answers to it were lost.
func TestKeyedInputsArriveOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	session := h.until(h.submit(server.Spec{Open: true, Prompt: "say: heron", Folder: h.root}).ID, server.StageIdle).Session
	var lost atomic.Int32
	r := elsewhere(t, func(w http.ResponseWriter, r *http.Request) {
		to, err := url.Parse(h.h.URL)
		if err != nil {
			t.Error(err)
		}
		r.Host = to.Host
		if r.Method == http.MethodPost && lost.Add(1) <= 2 {
			httputil.NewSingleHostReverseProxy(to).ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler) // the server has it, and no one hears of that
		}
		httputil.NewSingleHostReverseProxy(to).ServeHTTP(w, r)
	})
	r.Token = h.token
	log, err := r.Open(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(t.Context(), event.Said{Parts: llm.Say("say: once"), Message: "k"}); err != nil || lost.Load() != 3 {
		t.Errorf("%v after %d tries", err, lost.Load())
	}
	n := 0
	for e, err := range store.Events(t.Context(), h.remote(), session) {
		if err != nil {
			t.Fatal(err)
		}
		if b, is := e.Body.(event.Said); is && b.Parts.Text() == "say: once" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("it was said %d times", n)
	}
	// Without a key the second try could be a second message, so there is none.
	lost.Store(0)
	if _, err := log.Append(t.Context(), event.Said{Parts: llm.Say("say: unkeyed")}); err == nil || lost.Load() != 1 {
		t.Errorf("%v after %d tries", err, lost.Load())
	}
}
