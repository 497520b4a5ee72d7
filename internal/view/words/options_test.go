package words_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/tool"
)

// TestOptions checks the offered answers of a question, that each is reached by its key and by its word, and that it
// allows exactly what it says.
func TestOptions(t *testing.T) {
	rules := []string{"write(a)"}
	edits := event.Offer{Reach: event.ReachEdits, Rules: []string{"edits"}}
	host := event.Offer{Reach: event.ReachHost, Rules: []string{"network(x)"}}
	for _, tc := range []struct {
		rules  []string
		offers []event.Offer
		keys   string
		names  []string
	}{
		{nil, nil, "yn", nil},
		{rules, nil, "yspan", []string{"Yes, and don't ask again for changes to a in this session", "Yes, and don't ask again for changes to a in this project"}},
		{rules, []event.Offer{edits}, "yswpan", []string{"Yes, and allow edits until this session ends: files of the workspace, except guarded ones"}},
		{[]string{"bash(npm install *)"}, []event.Offer{host}, "yshpan", []string{
			"Yes, and don't ask again for `npm install *` in this session",
			"Yes, and don't ask again for x in this session, whatever reaches it",
			"Yes, and don't ask again for `npm install *` in any project",
		}},
		{rules, []event.Offer{{Reach: "of a later version", Rules: []string{"*"}}}, "yspan", nil},
		{[]string{"write(a\u202eb)", "mcp__x", "read(c)"}, nil, "yspan", []string{
			"Yes, and don't ask again for changes to a\\u202eb, `mcp__x`, `read(c)` in this session",
		}},
	} {
		options, keys := words.Options(tc.rules, tc.offers), ""
		for i, o := range options {
			keys += o.Key
			for _, line := range []string{o.Key, strconv.Itoa(i + 1), o.Word, strings.ToUpper(o.Word), o.Key + o.Key} {
				d, problem := words.Decision("1", options, line)
				granted := strings.Join(d.Grants(tc.rules, tc.offers), ", ")
				if problem != "" || d.Allow == (o.Key == "n") || !strings.HasPrefix(o.Rules, granted) && !strings.Contains(granted, "\u202e") ||
					(granted == "") != (o.Rules == "") {
					t.Errorf("%q: %+v grants %q, %q is said, %s", line, d, granted, o.Rules, problem)
				}
			}
		}
		if keys != tc.keys {
			t.Errorf("%s, want %s", keys, tc.keys)
		}
		for _, name := range tc.names {
			if !slices.ContainsFunc(options, func(o words.Option) bool { return o.Name == name }) {
				t.Errorf("nothing says %q: %+v", name, options)
			}
		}
	}
	for _, d := range []event.Decided{
		{Allow: true, Scope: event.ScopeAlways, Reach: event.ReachEdits}, // never for longer than a session
		{Allow: true, Scope: event.ScopeSession, Reach: event.ReachHost}, // not offered
		{Allow: true, Reach: event.ReachEdits},
		{Scope: event.ScopeSession, Reach: event.ReachEdits},
	} {
		if got := d.Grants(rules, []event.Offer{edits}); got != nil {
			t.Errorf("%+v grants %q", d, got)
		}
	}
}

// TestGranted checks the line that says what was allowed: the rules in full, and nothing that was not granted.
func TestGranted(t *testing.T) {
	rules, offers := []string{"bash(go test *)", "read(\u202e)"}, []event.Offer{{Reach: event.ReachEdits, Rules: []string{"edits"}}}
	for want, d := range map[string]event.Decided{
		`allowed in this session: bash(go test *), read(\u202e)`: {Allow: true, Scope: event.ScopeSession},
		`allowed in this project: bash(go test *), read(\u202e)`: {Allow: true, Scope: event.ScopeProject},
		`allowed in any project: bash(go test *), read(\u202e)`:  {Allow: true, Scope: event.ScopeAlways},
		"allowed in this session: edits":                         {Allow: true, Scope: event.ScopeSession, Reach: event.ReachEdits},
		"":                                                       {Allow: true},
	} {
		if got := words.Granted(d, rules, offers); got != want {
			t.Errorf("%+v: %q, want %q", d, got, want)
		}
	}
	for _, d := range []event.Decided{
		{Scope: event.ScopeSession}, {Allow: true, Scope: event.ScopeSession, Reach: event.ReachHost}, {Allow: true, Scope: "of a later version"},
	} {
		if got := words.Granted(d, rules, offers); got != "" {
			t.Errorf("%+v: %q", d, got)
		}
	}
}

// TestConsents checks that a question says each thing once: a reason that only repeats the call is left out, and any
// other stays.
func TestConsents(t *testing.T) {
	runs := tool.Effect{Kind: tool.Execute, Text: "touch one"}
	writes := tool.Effect{Kind: tool.Write, Path: "/w/one"}
	command := json.RawMessage(`{"command":"touch one"}`)
	for _, tc := range []struct {
		call event.Raised
		want words.Consent
	}{
		{event.Raised{Tool: "bash", Args: command, Reason: `it would run "touch one"`, Effects: []tool.Effect{runs, writes}}, words.Consent{
			Title: "bash asks to run a command", Command: "touch one", Effects: []string{"changes /w/one"},
		}},
		{event.Raised{Tool: "bash", Args: command, Reason: "/w/one is guarded", Effects: []tool.Effect{runs, writes}}, words.Consent{
			Title: "bash asks to run a command", Why: "/w/one is guarded", Command: "touch one", Effects: []string{"changes /w/one"},
		}},
		{event.Raised{Tool: "edit_file", Reason: "it would change /w/one", Preview: "--- one", Effects: []tool.Effect{writes}}, words.Consent{
			Title: "edit_file asks to change one", Preview: "--- one",
		}},
		{event.Raised{Tool: "edit_file", Preview: "--- x", Effects: []tool.Effect{{Kind: tool.Write, Path: "/x\u202e"}}}, words.Consent{
			Title: `edit_file asks to change /x\u202e`, Preview: "--- x",
		}},
		{event.Raised{Tool: "fetch", Args: json.RawMessage(`{}`), Effects: []tool.Effect{{Kind: tool.Network, Text: "h"}}}, words.Consent{
			Title: "fetch asks to talk to h", Others: "{}", Effects: []string{"talks to h"},
		}},
		{event.Raised{Tool: "send", Args: json.RawMessage(`{}`), Effects: []tool.Effect{writes, {Kind: tool.External, Text: "post it"}}}, words.Consent{
			Title: "send asks", Others: "{}", Effects: []string{"changes /w/one", "would post it"},
		}},
	} {
		if diff := cmp.Diff(tc.want, words.Consents("/w", tc.call.Tool, tc.call, nil)); diff != "" {
			t.Errorf("%+v: %s", tc.call, diff)
		}
	}
}
