package plugin_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/extend/custom"
	"github.com/inspan/inspan/internal/extend/plugin"
	"github.com/inspan/inspan/internal/extend/skill"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

func TestParts(t *testing.T) {
	s := store(t)
	p := install(t, s, put(t, t.TempDir(), full()))
	parts := p.Parts()
	if parts.Problems != nil {
		t.Errorf("%q", parts.Problems)
	}
	if want := []skill.Folder{{Path: filepath.Join(p.Dir, "skills"), Source: "plugin acme", Prefix: "acme:"}}; !cmp.Equal(want, parts.Skills) {
		t.Errorf("%+v", parts.Skills)
	}
	skills, warnings := parts.Listed()
	if len(skills) != 1 || skills[0].Name != "acme:deploy" || warnings != nil {
		t.Errorf("%+v %q", skills, warnings)
	}
	var commands []string
	for _, c := range parts.Commands {
		commands = append(commands, c.Name+"|"+c.Source+"|"+c.Text)
	}
	if want := []string{"acme:git:log|plugin acme|Show the log.", "acme:review|plugin acme|Review with " + p.Dir +
		"/rules.txt $ARGUMENTS"}; !slices.Equal(commands, want) {
		t.Errorf("%q", commands)
	}
	if a := parts.Agents; len(a) != 1 || a[0].Name != "acme:critic" || a[0].Source != "plugin acme" ||
		!slices.Equal(a[0].Skills, []string{"acme:deploy"}) || !strings.Contains(a[0].Prompt, p.Dir+"/rules.txt") {
		t.Errorf("%+v", a)
	}
	if h := parts.Hooks; len(h) != 1 || h[0].On != tool.AfterCall || h[0].Source != "plugin acme" || h[0].PluginRoot != p.Dir || !h[0].Claude {
		t.Errorf("%+v", h)
	}
	if f := parts.Tools; len(f) != 1 || f[0].Dir != filepath.Join(p.Dir, "tools") || f[0].Source != "plugin acme" || parts.Programs() != 2 {
		t.Errorf("%+v %d", f, parts.Programs())
	}
	if got, want := string(parts.Servers["db"]), `{"args":["--port","1"],"command":"`+p.Dir+
		`/db","env":{"A":"b","TOKEN":"hush"}}`; got != want {
		t.Errorf("%s", got)
	}
	want := []string{
		`hook at after_call of Write: runs "${CLAUDE_PLUGIN_ROOT}"/scripts/fmt.sh`, "MCP server db: starts " + p.Dir +
			"/db --port 1 with A, TOKEN", "script scripts/fmt.sh", "script skills/deploy/scripts/go.sh",
		"tool tools/shout", "tool tools/whisper/run", "skill acme:deploy: may use Bash(touch:*) without asking",
	}
	if diff := cmp.Diff(want, parts.Runs); diff != "" {
		t.Error(diff)
	}
	tokens, lines := p.Cost()
	wantLines := []string{
		"skill acme:deploy: 9 tokens", "agent acme:critic: 9 tokens", "tools: unknown until they have described themselves",
		"MCP servers: unknown until they have listed their tools",
	}
	if diff := cmp.Diff(wantLines, lines); tokens != 18 || diff != "" {
		t.Error(tokens, diff)
	}
}

// TestNamedPlaces checks the meaning of the paths in a manifest: they add to the usual places.
func TestNamedPlaces(t *testing.T) {
	const hooks = `{"Stop":[{"hooks":[{"type":"command","command":"echo %s"}]}]}`
	at := func(name string) string { return strings.Replace(hooks, "%s", name, 1) }
	s := store(t)
	p := install(t, s, put(t, t.TempDir(), map[string]string{
		manifest: `{"name":"n","commands":["./one.md","./more/","./commands","./gone"],"agents":"./a.md","skills":["./lib/x","./lib/y","./other/"],"tools":"./bin",
			"hooks":["./h.json",` + at("inline") + `,{"hooks":` + at("wrapped") + `}],"mcpServers":{"s":{"url":"https://h/${CLAUDE_PLUGIN_ROOT}"}}}`,
		"one.md": "One.", "more/two.md": "Two.", "commands/three.md": "Three.", "commands/One.md": "Again.", "commands/notes.txt": "x",
		"commands/bad name.md": "x",
		"a.md":                 "---\ndescription: An agent.\n---\nDo it.", "agents/README.md": "# None",
		"lib/x/SKILL.md": "---\ndescription: X.\n---\nX", "lib/y/SKILL.md": "---\ndescription: Y.\n---\nY",
		"lib/z/SKILL.md": "---\ndescription: Z.\n---\nZ", "other/w/SKILL.md": "---\ndescription: W.\ndisable-model-invocation: true\n---\nW",
		"bin/t*": "#!/bin/sh\n", "bin/_no*": "#!/bin/sh\n", "bin/lib/x*": "#!/bin/sh\n",
		"h.json": `{"hooks":` + at("file") + `}`, "hooks/hooks.json": `{"hooks":` + at("usual") + `}`,
		".mcp.json": `{"s":{"command":"first"},"t":{"command":"c"},"odd":[1]}`,
	}))
	parts := p.Parts()
	var commands, hookLines, skills []string
	for _, c := range parts.Commands {
		commands = append(commands, c.Name)
	}
	for _, h := range parts.Hooks {
		hookLines = append(hookLines, h.Command)
	}
	list, _ := parts.Listed()
	for _, s := range list {
		skills = append(skills, s.Name)
	}
	if want := []string{"n:One", "n:three", "n:two"}; !slices.Equal(commands, want) {
		t.Errorf("%q", commands)
	}
	if want := []string{"echo usual", "echo file", "echo inline", "echo wrapped"}; !slices.Equal(hookLines, want) {
		t.Errorf("%q", hookLines)
	}
	if want := []string{"n:x", "n:y", "n:w"}; !slices.Equal(skills, want) {
		t.Errorf("%q", skills)
	}
	if len(parts.Agents) != 1 || parts.Agents[0].Name != "n:a" || parts.Programs() != 1 || len(parts.Servers) != 3 ||
		string(parts.Servers["s"]) != `{"command":"first"}` {
		t.Errorf("%+v %d %s", parts.Agents, parts.Programs(), parts.Servers)
	}
	if n, lines := p.Cost(); len(lines) != 5 || n == 0 || strings.Contains(strings.Join(lines, ""), "n:w") {
		t.Errorf("%q", lines)
	}
	problems := strings.Join(parts.Problems, "\n")
	for _, want := range []string{
		"names ./gone, which", "bad name.md is not a command",
		"agents/README.md is not a kind of agent", "its server s is there twice",
	} {
		if !strings.Contains(problems, strings.Replace(want, "./", "", 1)) {
			t.Errorf("%q is not in\n%s", want, problems)
		}
	}
	if all := strings.Join(parts.Runs, "\n"); !strings.Contains(all, "tool bin/t") || !strings.Contains(all, "script bin/lib/x\n") ||
		!strings.Contains(all, "MCP server odd: of an unknown type") {
		t.Errorf("%s", all)
	}
}

// TestServersAreShownAsTheyRun checks that a key in another case does not hide what runs.
func TestServersAreShownAsTheyRun(t *testing.T) {
	for server, want := range map[string]string{
		`{"command":"evil","Command":"nice"}`:           "starts evil",
		`{"Command":"nice"}`:                            "unknown type",
		`{"command":"a","url":"https://h"}`:             "unknown type",
		`{"command":"a\u001b[2K\nb","args":["\u202e"]}`: `starts a\x1b[2K\x0ab \u202e`,
		`{"url":"https://h/x"}`:                         "connects to https://h/x",
	} {
		p := install(t, store(t), put(t, t.TempDir(), map[string]string{
			manifest:    `{"name":"a"}`,
			".mcp.json": `{"mcpServers":{"s":` + server + `}}`,
		}))
		if runs := p.Parts().Runs; len(runs) != 1 || !strings.Contains(runs[0], want) || strings.ContainsAny(runs[0], "\x1b\n\u202e") {
			t.Errorf("%s: %q", server, runs)
		}
	}
}

// TestRootInCommands runs command lines as hooks do, in a folder whose name would
// mean something to the shell.
func TestRootInCommands(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no sh here")
	}
	dir := filepath.Join(t.TempDir(), `a b; $(touch evil) 'q' "d" *`)
	for line, want := range map[string]string{
		`printf '[%s]' ${CLAUDE_PLUGIN_ROOT}/x.sh`:             "[@/x.sh]",
		`printf '[%s]' $CLAUDE_PLUGIN_ROOT/x.sh`:               "[@/x.sh]",
		`printf '[%s]' "${CLAUDE_PLUGIN_ROOT}/x.sh" 'b'`:       "[@/x.sh][b]",
		`printf '[%s]' ${INSPAN_PLUGIN_ROOT}/x`:                "[@/x]",
		`printf '[%s]' "$(printf %s ${CLAUDE_PLUGIN_ROOT}/y)"`: "[@/y]",
		`printf '[%s]' '${CLAUDE_PLUGIN_ROOT}'`:                "[${CLAUDE_PLUGIN_ROOT}]",
		"cat <<E\n${CLAUDE_PLUGIN_ROOT}\nE":                    "@\n",
		`A=${CLAUDE_PLUGIN_ROOT}; printf '[%s]' "$A"`:          "[@]",
		`printf '[%s]' "${NONE:-${CLAUDE_PLUGIN_ROOT}}"`:       "[@]",
		`printf '[%s]' ${CLAUDE_PLUGIN_ROOT_X}x`:               "[x]",
		`sh -c 'printf "[%s]" "$1"' sh ${CLAUDE_PLUGIN_ROOT}`:  "[@]",
	} {
		src := put(t, t.TempDir(), map[string]string{
			manifest:           `{"name":"a"}`,
			"hooks/hooks.json": `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":` + quoted(line) + `}]}]}}`,
		})
		s := &plugin.Store{Dir: dir}
		p := install(t, s, src)
		h := p.Parts().Hooks[0]
		if strings.Contains(line, "NONE") && h.Command != line {
			t.Errorf("quotes in quotes: %s", h.Command)
		}
		cmd := exec.Command(sh, "-c", h.Command)
		cmd.Env, cmd.Dir = []string{"PATH=" + os.Getenv("PATH"), "CLAUDE_PLUGIN_ROOT=" + h.PluginRoot}, t.TempDir()
		out, err := cmd.CombinedOutput()
		if want := strings.ReplaceAll(want, "@", p.Dir); err != nil || string(out) != want {
			t.Errorf("%s became %s: %q, want %q (%v)", line, h.Command, out, want, err)
		}
		if err := s.Remove(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestToolsRun makes tools of a plugin's programs, and checks that a program that has changed since is left out.
func TestToolsRun(t *testing.T) {
	const say = "#!/bin/sh\necho '{\"name\":\"NAME\",\"description\":\"x\",\"schema\":{\"type\":\"object\"},\"effects\":{\"read\":true}}'\n"
	named := func(name string) string { return strings.Replace(say, "NAME", name, 1) }
	p := install(t, store(t), put(t, t.TempDir(), map[string]string{
		manifest: `{"name":"a"}`, "tools/one*": named("one"), "tools/two/run*": named("two"), "tools/two/b/c": "x", "tools/two/b.c": "y",
		"tools/two/b-c": "z",
	}))
	env, err := sandbox.Local(t.TempDir(), nil, sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	names := func() (out []string) {
		told = nil
		set := &custom.Set{Env: env, Folders: p.Parts().Tools, Warn: func(text string) { told = append(told, text) }, Patience: time.Minute}
		put(t, p.Dir, map[string]string{"tools/three*": named("three")})
		for _, t := range set.Tools(t.Context()) {
			out = append(out, t.Name)
		}
		remove(t, filepath.Join(p.Dir, "tools", "three"))
		return out
	}
	if got := names(); !slices.Equal(got, []string{"one", "two"}) || len(told) != 1 || !strings.Contains(told[0], "three") {
		t.Errorf("%q %q", got, told)
	}
	put(t, p.Dir, map[string]string{"tools/two/b/c": "X"})
	if got := names(); !slices.Equal(got, []string{"one"}) {
		t.Errorf("%q %q", got, told)
	}
}

func quoted(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text) + `"`
}

func TestHookKinds(t *testing.T) {
	p := install(t, store(t), put(t, t.TempDir(), map[string]string{manifest: `{"name":"a"}`, "hooks/hooks.json": `{"hooks":{
		"Stop":[{"hooks":[{"type":"http","url":"https://h.example/x"},{"type":"command","command":"if [[","args":null},{"type":"command","command":"run","args":["${INSPAN_PLUGIN_ROOT}/x","a b"]},{"type":"prompt"}]}]}}`}))
	parts := p.Parts()
	want := []string{
		"hook at stop: sends events to https://h.example/x", "hook at stop: runs if [[",
		"hook at stop: runs run ${CLAUDE_PLUGIN_ROOT}/x a b",
	}
	if diff := cmp.Diff(want, parts.Runs); diff != "" {
		t.Error(diff)
	}
	if len(parts.Problems) != 1 || !strings.Contains(parts.Problems[0], `type "prompt"`) {
		t.Errorf("%q", parts.Problems)
	}
}
