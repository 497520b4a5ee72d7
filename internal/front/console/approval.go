package console

import (
	"fmt"
	"strings"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/view/words"
)

// approval is a question that a person answers with lines: approvals, with a note or an edited command, or the answer
// to a call that asks.
type approval struct {
	inspan.Pending
	lasting bool   // an approval can be remembered for longer than the session, and the command can be edited
	editing bool   // the next line is the command
	command string // as the person may edit it
}

// options returns the possible answers.
func (a *approval) options() []words.Option {
	list := words.Options(a.Rules, a.Offers)
	if !a.lasting {
		list = words.Passing(list)
	}
	return list
}

// canEdit reports whether the person may edit the command before it runs.
func (a *approval) canEdit() bool {
	return a.lasting && a.Agent == "" && a.Parent == "" && words.Consents(a.Root, a.Name(), a.Raised(), a.Calls()).Command != ""
}

// choices returns the words that the arrow keys choose from; nil if the answer is in the person's own words.
func (a *approval) choices() (list []string) {
	if a.IsQuestion || a.editing {
		return nil
	}
	for _, o := range a.options() {
		list = append(list, o.Word)
	}
	if a.canEdit() {
		list = append(list, "edit")
	}
	return list
}

// draft returns the text that the answer begins with: the command that the person edits, or nothing.
func (a *approval) draft() []rune {
	if a.editing {
		return []rune(a.command)
	}
	return []rune{}
}

// offer returns the choices, one a line, so that the person sees everything that the rules cover.
func (p *Person) offer(a approval) string {
	switch {
	case a.editing:
		return "  Run this instead: "
	case a.IsQuestion && a.Preview == "":
		return "  Its client answers it. What you type is the tool's result instead: "
	case a.IsQuestion:
		return "  Your answer (a number or your own words): "
	}
	var b strings.Builder
	options := a.options()
	for i, o := range options {
		fmt.Fprintf(&b, "  %d %s (%s)\n", i+1, o.Name, o.Key)
	}
	if a.canEdit() {
		fmt.Fprintf(&b, "  %d %s (%s)\n", len(options)+1, words.EditName, words.EditKey)
	}
	if p.keyboard != nil {
		b.WriteString("  (the arrows choose, Tab adds a note to a yes)\n")
	}
	return b.String() + "  Allow it? A number, a letter, or say what to do instead: "
}

// parse returns the decision that a line makes, with a note for the model, or describes the fault of the line. The
// decision names no call if the person wants to edit the command: the next line is the command.
func (a *approval) parse(line string) (d event.Decided, note, problem string) {
	switch {
	case a.editing:
		a.editing = false
		d, problem = words.Edited(a.Call, line)
		return d, "", problem
	case a.IsQuestion:
		d, problem = words.Answer(a.Call, line)
		return d, "", problem
	}
	options := a.options()
	if command, edits := words.Edits(options, line); edits && a.canEdit() {
		if command != "" {
			d, problem = words.Edited(a.Call, command)
			return d, "", problem
		}
		if a.command, _ = words.Asked(a.Call); strings.Contains(a.command, "\n") {
			return d, "", "The command has several lines; answer with e: and the new command."
		}
		a.editing = true
		return d, "", ""
	}
	answer, note := words.Noted(options, line)
	d, problem = words.Decision(a.Call.ID, options, answer)
	return d, note, problem
}
