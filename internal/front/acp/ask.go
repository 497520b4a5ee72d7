package acp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	wire "github.com/coder/acp-go-sdk"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/jsonrpc"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/words"
)

// askPending asks the person a question: about a waiting call, or one raised by a child or a running call. It returns
// no answer if only the next prompt can answer, because the client has no forms and there is nothing to choose
// from.
func (st *session) askPending(ctx context.Context, t *turn, p inspan.Pending) (event.Body, error) {
	waits := func(w inspan.Pending) bool { return w.Question == p.Question }
	if !slices.ContainsFunc(st.current().Status().Waiting, waits) {
		return st.askRaised(ctx, t, p)
	}
	if text := st.textQuestion(p); text != "" {
		st.view.message(text)
		return nil, nil //nolint:nilnil // no answer
	}
	return st.ask(ctx, t, p)
}

// askRaised describes a raised question to the client like one about a call, although the call is in another
// session.
func (st *session) askRaised(ctx context.Context, t *turn, p inspan.Pending) (event.Body, error) {
	c := st.consentCall(p)
	st.agent.update(st.id, wire.SessionUpdate{ToolCall: &wire.SessionUpdateToolCall{
		ToolCallId: c.ToolCallId, Title: *c.Title, Kind: *c.Kind, Status: *c.Status, Content: c.Content, Locations: c.Locations,
		RawInput: c.RawInput,
	}})
	answer, err := st.ask(ctx, t, p)
	status := wire.ToolCallStatusFailed
	if d, ok := answer.(event.Decided); ok && err == nil && d.Allow {
		status = wire.ToolCallStatusCompleted
	}
	st.agent.update(st.id, wire.SessionUpdate{ToolCallUpdate: &wire.SessionToolCallUpdate{ToolCallId: c.ToolCallId, Status: &status}})
	if err != nil { // the run continues without an answer
		st.agent.logf("question %s: %v", p.Call.ID, err)
	}
	return answer, nil
}

// ask lets the person decide on a call. The answer is nil if someone else was faster, or if the person wants the
// whole run to end.
func (st *session) ask(ctx context.Context, t *turn, p inspan.Pending) (event.Body, error) {
	if !p.IsQuestion {
		return st.askConsent(ctx, t, p)
	}
	_, more := st.agent.capabilities()
	message, address, visit := words.Visit(p.Call)
	switch {
	case visit && more.visits():
		return st.askVisit(ctx, p, message, address)
	case !visit && more.forms(): // a form has no place for an address
		return st.askForm(ctx, p)
	}
	return st.askChoice(ctx, t, p)
}

// askVisit lets the client open an address for the person. The client shows the address and asks first.
func (st *session) askVisit(ctx context.Context, p inspan.Pending, message, address string) (event.Body, error) {
	action, _, err := st.elicit(ctx, elicitation{
		CallID: p.Call.ID, Mode: "url", Message: text.VisibleLines(message),
		ID: fmt.Sprintf("%s/%d", st.id, p.Question), URL: address,
	})
	if err != nil || action != "accept" && action != "decline" {
		return words.Dismissed(p.Call.ID), err
	}
	_, options := words.Question(p.Call)
	chosen := options[0]
	if action == "decline" {
		chosen = options[1]
	}
	d, _ := words.Answer(p.Call, chosen)
	return d, nil
}

// elicit asks the person by a dialog of the client. The action is empty if the client refused to show it.
func (st *session) elicit(ctx context.Context, e elicitation) (action string, content map[string]any, err error) {
	e.SessionID = st.id
	var answer elicited
	err = st.agent.conn.Call(ctx, wire.ClientMethodElicitationCreate, e, &answer)
	var refused *jsonrpc.Error
	if errors.As(err, &refused) {
		st.agent.logf("elicitation: %v", err)
		return "", nil, nil
	}
	return answer.Action, answer.Content, err
}

// consents returns the possible answers about a call, each with the word of words.Decision that it stands for.
func consents(p inspan.Pending) []wire.PermissionOption {
	var list []wire.PermissionOption
	for _, o := range words.Options(p.Rules, p.Offers) {
		option := wire.PermissionOption{OptionId: wire.PermissionOptionId(o.Key), Name: o.Name, Kind: wire.PermissionOptionKindAllowAlways}
		switch o.Key {
		case "y":
			option.Kind = wire.PermissionOptionKindAllowOnce
		case "n":
			option.Kind = wire.PermissionOptionKindRejectOnce
		}
		list = append(list, option)
	}
	return list
}

func (st *session) askConsent(ctx context.Context, t *turn, p inspan.Pending) (event.Body, error) {
	options := consents(p)
	chosen, err := st.permission(ctx, t, wire.RequestPermissionRequest{
		SessionId: wire.SessionId(st.id), Options: options, ToolCall: st.consentCall(p),
	})
	var refused *jsonrpc.Error
	switch {
	case errors.As(err, &refused):
		st.agent.logf("permission: %v", err)
		return event.Decided{Call: p.Call.ID, By: "the editor", Reason: "it could not ask the person"}, nil
	case err != nil || chosen == "":
		return nil, err
	case !slices.ContainsFunc(options, func(o wire.PermissionOption) bool { return string(o.OptionId) == chosen }):
		chosen = "n" // an option that was not offered allows nothing
	}
	d, _ := words.Decision(p.Call.ID, words.Options(p.Rules, p.Offers), chosen)
	return d, nil
}

// permission lets the person choose, and returns the id of the choice; empty if the person chose nothing, which
// ends the run.
func (st *session) permission(ctx context.Context, t *turn, p wire.RequestPermissionRequest) (string, error) {
	var answer wire.RequestPermissionResponse
	if err := st.agent.conn.Call(ctx, wire.ClientMethodSessionRequestPermission, p, &answer); err != nil {
		return "", err
	}
	if answer.Outcome.Selected == nil {
		t.cancel()
		return "", nil
	}
	return string(answer.Outcome.Selected.OptionId), nil
}

// consentCall returns a call as shown to the person who decides on it, with everything it would do.
func (st *session) consentCall(p inspan.Pending) wire.ToolCallUpdate {
	pending := wire.ToolCallStatusPending
	c := describe(p.Call, p.Effects)
	title := c.title
	if len(p.Set) > 0 {
		title = words.OneLine(p.Name()+": "+words.Together(p.Root, p.Calls()), 200)
	} else if p.Agent != "" {
		title = words.OneLine(p.Agent, 40) + " › " + title
	}
	return wire.ToolCallUpdate{
		ToolCallId: wire.ToolCallId(p.Call.ID), Title: &title, Kind: &c.kind, Status: &pending,
		Content: st.effectsText(p), Locations: c.locations, RawInput: c.input,
	}
}

// effectsText returns everything that a call, or each call of a set, would do.
func (st *session) effectsText(p inspan.Pending) (content []wire.ToolCallContent) {
	for i, one := range p.Set {
		content = append(content, textContent(text.Fenced("", fmt.Sprintf("Call %d of %d: %s", i+1, len(p.Set), text.Visible(one.Call.Name)))))
		content = append(content, st.effectsText(one)...)
	}
	if len(p.Set) > 0 {
		return content
	}
	content = previewContent(p.Preview, p.Effects, st.root)
	var lines []string
	if p.Preview == "" {
		lines = words.AskedLines(p.Call)
	}
	lines = append(lines, words.Effects(p.Effects, p.Preview != "")...)
	if p.Reason != "" {
		lines = append(lines, "("+text.Line(p.Reason)+")")
	}
	if len(lines) > 0 { // fenced, since it is text by others
		content = append(content, textContent(text.Fenced("", strings.Join(lines, "\n"))))
	}
	return content
}

// textQuestion returns the text of a question that only a prompt can answer.
func (st *session) textQuestion(p inspan.Pending) string {
	question, options := words.Question(p.Call)
	if _, more := st.agent.capabilities(); more.forms() || !p.IsQuestion || len(options) > 0 {
		return ""
	}
	return cmp.Or(text.Clean(question), text.Clean(p.Preview), "What do you say?")
}

// askChoice asks a question with a choice of answers.
func (st *session) askChoice(ctx context.Context, t *turn, p inspan.Pending) (event.Body, error) {
	question, options := words.Question(p.Call)
	if len(options) == 0 { // and the run can't wait for the next prompt
		st.agent.logf("the editor has no form for the question: %s", question)
		return words.Dismissed(p.Call.ID), nil
	}
	pending, kind, title := wire.ToolCallStatusPending, wire.ToolKindThink, words.OneLine(question, 200)
	r := wire.RequestPermissionRequest{
		SessionId: wire.SessionId(st.id),
		ToolCall: wire.ToolCallUpdate{
			ToolCallId: wire.ToolCallId(p.Call.ID), Title: &title, Kind: &kind, Status: &pending,
			Content: []wire.ToolCallContent{textContent(text.VisibleLines(question))},
		},
	}
	for i, o := range options {
		r.Options = append(r.Options, wire.PermissionOption{
			OptionId: wire.PermissionOptionId(fmt.Sprint(i + 1)), Name: words.OneLine(o, 200), Kind: wire.PermissionOptionKindAllowOnce,
		})
	}
	r.Options = append(r.Options, wire.PermissionOption{OptionId: "n", Name: "No answer", Kind: wire.PermissionOptionKindRejectOnce})
	chosen, err := st.permission(ctx, t, r)
	var refused *jsonrpc.Error
	if err != nil && !errors.As(err, &refused) || err == nil && chosen == "" {
		return nil, err
	}
	if d, problem := words.Answer(p.Call, chosen); err == nil && chosen != "n" && problem == "" {
		return d, nil
	}
	return words.Dismissed(p.Call.ID), nil
}

// askForm asks a question with a form: answers to choose from, and a field for one's own words.
func (st *session) askForm(ctx context.Context, p inspan.Pending) (event.Body, error) {
	question, options := words.Question(p.Call)
	fields := map[string]formField{"words": {Type: "string", Title: "Your answer"}}
	required := []string{"words"}
	if len(options) > 0 {
		for i := range options {
			options[i] = text.Line(options[i])
		}
		fields["choice"] = formField{Type: "string", Title: "Answer", Enum: options}
		fields["words"] = formField{Type: "string", Title: "Or in your own words"}
		required = nil
	}
	action, content, err := st.elicit(ctx, elicitation{
		CallID: p.Call.ID, Mode: "form", Message: cmp.Or(text.VisibleLines(question), text.VisibleLines(p.Preview)),
		Schema: &formSchema{Type: "object", Properties: fields, Required: required},
	})
	if err != nil {
		return nil, err
	}
	own, _ := content["words"].(string)
	choice, _ := content["choice"].(string)
	d, problem := words.Answer(p.Call, cmp.Or(strings.TrimSpace(own), choice))
	if action == "accept" && problem == "" {
		return d, nil
	}
	return words.Dismissed(p.Call.ID), nil
}

// textContent returns text as the content of a call.
func textContent(text string) wire.ToolCallContent { return wire.ToolContent(wire.TextBlock(text)) }
