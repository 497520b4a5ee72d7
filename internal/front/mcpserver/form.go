package mcpserver

import (
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/words"
)

// Choices of a form.
const (
	allowOnce    = "allow once"
	allowSession = "allow for this session"
	deny         = "deny"
)

// form returns a question as the client shows it: everything that would happen in the message, and one field for
// the choice. A choice for longer than the call is only offered if a rule describes its extent.
func form(p inspan.Pending) *sdk.ElicitParams {
	if p.IsQuestion {
		question, options := words.Question(p.Call)
		message := "inspan asks: " + text.VisibleLines(question) + "\n\nDo not answer with a password or a key."
		for i, o := range options {
			message += fmt.Sprintf("\n%d. %s", i+1, text.Visible(o))
		}
		return &sdk.ElicitParams{Mode: "form", Message: message, RequestedSchema: object("answer", map[string]any{
			"type": "string", "title": "Answer", "description": "Your answer, the number of an option, or your own words",
		})}
	}
	choices := []string{allowOnce, deny}
	if len(p.Rules) > 0 {
		choices = []string{allowOnce, allowSession, deny}
	}
	return &sdk.ElicitParams{Mode: "form", Message: effectsText(p), RequestedSchema: object("decision", map[string]any{
		"type": "string", "title": "Decision", "enum": choices,
	})}
}

func object(name string, field map[string]any) map[string]any {
	return map[string]any{"type": "object", "properties": map[string]any{name: field}, "required": []string{name}}
}

// effectsText returns everything that a call would do.
func effectsText(p inspan.Pending) string {
	p.Reason, p.Preview = words.Asking(p.Root, p.Reason, p.Preview, p.Calls())
	var b strings.Builder
	fmt.Fprintf(&b, "inspan asks whether %s may run (%s):\n", text.Visible(p.Name()), text.Line(p.Reason))
	if p.Preview != "" {
		b.WriteString(text.VisibleLines(p.Preview) + "\n")
	} else {
		for _, line := range words.AskedLines(p.Call) {
			b.WriteString(line + "\n")
		}
	}
	for _, line := range words.Effects(p.Effects, p.Preview != "") {
		b.WriteString("It " + line + "\n")
	}
	if len(p.Rules) > 0 {
		fmt.Fprintf(&b, "%q would allow: %s\n", allowSession, text.Visible(strings.Join(p.Rules, ", ")))
	}
	return strings.TrimRight(b.String(), "\n")
}

// decision returns the meaning of a filled-in form. Problem gives the reason why it can't be used; then the
// decision is a no.
func decision(p inspan.Pending, res *sdk.ElicitResult, by string) (d event.Decided, problem string) {
	d = event.Decided{Call: p.Call.ID, By: by}
	switch {
	case res.Action == "decline":
		return d, ""
	case res.Action == "cancel":
		d.Reason = "the question was dismissed"
		return d, ""
	case res.Action != "accept":
		return d, "the answer can't be read"
	case p.IsQuestion:
		text, _ := res.Content["answer"].(string)
		a, problem := words.Answer(p.Call, text)
		d.Allow, d.Answer = a.Allow, a.Answer
		return d, problem
	}
	switch choice, _ := res.Content["decision"].(string); {
	case choice == allowOnce:
		d.Allow = true
	case choice == allowSession && len(p.Rules) > 0:
		d.Allow, d.Scope = true, event.ScopeSession
	case choice != deny:
		return d, "the answer is none of those that were offered"
	}
	return d, ""
}
