package config_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/install/config"
)

// settled is a file of every form that people write settings in.
const settled = `# mine
model = "a/b" # the one
allow = [ # what may run
  "bash(go test *)", # tests
]
providers.home.kind = "openai"
providers.home.base_url = "http://localhost:1" # ] = "

# walls
[sandbox]
memory_mb = 512

# the end of it
[[rule]]
action = "deny"
rule = '''bash(
git push *)'''
[keys]
send = ["x"]
`

// TestSet changes single settings of a file, and holds that all else stays as it is.
func TestSet(t *testing.T) {
	for name, c := range map[string]struct {
		before string
		change config.Change
		from   string
		to     string
	}{
		"a new file":  {"", config.Change{Key: "mode", Values: []string{"plan"}}, "", "mode = \"plan\"\n"},
		"a new table": {"", config.Change{Key: "sandbox.off", Values: []string{"true"}}, "", "[sandbox]\noff = true\n"},
		"a value":     {settled, config.Change{Key: "model", Values: []string{"c/d \"x\""}}, `model = "a/b" #`, `model = "c/d \"x\"" #`},
		"a key more": {
			settled,
			config.Change{Key: "effort", Values: []string{"low"}},
			` # ] = "` + "\n", ` # ] = "` + "\neffort = \"low\"\n",
		},
		"in a table": {
			settled,
			config.Change{Key: "sandbox.cpu_seconds", Values: []string{"9"}},
			"memory_mb = 512\n", "memory_mb = 512\ncpu_seconds = 9\n",
		},
		"beside others": {
			settled,
			config.Change{Key: "providers.home.local", Values: []string{"true"}},
			` # ] = "` + "\n", ` # ] = "` + "\nproviders.home.local = true\n",
		},
		"a dotted key": {
			settled,
			config.Change{Key: "providers.home.kind", Values: []string{"ollama"}},
			`kind = "openai"`, `kind = "ollama"`,
		},
		"a table at last": {
			settled,
			config.Change{Key: "providers.\"my host\".kind", Values: []string{"gemini"}},
			"send = [\"x\"]\n", "send = [\"x\"]\n\n[providers.\"my host\"]\nkind = \"gemini\"\n",
		},
		"a list": {
			settled,
			config.Change{Key: "deny", Values: []string{"network", "bash(rm *)"}},
			` # ] = "` + "\n", ` # ] = "` + "\ndeny = [\"network\", \"bash(rm *)\"]\n",
		},
		"more in a list": {
			settled,
			config.Change{Key: "allow", Values: []string{"bash(go vet *)", "bash(go test *)"}, Add: true},
			"[ # what may run\n  \"bash(go test *)\", # tests\n]", `["bash(go test *)", "bash(go vet *)"]`,
		},
		"a time": {
			settled,
			config.Change{Key: "max_time", Values: []string{"90s"}},
			` # ] = "` + "\n", ` # ] = "` + "\nmax_time = \"90s\"\n",
		},
		"no value": {settled, config.Change{Key: "allow"}, "allow = [ # what may run\n  \"bash(go test *)\", # tests\n]\n", ""},
		"only tables": {
			"# top\n\n# walls\n[sandbox]\noff = true",
			config.Change{Key: "mode", Values: []string{"ask"}},
			"# walls\n", "mode = \"ask\"\n\n# walls\n",
		},
		"no end of a line": {"mode = \"ask\"", config.Change{Key: "effort", Values: []string{"low"}}, "", "\neffort = \"low\"\n"},
	} {
		path := filepath.Join(t.TempDir(), "config.toml")
		if c.before != "" {
			write(t, path, c.before)
		}
		if err := (config.File{Path: path}).Set(c.change); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := strings.Replace(c.before, c.from, c.to, 1)
		if c.from == "" {
			want = c.before + c.to
		}
		got, err := os.ReadFile(path)
		if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
		if _, err := config.Load(path); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestSetRefuses checks that a change that can't be leaves the file as it is, and gives the reason why.
func TestSetRefuses(t *testing.T) {
	checked := errors.New("it is not what it should be")
	for name, c := range map[string]struct {
		file    config.File
		before  string
		changes []config.Change
		want    string
	}{
		"a typo": {
			config.File{},
			settled,
			[]config.Change{{Key: "modle", Values: []string{"x"}}},
			`unknown key "modle"; did you mean "model"?`,
		},
		"a typo below": {
			config.File{},
			settled,
			[]config.Change{{Key: "sandbox.memory", Values: []string{"x"}}},
			`did you mean "memory_mb"?`,
		},
		"not a key":       {config.File{}, settled, []config.Change{{Key: "a b", Values: []string{"x"}}}, `"a b" is not a key`},
		"no key":          {config.File{}, settled, []config.Change{{Key: "", Values: []string{"x"}}}, `"" is not a key`},
		"more than a key": {config.File{}, settled, []config.Change{{Key: "mode = \"yolo\"\nmodel", Values: []string{"x"}}}, "is not a key"},
		"a wrong type": {
			config.File{},
			settled,
			[]config.Change{{Key: "max_turns", Values: []string{"many"}}},
			`max_turns: "many" is not a whole number`,
		},
		"a wrong value": {config.File{}, settled, []config.Change{{Key: "mode", Values: []string{"wild"}}}, "mode: "},
		"a wrong time":  {config.File{}, settled, []config.Change{{Key: "retry_for", Values: []string{"5"}}}, "retry_for"},
		"two values": {
			config.File{},
			settled,
			[]config.Change{{Key: "mode", Values: []string{"a", "b"}}},
			"mode takes one value, got 2",
		},
		"a table": {
			config.File{},
			settled,
			[]config.Change{{Key: "sandbox", Values: []string{"x"}}},
			"sandbox is a table; name one of its keys: off, ",
		},
		"tables":            {config.File{}, settled, []config.Change{{Key: "rule", Values: []string{"x"}}}, "a list of tables"},
		"nothing to remove": {config.File{}, settled, []config.Change{{Key: "effort"}}, "effort is not set"},
		"the second is bad": {
			config.File{},
			settled,
			[]config.Change{{Key: "effort", Values: []string{"low"}}, {Key: "x", Values: []string{"y"}}},
			"unknown key",
		},
		"an inline table": {
			config.File{},
			"sandbox = { off = true }\n",
			[]config.Change{{Key: "sandbox.memory_mb", Values: []string{"5"}}},
			"would be invalid",
		},
		"it is broken": {config.File{}, "mode = \n", []config.Change{{Key: "effort", Values: []string{"low"}}}, ":1: it is not TOML: "},
		"a check": {
			config.File{Check: func(string) error { return checked }},
			settled,
			[]config.Change{{Key: "effort", Values: []string{"low"}}},
			checked.Error(),
		},
		"not of a project": {
			config.File{Project: true},
			"deny = [\"network\"]\n",
			[]config.Change{{Key: "model", Values: []string{"x"}}},
			"a project can't set model, only ask, deny, rule, hook",
		},
		"a project's typo": {config.File{Project: true}, "", []config.Change{{Key: "denny", Values: []string{"x"}}}, `did you mean "deny"?`},
		"allowed by project": {
			config.File{Project: true},
			"",
			[]config.Change{{Key: "allow", Values: []string{"x"}}},
			"a project can't set allow",
		},
	} {
		c.file.Path = filepath.Join(t.TempDir(), "config.toml")
		write(t, c.file.Path, c.before)
		if err := c.file.Set(c.changes...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if now, err := os.ReadFile(c.file.Path); err != nil || string(now) != c.before {
			t.Errorf("%s: the file is now %q (%v)", name, now, err)
		}
	}
	project := config.File{Path: filepath.Join(t.TempDir(), ".inspan", "config.toml"), Project: true}
	if err := project.Set(config.Change{Key: "deny", Values: []string{"read(secrets/**)"}, Add: true}); err != nil {
		t.Error(err)
	}
}

// TestSetAnywhere breaks a file at random places, and holds that a change leaves it readable with
// everything else in it, or is refused.
func TestSetAnywhere(t *testing.T) {
	const marks = "[]\"'=#\n.,{}a "
	random := rand.New(rand.NewPCG(1, 2))
	path := filepath.Join(t.TempDir(), "config.toml")
	keys := []string{"sandbox.off", "mode", "providers.\"]\".kind", "providers.home.local", "allow"}
	changed := 0
	for range 400 {
		text := []byte(settled)
		for range 1 + random.IntN(3) {
			at, mark := random.IntN(len(text)), marks[random.IntN(len(marks))]
			switch random.IntN(3) {
			case 0:
				text = slices.Delete(text, at, at+1)
			case 1:
				text[at] = mark
			case 2:
				text = slices.Insert(text, at, mark)
			}
		}
		write(t, path, string(text))
		before, bad := config.Load(path)
		value := []string{"true", "plan", "openai"}[random.IntN(3)]
		refused := config.File{Path: path}.Set(config.Change{Key: keys[random.IntN(len(keys))], Values: []string{value}})
		after, broken := config.Load(path)
		now, err := os.ReadFile(path)
		switch {
		case err != nil, refused != nil && string(now) != string(text):
			t.Fatalf("%q was refused (%v), and is now %q (%v)", text, refused, now, err)
		case refused == nil && (len(config.Faults(broken)) > len(config.Faults(bad)) || len(before.Rules) != len(after.Rules)):
			t.Fatalf("%q became %q: %v, %v", text, now, bad, broken)
		case refused == nil:
			changed++
		}
	}
	if changed < 20 {
		t.Errorf("only %d files were changed", changed)
	}
}

// TestSetMends checks that the faults of a file can be repaired one by one, and that none is added.
func TestSetMends(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.toml")
	const broken = "# mine\nmodle = 'a/b'\nmax_turns = 'many' # no\nsandbox = 3\n\n" +
		"[providers.x]\nkind = 'carrier'\n\n[tui]\ntheme = 'bright'\nvim = true\n"
	write(t, path, broken)
	file := config.File{Path: path}
	for _, c := range []struct {
		change config.Change
		left   int
		err    string
	}{
		{config.Change{Key: "max_turns", Values: []string{"lots"}}, 5, `"lots" is not a whole number`},
		{config.Change{Key: "mode", Values: []string{"wild"}}, 5, `the result would be invalid: mode: unknown mode "wild"`},
		{config.Change{Key: "tui.theme", Values: []string{"pink"}}, 5, `unknown value "pink"`},
		{config.Change{Key: "mode", Values: []string{"plan"}}, 5, ""},
		{config.Change{Key: "modle"}, 4, ""},
		{config.Change{Key: "max_turns", Values: []string{"7"}}, 3, ""},
		{config.Change{Key: "sandbox"}, 2, ""},
		{config.Change{Key: "providers.x"}, 1, ""},
		{config.Change{Key: "providers.x"}, 1, "providers.x is not set"},
		{config.Change{Key: "tui.theme"}, 0, ""},
	} {
		err := file.Set(c.change)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%+v: %v", c.change, err)
		}
		if got := config.Faults(file.Faulty()); len(got) != c.left {
			t.Errorf("%+v: %v are left", c.change, got)
		}
	}
	now, err := os.ReadFile(path)
	if want := "# mine\nmax_turns = 7 # no\nmode = \"plan\"\n\n\n[tui]\nvim = true\n"; err != nil || string(now) != want {
		t.Errorf("%q, %v", now, err)
	}
}
