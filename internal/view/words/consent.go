package words

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Asked returns everything that a call would do, without hidden characters, for the person who decides on it: its
// command, if it has one, and all other arguments as JSON. Either may be empty, or have several lines. Nothing is
// left out, since no one can decide about hidden text, and everything is shown as it will run, however the model
// spelled its JSON. A call with a preview is shown by that instead.
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

// AskedLines returns the same as a list: the command behind a dollar sign, and the other arguments.
func AskedLines(c llm.Call) (list []string) {
	command, others := Asked(c)
	if command != "" {
		list = append(list, "$ "+command)
	}
	if others != "" {
		list = append(list, others)
	}
	return list
}

// plainJSON writes arguments sorted, with no more escapes than JSON needs.
func plainJSON(args map[string]any, indent string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	_ = enc.Encode(args) // they come from JSON
	return strings.TrimSpace(b.String())
}

// Effects returns the places that a call would touch and its text does not show: where it would write, unless a
// preview shows that, and which hosts it would reach. Each is a line without hidden characters.
func Effects(effects []tool.Effect, previewed bool) []string {
	var out []string
	for _, e := range effects {
		switch {
		case e.Kind == tool.Network:
			host := text.Visible(e.Text)
			if host == "" || host == "*" {
				host = "any host"
			}
			out = once(out, "talks to "+host)
		case e.Kind == tool.Write && e.Temporary:
			out = append(out, "changes "+text.Visible(e.Path)+" in the session's own folder")
		case e.Kind == tool.Write && !previewed:
			out = once(out, "changes "+text.Visible(e.Path))
		case e.Kind == tool.Execute:
			if e.Class == tool.Unproven && len(e.Text) > mostRead {
				out = append(out, "is too long to be understood, and may do anything that the sandbox allows")
			}
			if e.Dir != "" {
				out = append(out, "starts in "+text.Visible(e.Dir))
			}
			for line := range strings.Lines(e.Vars) {
				switch line = strings.TrimSuffix(line, "\n"); {
				case strings.HasPrefix(line, "OLDPWD="): // any cd sets it
				case strings.Contains(line, "="):
					out = append(out, "has the variable "+OneLine(text.Visible(line), maxExported))
				default:
					out = append(out, "has no variable "+text.Visible(line))
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

// mostRead is the longest command, in bytes, that is analysed.
const mostRead = 64 << 10

// maxExported is how many columns of a variable are shown.
const maxExported = 200

// Question returns the question of a call for the person, and the offered answers. Both are text by others; the
// question is empty if the arguments hold none.
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

// VisitQuestion returns the question of a server that sends the person to an address, with its answers: the person
// has been there, or won't go. It is not ok to ask if no one could tell where the address leads.
func VisitQuestion(message, address string) (question string, options []string, ok bool) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" ||
		u.User != nil || len(address) > 2000 || text.Visible(address) != address {
		return "", nil, false
	}
	return message + "\nIt wants you to go to " + u.Hostname() + ":\n" + address, []string{"done", "no"}, true
}

// Visit takes a VisitQuestion apart, if the call asks one.
func Visit(c llm.Call) (message, address string, ok bool) {
	question, options := Question(c)
	lines := strings.Split(question, "\n")
	if len(lines) < 3 {
		return "", "", false
	}
	message, address = strings.Join(lines[:len(lines)-2], "\n"), lines[len(lines)-1]
	same, answers, ok := VisitQuestion(message, address)
	return message, address, ok && same == question && slices.Equal(answers, options)
}

// Answer returns the answer that a typed line gives to a call that asks: the option with that number, or else the
// line itself. Problem describes the fault of the line; then there is no answer yet.
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

// Misfit gives the reason why an answer does not fit a call that only accepts its options; empty if it fits.
func Misfit(c llm.Call, answer string) string {
	_, options := Question(c)
	if closed, _ := arguments(c)["closed"].(bool); !closed || Chosen(answer, options) != "" {
		return ""
	}
	return fmt.Sprintf("%q is none of the choices: %s", OneLine(answer, 80), strings.Join(options, ", "))
}

// Chosen returns the choice that an answer makes by its word or its number, possibly with a reason after a
// colon. It is empty if the answer makes none.
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

// Choice returns the key of the option that a line chooses, by key or by word. A repeated key counts as one. It
// is empty for any other text.
func Choice(line string) string {
	line = strings.ToLower(strings.TrimSpace(line))
	for _, word := range choices() {
		if key := word[:1]; line == word || line != "" && strings.Trim(line, key) == "" {
			return key
		}
	}
	return ""
}

// Begins reports whether a text is a choice, or the beginning of a choice's word.
func Begins(text string) bool {
	text = strings.ToLower(text)
	begun := func(word string) bool { return text != "" && strings.HasPrefix(word, text) }
	return Choice(text) != "" || slices.ContainsFunc(choices(), begun)
}

// Edited returns the decision of a person who wants another command in place of that of a call. It allows nothing:
// the call is judged again. Problem describes the fault of the command.
func Edited(c llm.Call, command string) (d event.Decided, problem string) {
	d = by(c.ID)
	args := map[string]any{}
	dec := json.NewDecoder(bytes.NewReader(c.Args))
	dec.UseNumber()
	was, _ := Asked(c)
	switch command = strings.TrimSpace(command); {
	case dec.Decode(&args) != nil || was == "":
		return d, "Only a command can be edited."
	case command == "":
		return d, "The command is empty; n denies it."
	case command == strings.TrimSpace(was):
		return d, "The command is as it was; change it, or Esc to answer."
	}
	args["command"] = command
	d.Args = json.RawMessage(plainJSON(args, ""))
	return d, ""
}

// Dismissed returns the decision of a person who does not want to answer.
func Dismissed(call string) event.Decided { return by(call) }

// TooLate returns the decision on a question that no one answered in time.
func TooLate(call string) event.Decided {
	return event.Decided{Call: call, By: "inspan", Reason: "nobody answered in time"}
}

// AnsweredBy says who has answered a question from elsewhere. It contains text by others.
func AnsweredBy(d event.Decided) string {
	late := TooLate("")
	if !d.Allow && d.Reason == late.Reason && (d.By == late.By || d.By == "the time-out") { // the latter in old logs
		return late.Reason
	}
	switch d.By {
	case by("").By:
		if d.Rule != "" {
			return "answered by " + d.Rule
		}
		return "answered in another terminal"
	case "":
		return "answered elsewhere"
	}
	return "answered by " + d.By
}

func by(call string) event.Decided { return event.Decided{Call: call, By: "the user"} }

// GoOn asks a person whose run was stopped by a limit whether to continue.
func GoOn(s event.Stopped) string {
	if s.Reason == event.ReasonRate {
		return "continue"
	}
	return "continue with twice the limit"
}

// Raised returns the limits with the one that stopped the run doubled. If that was the limit per minute, they are
// unchanged, since it starts over. It returns nil if the run was not stopped by a limit.
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

// Slash splits a typed slash command. It returns false for other text, such as a path.
func Slash(typed string) (name, args string, ok bool) {
	rest, ok := strings.CutPrefix(typed, "/")
	name, args, _ = strings.Cut(rest, " ")
	name, more, _ := strings.Cut(name, "\n")
	if !ok || name == "" || strings.Contains(name, "/") {
		return "", "", false
	}
	return name, strings.TrimSpace(more + " " + args), true
}
