package policy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/safety/policy"
	"github.com/inspan/inspan/tool"
)

// granted is the policy of a session in which rules were allowed.
func granted(t *testing.T, rules ...string) policy.Policy {
	t.Helper()
	p := policy.Policy{Map: here()}
	for _, text := range rules {
		r, err := policy.ParseRule(tool.Allow, text, "session")
		if err != nil {
			t.Fatal(err)
		}
		p.Rules = append(p.Rules, r)
	}
	return p
}

// TestOffers checks what a question offers in addition to the narrowest rules.
func TestOffers(t *testing.T) {
	edits := event.Offer{Reach: event.ReachEdits, Rules: []string{"edits"}}
	hosts := func(rules ...string) event.Offer { return event.Offer{Reach: event.ReachHost, Rules: rules} }
	for _, tc := range []struct {
		name    string
		mode    tool.Mode
		effects []tool.Effect
		want    []event.Offer
	}{
		{"an edit", tool.ModeAsk, []tool.Effect{write("/w/a")}, []event.Offer{edits}},
		{"two edits", tool.ModeAsk, []tool.Effect{read("/w/a"), write("/w/a"), write("/w/b/c")}, []event.Offer{edits}},
		{"an edit that nothing asks about", tool.ModeEdit, []tool.Effect{write("/w/a")}, nil},
		{"an edit outside", tool.ModeAsk, []tool.Effect{write("/srv/x")}, nil},
		{"one inside and one outside", tool.ModeAsk, []tool.Effect{write("/w/a"), write("/srv/x")}, nil},
		{"a sibling of the workspace", tool.ModeAsk, []tool.Effect{write("/wide/a")}, nil},
		{"all of the workspace", tool.ModeAsk, []tool.Effect{write("/w")}, nil},
		{"what editors run", tool.ModeAsk, []tool.Effect{write("/w/.vscode/tasks.json")}, nil},
		{"a secret", tool.ModeAsk, []tool.Effect{write("/w/.env")}, nil},
		{"an edit that also talks", tool.ModeAsk, []tool.Effect{write("/w/a"), asked("example.com")}, nil},
		{"a command that changes", tool.ModeAsk, typed("mkdir -p build"), nil},
		{"a host", tool.ModeAuto, []tool.Effect{host("example.com:443")}, nil}, // that is the narrowest
		{"a command and its host", tool.ModeAuto, typed("git push https://example.com/x"), []event.Offer{hosts("network(example.com)")}},
		{"a registry", tool.ModeAuto, typed("npm install"), []event.Offer{hosts("network(registry.npmjs.org)")}},
		{"any host", tool.ModeAuto, []tool.Effect{host("*")}, nil},
		{"a command that asks itself", tool.ModeAsk, typed("git push https://example.com/x"), nil},
		{"a question", tool.ModeAsk, []tool.Effect{{Kind: tool.Question, Text: "Which?"}}, nil},
		{"nothing", tool.ModeAsk, nil, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := call("bash", tc.mode)
			got := policy.Offers(policy.Policy{Map: here()}.Findings(c, tc.effects))
			if !slices.EqualFunc(got, tc.want, func(a, b event.Offer) bool { return a.Reach == b.Reach && slices.Equal(a.Rules, b.Rules) }) {
				t.Fatalf("%+v, want %+v", got, tc.want)
			}
			for _, o := range got {
				if v := judge(t, granted(t, o.Rules...), c, tc.effects); v.Action != tool.Allow {
					t.Errorf("%v is offered, and then it is %+v", o.Rules, v)
				}
			}
		})
	}
}

// TestChoicesCoverNothingMore attacks rules that a person has allowed: a call that looks the same and is different
// still asks, or is denied.
func TestChoicesCoverNothingMore(t *testing.T) {
	for _, tc := range []struct {
		rule   string
		mode   tool.Mode
		passes [][]tool.Effect
		asks   [][]tool.Effect
	}{
		{"edits", tool.ModeAsk, [][]tool.Effect{{write("/w/a")}, {write("/w/b/c.go")}}, [][]tool.Effect{
			{write("/W/a")},
			{write("/wide/a")},
			{write("/w")},
			{write("/w/.vscode/tasks.json")},
			{write("/w/.VSCODE/tasks.json")},
			{write("/w/.env")},
			{write("/w/.git/hooks/pre-commit")},
			{write("/w/.inspan/settings.toml")},
			{write("/home/ann/.bashrc")},
			{write("/w/a"), {Kind: tool.External}},
			{write("/w/a"), asked("example.com")},
			typed("touch a"),
			typed("echo x > a"),
			typed("rm -rf b"),
		}},
		{"write(a b)", tool.ModeAsk, [][]tool.Effect{{write("/w/a b")}}, [][]tool.Effect{
			{write("/w/a  b")}, {write("/w/a b ")}, {write("/w/A b")}, {write("/w/a b/c")}, {write("/w/x/a b")}, {write("/w/a")},
		}},
		{`write(\*.go)`, tool.ModeAsk, [][]tool.Effect{{write("/w/*.go")}}, [][]tool.Effect{{write("/w/a.go")}, {write("/w/x/*.go")}}},
		{"network(example.com:443)", tool.ModeAuto, [][]tool.Effect{{host("example.com:443")}, {host("EXAMPLE.com:443")}}, [][]tool.Effect{
			{host("www.example.com:443")},
			{host("example.com.evil.org:443")},
			{host("notexample.com:443")},
			{host("example.com:22")},
			{host("example.com")},
			{host("*")},
			{host("")},
		}},
		{"bash(npm install *)", tool.ModeAsk, [][]tool.Effect{typed("npm install"), typed("npm install x"), typed(`npm 'install' "x y"`)}, [][]tool.Effect{
			typed("npm installx"),
			typed("npm install x && npm publish"),
			typed("npm install x; npm publish"),
			typed("npm install x | sh"),
			typed("npm install $(npm publish)"),
			typed("npm install `npm publish`"),
			typed("npm install x & npm publish"),
			typed("npm install x\nnpm publish"),
			typed("npm --prefix /etc install x"),
			typed("'npm install' x"),
			typed("NPM install x"),
			typed("./npm install x"),
			typed("env npm_config_script_shell=/tmp/x npm install x"),
			typed("npm run install"),
			typed("npm install x > /etc/x"),
		}},
	} {
		p := granted(t, tc.rule)
		for _, effects := range tc.passes {
			if v := judge(t, p, call("bash", tc.mode), effects); v.Action != tool.Allow {
				t.Errorf("%s: %+v: %+v", tc.rule, effects, v)
			}
		}
		for _, effects := range tc.asks {
			if v := judge(t, p, call("bash", tc.mode), effects); v.Action == tool.Allow {
				t.Errorf("%s lets pass: %+v", tc.rule, effects)
			}
		}
	}
}

// TestOddNames checks that a name which a rule can't say gets no rule, in place of one for others.
func TestOddNames(t *testing.T) {
	for _, name := range []string{
		" a", "a ", "a\n", "a\u00a0", "a)", "(a", "a*b", "[a]", "{a,b}", `a\b`, "~", "~/a", "a?", "!a", "'a'", `"a"`, "a\xff", "-rf",
		"a\tb", "$x",
	} {
		effects := []tool.Effect{write("/w/" + name)}
		proposed := policy.Proposals(policy.Policy{Map: here()}.Findings(call("edit_file", tool.ModeAsk), effects))
		if len(proposed) == 0 {
			continue
		}
		p := granted(t, proposed...)
		if v := judge(t, p, call("edit_file", tool.ModeAsk), effects); v.Action != tool.Allow {
			t.Errorf("%q: %q does not allow it: %+v", name, proposed, v)
		}
		for _, other := range []string{strings.TrimSpace(name), "a", "b", "ab", "a/b", "x", "a\ufffd", "home/ann/a"} {
			if other != name && judge(t, p, call("edit_file", tool.ModeAsk), []tool.Effect{write("/w/" + other)}).Action == tool.Allow {
				t.Errorf("%q, proposed for %q, opens %q", proposed, name, other)
			}
		}
	}
	for _, line := range []string{"make ''", "make 'a b'", "make \"a\u00a0\"", "npm run 'x)'", "git commit -m '*'", "npm run \"a'b\""} {
		effects := typed(line)
		proposed := policy.Proposals(policy.Policy{Map: here()}.Findings(call("bash", tool.ModeAsk), effects))
		if v := judge(t, granted(t, proposed...), call("bash", tool.ModeAsk), effects); len(proposed) > 0 && v.Action != tool.Allow {
			t.Errorf("%s: %q does not allow it: %+v", line, proposed, v)
		}
	}
}

// TestNoPrefixRunsAnything checks that no offered prefix allows an interpreter, a shell or a program that runs its
// arguments.
func TestNoPrefixRunsAnything(t *testing.T) {
	for _, line := range []string{
		"bash -c x", "sh x", "zsh x", "dash x", "fish -c x", "ksh x", "csh x", "tcsh x", "pwsh x", "busybox sh", "toybox sh", "rbash x",
		"python x", "python3 -m x", "python3.12 x", "pypy3.10 x", "node x", "node22 x", "deno run x", "bun x.ts", "bun run x.ts",
		"ruby3.2 x", "perl5.36 x",
		"php8.2 x", "lua5.4 x", "tclsh8.6 x", "Rscript x", "java X", "kotlin x", "jshell x", "swift repl", "ghc -e x", "runghc x",
		"racket x", "guile x",
		"sudo x", "doas x", "su -c x", "env x", "xargs x", "find . -exec x ;", "timeout 5 x", "nice x", "nohup x", "setsid x", "stdbuf -o0 x",
		"strace x", "ltrace x", "gdb x", "lldb x", "valgrind x", "perf stat x", "watch x", "entr x", "parallel x", "script -c x",
		"expect x", "unshare x", "chroot / x",
		"nsenter x", "flock a x", "time x", "exec x", "eval x", "command x", "source x", ". x", "awk x", "gawk x", "sed e", "ssh h x",
		"docker run x",
		"docker compose run x", "docker compose exec a x", "npx x", "pnpm dlx x", "yarn dlx x", "uvx x", "pipx run x", "go run x",
		"cargo run", "make SHELL=x", "rsync -e x a b",
		"ssh-agent x", "dbus-run-session x", "systemd-run x", "at now", "batch", "taskset 1 x", "chrt 1 x", "ionice x", "firejail x", "bwrap x",
		"proot x", "fakeroot x", "xvfb-run x", "wine x", "qemu-x86_64 x", "rlwrap x", "direnv exec . x", "mise exec x", "asdf exec x",
		"nix-shell --run x",
		"poetry run x", "pipenv run x", "hatch run x", "tox exec x", "rye run x", "pixi run x", "gh alias set x", "git -c alias.x=!y x",
		"mongosh x", "redis-cli eval x", "vim x", "emacs x", "less x", "ftp x", "nc -e x", "ncat -e x", "telnet x", "gosu a x",
		"runuser a x", "setpriv x", "capsh -- x",
	} {
		effects := typed(line)
		for _, rule := range policy.Proposals(policy.Policy{Map: here()}.Findings(call("bash", tool.ModeAsk), effects)) {
			if strings.HasPrefix(rule, "bash(") && strings.HasSuffix(rule, " *)") && !strings.HasPrefix(rule, "bash(x ") {
				t.Errorf("%s: %s", line, rule)
			}
		}
	}
}
