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

// socketMessage is a message of a client over /ws. With both fields, the prompt follows the interrupt.
type socketMessage struct {
	Prompt    string `json:"prompt,omitempty"`
	Interrupt bool   `json:"interrupt,omitempty"`
}

// socket returns the endpoint of conversations over a WebSocket.
func (s *Server) socket() endpoint {
	says := map[int]reflect.Type{http.StatusSwitchingProtocols: reflect.TypeFor[nothing]()}
	e := plain("talk", "/ws", Operator, "Talk to an agent over a WebSocket. See docs/SERVER.md.", says, s.talk)
	e.in = reflect.TypeFor[rejoined]()
	return e
}

// rejoined returns the event where a client rejoins its conversation.
type rejoined struct {
	After string `json:"-" query:"after"`
}

// talk serves a conversation over a WebSocket: the client sends prompts, and gets every event of the session,
// transient ones included, in the form of docs/EVENTS.md. A client that names its conversation by the header can
// rejoin it, after the event that "after" names. Otherwise the conversation ends with the connection.
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
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true}) // the gate has checked the origin
	if err != nil {
		return // it has responded
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
		_, _ = v.Finish(t.ID) // if that fails, the task closes when it has been idle long enough
	}
	_ = conn.Close(websocket.StatusNormalClosure, "")
}

// socket is one connection.
type socket struct {
	*Visit
	conn *websocket.Conn
	task string
	mu   sync.Mutex // held while sending
}

// serve handles the client's messages and sends events, until either side ends.
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
		heard() // no event that the client causes is missed
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

// hear reads the client's messages.
func (s *socket) hear() {
	s.conn.SetReadLimit(2 * mostPrompt)
	for {
		kind, raw, err := s.conn.Read(s)
		if err != nil || !s.Known() { // a removed client could otherwise send as long as it does not react to the end
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

// refuse tells the client that its request failed.
func (s *socket) refuse(err error) {
	raw, bad := json.Marshal(map[string]any{"type": "error", "error": ProblemOf(err)})
	if bad == nil {
		_ = s.send(raw) // the client may have disconnected
	}
}

// send sends a message. A client that does not accept it in time is disconnected.
func (s *socket) send(raw []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, end := context.WithTimeout(s, writeTime)
	defer end()
	return s.conn.Write(ctx, websocket.MessageText, raw)
}
