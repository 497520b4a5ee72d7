package words

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
)

// Option is one answer to a call that needs consent.
type Option struct {
	Key   string // key that chooses it, the first letter of its word
	Word  string
	Name  string // the answer as a sentence, which says what it allows beyond the call; without hidden characters
	Rules string // everything that it allows beyond the call, as rules, without hidden characters; empty if nothing

	allow bool
	scope event.Scope
	reach event.Reach
}

// Options returns the answers to a question with these rules and offers, in the order in which to show them.
// All front ends show them, and no other answer allows anything.
func Options(rules []string, offers []event.Offer) []Option {
	out := []Option{{Key: "y", Word: "yes", Name: "Yes", allow: true}}
	again := func(key, word, where string, scope event.Scope) Option {
		name := "Yes, and don't ask again for " + covered(rules) + " " + where
		return Option{Key: key, Word: word, Name: name, Rules: said(rules), allow: true, scope: scope}
	}
	if len(rules) > 0 {
		out = append(out, again("s", "session", "in this session", event.ScopeSession))
	}
	for _, o := range offers {
		opt := Option{Rules: said(o.Rules), allow: true, scope: event.ScopeSession, reach: o.Reach}
		switch o.Reach {
		case event.ReachEdits:
			opt.Key, opt.Word = "w", "workspace"
			opt.Name = "Yes, and allow edits until this session ends: files of the workspace, except guarded ones"
		case event.ReachHost:
			opt.Key, opt.Word = "h", "host"
			opt.Name = "Yes, and don't ask again for " + covered(o.Rules) + " in this session, whatever reaches it"
		default: // from a later version
			continue
		}
		out = append(out, opt)
	}
	if len(rules) > 0 {
		out = append(out, again("p", "project", "in this project", event.ScopeProject),
			again("a", "always", "in any project", event.ScopeAlways))
	}
	return append(out, Option{Key: "n", Word: "no", Name: "No"})
}

// For returns the scope of an approval as the server's API names it: "once", "session", or a reach; empty for a no.
func (o Option) For() string {
	switch {
	case !o.allow:
		return ""
	case o.reach != "":
		return string(o.reach)
	}
	return cmp.Or(string(o.scope), "once")
}

// covered describes rules in a sentence, all of them and without hidden characters.
func covered(rules []string) string {
	var out []string
	for _, rule := range rules {
		rule = text.Visible(rule)
		kind, about, _ := strings.Cut(rule, "(")
		about, closed := strings.CutSuffix(about, ")")
		switch {
		case closed && kind == "bash":
			out = append(out, "`"+about+"`")
		case closed && kind == "write":
			out = append(out, "changes to "+about)
		case closed && kind == "network":
			out = append(out, about)
		default:
			out = append(out, "`"+rule+"`")
		}
	}
	return strings.Join(out, ", ")
}

// Granted describes exactly the calls that a decision allowed beyond its own, as in
// "allowed in this session: bash(go test *)". It is empty if that is nothing. The rules and offers are those of the
// question.
func Granted(d event.Decided, rules []string, offers []event.Offer) string {
	granted := d.Grants(rules, offers)
	where := map[event.Scope]string{
		event.ScopeSession: "in this session", event.ScopeProject: "in this project", event.ScopeAlways: "in any project",
	}[d.Scope]
	if len(granted) == 0 || where == "" {
		return ""
	}
	return "allowed " + where + ": " + said(granted)
}

// Given names the answer, and the tool of the call, that granted a rule for the session.
func Given(d event.Decided, tool string) string {
	how := "s"
	switch d.Reach {
	case event.ReachEdits:
		how = "w, all edits"
	case event.ReachHost:
		how = "h, the host"
	}
	if tool != "" {
		how += ", at " + OneLine(tool, 60)
	}
	if d.By != by("").By {
		how += ", by " + OneLine(d.By, 40)
	}
	return "approved with " + how
}

func said(rules []string) string { return text.Visible(strings.Join(rules, ", ")) }

// Passing returns the options that hold for the session at most.
func Passing(options []Option) []Option {
	return slices.DeleteFunc(options, func(o Option) bool { return o.scope == event.ScopeProject || o.scope == event.ScopeAlways })
}

// Decision returns the meaning of a typed line as an answer to a call that needs consent: the key, the word or the
// number of an option, or what to do instead. Problem describes the fault of the line; then nothing is decided.
func Decision(call string, options []Option, line string) (d event.Decided, problem string) {
	d = by(call)
	line = strings.TrimSpace(line)
	key := Choice(line)
	i := slices.IndexFunc(options, func(o Option) bool { return o.Key == key })
	if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(options) && len(line) == 1 {
		i = n - 1
	}
	switch {
	case line == "":
		return d, "Please answer; nothing runs before you do."
	case i >= 0:
		o := options[i]
		d.Allow, d.Scope, d.Reach = o.allow, o.scope, o.reach
	case slices.ContainsFunc(options, func(o Option) bool { return o.Key == "s" }) && (key == "p" || key == "a"):
		return d, "From here an approval holds for the session at most: answer y or s."
	case slices.Contains([]string{"s", "p", "a"}, key):
		return d, "No rule is safe for this call, so you can only approve it once: y or n."
	case key != "":
		return d, "This question does not offer " + line + "."
	default:
		d.Reason = line
	}
	return d, ""
}

// Noted splits a line such as "yes: use tabs" into an answer that allows the call and a note for the model. The note is
// empty, and the answer the whole line, if it is not such a line.
func Noted(options []Option, line string) (answer, note string) {
	before, after, found := strings.Cut(line, ":")
	if !found {
		return line, ""
	}
	d, problem := Decision("", options, before)
	if problem != "" || !d.Allow || strings.TrimSpace(after) == "" {
		return line, ""
	}
	return strings.TrimSpace(before), strings.TrimSpace(after)
}

// EditKey is the key of the answer to edit the command before it runs, and EditName that answer as a sentence.
const (
	EditKey  = "e"
	EditName = "Edit the command first"
)

// Edits reports whether a line is the answer to edit the command, which comes after the options. Command is the new
// command if the line has it already, as in "e: go test ./...".
func Edits(options []Option, line string) (command string, edits bool) {
	before, after, _ := strings.Cut(line, ":")
	switch strings.ToLower(strings.TrimSpace(before)) {
	case EditKey, "edit", strconv.Itoa(len(options) + 1):
		return strings.TrimSpace(after), true
	}
	return "", false
}

// choices returns the words that can answer a call. Each begins with its key.
func choices() []string {
	return []string{"yes", "no", "session", "project", "always", "workspace", "host"}
}
