package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// An agent as OpenAI's clients see one: a model that replies in a conversation. Each conversation is an open task.
// Clients don't see the agent's calls. Calls that would ask are denied, because these clients can't answer
// questions. completions.go and responses.go have the two request formats.

const (
	ofChat   = "chat"   // the task of a conversation that a client may continue, by its content so far
	chatName = "inspan" // the model name for the server's own choice
	chatIdle = 24 * time.Hour
)

// chat is the place of a conversation.
type chat struct {
	Task string `json:"task"`
}

// exchange is a message that a client wants answered, and its context.
type exchange struct {
	field   string // of the request, with the messages
	key     string // of the conversation so far; empty means it is a new one
	model   string
	system  string
	history string // the conversation so far, for a new agent
	text    string
}

// begin passes the message to an agent: the one that has led the conversation so far, or a new one. The reply
// is in the events of the task that follow the returned number.
func (c *call) begin(x exchange) (task string, after uint64, err error) {
	if strings.TrimSpace(x.text) == "" {
		return "", 0, Wrong(x.field, "the last message is not from the user", "a text to answer")
	}
	if task = c.takeChat(x.key); task != "" {
		if after, err = c.Say(task, llm.Say(x.text), ""); err == nil || x.history == "" {
			return task, after, err // else a new one can take over, because the client has sent the whole conversation
		}
	}
	spec := Spec{
		Open: true, Unattended: true, IdleTimeout: int(chatIdle.Seconds()), System: x.system,
		Prompt: x.text, Labels: map[string]string{"client": "chat"},
	}
	if x.history != "" {
		spec.Prompt = "The conversation so far, which you have led:\n\n" + x.history + "\nGo on with it. The user says:\n\n" + x.text
	}
	if x.model != chatName {
		spec.Model = x.model
	}
	t, err := c.Submit(spec)
	if p, is := errors.AsType[*Problem](err); is && (p.Field == "prompt" || p.Field == "system") { // made of messages
		of := *p
		of.Field, of.Message = "", strings.TrimPrefix(p.Message, p.Field+": ")
		err = Within(x.field, &of)
	}
	return t.ID, 0, err
}

// takeChat takes the task of the conversation that a client continues; empty means there is none. No other request
// gets it until keepChat stores it again.
func (c *call) takeChat(key string) string {
	if key == "" {
		return ""
	}
	var at chat
	if err := c.Edit(func(e *Edit) error {
		o, err := e.Object(ofChat, key)
		if err != nil {
			return err
		}
		e.Remove(ofChat, key)
		return json.Unmarshal(o.Value, &at)
	}); err != nil {
		return ""
	}
	return at.Task
}

// keepChat stores the task of a conversation that a client may continue.
func (c *call) keepChat(key, task string) error {
	raw, err := shelved(c.who.tenant, chat{task}, Content{})
	if err != nil {
		return err
	}
	return c.book.add(context.WithoutCancel(c), event.Recorded{Of: ofChat, ID: key, Value: raw, By: c.who.name})
}

// answered is the reply of an agent.
type answered struct {
	text  string
	usage llm.Usage
	stop  event.Stopped
	last  uint64 // number of the event that ended the run
}

// hear passes on the agent's text after the event with the given number, as it is written, until the run has
// stopped. If the client disconnects, the run is interrupted.
func (c *call) hear(task string, after uint64, say func(string) error) (a answered, err error) {
	defer func() {
		if err != nil && c.Err() != nil {
			gone := *c.Visit
			gone.Context = context.WithoutCancel(c)
			_, _ = gone.Interrupt(task, "the client disconnected", "")
		}
	}()
	events, err := c.Follow(task, Feed{After: after, Live: true})
	if err != nil {
		return a, cmp.Or(c.unanswered(task), err)
	}
	var fold transcript.Fold
	var reply *transcript.Reply // the last one
	shown := ""                 // what was passed on of it
	for e := range events {
		for _, item := range fold.Apply(e) {
			switch i := item.(type) {
			case *transcript.Reply:
				if i != reply {
					reply, shown = i, ""
				}
				rest, same := strings.CutPrefix(i.Text, shown)
				if !same { // the log has another text
					rest, shown = i.Text, ""
				}
				if i.State == transcript.Void || i.State == transcript.Written && rest == "" {
					continue
				}
				if shown == "" && a.text != "" && rest != "" {
					rest = "\n\n" + rest
				}
				if err := say(rest); err != nil {
					return a, err
				}
				if shown = i.Text; i.State == transcript.Whole {
					a.usage = a.usage.Add(i.Usage)
					if a.text != "" && i.Text != "" {
						a.text += "\n\n"
					}
					a.text += i.Text
				}
			case *transcript.Stop:
				a.stop, a.last = i.Stopped, e.Seq
				return a, nil
			}
		}
	}
	return a, cmp.Or(c.Err(), c.unanswered(task), error(ending()))
}

// unanswered returns the reason why no reply will come; nil means the task is not over.
func (c *call) unanswered(task string) error {
	t, known := c.book.task(task)
	if !known || !over(t.Stage) {
		return nil
	}
	why := strings.Trim(string(t.Stage)+": "+t.Why, ": ")
	return &Problem{Status: http.StatusBadGateway, Type: "api_error", Message: "the agent did not answer, because its task is " + why}
}

// failure returns the reason why there is no reply, if the agent failed.
func (a answered) failure() error {
	if a.stop.Reason != event.ReasonFailed && a.stop.Reason != event.ReasonStuck {
		return nil
	}
	p := &Problem{Status: http.StatusBadGateway, Type: "api_error", Message: "the agent could not answer: " + a.stop.Detail}
	if a.stop.Cause == llm.KindRateLimited || a.stop.Cause == llm.KindOverloaded {
		p.Status, p.Type = http.StatusServiceUnavailable, "overloaded_error"
	}
	return p
}

// cut reports whether a limit has ended the reply.
func (a answered) cut() bool {
	return slices.Contains([]event.Reason{
		event.ReasonMaxTurns, event.ReasonBudget, event.ReasonMaxTokens, event.ReasonMaxTime, event.ReasonRate,
	}, a.stop.Reason)
}

// neutral reports a field whose value is not one of those that change nothing.
func neutral(field string, raw json.RawMessage, values ...string) error {
	var plain bytes.Buffer
	if len(raw) == 0 || json.Compact(&plain, raw) == nil && slices.Contains(append(values, "null"), plain.String()) {
		return nil
	}
	return Wrong(field, "an agent can't do that for a client", strings.Join(values, " or ")+", or leave it out")
}

// message is one message of a conversation in the clients' format: its content is a text, or parts of which
// only texts are accepted.
type message struct {
	Type    string          `json:"type,omitempty"`
	ID      string          `json:"id,omitempty"`
	Status  string          `json:"status,omitempty"`
	Role    string          `json:"role" jsonschema:"system, developer, user or assistant"`
	Content json.RawMessage `json:"content" jsonschema:"a text, or a list of parts with texts"`
	Name    string          `json:"name,omitempty"`
	Refusal json.RawMessage `json:"refusal,omitempty"`
}

// text returns the text of a message.
func (m message) text(field string) (string, error) {
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		return text, nil
	}
	var parts []struct{ Type, Text string }
	if err := json.Unmarshal(m.Content, &parts); err != nil {
		return "", Wrong(field, "not a text or a list of parts", "a text")
	}
	for i, p := range parts {
		if !slices.Contains([]string{"text", "input_text", "output_text"}, p.Type) {
			return "", Wrong(fmt.Sprintf("%s.%d.type", field, i), fmt.Sprintf("%q is not supported", p.Type), "a part of type text")
		}
		text += p.Text
	}
	return text, nil
}

// read splits a conversation into the system prompt, the history and the message to answer.
func (x *exchange) read(messages []message) error {
	var history strings.Builder
	for i, m := range messages {
		at := fmt.Sprintf("%s.%d", x.field, i)
		text, err := m.text(at + ".content")
		if err != nil {
			return err
		}
		switch m.Role {
		case "system", "developer":
			x.system = strings.TrimSpace(x.system + "\n\n" + text)
		case "user":
			if x.text != "" {
				x.text += "\n\n"
			}
			x.text += text
		case "assistant":
			fmt.Fprintf(&history, "User: %s\n\nYou: %s\n\n", x.text, text)
			x.text = ""
		default:
			return Wrong(at+".role", fmt.Sprintf("it is %q", m.Role), "system, developer, user or assistant")
		}
	}
	x.history = history.String()
	return nil
}

// after returns the key that lets the client continue the conversation after this reply: its next request begins
// with the same messages.
func (x exchange) after(by, answer string) string {
	history := x.history + fmt.Sprintf("User: %s\n\nYou: %s\n\n", x.text, answer)
	return exchange{model: x.model, system: x.system, history: history}.so(by)
}

// so returns the key of a conversation so far; empty means it is a new one.
func (x exchange) so(by string) string {
	if x.history == "" {
		return ""
	}
	raw, _ := json.Marshal([]string{by, x.model, x.system, x.history}) // strings always can be encoded
	return tool.Digest(raw)
}

// models lists the models that these clients can name.
type models struct {
	Object string  `json:"object"`
	Data   []model `json:"data"`
}

type model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

func (c *call) models(nothing) (models, error) {
	return models{Object: "list", Data: []model{{ID: chatName, Object: "model", OwnedBy: chatName}}}, nil
}

// chunked is a stream of server-sent events in the format of these clients.
type chunked struct {
	*SSE
}

// object sends an object; without a name only its data.
func (s chunked) object(name string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if name != "" {
		return s.Send("", name, raw)
	}
	return s.write("data: " + string(raw) + "\n\n")
}

// refuse ends a stream that has begun with an error.
func (s chunked) refuse(err error) {
	_ = s.object("error", map[string]any{"type": "error", "error": ProblemOf(err)}) // the client may have disconnected
}
