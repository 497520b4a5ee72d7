package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
)

// The runtime contract of Bedrock AgentCore: POST /invocations, GET /ping (health.go) and /ws (socket.go). A
// header names the conversation, which is one open task on each of these ways.

const (
	runtimeSession = "X-Amzn-Bedrock-AgentCore-Runtime-Session-Id"
	byRuntime      = "the runtime's client" // principal of requests that the runtime has authenticated
	mostHeld       = 14 * time.Minute       // how long a call is held; the runtime ends it after 15 minutes
)

// invocation is a request to an agent.
type invocation struct {
	Spec
	Background bool `json:"background,omitempty" jsonschema:"answer at once; the agent works on, and GET /ping says HealthyBusy until it is done"`
}

// conversationOf returns the name of the conversation of a request; empty means it has none.
func conversationOf(r *http.Request) (string, error) {
	name := r.Header.Get(runtimeSession)
	if name != "" && (len(name) < 33 || len(name) > mostKey) {
		return "", Wrong(runtimeSession, fmt.Sprintf("it has %d bytes", len(name)), fmt.Sprintf("33 to %d", mostKey))
	}
	return name, nil
}

// conversation returns the open task of a conversation. If there is none yet, it begins one from spec without a
// prompt.
func (v *Visit) conversation(name string, spec Spec) (t Task, err error) {
	settings := !reflect.DeepEqual(spec, Spec{})
	spec.Open, spec.IdleTimeout = true, int(chatIdle.Seconds())
	spec.Labels = map[string]string{"client": "runtime"}
	of := *v
	for n := 1; ; n++ {
		if of.key = ""; name != "" {
			of.key = strings.TrimSuffix(fmt.Sprintf("ws %s %d", name, n), " 1")
		}
		if t, err = of.submitted("task_", spec, of.key, nil, nil); err != nil || !over(t.Stage) {
			break
		}
	}
	if err == nil && settings && !sameJSON(t.Spec, spec) {
		err = Conflict("the conversation began with other settings; set them only with its first message")
	}
	return t, err
}

func sameJSON(a, b any) bool {
	one, err := json.Marshal(a)
	other, bad := json.Marshal(b)
	return err == nil && bad == nil && string(one) == string(other)
}

// invoke runs an agent: on a new task, or, with a header, in the conversation that it names. It responds with
// the task when that, or its run in the conversation, has ended, or after a while with the current state.
func (c *call) invoke(in invocation) (*Task, error) {
	if in.Open {
		return nil, Wrong("open", "an open task has no end to wait for", "POST /api/v1/tasks, or a session header")
	}
	name, err := conversationOf(c.r)
	if err != nil {
		return nil, err
	}
	var t Task
	var after uint64
	if name == "" {
		t, err = c.Submit(in.Spec)
	} else {
		t, after, err = c.converse(name, in.Spec)
	}
	switch {
	case err != nil || in.Background:
	case prefersStream(c.r.Header.Get("Accept")):
		return nil, c.invokeLive(t, after)
	default:
		t, err = c.held(t, after)
	}
	return &t, err
}

// prefersStream reports whether a client takes a stream, and takes it before a whole answer.
func prefersStream(accepts string) bool {
	accepts = strings.ToLower(accepts)
	stream, whole := strings.Index(accepts, "text/event-stream"), strings.Index(accepts, "application/json")
	return stream >= 0 && (whole < 0 || stream < whole)
}

// converse sends a message in a conversation, and returns the number of the event before its effects. Without a
// prompt it sends nothing: the client only waits for the current run.
func (c *call) converse(name string, spec Spec) (t Task, after uint64, err error) {
	prompt := spec.Prompt
	spec.Prompt = ""
	if t, err = c.conversation(name, spec); err != nil || prompt == "" {
		return t, 0, err
	}
	parts, err := spoken("prompt", prompt)
	if err == nil {
		after, err = c.Say(t.ID, parts, c.Key())
	}
	if err == nil {
		t, err = c.Find(t.ID)
	}
	return t, after, err
}

// held waits until the request is done, but not longer than a client can wait.
func (c *call) held(t Task, after uint64) (Task, error) {
	patient, end := context.WithTimeout(c, mostHeld)
	defer end()
	waiting := *c.Visit
	waiting.Context = patient
	stop, err := waiting.stopBehind(t.ID, after)
	if err != nil && patient.Err() == nil {
		return t, err
	}
	now, err := waiting.Wait(t.ID, func(t Task) bool {
		return over(t.Stage) || t.Spec.Open && t.Stage == StageIdle && (stop == 0 || t.Result != nil && t.Result.Seq >= stop)
	})
	if errors.Is(err, context.DeadlineExceeded) && c.Err() == nil {
		return now, nil
	}
	return now, err
}

// stopBehind waits until a run of a task has stopped after an event, and returns the number of the stop; 0 means
// there is no such event.
func (v *Visit) stopBehind(task string, after uint64) (uint64, error) {
	if after == 0 {
		return 0, nil
	}
	events, err := v.Follow(task, Feed{After: after})
	if err != nil {
		return 0, err
	}
	for e := range events {
		if _, stopped := e.Body.(event.Stopped); stopped {
			return e.Seq, nil
		}
	}
	return 0, v.Err()
}

// invokeLive responds with a stream: every event of the session as it comes, and then the task.
func (c *call) invokeLive(t Task, after uint64) error {
	events, err := c.Follow(t.ID, Feed{After: after, Live: true})
	if err != nil {
		return err
	}
	out := NewSSE(c.w)
	for e := range events {
		if out.event(e) != nil {
			return nil // the client has disconnected
		}
		if _, stopped := e.Body.(event.Stopped); stopped && t.Spec.Open {
			break
		}
	}
	if t, err = c.held(t, after); err != nil {
		chunked{out}.refuse(err)
		return nil
	}
	_ = chunked{out}.object("task", t)
	return nil
}
