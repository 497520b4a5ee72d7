// Package setup sets inspan up for a person: it checks whether inspan works here, helps to choose a first
// model, and imports settings from other agents.
//
// A check returns a finding and, if something is wrong, a remedy. It fixes nothing itself.
package setup

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/install/equipment"
	"github.com/inspan/inspan/internal/install/providers"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/llm"
)

// Finding is the outcome of one check.
type Finding struct {
	Check   string
	State   State
	Found   string
	Remedy  string // what to do; empty if nothing is wrong
	Elapsed time.Duration
}

// State is the outcome of a check.
type State string

// States. Only Bad keeps inspan from working.
const (
	Good State = "ok"
	Warn State = "warning"
	Bad  State = "problem"
	Skip State = "skipped"
)

// probeTimeout bounds the tiny request to each provider.
const probeTimeout = 20 * time.Second

// lowDisk is the free disk space, in bytes, below which long sessions may fail.
const lowDisk = 500 << 20

// Doctor runs all checks, for the given model or, if empty, that of the settings. With probe it sends a tiny
// request to each provider that is ready, which costs a few tokens.
func Doctor(ctx context.Context, self, model string, probe bool) []Finding {
	a, err := app.Load(self)
	if err != nil {
		return unloaded(err)
	}
	findings := []Finding{settings(a), state(a), disk(a), environment(a), chosen(ctx, a, model)}
	model = cmp.Or(model, a.Config.Model)
	route, _ := a.Providers.Route(model) // chosen reports an invalid one
	for _, p := range a.Providers.List() {
		_, set := a.Config.Providers[p.Name]
		asked, named := strings.CutPrefix(route, p.Name+"/")
		if named {
			p.Default = asked // the model that sessions use
		}
		listed := slices.Contains([]string{"ollama", "openai", "openai-responses"}, p.Kind)
		here := probe && listed && p.Stays() && p.BaseURL != "" && (set || named)
		if (set || p.Ready && p.KeyEnv != "") && (!here || p.Default != "") {
			findings = append(findings, provider(ctx, a, p, probe))
		}
		if here {
			findings = append(findings, lists(ctx, a, p, "server"))
		}
	}
	findings = append(findings, video(providers.Devices(ctx)))
	if probe {
		findings = append(findings, local(ctx, a)...)
	}
	findings = append(findings, programs(ctx)...)
	root, err := filepath.Abs(".")
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err != nil {
		return append(findings, Finding{Check: "folder", State: Bad, Found: err.Error(), Remedy: "go to an existing folder"})
	}
	return append(findings, here(ctx, a, root, probe)...)
}

// unloaded reports each fault of invalid settings.
func unloaded(err error) []Finding {
	var out []Finding
	for _, fault := range config.Faults(err) {
		out = append(out, Finding{Check: "settings", State: Bad, Found: fault.Error()})
	}
	if len(out) == 0 {
		out = []Finding{{Check: "settings", State: Bad, Found: err.Error()}}
	}
	out[len(out)-1].Remedy = "correct the file with 'inspan config edit', or move it away to use the defaults"
	return out
}

func settings(a *app.App) Finding {
	f := Finding{Check: "settings", State: Good, Found: a.ConfigPath}
	if _, err := os.Stat(a.ConfigPath); err != nil {
		f.Found += " (missing; the defaults apply)"
	}
	return f
}

// state checks that the state folder is writable.
func state(a *app.App) Finding {
	dir := a.Store().Dir
	f := Finding{Check: "sessions", State: Good, Found: dir}
	err := os.MkdirAll(dir, 0o700)
	var probe *os.File
	if err == nil {
		probe, err = os.CreateTemp(dir, ".doctor-*")
	}
	if err == nil {
		err = probe.Sync()
		probe.Close()
		os.Remove(probe.Name())
	}
	if err != nil {
		f.State, f.Found = Bad, err.Error()
		f.Remedy = "make the folder writable, or set INSPAN_STATE_DIR to another"
	}
	return f
}

// environment lists the variables that commands don't get.
func environment(a *app.App) Finding {
	f := Finding{Check: "environment", State: Good, Found: "commands get the full environment"}
	var names []string
	for _, w := range a.Permission.Withheld("") {
		names = append(names, w.Name)
	}
	if len(names) > 0 {
		f.Found = "not passed to commands: " + strings.Join(names, ", ") + "; list variables in sandbox.environment to pass them"
	}
	return f
}

func disk(a *app.App) Finding {
	free, err := keep.Free(existing(a.StateDir))
	f := Finding{Check: "disk", State: Good, Found: fmt.Sprintf("%d MB free", free>>20)}
	switch {
	case err != nil:
		f.State, f.Found = Skip, err.Error()
	case free < lowDisk:
		f.State, f.Remedy = Warn, "free some space; 'inspan sessions rm' deletes old sessions"
	}
	return f
}

// existing returns path or the nearest existing folder above it.
func existing(path string) string {
	for {
		if _, err := os.Stat(path); err == nil || path == filepath.Dir(path) {
			return path
		}
		path = filepath.Dir(path)
	}
}

func chosen(ctx context.Context, a *app.App, model string) Finding {
	c, err := a.Providers.Model(ctx, model, "")
	switch {
	case err != nil && model != "":
		return Finding{Check: "model", State: Bad, Found: err.Error(), Remedy: "name another with --model; 'inspan models' lists them"}
	case err != nil && a.Config.Model != "":
		return Finding{
			Check: "model", State: Bad, Found: err.Error(), Remedy: "or choose another with 'inspan setup'; 'inspan models' lists them",
		}
	case err != nil:
		return Finding{
			Check: "model", State: Warn, Found: "no model is configured",
			Remedy: "run 'inspan setup', set a key such as ANTHROPIC_API_KEY, or name a model with --model; 'inspan demo' needs neither",
		}
	}
	why := " is the default"
	if model != "" {
		why = " is the one of --model"
	}
	return Finding{Check: "model", State: Good, Found: c.Model.Info().Route() + why}
}

// provider sends a tiny request to a provider, or lists its models if no model of it is named anywhere.
func provider(ctx context.Context, a *app.App, p providers.Provider, probe bool) Finding {
	f := Finding{Check: "provider " + p.Name, State: Good}
	switch {
	case !p.Ready:
		f.State, f.Found, f.Remedy = Warn, "no key", p.Need+", or "+a.Providers.Advice.Setup
		return f
	case !probe:
		f.State, f.Found = Skip, "not contacted"+keyFrom(a, p)
		return f
	case p.Default == "":
		return lists(ctx, a, p, "provider")
	}
	c, err := a.Providers.Model(ctx, p.Name+"/"+p.Default, "")
	if err != nil {
		f.State, f.Found, f.Remedy = Bad, err.Error(), "correct providers."+p.Name+" in "+a.ConfigPath
		return f
	}
	began := time.Now()
	e := ask(ctx, c.Model)
	f.Elapsed = time.Since(began)
	f.Found = p.Default + " answers" + keyFrom(a, p)
	if e != nil {
		f.State = Bad
		if f.Found, f.Remedy = providers.Remedy(e); f.Remedy == "" {
			f.Remedy = remedy(e.Kind)
		}
	}
	return f
}

// keyFrom says where the key of a provider comes from, and which processes lack it.
func keyFrom(a *app.App, p providers.Provider) string {
	switch from := a.Providers.Source(p); from {
	case "":
		return ""
	case p.KeyEnv:
		return fmt.Sprintf("; its key is in the variable %s, which schedules and other shells may lack, unless you store one: inspan setup", from)
	default:
		return "; its key is in " + from
	}
}

func ask(ctx context.Context, m llm.Model) *llm.Error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	req := llm.Request{MaxOutput: 16, Messages: []llm.Message{{Role: llm.User, Parts: llm.Say("Say ok.")}}}
	for chunk, err := range m.Stream(ctx, req) {
		if err != nil {
			return llm.AsError(err)
		}
		if chunk.Reply != nil {
			return nil
		}
	}
	return &llm.Error{Kind: llm.KindStreamCut, Message: "no reply"}
}

// remedy returns the remedy for errors that the provider package has no advice on.
func remedy(kind llm.Kind) string {
	switch kind {
	case llm.KindAuthExpired:
		return "get a new key, or log in again"
	case llm.KindBilling, llm.KindQuota:
		return "check the account's credit at the provider"
	case llm.KindTransient, llm.KindTimeout, llm.KindCancelled:
		return "check the network and base_url; is the server running?"
	}
	return "try again later"
}

// programs looks for programs that tools and agents use.
func programs(ctx context.Context) []Finding {
	var out []Finding
	for _, p := range []struct{ name, arg, why string }{
		{"bash", "--version", "the bash tool falls back to sh without it"},
		{"git", "--version", "most projects need it"},
	} {
		f := Finding{Check: "program " + p.name, State: Good}
		line, err := sandbox.FirstLine(ctx, p.name, p.arg)
		f.Found = line
		if err != nil {
			f.State, f.Found, f.Remedy = Warn, "not found", "install "+p.name+": "+p.why
		}
		out = append(out, f)
	}
	tools := equipment.BuiltIn()
	f := Finding{Check: "tools", State: Good, Found: fmt.Sprintf("%d checked; 'inspan tools' lists those of a session here", len(tools))}
	for _, t := range tools {
		if _, err := t.Check([]byte(`{"no_such_field":1}`)); err == nil {
			f.State, f.Found, f.Remedy = Bad, t.Name+" takes arguments it should not", "report this"
		}
	}
	return append(out, f)
}
