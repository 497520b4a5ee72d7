package words_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/view/words"
)

// TestOptions holds what a question offers, that each answer is reached by its key and by its word,
// and that it allows what it says and nothing else.
func TestOptions(t *testing.T) {
	rules := []string{"write(a)"}
	edits := event.Offer{Reach: event.ReachEdits, Rules: []string{"edits"}}
	host := event.Offer{Reach: event.ReachHost, Rules: []string{"network(x)"}}
	for _, tc := range []struct {
		rules  []string
		offers []event.Offer
		keys   string
		ruled  []string
	}{
		{nil, nil, "yn", nil},
		{rules, nil, "yspan", []string{"rule for s, p and a: write(a)"}},
		{rules, []event.Offer{edits}, "ysepan", []string{
			"rule for s, p and a: write(a)",
			"rule for e: edits (changes by tools to files of the workspace, except guarded ones)",
		}},
		{[]string{"bash(npm install *)"}, []event.Offer{host}, "yshpan", []string{
			"rule for s, p and a: bash(npm install *)", "rule for h: network(x) (whatever reaches it)",
		}},
		{rules, []event.Offer{{Reach: "of a later version", Rules: []string{"*"}}}, "yspan", []string{"rule for s, p and a: write(a)"}},
		{[]string{"write(a\u202eb)"}, nil, "yspan", []string{`rule for s, p and a: write(a\u202eb)`}},
	} {
		options, keys := words.Options(tc.rules, tc.offers), ""
		for _, o := range options {
			keys += o.Key
			for _, line := range []string{o.Key, o.Word, strings.ToUpper(o.Word), o.Key + o.Key} {
				d, problem := words.Decision("1", options, line)
				granted := strings.Join(d.Grants(tc.rules, tc.offers), ", ")
				if problem != "" || d.Allow == (o.Key == "n") || !strings.HasPrefix(o.Rules, granted) && !strings.Contains(granted, "\u202e") ||
					(granted == "") != (o.Rules == "") {
					t.Errorf("%q: %+v grants %q, %q is said, %s", line, d, granted, o.Rules, problem)
				}
			}
		}
		if keys != tc.keys || !slices.Equal(words.Ruled(options), tc.ruled) {
			t.Errorf("%s, want %s: %q", keys, tc.keys, words.Ruled(options))
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
