package policy_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/safety/policy"
	"github.com/inspan/inspan/internal/safety/shell"
	"github.com/inspan/inspan/tool"
)

func here() places.Map {
	return places.Map{
		Root: "/w", Home: "/home/ann", Settings: "/home/ann/.config/inspan",
		State: []string{"/home/ann/.local/state/inspan"},
	}.Indexed()
}

func call(name string, mode tool.Mode) *tool.Call {
	return &tool.Call{
		Name: name, Mode: mode, Cwd: "/w", Args: json.RawMessage(`{}`),
		Env: tool.Env{Root: "/w", Walls: tool.Walls{Read: true, Workspace: true, Hosts: true}},
	}
}

func read(p string) tool.Effect    { return tool.Effect{Kind: tool.Read, Path: p} }
func write(p string) tool.Effect   { return tool.Effect{Kind: tool.Write, Path: p} }
func command(c string) tool.Effect { return tool.Effect{Kind: tool.Execute, Text: c} }
func host(h string) tool.Effect    { return tool.Effect{Kind: tool.Network, Text: h} }
func asked(h string) tool.Effect   { return tool.Effect{Kind: tool.Network, Text: h, FromArgument: true} }

// typed is a call of bash with its effects.
func typed(line string) []tool.Effect {
	return shell.Explain(line, shell.Place{Root: "/w", Cwd: "/w", Home: "/home/ann"}).Calls()
}

func judge(t *testing.T, p policy.Policy, c *tool.Call, effects []tool.Effect) tool.Verdict {
	t.Helper()
	v, err := p.Judge(t.Context(), c, effects)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestModes(t *testing.T) {
	allow, ask, deny := tool.Allow, tool.Ask, tool.Deny
	for _, tc := range []struct {
		name                        string
		effects                     []tool.Effect
		plan, ask, edit, auto, yolo tool.Action
	}{
		{"nothing", nil, allow, allow, allow, allow, allow},
		{"read inside", []tool.Effect{read("/w/a")}, allow, allow, allow, allow, allow},
		{"read outside", []tool.Effect{read("/etc/hosts")}, allow, allow, allow, allow, allow},
		{"read keys", []tool.Effect{read("/home/ann/.ssh/id_rsa")}, deny, deny, deny, deny, allow},
		{"read secrets in the workspace", []tool.Effect{read("/w/.env")}, ask, ask, ask, ask, allow},
		{"change secrets in the workspace", []tool.Effect{write("/w/.env")}, deny, ask, ask, ask, allow},
		{"remove a stale lock", []tool.Effect{write("/w/.git/index.lock")}, deny, ask, allow, allow, allow},
		{"a lock that is a hook", []tool.Effect{write("/w/.git/hooks/x.lock")}, deny, deny, deny, deny, allow},
		{"write inside", []tool.Effect{write("/w/a")}, deny, ask, allow, allow, allow},
		{"write a file whose name starts with dots", []tool.Effect{write("/w/..a")}, deny, ask, allow, allow, allow},
		{"write a sibling with the same prefix", []tool.Effect{write("/wide/a")}, deny, ask, ask, ask, allow},
		{"write what editors run", []tool.Effect{write("/w/.vscode/tasks.json")}, deny, ask, ask, ask, allow},
		{"write a hook", []tool.Effect{write("/w/.git/hooks/pre-commit")}, deny, deny, deny, deny, allow},
		{"write a shell's start", []tool.Effect{write("/home/ann/.bashrc")}, deny, deny, deny, deny, allow},
		{"write our settings", []tool.Effect{write("/home/ann/.config/inspan/config.toml")}, deny, deny, deny, deny, deny},
		{"read our sessions", []tool.Effect{read("/home/ann/.local/state/inspan/sessions/x")}, deny, deny, deny, deny, deny},
		{"write outside", []tool.Effect{write("/etc/hosts")}, deny, ask, ask, ask, allow},
		{"proven read", typed("ls -la | head"), allow, allow, allow, allow, allow},
		{"proven read of keys", typed("cat ~/.ssh/id_rsa"), deny, deny, deny, deny, allow},
		{"proven read of our sessions", typed("cat ~/.local/state/inspan/sessions/x"), deny, deny, deny, deny, allow},
		{"proven change", typed("mkdir -p build"), deny, ask, allow, allow, allow},
		{"unproven", typed("go test ./..."), deny, ask, ask, allow, allow},
		{"read and unproven", typed("ls && go test ./..."), deny, ask, ask, allow, allow},
		{"over the network", typed("curl https://example.com"), deny, ask, ask, ask, allow},
		{"network", []tool.Effect{host("x.org")}, deny, ask, ask, ask, allow},
		{"not understood", []tool.Effect{{Kind: tool.External}}, deny, ask, ask, ask, allow},
		{"of no kind", []tool.Effect{{}}, deny, ask, ask, ask, allow},
		{"the strictest counts", []tool.Effect{read("/w/a"), write("/w/a"), write("/x")}, deny, ask, ask, ask, allow},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := policy.Policy{Map: here()}
			for mode, want := range map[tool.Mode]tool.Action{"plan": tc.plan, "ask": tc.ask, "edit": tc.edit, "auto": tc.auto, "yolo": tc.yolo} {
				if v := judge(t, p, call("t", mode), tc.effects); v.Action != want {
					t.Errorf("mode %s: %s (%s), want %s", mode, v.Action, v.Reason, want)
				}
			}
			if v := judge(t, p, call("t", "careless"), tc.effects); v.Action != deny {
				t.Errorf("an unknown mode must deny, not %s", v.Action)
			}
		})
	}
}

// TestWithoutWalls checks that more calls ask if there is no sandbox.
func TestWithoutWalls(t *testing.T) {
	for _, mode := range []tool.Mode{"plan", "ask", "edit", "auto"} {
		c := call("bash", mode)
		c.Env.Walls = tool.Walls{}
		for _, line := range []string{"ls", "mkdir x", "go test ./..."} {
			if v := judge(t, policy.Policy{Map: here()}, c, typed(line)); v.Action == tool.Allow {
				t.Errorf("mode %s: %s runs unasked without a sandbox", mode, line)
			}
		}
	}
}

// TestAllHosts checks that a question about one host of a call names all of them.
func TestAllHosts(t *testing.T) {
	effects := []tool.Effect{command("./x"), asked("a.example"), asked("b.example"), asked("*")}
	v := judge(t, policy.Policy{Map: here()}, call("bash", tool.ModeAuto), effects)
	if v.Action != tool.Ask || v.Reason != "it would talk to a.example, b.example, other machines" {
		t.Errorf("%s: %s", v.Action, v.Reason)
	}
}

func TestNoWorkspaceMeansNothingIsInside(t *testing.T) {
	c := call("t", "auto")
	c.Env.Root = ""
	if v := judge(t, policy.Policy{}, c, []tool.Effect{write("/w/a")}); v.Action != tool.Ask {
		t.Errorf("action %s", v.Action)
	}
}

// TestOwn checks that an unasked write goes to the session's own folder, and one that a person has approved or named to
// the machine's.
func TestOwn(t *testing.T) {
	for _, tc := range []struct {
		mode tool.Mode
		rule string
		want bool
	}{
		{"auto", "bash", true},
		{"auto", "write", true},
		{"auto", "write(/tmp/**)", false},
		{"auto", "write(/var/**)", true},
		{"edit", "bash", true},
		{"ask", "bash", false},
		{"ask", "write(/tmp/**)", false},
	} {
		c := call("bash", tc.mode)
		c.Env.Temporary = func(path string, _ bool) bool { return strings.HasPrefix(path, "/tmp/") }
		p := rule(t, tool.Allow, tc.rule)
		got := false
		for _, e := range policy.Judged(p.Findings(c, typed("true > /tmp/x.log"))) {
			got = got || e.Temporary
		}
		if got != tc.want {
			t.Errorf("mode %s with %s: own: %t", tc.mode, tc.rule, got)
		}
	}
}

// TestTemporary checks that a session's own temporary folder counts as its workspace: all of it for commands, and for
// files everything that is not the machine's.
func TestTemporary(t *testing.T) {
	allow, ask, deny := tool.Allow, tool.Ask, tool.Deny
	own := func(path string, boxed bool) bool {
		return strings.HasPrefix(path, "/tmp/") && (boxed || path != "/tmp/theirs")
	}
	for _, tc := range []struct {
		name                        string
		effects                     []tool.Effect
		plan, ask, edit, auto, yolo tool.Action
		without                     tool.Action // in auto, if the session has no such folder
	}{
		{"a command", typed("go build ./... > /tmp/x.log"), deny, ask, ask, allow, allow, ask},
		{"a command over what the machine has", typed("go build ./... > /tmp/theirs"), deny, ask, ask, allow, allow, ask},
		{"a tool", []tool.Effect{write("/tmp/x")}, deny, ask, allow, allow, allow, ask},
		{"a tool on what the machine has", []tool.Effect{write("/tmp/theirs")}, deny, ask, ask, ask, allow, ask},
		{"a secret", []tool.Effect{write("/tmp/.ssh/id_rsa")}, deny, deny, deny, deny, allow, deny},
		{"elsewhere", typed("true > /var/log/x"), deny, ask, ask, ask, allow, ask},
		{"a server of the session", typed("curl -s localhost:8123"), deny, ask, ask, allow, allow, allow},
		{"another machine", typed("curl -s example.com"), deny, ask, ask, ask, allow, ask},
		{
			"outside", append(typed("curl -s localhost:8123"), tool.Effect{Kind: tool.External, Text: "run it outside"}),
			deny, ask, ask, ask, allow, ask,
		},
		{"this machine for a tool", []tool.Effect{host("localhost")}, deny, ask, ask, ask, allow, ask},
	} {
		for mode, want := range map[tool.Mode]tool.Action{
			"plan": tc.plan, "ask": tc.ask,
			"edit": tc.edit, "auto": tc.auto, "yolo": tc.yolo, "": tc.without,
		} {
			c := call("bash", mode)
			c.Env.Temporary = own
			if mode == "" {
				c.Mode, c.Env.Temporary = "auto", nil
			}
			if v := judge(t, policy.Policy{Map: here()}, c, tc.effects); v.Action != want {
				t.Errorf("%s, mode %q: %s (%s), want %s", tc.name, mode, v.Action, v.Reason, want)
			}
		}
	}
	c := call("bash", "auto")
	c.Env.Walls = tool.Walls{Read: true}
	if v := judge(t, policy.Policy{Map: here()}, c, typed("curl -s localhost:8123")); v.Action != ask {
		t.Errorf("without walls: %s", v.Action)
	}
	if v := policy.AskBeforeLeak(true, true, "auto", typed("curl -s localhost:8123")); v.Action == ask {
		t.Error("the session's own servers are taken for a way out")
	}
}

func TestCombine(t *testing.T) {
	v := func(a tool.Action) tool.Verdict { return tool.Verdict{Action: a, By: string(a)} }
	for _, tc := range []struct {
		in   []tool.Verdict
		want tool.Action
	}{
		{nil, tool.Ask},
		{[]tool.Verdict{v(tool.Abstain)}, tool.Ask},
		{[]tool.Verdict{v(tool.Abstain), v(tool.Allow)}, tool.Allow},
		{[]tool.Verdict{v(tool.Allow), v(tool.Ask)}, tool.Ask},
		{[]tool.Verdict{v(tool.Deny), v(tool.Allow), v(tool.Ask)}, tool.Deny},
		{[]tool.Verdict{v(tool.Allow), v("nonsense")}, "nonsense"},
	} {
		if got := policy.Combine(tc.in); got.Action != tc.want {
			t.Errorf("Combine(%v) = %s, want %s", tc.in, got.Action, tc.want)
		}
	}
}

// rule is a policy of one rule.
func rule(t *testing.T, action tool.Action, text string) policy.Policy {
	t.Helper()
	r, err := policy.ParseRule(action, text, "")
	if err != nil {
		t.Fatal(err)
	}
	return policy.Policy{Map: here(), Rules: []policy.Rule{r}}
}

// kept is a command that is to outlive the session.
func kept(line string) []tool.Effect { return []tool.Effect{{Kind: tool.Keep, Text: line}} }

func TestRules(t *testing.T) {
	for _, tc := range []struct {
		rule    string
		tool    string
		effects []tool.Effect
		allows  bool // as an allow rule, in mode ask
		denies  bool // as a deny rule, in mode yolo
	}{
		{"bash", "bash", typed("rm -rf /"), true, true},
		{"bash(go test *)", "bash", typed("go test ./..."), true, true},
		{"bash(go test *)", "bash", typed("go test"), true, true},
		{"bash(go test)", "bash", typed("go test"), true, true},
		{"bash(go test)", "bash", typed("go test ./..."), false, false},
		{"bash(go test *)", "bash", typed("go testing"), false, false},
		{"bash(go test *)", "bash", typed("go vet ./..."), false, false},
		{"bash(go *)", "bash", typed("go vet ./..."), true, true},
		{"bash(go *)", "bash", typed("go run ./evil"), false, true}, // it runs anything
		{"bash(go test *)", "bash", typed("ls && go test . | head"), true, true},
		{"bash(go test *)", "bash", typed("go test . ; rm -rf /"), false, true},
		{"bash(go test *)", "bash", typed("go test $(rm -rf /)"), false, true},
		{"bash(go test *)", "bash", typed("go test .\nrm -rf /"), false, true},
		{"bash(go test *)", "bash", typed("go test . > /etc/passwd"), false, true},
		{"bash(go test *)", "bash", typed("GOFLAGS=-exec=evil go test ."), false, true},
		{"bash(go test *)", "bash", typed("./go test ."), false, true},
		{"bash(go test *)", "bash", typed("timeout 60 go test ./..."), true, true},
		{"bash(git push *)", "bash", typed("git -C sub push origin"), false, true},
		{"bash(git push *)", "bash", typed("/usr/bin/git push"), false, true},
		{"bash(git push *)", "bash", typed(`g"it" pu''sh`), true, true},
		{"bash(git push *)", "bash", typed("sh -c 'git push'"), true, true},
		{"bash(git push *)", "bash", typed("true; { git push; }"), true, true},
		{"bash(git push *)", "bash", typed("git status"), true, false}, // a read runs anyhow
		{"bash(git push *)", "bash", typed("git checkout push"), false, false},
		{"bash(*rm *)", "bash", typed("ls && rm -rf x"), false, true},
		{"bash(*git push*)", "bash", typed("git push --force"), false, true},
		{"bash('./my tool' *)", "bash", typed("'./my tool' x"), true, true},
		{"bash(npm run test:*)", "bash", typed("npm run test:unit"), true, true},
		{"bash(make)", "bash", typed("make"), true, true},
		{"bash(prettier src/*)", "bash", typed("prettier src/../secret"), false, true},
		{"bash(prettier ../*)", "bash", typed("prettier ../x"), true, true},
		// What the call asks for in an argument, no rule for words covers.
		{"bash(go test *)", "bash", append(typed("go test"), asked("93.184.215.14")), false, true},
		{"bash(go test *)", "bash", append(typed("go test"), asked("*")), false, true},
		{"bash(*)", "bash", append(typed("go test"), asked("example.com")), false, true},
		{"bash", "bash", append(typed("go test"), asked("example.com")), false, true},
		{"bash(curl *)", "bash", typed("curl https://example.com"), false, true}, // what it says is not what it does
		{"bash(example.com)", "bash", append(typed("true"), asked("example.com")), false, false},
		{"network(example.com)", "bash", append(typed("true"), asked("example.com")), true, true},
		{"keep(*)", "bash", kept("cd web && npm start"), true, true},
		{"keep", "bash", kept("cd web && npm start"), true, true},
		{"keep(npm start *)", "bash", kept("npm start -- --port 1"), true, true},
		{"keep(npm start *)", "bash", kept("npm start x; rm -rf /"), false, true},
		{"keep(npm start *)", "bash", kept("npm run build"), false, false},
		{"keep(*npm start*)", "bash", kept("cd web && npm start"), false, true},
		{"bash(npm start *)", "bash", kept("npm start x"), false, false}, // to run it is another thing
		{"keep(npm start *)", "bash", typed("npm start x"), false, false},
		{"bash(make)", "bash", typed("make > log"), false, true},
		{"execute(go vet *)", "bash", typed("go vet ."), true, true},
		{"edit_file(src/**)", "edit_file", []tool.Effect{write("/w/src/a/b.go")}, true, true},
		{"edit_file(src/**)", "edit_file", []tool.Effect{write("/w/other.go")}, false, false},
		{"write(src/**)", "edit_file", []tool.Effect{write("/w/src/x")}, true, true},
		{"write(src/gen/**)", "delete_file", []tool.Effect{write("/w/src")}, false, true},
		{"write(~/notes/*)", "edit_file", []tool.Effect{write("/home/ann/notes/a")}, true, true},
		{"read(/srv/**)", "read_file", []tool.Effect{read("/srv/x")}, true, true},
		{"*_file(src/*)", "write_file", []tool.Effect{write("/w/src/a")}, true, true},
		{"write", "bash", typed("mkdir a"), false, true}, // the command is not covered
		{"network(*.example.com)", "fetch", []tool.Effect{host("api.example.com")}, true, true},
		{"network(*.example.com)", "fetch", []tool.Effect{host("example.com.evil.org")}, false, false},
		{"network(*.example.com)", "fetch", []tool.Effect{host("evilexample.com")}, false, false},
		{"network(example.com)", "fetch", []tool.Effect{host("EXAMPLE.com.:443")}, true, true},
		{"network(example.com:443)", "fetch", []tool.Effect{host("example.com:443")}, true, true},
		{"network(example.com:443)", "fetch", []tool.Effect{host("example.com:22")}, false, false},
		{"network([2001:db8::1])", "fetch", []tool.Effect{host("[2001:DB8:0::1]:443")}, true, true},
		{"network(example.com)", "fetch", []tool.Effect{host("EXAMPLE.com:443")}, true, true},
		{"bash(curl https://example.com/*)", "bash", typed("curl https://example.com/"), true, true},
		{"bash(curl https://example.com/*)", "bash", typed("curl https://example.com.evil.org/"), false, false},
		{"*", "anything", []tool.Effect{{Kind: tool.External}}, true, true},
		{"external", "anything", []tool.Effect{{Kind: tool.External}}, true, true},
		{"t(x)", "t", []tool.Effect{{Kind: tool.External}}, false, false},
		{"t(/w/a)", "t", []tool.Effect{write("/w/a"), write("/w/b")}, false, true},
		{"bash(ls *)", "bash", []tool.Effect{command("ls -l")}, true, true}, // of a tool that knows no words
		{"bash(ls *)", "bash", []tool.Effect{command("ls; rm x")}, false, false},
	} {
		name := tc.rule + " " + tc.tool
		if len(tc.effects) > 0 {
			name += " " + tc.effects[0].Text + tc.effects[0].Path
		}
		t.Run(name, func(t *testing.T) {
			if v := judge(t, rule(t, tool.Allow, tc.rule), call(tc.tool, "ask"), tc.effects); (v.Action == tool.Allow) != tc.allows {
				t.Errorf("allow rule: %s by %s: %s", v.Action, v.By, v.Reason)
			}
			if v := judge(t, rule(t, tool.Deny, tc.rule), call(tc.tool, "yolo"), tc.effects); (v.Action == tool.Deny) != tc.denies {
				t.Errorf("deny rule: %s by %s: %s", v.Action, v.By, v.Reason)
			}
			if v := judge(t, rule(t, tool.Ask, tc.rule), call(tc.tool, "yolo"), tc.effects); (v.Action == tool.Ask) != tc.denies {
				t.Errorf("ask rule: %s by %s: %s", v.Action, v.By, v.Reason)
			}
		})
	}
}

// TestDenyWhatCanNotBeKnown checks that a command which might be the denied one asks, also where everything else runs.
func TestDenyWhatCanNotBeKnown(t *testing.T) {
	p := rule(t, tool.Deny, "bash(git push *)")
	for line, want := range map[string]tool.Action{
		`$TOOL push`: tool.Ask, `git "$verb"`: tool.Ask, `eval "$x"`: tool.Ask, `bash script.sh "$x"`: tool.Ask,
		`terraform apply "$x"`: tool.Allow, `for f in *; do cat "$f"; done`: tool.Allow,
	} {
		if v := judge(t, p, call("bash", "yolo"), typed(line)); v.Action != want {
			t.Errorf("%s: %s (%s), want %s", line, v.Action, v.Reason, want)
		}
	}
}

// TestDenyHowever checks that a deny rule finds a command at any place in a line, however long.
func TestDenyHowever(t *testing.T) {
	p := rule(t, tool.Deny, "bash(git push *)")
	for name, line := range map[string]string{
		"at the end":  strings.Repeat("true && ", 500) + "git push",
		"nested":      strings.Repeat("( ", 50) + "git push" + strings.Repeat(" )", 50),
		"substituted": "echo $(echo $(git push))", "piped": "yes | git push", "in a function": "f() { git push; }; f",
		"in a loop": "while true; do git push; done",
		"in xargs":  "echo origin | xargs git push", "in find": `find . -exec git push \;`, "behind env": "env -i A=1 git push",
		"behind sudo":       "sudo -u x git push",
		"in the background": "git push &", "in a here-document": "bash <<E\ngit push\nE",
		"after an unreadable part": "case x in x) git push;; esac",
	} {
		if v := judge(t, p, call("bash", "yolo"), typed(line)); v.Action != tool.Deny {
			t.Errorf("%s: %s (%s)", name, v.Action, v.Reason)
		}
	}
}

// TestDenyFileHowever checks that a rule that denies or asks about a file by its path finds every way to run that file,
// and that a rule that allows it covers no further spelling.
func TestDenyFileHowever(t *testing.T) {
	for _, tc := range []struct {
		rule, line string
		deny       tool.Action // in mode auto
		allowed    bool        // by an allow rule, in mode ask
	}{
		{"./deploy.sh *", "./deploy.sh", tool.Deny, true},
		{"./deploy.sh *", "./deploy.sh prod", tool.Deny, true},
		{"./deploy.sh *", "env ./deploy.sh", tool.Deny, true},
		{"./deploy.sh *", "sh -c ./deploy.sh", tool.Deny, true},
		{"./deploy.sh *", "sh deploy.sh", tool.Deny, false},
		{"./deploy.sh *", "bash ./deploy.sh prod", tool.Deny, false},
		{"./deploy.sh *", "/bin/bash -x -o pipefail deploy.sh", tool.Deny, false},
		{"./deploy.sh *", "bash -eo pipefail +x deploy.sh", tool.Deny, false},
		{"./deploy.sh *", "bash --norc -- deploy.sh", tool.Deny, false},
		{"./deploy.sh *", "bash - deploy.sh", tool.Deny, false},
		{"./deploy.sh *", "bash --rcfile x deploy.sh", tool.Deny, false},
		{"./deploy.sh *", "zsh /w/deploy.sh", tool.Deny, false},
		{"./deploy.sh *", "timeout 5 sh deploy.sh", tool.Deny, false},
		{"./deploy.sh *", "sh -c 'sh deploy.sh'", tool.Deny, false},
		{"./deploy.sh *", "source deploy.sh", tool.Deny, false},
		{"./deploy.sh *", "source -- deploy.sh", tool.Deny, false},
		{"./deploy.sh *", ". ./deploy.sh", tool.Deny, false},
		{"./deploy.sh *", "/w/deploy.sh", tool.Deny, false},
		{"./deploy.sh *", "./sub/../deploy.sh", tool.Deny, false},
		{"./deploy.sh *", "../w/deploy.sh", tool.Deny, false},
		{"./deploy.sh *", ".//deploy.sh", tool.Deny, false},
		{"./deploy.sh *", "cd sub && sh deploy.sh", tool.Deny, false},
		{"./deploy.sh *", "cd sub && ../deploy.sh", tool.Ask, false},
		{"./deploy.sh *", "env -C sub sh ../deploy.sh", tool.Ask, false},
		{"./deploy.sh *", `../w/deploy.sh "$x"`, tool.Ask, false},
		{"./deploy.sh *", `sh deploy.sh "$x"`, tool.Ask, false},
		{"./deploy.sh prod", "sh deploy.sh -v prod", tool.Deny, false},
		{"scripts/deploy.sh *", "sh ./scripts/deploy.sh", tool.Deny, false},
		{"scripts/deploy.sh *", "cd scripts && ./deploy.sh", tool.Ask, false},
		{"scripts/*.sh", "bash ./scripts/deploy.sh", tool.Deny, false},
		{"/w/deploy.sh *", "./deploy.sh", tool.Deny, false},
		{"/w/deploy.sh *", "sh deploy.sh", tool.Deny, false},
		{"~/bin/deploy.sh *", "sh ~/bin/deploy.sh", tool.Deny, false},
		// Other files, other arguments, and a file that only is an argument.
		{"./deploy.sh *", "sh test.sh", tool.Allow, false},
		{"./deploy.sh *", "sh sub/deploy.sh", tool.Allow, false},
		{"./deploy.sh *", "/opt/deploy.sh", tool.Allow, false},
		{"./deploy.sh *", "cd sub && sh test.sh", tool.Allow, false},
		{"./deploy.sh *", `./test.sh "$x"`, tool.Allow, false},
		{"./deploy.sh *", "cat deploy.sh", tool.Allow, true},
		{"./deploy.sh *", "sh test.sh deploy.sh", tool.Allow, false},
		{"./deploy.sh prod", "sh deploy.sh test", tool.Allow, false},
		{"deploy.sh *", "sh deploy.sh", tool.Allow, false},
	} {
		p := rule(t, tool.Deny, "bash("+tc.rule+")")
		if v := judge(t, p, call("bash", "auto"), typed(tc.line)); v.Action != tc.deny {
			t.Errorf("deny %s: %s: %s (%s), want %s", tc.rule, tc.line, v.Action, v.Reason, tc.deny)
		}
		p = rule(t, tool.Ask, "bash("+tc.rule+")")
		if v := judge(t, p, call("bash", "auto"), typed(tc.line)); (v.Action == tool.Allow) != (tc.deny == tool.Allow) {
			t.Errorf("ask %s: %s: %s (%s)", tc.rule, tc.line, v.Action, v.Reason)
		}
		p = rule(t, tool.Allow, "bash("+tc.rule+")")
		if v := judge(t, p, call("bash", "ask"), typed(tc.line)); (v.Action == tool.Allow) != tc.allowed {
			t.Errorf("allow %s: %s: %s (%s)", tc.rule, tc.line, v.Action, v.Reason)
		}
	}
	c := call("bash", "auto")
	c.Cwd = "/w/sub"
	for line, want := range map[string]tool.Action{"sh ../deploy.sh": tool.Deny, "sh x/deploy.sh": tool.Allow} {
		if v := judge(t, rule(t, tool.Deny, "bash(./deploy.sh *)"), c, typed(line)); v.Action != want {
			t.Errorf("in a folder below: %s: %s (%s), want %s", line, v.Action, v.Reason, want)
		}
	}
}

// TestDenyWhatShellsRun checks that a deny rule finds commands that the shell, other shells and git would run, and asks
// if they can't be seen.
func TestDenyWhatShellsRun(t *testing.T) {
	p := rule(t, tool.Deny, "bash(git push *)")
	for want, lines := range map[tool.Action][]string{
		tool.Deny: {
			"eval git push", `eval "git push" origin`, `eval 'eval "git push"'`, "trap 'git push' EXIT", "trap -- 'git push' 0",
			"alias p='git push'; p", "env -S 'git push'", "env -iS 'git push' origin", "env --split-string='git push'",
			"env -C sub git push", "source /dev/stdin <<<'git push'", ". /dev/stdin <<E\ngit push\nE", "flock x git push", "flock x -c 'git push'",
			"flock -n x git push", "zsh -c 'git push'", "fish -c 'git push'",
			"bash -x -c 'git push'", "ksh -xc 'git push'", "su -c 'git push'", "su ann -c 'git push'", "runuser -u x -c 'git push'",
			"script -c 'git push' log", "script -qc 'git push'", "watch -n 5 'git push'", "watch 'git push'",
			"parallel git ::: push", "parallel 'git {}' ::: pull push", "parallel ::: 'git push'", "mapfile -C 'git push' -c 1 a",
			"readarray -C'git push' a", "git --attr-source HEAD push", "git --shallow-file x push", "git -c alias.p=push p",
			"git -c alias.p='push origin' p", "git -c alias.p='!git push' p", "git -c core.pager='git push' -p log",
			"git -c core.sshCommand='git push' fetch", "git rebase --exec 'git push' main", "git rebase -x 'git push' main",
			"git rebase --exec='git push' main", "git bisect run git push", "git submodule foreach git push",
			"git submodule foreach --recursive 'git push'", "git difftool -x 'git push'", "git-push", "git-push origin",
			"/usr/lib/git-core/git-push",
			"git send-pack x", "git -C sub send-pack x", "git-http-push x", "git for-each-repo --config=x push", "sed '1e git push' f",
			"sed -n -e '/x/e git push' f", `awk 'BEGIN { system("git push") }'`, `awk '{ print | "git push" }'`,
			`awk 'BEGIN { "git push" | getline x }'`, "exec -a x git push", "command -p git push", "timeout --odd 5 git push", "chroot / git push",
			"taskset 1 git push", "systemd-run -p A=b git push", "EDITOR='git push' git commit",
			"GIT_SSH_COMMAND='git push' git fetch", "sudo flock x git push", "compgen -C 'git push'",
		},
		tool.Ask: {
			"hash -p /usr/bin/git g; g push", "enable -f ./x.so x", "source x.sh", ". ./x.sh", `eval "$x"`, "alias g=git; g push",
			"git() { true; }; git", "echo x | bash -s", "echo x | sh -", "bash /dev/stdin < x", "echo x | zsh",
			"git --config-env=alias.p=X p", "git -c include.path=x p", "git -c core.hooksPath=x commit", `git -c alias.p="$x" p`,
			`git rebase --exec "$x"`, `sed 's/x/y/e' f`, `awk 'BEGIN { system("git " v) }'`, `git-push "$x"`,
			"echo push | parallel git", `parallel git ::: "$x"`, `zsh -c "$x"`,
		},
		tool.Allow: {
			"git commit -m x", "eval ls", "trap 'rm -f x' EXIT", "alias l='ls -l'", "env -S 'ls -l'", "flock x make", "python3 x.py", "./x.sh",
			"make", "bash x.sh", "zsh -c 'git pull'", "git -c user.name=push commit -m x", "git-lfs pull",
			"git rebase main", "git bisect run make", "git submodule foreach git pull", "sed -i s/push/pull/ /x", `awk 'BEGIN { system("ls") }'`,
			"sudo apt install x", "git send-email x", "watch ls", "parallel ls ::: a b",
		},
	} {
		for _, line := range lines {
			if v := judge(t, p, call("bash", "yolo"), typed(line)); v.Action != want {
				t.Errorf("%s: %s (%s), want %s", line, v.Action, v.Reason, want)
			}
		}
	}
	for _, line := range []string{
		strings.Repeat("flock x ", 100) + "git push", strings.Repeat("env -S ", 150) + "git push",
		strings.Repeat("eval x; ", 100) + "eval git push",
	} {
		if v := judge(t, p, call("bash", "yolo"), typed(line)); v.Action == tool.Allow {
			t.Errorf("%.40s…: runs unasked", line)
		}
	}
}

// TestDenyWhatBashEvaluates checks that a deny rule finds a command in all text that bash evaluates, or asks where that
// can't be seen.
func TestDenyWhatBashEvaluates(t *testing.T) {
	p := rule(t, tool.Deny, "bash(touch *)")
	for _, line := range []string{
		`ls ${x:->(touch P)}`, `echo "${x:-'$(touch P)'}"`, "cat <<X\n${x:-'$(touch P)'}\nX", `test -v 'a[$(touch P)]'`, `[ -v 'a[$(touch P)]' ]`,
		`printf -v 'a[$(touch P)]' x`, `printf -v'a[$(touch P)]' x`, `BASH_ENV=<(echo touch P) bash -c :`, `BASH_ENV='$(touch P)' bash -c :`,
		`env BASH_ENV='$(touch P)' bash -c :`, `sudo BASH_ENV='$(touch P)' bash -c :`, `PS4='$(touch P)'; set -x; ls`, `ENV=/dev/stdin sh -i <<< 'touch P'`,
		`env 'BASH_FUNC_ls%%=() { touch P; }' bash -c ls`, `read 'a[$(touch P)]' <<< x`, `read RANDOM <<< 'a[$(touch P)]'`, `unset 'a[$(touch P)]'`,
		`true & wait -n -p 'a[$(touch P)]'`, `\declare 'a[$(touch P)]=1'`, `builtin declare -i x=y`, `command local -n r=x`, `\let 'a[$(touch P)]'`,
		`\let y`, `RANDOM='a[$(touch P)]' ls`, `a['$(touch P)']=1 ls`, `x+=$(touch P) ls`, `ls {x}>$(touch P)`, `ls {a['$(touch P)']}>/dev/null`,
		`ls >&'$(touch P)'`, `exec >&\${a[v]}`, "echo \"$\\\n(touch P)\"", `compgen -W '$(touch P)'`, `mapfile -c1 -C eval <<< 'x; touch P'`, `jobs -x touch P`,
		`history -s ls; fc -e 'touch P' -1`, "shopt -s expand_aliases; alias q=\"echo '\"\nq $(touch P)", "shopt -u interactive_comments\nls # $(touch P)",
		`set -k; bash -c : BASH_ENV=x`, `env -S 'touch\_P'`, `env -S '${X} P'`, `/usr/bin/../bin/bash -c 'touch P'`, `/opt/bin/bash -c "$x"`, `./xargs touch`,
		`/usr/bin/../bin/find . -exec touch P \;`, `/opt/bin/sudo touch P`, `trap 'x=$(touch P)' EXIT`, "sed '1{s/.*/touch P/;e\n}' x", `bash -xc 'x=$(touch P)'`,
		`EDITOR="$x" git commit`, `env EDITOR='touch P' git commit`,
	} {
		if v := judge(t, p, call("bash", "yolo"), typed(line)); v.Action == tool.Allow {
			t.Errorf("%s: runs unasked", line)
		}
		if v := judge(t, policy.Policy{Map: here()}, call("bash", "yolo"), typed(line)); v.Action != tool.Allow {
			t.Errorf("%s: without a rule: %s (%s)", line, v.Action, v.Reason)
		}
	}
	for _, line := range []string{
		`echo "${x:-none}"`, `test -v x`, `[ -v x ] || exit 1`, `printf -v x '[%s]' y`, `read -r -p 'name: ' x`, `mapfile -t files < <(find .)`, `wait -n`,
		`unset x y`, `SECONDS=0 make`, `PS4='+ ' make`, `set -euxo pipefail; make`, `shopt -s nullglob globstar; make`, `PAGER=less git log`,
		`FOO=bar make`, `exec {lock}>.lock`, `alias ll='ls -l'`, `.venv/bin/python x.py`, `make > log 2>&1`, `x+=a make`, `./run.sh BASE=1`,
	} {
		if v := judge(t, p, call("bash", "yolo"), typed(line)); v.Action != tool.Allow {
			t.Errorf("%s: %s (%s)", line, v.Action, v.Reason)
		}
	}
}

// TestDenyInsideOtherPrograms checks that a deny rule finds commands that other programs get as words or in options,
// and that an allow rule for such a program still covers the usual forms.
func TestDenyInsideOtherPrograms(t *testing.T) {
	p := rule(t, tool.Deny, "bash(touch *)")
	for _, line := range []string{
		"env - touch P", "eval -- touch P", "time -- touch P", "time -p -- touch P", "exec -a touch busybox P", "env --argv0=touch busybox P",
		"choom -n 0 -- touch P", "setarch x86_64 touch P", "linux64 touch P", "tini -- touch P", "hyperfine 'touch P'",
		"uv run touch P", "bundle exec touch P", "npm exec -- touch P", "kubectl exec pod -- touch P", "npx -c 'touch P'", "npm exec --call='touch P'",
		"tar cf x --checkpoint=1 --checkpoint-action=exec='touch P' .", "tar cf x -I 'sh -c \"touch P\"' .", "tar xf x --to-command='touch P'",
		"ssh -o ProxyCommand='touch P' x", "ssh -o 'proxycommand touch P' x", "split --filter='touch P' x", "man -P 'touch P' ls", "gdb -batch -ex 'shell touch P'",
		"git clone -c core.fsmonitor='touch P' . x", "git config alias.x '!touch P'", "git config --global core.pager 'touch P'",
		"git config set core.pager 'touch P'", "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.x GIT_CONFIG_VALUE_0='!touch P' git x",
		"ld.so /bin/touch P", "/lib64/ld-linux-x86-64.so.2 --library-path /x /bin/touch P", "perf record -o x touch P", "valgrind touch P",
		"gdb -ex run --args touch P", "cgexec -g cpu:a touch P", "bwrap --bind / / --dev /dev touch P", "cpulimit -l 5 touch P", "gosu a touch P",
		"faketime now touch P", "envdir d touch P", "screen -dmS s touch P", "dtach -n s touch P", "tmux new -d 'touch P'", "watchexec -e go touch P",
		"nodemon --exec 'touch P'", "concurrently 'touch P'", "ssh -p 22 h touch P", "ssh -tt h -- 'touch P'", "docker exec -it c touch P",
		"docker run --rm -v /:/h alpine touch P", "docker compose exec web touch P", "podman run a touch P", "lxc exec c -- touch P", "adb shell touch P",
		"fd -x touch", "rg --pre touch P", "cmake -E env touch P", "rsync -e 'touch P' a b:", "scp -S touch a b:", "sort --compress-program=touch f",
		"zip x f -TT 'touch P'", "vim -c '!touch P'", "vim '+!touch P'", "less '+!touch P' f", "sqlite3 :memory: '.shell touch P'", "psql -c '\\! touch P'",
		"mysql -e 'system touch P'", "hg --config 'alias.x=!touch P' x", "svn commit --editor-cmd 'touch P'", "cpio --rsh-command='touch P'",
		"go test -exec 'touch P' .", "go build -toolexec='touch P' .", "apt-get -o APT::Update::Pre-Invoke::='touch P' update", "CC='touch P' make",
		"RUSTC_WRAPPER=touch cargo build", "BROWSER='touch P' xdg-open a", "git clone 'ext::touch P' d", "git archive --remote=ext::'touch P' HEAD",
		"cat <<X\n$'\"`echo touch | xargs '`x $(y=touch; $y P)`'`\nX", "cat <<X\n`: '`$(touch P)`'`\nX",
		"ln -s /usr/bin/touch q && ./q P", "cp /bin/touch q; ./q P", "install -m 755 /usr/bin/../bin/touch q", "ln -s /usr/local/bin/touch .",
		"powershell -Command 'touch P'", "npx touch P", "expect -c 'spawn touch P'", "vagrant ssh -c 'touch P'",
		`GIT_CONFIG_PARAMETERS="'alias.x'='!touch P'" git x`, "GIT_CONFIG_GLOBAL=./x git status", "RSYNC_RSH='touch P' rsync a b",
	} {
		if v := judge(t, p, call("bash", "yolo"), typed(line)); v.Action == tool.Allow {
			t.Errorf("%s: runs unasked", line)
		}
	}
	for _, line := range []string{
		"GIT_CONFIG_GLOBAL=/dev/null git log", "GIT_CONFIG_NOSYSTEM=1 git log", "tar czf x.tgz touch", "ssh -o Port=22 x uptime", "uv run pytest touch",
		"npm test -- touch", "git config user.name touch", "time make", "env - make", "ssh touch", "ssh -i touch h uptime", "docker run touch",
		"docker build -t touch .", "docker run --name touch alpine ls", "rsync -e ssh touch b:", "vim touch", "vim -c 'set nu' touch", "go test -run touch ./...",
		"perf record -o touch make", "sqlite3 touch '.tables'", "psql -c 'select touch'", "screen -S touch -ls", "tmux new -s work",
		"CC=clang make touch", "git clone https://x.test/touch", "sort touch", "gdb --args make touch",
		"cp bin/x touch", "cp /usr/bin/ls touch", "ln -s docs/touch q", "cp touch /usr/share/x",
	} {
		if v := judge(t, p, call("bash", "yolo"), typed(line)); v.Action != tool.Allow {
			t.Errorf("%s: %s (%s)", line, v.Action, v.Reason)
		}
	}
	for text, line := range map[string]string{"bash(npm test *)": "npm test -- --watch", "bash(git log *)": "git log"} {
		if v := judge(t, rule(t, tool.Allow, text), call("bash", "ask"), typed(line)); v.Action != tool.Allow {
			t.Errorf("%s: %s: %s (%s)", text, line, v.Action, v.Reason)
		}
	}
}

// TestDenyFolder checks that a rule that denies or asks about a folder by its name is about everything in it, and an
// allow rule is not.
func TestDenyFolder(t *testing.T) {
	for _, tc := range []struct {
		rule, path string
		want       bool
	}{
		{"secrets", "/w/secrets", true},
		{"secrets", "/w/secrets/a/b", true},
		{"secrets/", "/w/secrets/a", true},
		{"./secrets/", "/w/secrets/a", true},
		{"**/secrets", "/w/x/secrets/a", true},
		{"/srv/x", "/srv/x/a", true},
		{"secrets", "/w/secrets2/a", false},
		{"secrets", "/w/x/secrets/a", false},
		{"*", "/w/a", true},
		{"*", "/w/x/a", false},
		{"s*", "/w/secrets/a", false},
	} {
		for _, action := range []tool.Action{tool.Deny, tool.Ask} {
			v := judge(t, rule(t, action, "read("+tc.rule+")"), call("read_file", "yolo"), []tool.Effect{read(tc.path)})
			if (v.Action == action) != tc.want {
				t.Errorf("%s read(%s): %s: %s (%s)", action, tc.rule, tc.path, v.Action, v.Reason)
			}
		}
	}
	if v := judge(t, rule(t, tool.Allow, "write(/w/x)"), call("write_file", "ask"), []tool.Effect{{Kind: tool.Write, Path: "/w/x/a"}}); v.Action == tool.Allow {
		t.Errorf("an allow rule for a folder allows what is in it: %s", v.Reason)
	}
}

// TestDenyOptionsHowever checks that options of a deny rule may come in any order, place and cluster, and that a long
// option asks if it may be a short one.
func TestDenyOptionsHowever(t *testing.T) {
	for _, tc := range []struct {
		rule, line string
		want       tool.Action
	}{
		{"rm -rf *", "rm -rf x", tool.Deny},
		{"rm -rf *", "rm -fr x", tool.Deny},
		{"rm -rf *", "rm -r -f x", tool.Deny},
		{"rm -rf *", "rm x -rvf", tool.Deny},
		{"rm -rf *", "rm --recursive --force x", tool.Ask},
		{"rm -rf *", "/bin/rm -f -R x", tool.Allow}, // another letter; a rule of its own
		{"rm -rf *", "rm -r x", tool.Allow},
		{"rm -rf /", "rm -fr /", tool.Deny},
		{"rm -rf /", "rm -fr x", tool.Allow},
		{"git push --force *", "git push origin main --force", tool.Deny},
		{"git push --force *", "git push -f", tool.Ask},
		{"git push --force *", "git push origin --force=x", tool.Deny},
		{"git push -f *", "git push origin -uf", tool.Deny},
		{"git push --force *", "git push origin", tool.Allow},
		{"chmod -R 777 *", "chmod 777 -R x", tool.Deny},
		{"chmod -R 777 *", "chmod -R 755 x", tool.Allow},
		{"/usr/bin/touch *", "touch x", tool.Deny},
		{"/opt/bin/touch *", "touch x", tool.Allow},
		{"npm run deploy *", "npm run-script deploy", tool.Deny},
		{"pip install *", "python3 -m pip install x", tool.Deny},
		{"pip install *", "pip3.12 install x", tool.Deny},
		{"docker run *", "docker container run x", tool.Deny},
		{"cargo publish *", "cargo +nightly publish", tool.Deny},
		{"docker run *", "docker container ls", tool.Allow},
		{"npm publish --access public", "npm --access public publish", tool.Allow},
		{"terraform apply -auto-approve *", "terraform -chdir=x apply y -auto-approve", tool.Deny},
		{"terraform apply -auto-approve *", "terraform apply -a -u -t -o", tool.Allow},
	} {
		if v := judge(t, rule(t, tool.Deny, "bash("+tc.rule+")"), call("bash", "yolo"), typed(tc.line)); v.Action != tc.want {
			t.Errorf("%s: %s: %s (%s), want %s", tc.rule, tc.line, v.Action, v.Reason, tc.want)
		}
	}
}

func TestOrder(t *testing.T) {
	parse := func(action tool.Action, text, scope string) policy.Rule {
		r, err := policy.ParseRule(action, text, scope)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	p := policy.Policy{Map: here(), Rules: []policy.Rule{
		parse(tool.Allow, "write(**)", "user"), parse(tool.Ask, "write(a/**)", "project"), parse(tool.Deny, "write(a/b)", "organisation"),
		parse(tool.Allow, "write(.git/**)", "user"),
	}}
	for path, want := range map[string]tool.Action{"/w/x": tool.Allow, "/w/a/x": tool.Ask, "/w/a/b": tool.Deny, "/w/.git/hooks/x": tool.Deny} {
		if v := judge(t, p, call("t", "ask"), []tool.Effect{write(path)}); v.Action != want {
			t.Errorf("%s: %s by %s, want %s", path, v.Action, v.By, want)
		}
	}
	if v := judge(t, p, call("t", "ask"), []tool.Effect{write("/w/a/b")}); v.By != "rule write(a/b) (organisation)" {
		t.Errorf("by %q", v.By)
	}
}

func TestPublic(t *testing.T) {
	m := here()
	m.Open = []string{"/w/testdata/*.pem", "/home/ann/.local/**"}
	m = m.Indexed()
	p := policy.Policy{Map: m}
	for path, want := range map[string]tool.Action{
		"/w/testdata/a.pem": tool.Allow, "/w/a.pem": tool.Ask,
		"/home/ann/.local/state/inspan/x": tool.Deny,
	} {
		if v := judge(t, p, call("t", "ask"), []tool.Effect{read(path)}); v.Action != want {
			t.Errorf("%s: %s, want %s", path, v.Action, want)
		}
	}
}

// TestProposals checks that the proposed rules allow the call, and little else.
func TestProposals(t *testing.T) {
	for _, tc := range []struct {
		effects []tool.Effect
		want    []string
		still   []tool.Effect // asks although the proposal is a rule
	}{
		{typed("go test ./..."), []string{"bash(go test *)"}, typed("go vet ./...")},
		{typed("npm install left-pad && npm test"), []string{"bash(npm install *)", "bash(npm test *)"}, typed("npm publish")},
		{typed("mkdir -p a/b"), []string{"bash(mkdir *)"}, typed("mkdir /etc/x")},
		{typed("git commit -m x"), []string{"bash(git commit *)"}, typed("git push")},
		{typed("git config alias.x y"), nil, nil},
		{typed("python3 x.py"), nil, nil},
		{typed("make"), []string{"bash(make)"}, typed("make install")},
		{typed("make -j4"), []string{"bash(make -j4)"}, typed("make -f x")},
		{typed("make -f -"), nil, nil},
		{typed("make --eval=x"), nil, nil},
		{typed("make > out"), nil, nil},
		{typed("X=1 make"), nil, nil},
		{typed("rm -rf build"), nil, nil},
		{typed("sudo make install"), nil, nil},
		{typed("go test ./... > out.txt"), nil, nil},
		{typed("go test . && rm x"), nil, nil},
		{[]tool.Effect{write("/w/a[1].txt")}, []string{`write(a\[1\].txt)`}, []tool.Effect{write("/w/a1.txt")}},
		{[]tool.Effect{write("/srv/x")}, []string{"write(/srv/x)"}, []tool.Effect{write("/srv/y")}},
		{[]tool.Effect{write("/")}, nil, nil},
		{[]tool.Effect{write("/home/ann")}, nil, nil},
		{[]tool.Effect{host("example.com")}, []string{"network(example.com)"}, []tool.Effect{host("www.example.com")}},
		{[]tool.Effect{host("*")}, nil, nil},
		{[]tool.Effect{{Kind: tool.External}}, []string{"bash"}, nil},
		{[]tool.Effect{command("go test"), {Kind: tool.External, Text: "run it outside"}}, nil, nil},
	} {
		findings := policy.Policy{Map: here()}.Findings(call("bash", "ask"), tc.effects)
		got := policy.Proposals(findings)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%+v: %s", tc.effects[0], diff)
			continue
		}
		p := policy.Policy{Map: here()}
		for _, text := range got {
			p.Rules = append(p.Rules, rule(t, tool.Allow, text).Rules...)
		}
		if v := judge(t, p, call("bash", "ask"), tc.effects); got != nil && v.Action != tool.Allow {
			t.Errorf("%v does not allow %+v: %s", got, tc.effects, v.Reason)
		}
		if tc.still == nil {
			continue
		}
		if v := judge(t, p, call("bash", "ask"), tc.still); v.Action != tool.Ask {
			t.Errorf("%v also allows %+v", got, tc.still)
		}
	}
}

// TestLocalServers checks that a tool that would look for a server of the session outside the sandbox gets a hint how
// to reach it.
func TestLocalServers(t *testing.T) {
	c := call("web_fetch", "auto")
	c.Env.Walls.Workspace = true
	if v := judge(t, policy.Policy{Map: here()}, c, []tool.Effect{host("localhost")}); v.Action != tool.Ask ||
		!strings.Contains(v.Reason, "use curl in bash") {
		t.Errorf("%s: %s", v.Action, v.Reason)
	}
	if v := judge(t, policy.Policy{Map: here()}, c, []tool.Effect{host("example.com")}); v.Action != tool.Ask ||
		strings.Contains(v.Reason, "curl") {
		t.Errorf("%s: %s", v.Action, v.Reason)
	}
}

func TestNoProposalWhereARuleAsks(t *testing.T) {
	p := rule(t, tool.Ask, "bash(go test *)")
	if got := policy.Proposals(p.Findings(call("bash", "ask"), typed("go test ."))); got != nil {
		t.Errorf("proposed %v, which would not help", got)
	}
}

func TestBadRules(t *testing.T) {
	for _, text := range []string{"", "(x)", "bash(", "bash()", "two words", "edit_file([)", "bash('x)", "[(x)"} {
		if _, err := policy.ParseRule(tool.Allow, text, ""); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

// TestOtherHosts checks that a rule can be for all hosts but some, if it denies or asks.
func TestOtherHosts(t *testing.T) {
	if _, err := policy.ParseRule(tool.Allow, "network(!x.org)", "user"); err == nil {
		t.Error("a rule allows all hosts but one")
	}
	r, err := policy.ParseRule(tool.Deny, "network(!example.com *.example.org)", "user")
	if err != nil {
		t.Fatal(err)
	}
	m := places.Map{Root: "/w"}
	for host, denied := range map[string]bool{
		"example.com": false, "EXAMPLE.com:443": false, "a.example.org": false, "example.org": true, "evil.com": true, "evil.com:443": true,
		"example.com.evil.org": true, "10.0.0.1": true,
	} {
		c := &tool.Call{Name: "fetch"}
		if got := r.Matches(m, c, []tool.Effect{{Kind: tool.Network, Text: host}}); got != denied {
			t.Errorf("%s: denied is %v", host, got)
		}
	}
}

// TestImpossibleRules checks that a rule that can never match is refused with the nearest that can.
func TestImpossibleRules(t *testing.T) {
	for text, nearest := range map[string]string{
		"bash(touch:*)":                 "did you mean bash(touch *)?",
		"execute(rm:*)":                 "did you mean execute(rm *)?",
		"read(//etc/passwd)":            "did you mean read(/etc/passwd)?",
		"write(/src/../x/**)":           "did you mean write(/x/**)?",
		"write(/srv/)":                  "did you mean write(/srv)?",
		"read(~)":                       "did you mean read(~/**)?",
		"read($HOME/.x)":                "did you mean read(~/.x)?",
		"write(${HOME}/x/**)":           "did you mean write(~/x/**)?",
		"Read($HOME/.x/**)":             "did you mean read(~/.x/**)?",
		"read(~ann/x)":                  "write the home folder in full",
		"read_file(//etc/passwd)":       "did you mean read_file(/etc/passwd)?",
		"external(x)":                   "use external",
		"mcp__a__b(x)":                  "use mcp__a__b",
		"network(https://x.org/a)":      "did you mean network(x.org)?",
		"network(!)":                    "that denies or asks",
		"network(!a.org x.org/a)":       "did you mean network(x.org)?",
		"web_fetch(!x.org)":             "that denies or asks",
		"network(domain:x.org)":         "did you mean network(x.org)?",
		"web_fetch(https://x.org:8/a*)": "did you mean web_fetch(x.org:8)?",
		"http_request(x.org/a)":         "did you mean http_request(x.org)?",
		"Bash(curl * | sh)":             "more than one simple command",
		"bash(curl * | sh)":             "more than one command",
		"bash(cd x && make)":            "more than one command",
		"bash(a|b)":                     "more than one command",
		"bash(cd x; make)":              "more than one command",
		"bash(\"git push\")":            "did you mean bash(git push *)?",
		"bash(rm *))":                   "did you mean bash(rm *)?",
		"read(!x)":                      "exceptions are not understood",
		"read(.env, .ssh)":              "write a rule for each, such as read(.env)",
		"Bash(rm:*,mv:*)":               "write a rule for each, such as bash(rm *)",
		"bash(git:* push)":              "did you mean bash(git push *)?",
		"Agent(model:opus)":             "only the name of a kind",
		"WebFetch(https://x)":           "only domain:",
	} {
		if _, err := policy.Read(tool.Deny, text, ""); err == nil || !strings.Contains(err.Error(), nearest) {
			t.Errorf("%s: %v, want %q", text, err, nearest)
		}
	}
}

// TestRead checks the translation of rules in the form of other agents.
func TestRead(t *testing.T) {
	for _, c := range []struct {
		action tool.Action
		text   string
		tools  []string // that the session was given
		want   string
	}{
		{tool.Deny, "bash(touch *)", nil, "bash(touch *)"},
		{tool.Deny, "Bash(touch:*)", nil, "bash(touch *)"},
		{tool.Deny, "Read(./x)", nil, "read(x)|read(x/**)"},
		{tool.Deny, "Read(//etc/x)", nil, "read(/etc/x)|read(/etc/x/**)"},
		{tool.Deny, "bash(npm run test:*)", nil, "bash(npm run test:*)|bash(npm run test *)"},
		{tool.Deny, "bash(echo 'a && b' *)", nil, "bash(echo 'a && b' *)"},
		{tool.Deny, `bash(find * -exec * \;)`, nil, `bash(find * -exec * \;)`},
		{tool.Deny, "shell(git push)", nil, "bash(git push *)"},
		{tool.Allow, "shell(git push)", nil, "bash(git push)"},
		{tool.Deny, "bash(npm run 'test:'*)", nil, "bash(npm run 'test:'*)"},
		{tool.Allow, "bash(npm run test:*)", nil, "bash(npm run test:*)"},
		{tool.Deny, "glob", nil, "find_files|list_files"},
		{tool.Deny, "glob", []string{"glob"}, "glob"},
		{tool.Deny, "Read", []string{"glob", "Read"}, "Read"},
		{tool.Deny, "mcp__github", nil, "mcp__github__*"},
	} {
		rules, err := policy.Read(c.action, c.text, "user", c.tools...)
		var got []string
		for _, r := range rules {
			got = append(got, r.Text)
			if (r.Written == "") != (r.Text == c.text) || r.Scope != "user" {
				t.Errorf("%s: %q was written as %q by %q", c.text, r.Text, r.Written, r.Scope)
			}
		}
		if strings.Join(got, "|") != c.want || err != nil {
			t.Errorf("%s: %q %v, want %q", c.text, got, err, c.want)
		}
	}
}

// TestNames checks which rules can speak of a tool that is there, or may come.
func TestNames(t *testing.T) {
	for text, want := range map[string]string{
		"bash": "", "bash(touch *)": "", "edits": "", "read(x)": "", "deploy": "", "dep*": "", "*": "", "*_issue": "", "mcp__a__b": "",
		"bahs(touch *)": `did you mean "bash"?`, "Nonsense(x)": "no tool or kind", "deplyo": `did you mean "deploy"?`, "reads": `did you mean "read"?`,
	} {
		r, err := policy.ParseRule(tool.Deny, text, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Names([]string{"bash", "deploy"}); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestJudgesKeepTheContract(t *testing.T) {
	for name, p := range map[string]policy.Policy{
		"mode": {}, "allow": rule(t, tool.Allow, "edit_file(/etc/*)"), "deny": rule(t, tool.Deny, "*"), "ask": rule(t, tool.Ask, "bash(x *)"),
	} {
		t.Run(name, func(t *testing.T) { harnesstest.TestJudge(t, p) })
	}
}

// BenchmarkDecide is a whole decision on a command line, with 50 rules.
func BenchmarkDecide(b *testing.B) {
	p := policy.Policy{Map: here()}
	for range 25 {
		for action, text := range map[tool.Action]string{tool.Deny: "bash(git push *)", tool.Allow: "write(src/**)"} {
			r, err := policy.ParseRule(action, text, "user")
			if err != nil {
				b.Fatal(err)
			}
			p.Rules = append(p.Rules, r)
		}
	}
	c := call("bash", "ask")
	for b.Loop() {
		if _, err := p.Judge(b.Context(), c, typed(`git log --oneline -5 && grep -rn "func main" --include=*.go . | head -20`)); err != nil {
			b.Fatal(err)
		}
	}
}

// TestHostsThatCanNotBeKnown checks that a host which might be the one a rule is for asks, and is never allowed.
func TestHostsThatCanNotBeKnown(t *testing.T) {
	for _, tc := range []struct {
		rule, host string
	}{
		{"network(example.com)", ""},
		{"network(example.com)", "*"},
		{"network(example.com)", "exa mple.com"},
		{"network(example.com:22)", "example.com"},
		{"network(example.com:22)", "other.org"},
	} {
		for _, action := range []tool.Action{tool.Deny, tool.Ask} {
			if v := judge(t, rule(t, action, tc.rule), call("fetch", "yolo"), []tool.Effect{host(tc.host)}); v.Action != tool.Ask {
				t.Errorf("%s %s, host %q: %s (%s)", action, tc.rule, tc.host, v.Action, v.Reason)
			}
		}
		if v := judge(t, rule(t, tool.Allow, tc.rule), call("fetch", "ask"), []tool.Effect{host(tc.host)}); v.Action != tool.Ask {
			t.Errorf("allow %s, host %q: %s", tc.rule, tc.host, v.Action)
		}
	}
}

// TestMatches checks how the examples of a rule are tested.
func TestMatches(t *testing.T) {
	for _, tc := range []struct {
		action  tool.Action
		rule    string
		effects []tool.Effect
		want    bool
	}{
		{tool.Allow, "bash(go test *)", typed("go test ./..."), true},
		{tool.Allow, "bash(go test *)", typed("go test ./... && go vet"), false},
		{tool.Allow, "bash(go test *)", typed("cat a | go test ./..."), true},
		{tool.Allow, "bash(go test *)", typed("cat a"), false},
		{tool.Deny, "bash(git push *)", typed("true && git -C x push"), true},
		{tool.Deny, "bash(git push *)", typed("git pull"), false},
		{tool.Ask, "network(*.example.com)", []tool.Effect{host("a.example.com")}, true},
		{tool.Allow, "write(docs/**)", []tool.Effect{write("/w/docs/a"), write("/w/b")}, false},
		{tool.Allow, "write(docs/**)", nil, false},
	} {
		r := rule(t, tc.action, tc.rule).Rules[0]
		p := rule(t, tc.action, tc.rule)
		if got := r.Matches(p.Map, call("bash", "ask"), tc.effects); got != tc.want {
			t.Errorf("%s %s on %+v: %t", tc.action, tc.rule, tc.effects, got)
		}
	}
}

// TestThrowaway checks the permissions of a session whose commands run in throwaway copies of the workspace in a
// reading mode: changes that stay in the copy, and nothing else.
func TestThrowaway(t *testing.T) {
	allow, ask, deny := tool.Allow, tool.Ask, tool.Deny
	thrown := func(effects ...tool.Effect) []tool.Effect {
		for i := range effects {
			effects[i].Throwaway = effects[i].Kind == tool.Execute || effects[i].Kind == tool.Write && text.Inside("/w", effects[i].Path)
		}
		return effects
	}
	may := func(*tool.Env) {}
	for _, tc := range []struct {
		name    string
		effects []tool.Effect
		change  func(*tool.Env)
		want    tool.Action
	}{
		{"tests", thrown(command("go test ./...")), may, allow},
		{"tests and their output", thrown(command("go test ./..."), write("/w/out")), may, allow},
		{"its own temporary files", thrown(command("go test ./..."), write("/tmp/out")), may, allow},
		{"a proven read, without a box for it", thrown(typed("ls")...), func(e *tool.Env) { e.Walls.Read = false }, allow},
		{"a program that was not to be in a copy", []tool.Effect{command("go test ./...")}, may, deny},
		{"a change that is none of a copy", []tool.Effect{{Kind: tool.Execute, Text: "x", Throwaway: true}, write("/w/out")}, may, deny},
		{"a file tool", thrown(write("/w/out")), may, deny},
		{"elsewhere", thrown(command("x"), write("/etc/x")), may, deny},
		{"what editors run", thrown(command("x"), write("/w/.vscode/tasks.json")), may, deny},
		{"hooks", thrown(command("x"), write("/w/.git/hooks/x")), may, deny},
		{"a secret", thrown(command("x"), write("/w/.env")), may, deny},
		{"reading a secret", thrown(command("x"), read("/w/.env")), may, ask},
		{"reading keys", thrown(command("x"), read("/home/ann/.ssh/id_rsa")), may, deny},
		{"a host", thrown(command("x"), host("example.com")), may, deny},
		{"a server that it has started itself", thrown(command("curl localhost:8000"), host("localhost")), may, allow},
		{"outside", thrown(command("x"), tool.Effect{Kind: tool.External, Text: "run outside the sandbox"}), may, deny},
		{"going on", thrown(command("x"), tool.Effect{Kind: tool.Keep, Text: "x"}), may, deny},
		{"a session that may not", thrown(command("go test ./...")), func(e *tool.Env) { e.Throwaway = false }, deny},
		{"a system that can't", thrown(command("go test ./...")), func(e *tool.Env) {
			e.Walls.Throwaway,
				e.Walls.NoThrowaway = false, "no overlays"
		}, deny},
	} {
		c := call("bash", "plan")
		c.Env.Throwaway, c.Env.Walls.Throwaway = true, true
		c.Env.Temporary = func(path string, boxed bool) bool { return boxed && text.Inside("/tmp", path) }
		tc.change(&c.Env)
		v := judge(t, policy.Policy{Map: here()}, c, tc.effects)
		if v.Action != tc.want || c.Env.Walls.NoThrowaway != "" && !strings.Contains(v.Reason, "no overlays") {
			t.Errorf("%s: %s (%s), want %s", tc.name, v.Action, v.Reason, tc.want)
		}
		// Rules that people wrote hold there too, and no other mode gets anything by it.
		deny, err := policy.ParseRule(tool.Deny, "bash", "user")
		if err != nil {
			t.Fatal(err)
		}
		if v := judge(t, policy.Policy{Map: here(), Rules: []policy.Rule{deny}}, c, tc.effects); len(tc.effects) > 0 && v.Action != tool.Deny {
			t.Errorf("%s: %s although a rule denies it", tc.name, v.Action)
		}
		plain := *c
		plain.Mode, plain.Env.Throwaway = "ask", false
		c.Mode = "ask"
		if got, want := judge(t, policy.Policy{Map: here()}, c, tc.effects).Action, judge(t,
			policy.Policy{Map: here()}, &plain, tc.effects).Action; got != want {
			t.Errorf("%s: mode ask says %s, not %s", tc.name, got, want)
		}
	}
}

// TestPicks holds rules about one kind of agents, or one skill.
func TestPicks(t *testing.T) {
	for _, tc := range []struct {
		rule, tool, args string
		want             tool.Action
	}{
		{"spawn_agent(explore)", "spawn_agent", `{"agent": "Explore"}`, tool.Deny},
		{"spawn_agent(explore)", "spawn_agent", `{"agent": "worker"}`, tool.Allow},
		{"spawn_agent(worker)", "spawn_agent", `{"task": "x"}`, tool.Deny},
		{"spawn_agent(rev*)", "spawn_agent", `{"agent": "reviewer"}`, tool.Deny},
		{"spawn_agent(explore)", "skill", `{"name": "explore"}`, tool.Allow},
		{"skill(deploy)", "skill", `{"name": "deploy"}`, tool.Deny},
		{"skill(deploy)", "skill", `{"name": "deployed"}`, tool.Allow},
		{"skill(deploy)", "skill", `{"name": "other", "file": "deploy"}`, tool.Allow},
	} {
		r, err := policy.ParseRule(tool.Deny, tc.rule, "")
		if err != nil {
			t.Fatal(err)
		}
		c := call(tc.tool, tool.ModeAuto)
		c.Args = []byte(tc.args)
		for _, effects := range [][]tool.Effect{nil, {read("/w/a")}} {
			if v := judge(t, policy.Policy{Map: here(), Rules: []policy.Rule{r}}, c, effects); v.Action != tc.want {
				t.Errorf("%s, %s %s: %+v, want %s", tc.rule, tc.tool, tc.args, v, tc.want)
			}
		}
	}
	if _, err := policy.ParseRule(tool.Deny, "spawn_agent([)", ""); err == nil {
		t.Error("a pattern that can't be read")
	}
}
