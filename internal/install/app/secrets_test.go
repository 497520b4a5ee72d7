package app_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/app"
)

// TestApprovedSecretsAreRead checks that approved reads and changes work, by file tools and inside boxes, and that an
// answer for the session holds for the path and for nothing else.
func TestApprovedSecretsAreRead(t *testing.T) {
	v := newVictim(t)
	if err := os.WriteFile(v.work+"/old.key", []byte("PORT=1\nKEYS ARE HERE\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DEPLOY_TOKEN", "hunterzq77wkk31vx")
	if err := os.WriteFile(v.work+"/hunterzq77wkk31vx.key", []byte("PORT=3\nKEYS ARE HERE\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, prompt string
		scope        event.Scope
		asked        int
		want         []string // of what the calls bring
	}{
		{"once each", "read: old.key\nbash: head -1 old.key", event.ScopeOnce, 2, []string{"PORT=1", "PORT=1"}},
		{
			"for the session", "read: old.key\nbash: head -1 old.key\nbash: python3 -c \"print(open('old.key').read(6))\"\nbash: cat .env",
			event.ScopeSession, 2,
			[]string{"PORT=1", "PORT=1", "PORT=1", "PASSWORD=[secret:"},
		},
		{"named by a secret", "read: hunterzq77wkk31vx.key\ncall: edit_file " +
			"{\"path\":\"hunterzq77wkk31vx.key\",\"old\":\"PORT=3\",\"new\":\"PORT=4\"}", event.ScopeOnce, 2, []string{"PORT=3", "1 replacement"}},
		{
			"changed", "read: old.key\ncall: edit_file {\"path\":\"old.key\",\"old\":\"PORT=1\",\"new\":\"PORT=2\"}\nbash: head -1 old.key",
			event.ScopeOnce, 3,
			[]string{"PORT=1", "1 replacement", "PORT=2"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			asked, said := v.approve(t, tc.prompt, tc.scope)
			if asked != tc.asked || len(said) != len(tc.want) {
				t.Fatalf("asked %d times, %d calls: %q", asked, len(said), said)
			}
			for i, want := range tc.want {
				if !strings.Contains(said[i], want) {
					t.Errorf("call %d: %q, want %q", i, said[i], want)
				}
			}
			if all := strings.Join(said, "\n"); strings.Contains(all, "ENVMATERIAL") {
				t.Error("a secret was not redacted")
			}
		})
	}
}

// approve runs a prompt in mode auto with a person who agrees to everything, and returns the number of questions and
// the results of the calls.
func (v *victim) approve(t *testing.T, prompt string, scope event.Scope) (asked int, said []string) {
	a, err := app.Load("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	s, err := a.Host(app.Options{Model: "script", Mode: "auto"}, func(text string) { t.Log(text) }).New(t.Context(), v.work)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	inputs := []event.Body{event.Say(prompt)}
	for len(inputs) > 0 {
		for e, err := range s.Run(t.Context(), slices.Clone(inputs)...) {
			if err != nil {
				t.Fatal(err)
			}
			if b, ok := e.Body.(event.Ended); ok {
				said = append(said, string(b.Outcome)+" "+b.Parts.Text())
			}
		}
		inputs = inputs[:0]
		for _, w := range s.Status().Waiting {
			asked++
			inputs = append(inputs, event.Decided{Call: w.Call.ID, Question: w.Question, Allow: true, By: "the person", Scope: scope})
		}
	}
	return asked, said
}
