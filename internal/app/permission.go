package app

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/config"
	"github.com/inspan/inspan/internal/guard"
	"github.com/inspan/inspan/internal/keep"
	"github.com/inspan/inspan/internal/netguard"
	"github.com/inspan/inspan/internal/places"
	"github.com/inspan/inspan/internal/policy"
	"github.com/inspan/inspan/internal/sandbox"
	"github.com/inspan/inspan/internal/secret"
	"github.com/inspan/inspan/internal/shell"
	"github.com/inspan/inspan/internal/text"
	"github.com/inspan/inspan/internal/tools"
	"github.com/inspan/inspan/tool"
)

// env is the machine as the tools of a session see it, with walls where they
// can be had.
func (a *App) env(root string, blobs tool.Blobs, rules []inspan.Rule, image string) (tool.Env, error) {
	closed, err := parsed(rules)
	if err != nil {
		return tool.Env{}, err
	}
	s := a.Config.Sandbox
	env, err := sandbox.Local(root, blobs, a.walls(policy.Close(a.places(root), closed), image))
	if err == nil && s.Off {
		env = env.Unwalled()
		env.Walls = tool.Walls{Why: "it is switched off in " + a.ConfigPath}
	}
	env.HTTP = a.http()
	return env, err
}

// beside tells the model of the folders beside the workspace.
func (o Options) beside() string {
	if len(o.Folders) == 0 {
		return ""
	}
	list := make([]string, len(o.Folders))
	for i, dir := range o.Folders {
		list[i] = "- " + text.Line(dir)
	}
	return "These folders belong to the work too. File tools may read and change them as they may the workspace, by absolute paths; commands reach there what their words name:\n" + strings.Join(list, "\n")
}

// http is how tools reach servers.
func (a *App) http() *http.Client {
	g := a.guard()
	g.MaxBytes = tools.MaxBody
	return unredirected(g)
}

func unredirected(g *netguard.Guard) *http.Client {
	client := g.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client
}

// guard keeps tools from the addresses of this machine and its network.
func (a *App) guard() *netguard.Guard {
	local, _ := a.Config.Sandbox.Ranges() // they were read when the settings were
	return &netguard.Guard{Local: local}
}

// walls says how processes are walled in and watched over. Those that ask for
// nothing special get the walls of the workspace. Image is what they run in; empty means what the settings say.
func (a *App) walls(m places.Map, image string) sandbox.Options {
	s := a.Config.Sandbox
	var container *sandbox.Container
	if image = cmp.Or(image, s.Container); image != "" {
		container = &sandbox.Container{Image: image, Engine: s.Engine}
	}
	return sandbox.Options{
		Container: container,
		Guard:     a.guard(),
		Shown:     a.skillFolders(),
		Self:      a.Self, Map: m, State: a.StateDir, Default: tool.BoxWorkspace, Environ: s.Environment, Keys: a.keys(), Pool: &a.pool,
		Limits: sandbox.Limits{
			CPU: time.Duration(s.CPU) * time.Second, Memory: s.Memory << 20, Processes: s.Processes, FileSize: s.FileSize << 20,
		},
	}
}

// TrySandbox proves the walls by trying to get through them.
func (a *App) TrySandbox(ctx context.Context) []sandbox.Check {
	return sandbox.Probe(ctx, a.walls(a.places(""), ""))
}

// parsed reads rules.
func parsed(rules []inspan.Rule) ([]policy.Rule, error) {
	var out []policy.Rule
	for _, r := range rules {
		rule, err := policy.ParseRule(r.Action, r.Text, r.Scope)
		if err != nil {
			return nil, configError{fmt.Errorf("%s %w", r.Action, err)}
		}
		rule.Reason = r.Reason
		out = append(out, rule)
	}
	return out, nil
}

// places is the machine as the judges see it.
func (a *App) places(root string) places.Map {
	return places.Map{
		Root: root, Home: keep.Home(), Programs: keep.Programs(), Moved: keep.Moved(), Settings: filepath.Dir(a.ConfigPath), State: []string{a.StateDir}, Shared: append(a.shared(), a.ownTools()), Open: a.public(root),
	}.Indexed()
}

// real is a path without links, as far as it is there.
func real(path string) string {
	if at, err := filepath.EvalSymlinks(path); err == nil {
		return at
	}
	dir := filepath.Dir(path)
	if dir == path {
		return path
	}
	return filepath.Join(real(dir), filepath.Base(path))
}

// private lists what no tool of a session reads or changes.
func (a *App) private() []string { return []string{a.StateDir, filepath.Dir(a.ConfigPath)} }

// ownTools is the folder of the person's tools, which run from there. The boxes open it for
// them; what the model asks for is judged without it.
func (a *App) ownTools() string { return filepath.Join(filepath.Dir(a.ConfigPath), "tools") }

// shared lists what of it they read: plugins run from there, and so do scripts of skills.
func (a *App) shared() []string {
	return []string{a.Plugins().Dir, filepath.Join(filepath.Dir(a.ConfigPath), "skills")}
}

// public makes the globs of the settings absolute.
func (a *App) public(root string) []string {
	var out []string
	for _, glob := range a.Config.Public {
		switch {
		case strings.HasPrefix(glob, "~/"):
			if glob = atHome(glob[2:]); glob == "" {
				continue
			}
		case !filepath.IsAbs(glob):
			glob = filepath.Join(root, glob)
		}
		out = append(out, glob)
	}
	return out
}

// atHome is a path below the user's home folder; empty if there is none.
func atHome(parts ...string) string {
	home := keep.Home()
	if home == "" {
		return ""
	}
	return filepath.Join(home, filepath.Join(parts...))
}

// secrets are the values that no session may show: those of variables that are
// called like secrets, and the keys that commands have printed.
func (a *App) secrets() map[string]string {
	out := map[string]string{}
	for _, kv := range os.Environ() {
		name, value, _ := strings.Cut(kv, "=")
		if _, err := os.Lstat(value); secret.Named(name) && name != "PWD" && name != "OLDPWD" && err != nil { // SSH_AUTH_SOCK is no secret
			out[name] = value
		}
	}
	for _, name := range a.keys() {
		out[name] = os.Getenv(name)
	}
	a.printed.Range(func(name, key any) bool {
		out[name.(string)], _ = key.(string)
		return true
	})
	return out
}

// keys are the variables that hold keys of inspan itself: of its providers, of its
// tools and of the web.
func (a *App) keys() []string {
	var out []string
	for _, p := range a.Providers() {
		out = append(out, p.KeyEnv)
	}
	for _, byTool := range a.Config.ToolSecrets {
		for _, names := range byTool {
			out = append(out, names...)
		}
	}
	for _, s := range a.Config.Web.Secrets {
		out = append(out, s.Env)
	}
	out = append(out, a.Config.Web.KeyEnv)
	return slices.DeleteFunc(out, func(name string) bool { return name == "" })
}

// Withheld lists the variables of the environment that commands don't get in a
// mode.
func (a *App) Withheld(mode string) []sandbox.Withheld {
	return sandbox.Withhold(os.Environ(), a.walls(places.Map{}, ""), mode == policy.ModeYolo)
}

// explained is what of that a failed command is told, by name.
func (a *App) explained(mode string) map[string]string {
	out := map[string]string{}
	for _, w := range a.Withheld(mode) {
		out[w.Name] = w.Why
	}
	return out
}

// rules gathers the rules of all scopes for a workspace.
func (a *App) rules(root string, o Options) ([]inspan.Rule, error) {
	project, err := config.LoadProject(root)
	if err != nil {
		return nil, configError{err}
	}
	var out []inspan.Rule
	org, user := a.organisation, a.Config
	for _, scope := range []struct {
		name  string
		rules []config.Rule
	}{
		{"organisation", config.AllRules(org.Allow, org.Ask, org.Deny, org.Rules)},
		{"user", config.AllRules(user.Allow, user.Ask, user.Deny, user.Rules)},
		{"project", config.AllRules(nil, project.Ask, project.Deny, project.Rules)},
		{"command line", config.AllRules(o.allowed(), o.Ask, o.Deny, nil)},
	} {
		for _, r := range scope.rules {
			out = append(out, inspan.Rule{Action: r.Action, Text: r.Text, Scope: scope.name, Reason: r.Reason})
		}
	}
	approved, err := a.approved(root)
	return slices.Concat(out, a.kept(root, o.Trust), approved), err
}

// allowed are the rules by which the command line allows.
func (o Options) allowed() []string {
	if o.KeepJobs {
		return append(slices.Clone(o.Allow), string(tool.Keep)+"(*)")
	}
	return o.Allow
}

// kept are rules that keep what may run, as the person trusts its exact content,
// from being changed by tools.
func (a *App) kept(root, sum string) []inspan.Rule {
	review, err := a.Review(root, sum)
	if err != nil {
		return nil // then nothing is trusted
	}
	var out []inspan.Rule
	for _, i := range review.Trusted {
		path := filepath.Join(root, filepath.FromSlash(i.Path))
		if strings.ContainsAny(path, `*?[]{}()\`) {
			continue // it is no pattern; what runs is checked again before it does
		}
		for _, text := range []string{path, path + "/**"} {
			out = append(out, inspan.Rule{
				Action: tool.Deny, Text: "write(" + text + ")", Scope: policy.TrustedContent,
				Reason: "it may run here because you trust it as it is; change it yourself, and look at it with 'inspan trust'",
			})
		}
	}
	return out
}

// judges are those beside the policy, cheap ones first.
func (a *App) judges(ctx context.Context, checks guard.Checks, unattended bool) ([]tool.Judge, error) {
	var list []tool.Judge
	if len(a.organisation.Modes) > 0 {
		list = append(list, tool.JudgeFunc(a.modeAllowed))
	}
	if len(a.Config.Checks) > 0 {
		list = append(list, checks)
	}
	r := a.Config.Reviewer
	if r == nil {
		return list, nil
	}
	choice, err := a.Model(ctx, r.Model, "")
	if err != nil {
		return nil, fmt.Errorf("reviewer: %w", err)
	}
	reviewer := &guard.Reviewer{Model: a.budgeted(choice.Model), MaxCost: r.MaxCost, Timeout: r.Timeout}
	if r.Allow && unattended {
		reviewer.Allows = policy.ModeAuto
	}
	return append(list, reviewer), nil
}

// modeAllowed denies everything in a mode that the organisation does not want.
func (a *App) modeAllowed(_ context.Context, c *tool.Call, _ []tool.Effect) (tool.Verdict, error) {
	if slices.Contains(a.organisation.Modes, c.Mode) {
		return tool.Verdict{}, nil
	}
	return tool.Verdict{Action: tool.Deny, By: "organisation", Reason: fmt.Sprintf("mode %s may not be used here; %s may", c.Mode, strings.Join(a.organisation.Modes, ", "))}, nil
}

// Explained is what would become of a command line.
type Explained struct {
	Root     string
	Mode     string
	Plan     shell.Plan
	Verdict  tool.Verdict
	Findings []policy.Finding
	Rules    []string // the narrowest that would allow what asks; empty: nothing asks, or it can only be allowed once
}

// Explain tells what would become of a command line in a workspace, in a mode;
// empty means the one new sessions start with. Nothing is run.
func (a *App) Explain(ctx context.Context, root, mode, command string) (Explained, error) {
	rules, err := a.rules(root, Options{})
	if err != nil {
		return Explained{}, err
	}
	env, err := a.env(root, nil, rules, "")
	if err != nil {
		return Explained{}, err
	}
	out := Explained{Root: env.Root, Mode: cmp.Or(mode, a.Config.Mode, policy.ModeAsk)}
	out.Plan = shell.Explain(command, shell.Place{Root: env.Root, Cwd: env.Root, Home: keep.Home(), Held: env.Walls.Read})
	p := policy.Policy{Map: a.places(env.Root)}
	if looker, ok := env.Files.(tool.Looker); ok {
		p.Map.Look = looker.Look
	}
	if p.Rules, err = parsed(rules); err != nil {
		return Explained{}, err
	}
	args, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		return Explained{}, err
	}
	call := &tool.Call{ID: "explain", Name: "bash", Args: args, Env: env, Cwd: env.Root, Mode: out.Mode}
	core := tools.Core(&tools.Shell{Home: keep.Home()}, "")
	bash := core[slices.IndexFunc(core, func(t tool.Tool) bool { return t.Name == call.Name })]
	effects, err := bash.Effects(ctx, call)
	if err != nil {
		return Explained{}, err
	}
	out.Findings = p.Findings(call, effects)
	verdicts := []tool.Verdict{}
	for _, f := range out.Findings {
		verdicts = append(verdicts, f.Verdict)
	}
	out.Verdict, out.Rules = policy.Combine(verdicts), policy.Proposals(out.Findings)
	return out, nil
}
