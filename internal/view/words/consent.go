package words

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Asked is all that a call would do, without hidden characters, for whoever
// decides on it: its command, if it has one, and all other arguments as JSON.
// Either may have several lines, and be empty. Nothing is left out, because a
// person can not decide on what is not shown, and it is shown as it will run, however
// the model has spelled its JSON. A call that has a preview is shown by that.
func Asked(c llm.Call) (command, others string) {
	var args map[string]any
	dec := json.NewDecoder(bytes.NewReader(c.Args))
	dec.UseNumber()
	if dec.Decode(&args) != nil || dec.More() {
		return "", text.VisibleLines(string(c.Args))
	}
	if command, _ = args["command"].(string); command == "" {
		return "", text.VisibleLines(plainJSON(args, "  "))
	}
	if delete(args, "command"); len(args) > 0 {
		others = text.Visible(plainJSON(args, ""))
	}
	return text.VisibleLines(command), others
}

// plainJSON writes arguments sorted, with no more escapes than JSON needs.
func plainJSON(args map[string]any, indent string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	_ = enc.Encode(args) // they were read from JSON
	return strings.TrimSpace(b.String())
}

// Effects says what a call would touch beyond what its text shows: where it would
// write, unless a preview shows that, and whom it would talk to. Each is a line
// without hidden characters.
func Effects(effects []tool.Effect, previewed bool) []string {
	var out []string
	for _, e := range effects {
		switch {
		case e.Kind == tool.Network:
			out = append(out, "talks to "+text.Visible(cmp.Or(e.Text, "any host")))
		case e.Kind == tool.Write && e.Own:
			out = append(out, "changes "+text.Visible(e.Path)+" in the session's own folder")
		case e.Kind == tool.Write && !previewed:
			out = append(out, "changes "+text.Visible(e.Path))
		case e.Kind == tool.Execute:
			if e.Class == tool.Unproven && len(e.Text) > mostRead {
				out = append(out, "is too long to be understood, and may do anything that the sandbox allows")
			}
			if e.Dir != "" {
				out = append(out, "starts in "+text.Visible(e.Dir))
			}
			for line := range strings.Lines(e.Vars) {
				if !strings.HasPrefix(line, "OLDPWD=") { // any cd sets it
					out = append(out, exported(strings.TrimSuffix(line, "\n")))
				}
			}
		case e.Kind == tool.Keep:
			out = append(out, "keeps running after the session, with its ports reachable at localhost")
		case e.Kind == tool.External && e.Text != "":
			out = append(out, "would "+text.Visible(e.Text))
		}
	}
	return out
}

// mostRead is how long a command can be of which more is proven, in bytes.
const mostRead = 64 << 10

// maxExported is how much of a variable is shown, in columns.
const maxExported = 200

// exported is a variable that a command gets from earlier ones, or lacks for them.
func exported(kv string) string {
	if !strings.Contains(kv, "=") {
		return "has no variable " + text.Visible(kv)
	}
	return "has the variable " + OneLine(text.Visible(kv), maxExported)
}

// Question is what a call asks the person, and the answers it offers. Both are
// text of others; the question is empty if the arguments hold none.
func Question(c llm.Call) (question string, options []string) {
	args := arguments(c)
	question, _ = args["question"].(string)
	list, _ := args["options"].([]any)
	for _, o := range list {
		if s, ok := o.(string); ok {
			options = append(options, s)
		}
	}
	return question, options
}

// Answer is what a line means that a person typed to a call that asks: the option
// of that number, else the line itself. Problem says what is wrong with it; then
// there is no answer yet.
func Answer(c llm.Call, line string) (d event.Decided, problem string) {
	d = by(c.ID)
	if line = strings.TrimSpace(line); line == "" {
		return d, "Please answer; the run waits for it."
	}
	d.Allow, d.Answer = true, line
	if _, options := Question(c); len(options) > 0 {
		if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(options) {
			d.Answer = options[n-1]
		}
	}
	if problem = Misfit(c, d.Answer); problem != "" {
		return by(c.ID), problem
	}
	return d, ""
}

// Misfit says why an answer is none to a call that takes one of its options only; empty: it is one.
func Misfit(c llm.Call, answer string) string {
	_, options := Question(c)
	if closed, _ := arguments(c)["closed"].(bool); !closed || Chosen(answer, options) != "" {
		return ""
	}
	return fmt.Sprintf("%q is none of the choices: %s", OneLine(answer, 80), strings.Join(options, ", "))
}

// Chosen is the choice that an answer makes: its word or its number, with a reason after a colon if there
// is one. Empty: it makes none.
func Chosen(answer string, choices []string) string {
	word, _, _ := strings.Cut(answer, ":")
	word = strings.TrimSpace(word)
	for _, c := range choices {
		if strings.EqualFold(c, word) || strings.EqualFold(c, strings.TrimSpace(answer)) {
			return c
		}
	}
	if n, err := strconv.Atoi(word); err == nil && n >= 1 && n <= len(choices) {
		return choices[n-1]
	}
	return ""
}

// Choice is the key that a line chooses an option by, or its word does. A key that is pressed
// more than once is that key. It is empty for any other text.
func Choice(line string) string {
	line = strings.ToLower(strings.TrimSpace(line))
	for _, word := range choices() {
		if key := word[:1]; line == word || line != "" && strings.Trim(line, key) == "" {
			return key
		}
	}
	return ""
}

// Begins reports whether a text is a choice, or the beginning of the word for one.
func Begins(text string) bool {
	text = strings.ToLower(text)
	begun := func(word string) bool { return text != "" && strings.HasPrefix(word, text) }
	return Choice(text) != "" || slices.ContainsFunc(choices(), begun)
}

// Dismissed is the decision of a person who does not want to answer.
func Dismissed(call string) event.Decided { return by(call) }

// TooLate is the decision on a call that nobody has decided on in time.
func TooLate(call string) event.Decided {
	return event.Decided{Call: call, By: "the time-out", Reason: "nobody answered in time"}
}

// AnsweredBy says who has answered a question that nobody has answered here. It holds text of
// others.
func AnsweredBy(d event.Decided) string {
	switch d.By {
	case by("").By:
		if d.Rule != "" {
			return "answered by " + d.Rule
		}
		return "answered in another terminal"
	case TooLate("").By:
		return TooLate("").Reason
	case "":
		return "answered elsewhere"
	}
	return "answered by " + d.By
}

func by(call string) event.Decided { return event.Decided{Call: call, By: "the user"} }

// GoOn is what a person may agree to whose run was stopped by a limit.
func GoOn(s event.Stopped) string {
	if s.Reason == event.ReasonRate {
		return "continue"
	}
	return "continue with twice the limit"
}

// Raised are the limits with twice of the one that a run was stopped by, as they are if it was
// that of a minute, which begins anew; nil if it was none.
func Raised(l event.Limits, s event.Stopped) *event.Limits {
	old := l
	switch {
	case s.Reason == event.ReasonRate:
		return &l
	case s.Reason == event.ReasonMaxTurns:
		l.Turns *= 2
	case s.Reason == event.ReasonBudget && s.Cause == "":
		l.Cost *= 2
	case s.Reason == event.ReasonMaxTokens:
		l.Tokens *= 2
	case s.Reason == event.ReasonMaxTime:
		l.Seconds *= 2
	}
	if l == old {
		return nil
	}
	return &l
}

// Slash takes a slash command apart that somebody typed; ok is false if the text is none,
// such as one that begins with a path.
func Slash(typed string) (name, args string, ok bool) {
	rest, ok := strings.CutPrefix(typed, "/")
	name, args, _ = strings.Cut(rest, " ")
	name, more, _ := strings.Cut(name, "\n")
	if !ok || name == "" || strings.Contains(name, "/") {
		return "", "", false
	}
	return name, strings.TrimSpace(more + " " + args), true
}
