package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"sync"

	"github.com/coder/websocket"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
)

// socketMessage is what a client sends over /ws. With both, the prompt comes behind the interrupt.
type socketMessage struct {
	Prompt    string `json:"prompt,omitempty"`
	Interrupt bool   `json:"interrupt,omitempty"`
}

// socket is the endpoint of conversations over a WebSocket.
func (s *Server) socket() endpoint {
	says := map[int]reflect.Type{http.StatusSwitchingProtocols: reflect.TypeFor[nothing]()}
	e := plain("/ws", Operator, "Talk to an agent over a WebSocket. See docs/SERVER.md.", says, s.talk)
	e.in = reflect.TypeFor[rejoined]()
	return e
}

// rejoined says where a client comes back to its conversation.
type rejoined struct {
	After string `json:"-" query:"after"`
}

// talk is a conversation over a WebSocket: the client sends prompts, and gets every event of the
// session, transient ones included, in the form of docs/EVENTS.md. A client that names its
// conversation by the header comes back to it, behind the event that "after" names. Otherwise the
// conversation ends with the connection.
func (s *Server) talk(w http.ResponseWriter, r *http.Request) {
	v, err := s.Visit(r, Operator)
	var name string
	var after uint64
	if err == nil {
		after, err = lastEventID(r)
	}
	if err == nil {
		name, err = conversationOf(r)
	}
	if err == nil && !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		w.Header().Set("Upgrade", "websocket")
		err = &Problem{Status: http.StatusUpgradeRequired, Type: "invalid_request_error", Message: "this path takes WebSocket handshakes only"}
	}
	if err != nil {
		RefuseWith(w, err)
		return
	}
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true}) // the gate has looked where it is from
	if err != nil {
		return // it was answered
	}
	defer func() { _ = conn.CloseNow() }()
	ctx, end := context.WithCancel(r.Context())
	defer end()
	stop := context.AfterFunc(s.ctx, end)
	defer stop()
	v.Context, v.key = ctx, ""
	t, err := v.conversation(name, Spec{})
	if err != nil {
		(&socket{conn: conn, Visit: v}).refuse(err)
		_ = conn.Close(websocket.StatusPolicyViolation, "refused")
		return
	}
	(&socket{conn: conn, Visit: v, task: t.ID}).serve(after)
	if name == "" {
		v.Context = context.WithoutCancel(ctx)
		_, _ = v.Finish(t.ID) // it closes when nobody talks to it, if that fails
	}
	_ = conn.Close(websocket.StatusNormalClosure, "")
}

// socket is one connection.
type socket struct {
	*Visit
	conn *websocket.Conn
	task string
	mu   sync.Mutex // of what is sent
}

// serve takes what the client sends and sends what happens, until either ends.
func (s *socket) serve(after uint64) {
	ctx, end := context.WithCancel(s.Context)
	s.Context = ctx
	var wg sync.WaitGroup
	defer wg.Wait()
	defer end()
	events, err := s.Follow(s.task, Feed{After: after, Live: true})
	if err != nil {
		s.refuse(err)
		return
	}
	heard := sync.OnceFunc(func() {
		wg.Go(func() {
			defer end()
			s.hear()
		})
	})
	for e := range events {
		heard() // nothing is missed of what the client begins
		raw := []byte(`{"kind":"beat"}`)
		if e.Body != nil {
			if raw, err = event.Encode(e); err != nil {
				return
			}
		}
		if s.send(raw) != nil {
			return
		}
	}
}

// hear takes what the client sends.
func (s *socket) hear() {
	s.conn.SetReadLimit(2 * mostPrompt)
	for {
		kind, raw, err := s.conn.Read(s)
		if err != nil || !s.Known() { // a client may send for as long as it does not take the end in
			return
		}
		var m socketMessage
		switch {
		case kind != websocket.MessageText:
			err = Wrong("message", "it is binary", "a text message with a JSON object")
		default:
			err = Decode(bytes.NewReader(raw), &m)
		}
		switch {
		case err != nil:
		case m.Interrupt:
			_, err = s.Interrupt(s.task, "", "")
		}
		if err == nil && (m.Prompt != "" || !m.Interrupt) {
			var parts llm.Parts
			if parts, err = spoken("prompt", m.Prompt); err == nil {
				_, err = s.Say(s.task, parts, "")
			}
		}
		if err != nil {
			s.refuse(err)
		}
	}
}

// refuse tells the client what was not done.
func (s *socket) refuse(err error) {
	raw, bad := json.Marshal(map[string]any{"type": "error", "error": ProblemOf(err)})
	if bad == nil {
		_ = s.send(raw) // the client may have gone
	}
}

// send sends a message. A client that does not take it in time is gone.
func (s *socket) send(raw []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, end := context.WithTimeout(s, writeTime)
	defer end()
	return s.conn.Write(ctx, websocket.MessageText, raw)
}
