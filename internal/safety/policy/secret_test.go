package policy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/safety/policy"
	"github.com/inspan/inspan/tool"
)

// TestSecretsByContent checks that the content of a file decides if it can be read, and otherwise its name.
func TestSecretsByContent(t *testing.T) {
	contents := map[string]places.Content{
		"/w/ca.pem": places.ContentPlain, "/w/new.key": places.ContentNone, "/w/made.key": places.ContentOwn, "/w/old.key": places.ContentSecret,
		"/w/big.pem":          places.ContentUnknown,
		"/w/.git/hooks/x.pem": places.ContentPlain, "/w/.vscode/x.pem": places.ContentNone, "/home/ann/.ssh/x.pem": places.ContentPlain,
		"/home/ann/new.pem": places.ContentNone,
	}
	m := here()
	m.Look = func(path string) places.Content { return contents[path] }
	p := policy.Policy{Map: m}
	for _, tc := range []struct {
		path        string
		read, write tool.Action // in mode edit
	}{
		{"/w/ca.pem", tool.Allow, tool.Allow},
		{"/w/new.key", tool.Allow, tool.Allow},
		{"/w/made.key", tool.Allow, tool.Allow},
		{"/w/old.key", tool.Ask, tool.Ask},
		{"/w/big.pem", tool.Ask, tool.Ask},
		{"/w/.git/hooks/x.pem", tool.Allow, tool.Deny},
		{"/w/.git/x.pem", tool.Deny, tool.Deny},
		{"/w/.vscode/x.pem", tool.Allow, tool.Ask},
		{"/home/ann/.ssh/x.pem", tool.Deny, tool.Deny},
		{"/home/ann/new.pem", tool.Allow, tool.Ask},
		{"/home/ann/.config/inspan/x.pem", tool.Deny, tool.Deny},
	} {
		if v := judge(t, p, call("t", "edit"), []tool.Effect{read(tc.path)}); v.Action != tc.read {
			t.Errorf("read %s: %s (%s), want %s", tc.path, v.Action, v.Reason, tc.read)
		}
		if v := judge(t, p, call("t", "edit"), []tool.Effect{write(tc.path)}); v.Action != tc.write {
			t.Errorf("write %s: %s (%s), want %s", tc.path, v.Action, v.Reason, tc.write)
		}
	}
}

// TestOneLookForOneVerdict checks that a file is looked at once: were it looked at twice, it could be another each
// time.
func TestOneLookForOneVerdict(t *testing.T) {
	looks := 0
	m := here()
	m.Look = func(string) places.Content {
		looks++
		return []places.Content{places.ContentSecret, places.ContentPlain}[min(looks-1, 1)]
	}
	findings := policy.Policy{Map: m}.Findings(call("t", "edit"), []tool.Effect{read("/w/a.pem")})
	if findings[0].Verdict.Action != tool.Ask || findings[0].Effect.Sensitive == "" || looks != 1 {
		t.Errorf("%+v after %d looks", findings[0], looks)
	}
}

// TestRulesThatOpenSecrets checks that only a rule that names exactly the file opens it, and that nothing opens files
// that are secret by their place.
func TestRulesThatOpenSecrets(t *testing.T) {
	effects := []tool.Effect{read("/w/.env")}
	for rule, want := range map[string]tool.Action{
		"read(.env)": tool.Allow, "read(/w/.env)": tool.Allow, "read(sub/../.env)": tool.Allow,
		"read": tool.Ask, "read(**)": tool.Ask, "read(.e*)": tool.Ask, "read_file": tool.Ask, "bash": tool.Ask, "bash(cat *)": tool.Ask,
		"write(.env)": tool.Ask, "*": tool.Ask,
	} {
		r, err := policy.ParseRule(tool.Allow, rule, "user")
		if err != nil {
			t.Fatal(err)
		}
		p := policy.Policy{Map: here(), Rules: []policy.Rule{r}}
		if v := judge(t, p, call("read_file", "auto"), effects); v.Action != want {
			t.Errorf("%s: %s by %s, want %s", rule, v.Action, v.By, want)
		}
		open := tool.Pass{}
		switch {
		case want == tool.Allow:
			open.Read = []string{"/w/.env"}
		case rule == "write(.env)":
			open.Write = []string{"/w/.env"}
		}
		if d := cmp.Diff(open, p.Pass()); d != "" {
			t.Errorf("%s opens: %s", rule, d)
		}
		deny, err := policy.ParseRule(tool.Deny, "read(.env*)", "organisation")
		if err != nil {
			t.Fatal(err)
		}
		p.Rules = append(p.Rules, deny)
		if pass := p.Pass(); len(pass.Read) > 0 {
			t.Errorf("%s opens what another rule denies: %v", rule, pass)
		}
	}
	for _, path := range []string{"/home/ann/.ssh/id_rsa", "/w/.git/x.pem"} {
		r, err := policy.ParseRule(tool.Allow, "read("+path+")", "user")
		if err != nil {
			t.Fatal(err)
		}
		p := policy.Policy{Map: here(), Rules: []policy.Rule{r}}
		if v := judge(t, p, call("read_file", "auto"), []tool.Effect{read(path)}); v.Action != tool.Deny || len(p.Pass().Read) > 0 {
			t.Errorf("%s: %s, open: %v", path, v.Action, p.Pass().Read)
		}
	}
}

// TestAskingForSecrets checks that a general answer for the person does not cover a secret, and that the narrowest rule
// is proposed.
func TestAskingForSecrets(t *testing.T) {
	findings := policy.Policy{Map: places.Map{Root: "/w"}}.Findings(call("bash", "auto"),
		[]tool.Effect{command("x"), read("/w/a b.pem"), write("/w/.env")})
	for i, want := range []string{"", "read(a b.pem)", "write(.env)"} {
		if f := findings[i]; f.Mode || f.Rule != want {
			t.Errorf("%d: %+v, want rule %q", i, f, want)
		}
	}
}
