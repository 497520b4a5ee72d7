package words

import (
	"slices"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
)

// Option is one answer to a call that needs consent.
type Option struct {
	Key   string // key that chooses it, the first letter of its word
	Word  string
	Name  string // what it does, in a few words
	Rules string // everything that it allows beyond the call, without hidden characters; empty if nothing

	allow bool
	scope event.Scope
	reach event.Reach
}

// Options returns the answers to a question with these rules and offers, in the order in which to show them.
// All front ends show them, and no other answer allows anything.
func Options(rules []string, offers []event.Offer) []Option {
	out := []Option{{Key: "y", Word: "yes", Name: "yes, once", allow: true}}
	if len(rules) > 0 {
		out = append(out, Option{Key: "s", Word: "session", Name: "for this session", Rules: said(rules), allow: true, scope: event.ScopeSession})
	}
	for _, o := range offers {
		opt := Option{Rules: said(o.Rules), allow: true, scope: event.ScopeSession, reach: o.Reach}
		switch o.Reach {
		case event.ReachEdits:
			opt.Key, opt.Word, opt.Name = "e", "edits", "all edits in this session"
			opt.Rules += " (changes by tools to files of the workspace, except guarded ones)"
		case event.ReachHost:
			opt.Key, opt.Word, opt.Name = "h", "host", "this host in this session"
			opt.Rules += " (whatever reaches it)"
		default: // from a later version
			continue
		}
		out = append(out, opt)
	}
	if len(rules) > 0 {
		out = append(out,
			Option{Key: "p", Word: "project", Name: "for this project", Rules: said(rules), allow: true, scope: event.ScopeProject},
			Option{Key: "a", Word: "always", Name: "always", Rules: said(rules), allow: true, scope: event.ScopeAlways})
	}
	return append(out, Option{Key: "n", Word: "no", Name: "no"})
}

// Given says by which answer, at a call of which tool, a rule was granted for the session.
func Given(d event.Decided, tool string) string {
	how := "s"
	switch d.Reach {
	case event.ReachEdits:
		how = "e, all edits"
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

// Ruled says what the options allow beyond the call, one line for all that allow the same.
func Ruled(options []Option) []string {
	var rules, keys []string
	for _, o := range options {
		switch i := slices.Index(rules, o.Rules); {
		case o.Rules == "":
		case i < 0:
			rules, keys = append(rules, o.Rules), append(keys, o.Key)
		default:
			keys[i] += ", " + o.Key
		}
	}
	for i, r := range rules {
		if at := strings.LastIndex(keys[i], ", "); at > 0 {
			keys[i] = keys[i][:at] + " and " + keys[i][at+2:]
		}
		rules[i] = "rule for " + keys[i] + ": " + r
	}
	return rules
}

// Decision returns what a typed line means as an answer to a call that needs consent: the key or the word of an
// option, or what to do instead. Problem says what is wrong with the line; then nothing is decided.
func Decision(call string, options []Option, line string) (d event.Decided, problem string) {
	d = by(call)
	line = strings.TrimSpace(line)
	key := Choice(line)
	i := slices.IndexFunc(options, func(o Option) bool { return o.Key == key })
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

// choices returns the words that can answer a call. Each begins with its key.
func choices() []string {
	return []string{"yes", "no", "session", "project", "always", "edits", "host"}
}
