package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/extend/mcp"
	"github.com/inspan/inspan/internal/extend/memory"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/install/providers"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/internal/world/lsp"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// serverTime bounds how long MCP servers may take to respond.
const serverTime = 10 * time.Second

// here checks the settings and the content of one folder. With probe it starts programs of the folder.
func here(ctx context.Context, a *app.App, root string, probe bool) []Finding {
	out := refused(a, root)
	if !slices.ContainsFunc(out, func(f Finding) bool { return f.State == Bad }) { // a fault keeps these from being created
		out = append(out, sandboxed(a, root), outside(a, root), ownTools(ctx, a, root))
		out = append(out, rules(ctx, a, root)...)
		if probe {
			out = append(out, servers(ctx, a, root)...)
		}
	}
	out = append(out, folders(a, root)...)
	out = append(out, languages(root)...)
	return append(out, memories(a, root)...)
}

// refused reports settings of the folder that have no effect.
func refused(a *app.App, root string) (out []Finding) {
	list, err := a.Permission.Settings(root)
	if err != nil { // the person's settings were read before
		return []Finding{{Check: "folder settings", State: Bad, Found: err.Error(), Remedy: "correct the file: inspan config edit --project"}}
	}
	_, err = a.Permission.Rules(root)
	faults := config.Faults(err)
	for _, fault := range faults {
		out = append(out, Finding{
			Check: "folder settings", State: Bad, Found: fault.Error(),
			Remedy: "no session starts here before you correct it: inspan config edit --project",
		})
	}
	var keys []string
	why := ""
	for _, s := range list {
		told := slices.ContainsFunc(faults, func(f config.Fault) bool { return f.About(s.Key) })
		if s.Ignored != "" && !told {
			keys, why = append(keys, s.Key), s.Ignored
		}
	}
	if len(keys) > 0 {
		out = append(out, Finding{Check: "folder settings", State: Warn, Found: strings.Join(keys, ", ") + " not in force", Remedy: why})
	}
	return out
}

// lists requests the model list of a provider, which is free.
func lists(ctx context.Context, a *app.App, p providers.Provider, what string) Finding {
	f := Finding{Check: what + " " + p.Name, State: Good}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	found, err := a.Providers.DiscoverAt(ctx, p.Name)
	switch {
	case err != nil && llm.AsError(err).Kind == llm.KindInvalid: // the server has no model list
		f.State, f.Found, f.Remedy = Skip, "no default model to ask", "set providers."+p.Name+".default in "+a.ConfigPath
		return f
	case err != nil:
		failed, todo := providers.Remedy(err)
		f.State, f.Found, f.Remedy = Bad, failed, cmp.Or(todo, remedy(llm.AsError(err).Kind))
		return f
	}
	f.Found = cmp.Or(p.BaseURL, p.Name) + " has " + text.Count(len(found.Models), "model")
	if found.Open {
		f.Found += " and lists them without a key, which is not checked"
	}
	return f
}

// sandboxed reports which sandbox commands get.
func sandboxed(a *app.App, root string) Finding {
	f := Finding{Check: "sandbox", State: Good, Found: "commands run in it; 'inspan doctor sandbox' tests each barrier"}
	env, err := a.Permission.Env(root)
	if err != nil {
		f.State, f.Found, f.Remedy = Bad, err.Error(), "run inspan in an existing, readable folder"
		return f
	}
	defer func() { _ = env.Close() }() // nothing ran in it
	if env.Walls.Why != "" {
		f.State, f.Found = Warn, "incomplete: "+env.Walls.Why
		f.Remedy = "until then more commands will ask, and hooks run without it; 'inspan doctor sandbox' tests each barrier"
		if a.Config.Sandbox.Off {
			f.Remedy = "remove off = true from the table sandbox"
		}
	}
	return f
}

// outside lists hooks, the status line and MCP servers that may run outside the sandbox.
func outside(a *app.App, root string) Finding {
	f := Finding{Check: "outside", State: Good, Found: "no hook, status line or MCP server runs outside the sandbox"}
	var list, unused []string
	for _, path := range a.Config.Sandbox.Outside {
		real, err := filepath.EvalSymlinks(path)
		switch {
		case err != nil:
			unused = append(unused, path+" is missing")
		case text.Inside(root, real):
			unused = append(unused, path+" is in this folder, where sessions can change it")
		default:
			list = append(list, path+" (sandbox.outside)")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.Config.MCP.Servers)) {
		if s := a.Config.MCP.Servers[name]; s.Bare && !s.Off && !a.Config.MCP.Off {
			list = append(list, "MCP server "+name+" (no_sandbox)")
		}
	}
	if len(list) > 0 {
		f.Found = "runs outside the sandbox: " + strings.Join(list, ", ")
	}
	if len(unused) > 0 {
		f.State, f.Remedy = Warn, "stays in the sandbox: "+strings.Join(unused, ", ")+"; correct sandbox.outside"
	}
	return f
}

// rules reports rules that match nothing, and rules without effect because another decides first.
func rules(ctx context.Context, a *app.App, root string) (out []Finding) {
	notes, err := a.Rules(ctx, root)
	if err != nil {
		return []Finding{{Check: "rules", State: Bad, Found: err.Error(), Remedy: "correct the rule"}}
	}
	for _, n := range notes {
		said := n.Scope + ": " + string(n.Action) + " " + words.OneLine(cmp.Or(n.Original, n.Text), 200)
		switch {
		case n.Unmatched != nil:
			f := Finding{Check: "rules", State: Warn, Found: said + " matches nothing here: " + n.Unmatched.Error(), Remedy: "correct or remove it"}
			if n.Action != tool.Allow {
				f.State, f.Remedy = Bad, "correct or remove it: unattended work does not start with it"
			}
			out = append(out, f)
		case n.By != nil:
			out = append(out, Finding{
				Check: "rules", State: Warn, Remedy: "remove one of them",
				Found: fmt.Sprintf("%s changes nothing: %s %s (%s) decides all that it matches", said, n.By.Action, words.OneLine(n.By.Text, 200), n.By.Scope),
			})
		}
	}
	if err := a.Permission.Unread(root); err != nil {
		out = append(out, Finding{Check: "rules", State: Bad, Found: err.Error(), Remedy: "correct the file"})
	}
	if out == nil {
		out = []Finding{{Check: "rules", State: Good, Found: text.Count(len(notes), "rule") + "; 'inspan policy rules' lists them"}}
	}
	return out
}

// ownTools starts the trusted programs in the tool folders.
func ownTools(ctx context.Context, a *app.App, root string) Finding {
	f := Finding{Check: "own tools", State: Good}
	usable, problems, err := a.Extensions.OwnTools(ctx, root)
	if err != nil {
		problems = append(problems, err.Error())
	}
	if f.Found = text.Count(usable, "tool") + " of yours and of this folder"; len(problems) > 0 {
		f.State, f.Found = Warn, f.Found+"; not usable: "+strings.Join(problems, "; ")
		f.Remedy = "run the program with --describe and check its output; programs of the folder need 'inspan trust'"
	}
	return f
}

// servers connects to the MCP servers.
func servers(ctx context.Context, a *app.App, root string) (out []Finding) {
	var problems []string
	hub, err := a.Hubs.OpenAt(root, "", nil, func(text string) { problems = append(problems, text) })
	if err != nil {
		problems = append(problems, err.Error())
	}
	for _, p := range problems {
		out = append(out, Finding{Check: "mcp", State: Warn, Found: p, Remedy: "correct the settings of the server"})
	}
	if hub == nil {
		return out
	}
	defer hub.Close()
	ctx, cancel := context.WithTimeout(ctx, serverTime)
	defer cancel()
	hub.Settle(ctx)
	for _, s := range hub.Status() {
		f := Finding{Check: "mcp " + words.OneLine(s.Name, 40), State: Good, Found: string(s.State) + ", " + text.Count(s.Tools, "tool")}
		if s.State != mcp.Ready && s.State != mcp.Off {
			f.State, f.Found = Warn, strings.Trim(string(s.State)+": "+s.Why, ": ")
			f.Remedy = map[mcp.State]string{
				mcp.Changed: "review its tools: inspan mcp agree " + s.Name, mcp.Login: "inspan mcp login " + s.Name,
			}[s.State]
			if f.Remedy == "" {
				f.Remedy = "correct that and try again with 'inspan mcp list', or remove it: inspan mcp remove " + s.Name
			}
		}
		out = append(out, f)
	}
	return out
}

// folders finds folders in which other users of the machine could put programs or files that inspan would run
// or trust.
func folders(a *app.App, root string) (out []Finding) {
	settings := filepath.Dir(a.ConfigPath)
	list := []string{settings, filepath.Join(settings, "tools"), filepath.Join(settings, "skills")}
	list = append(list, a.StateDir, root, filepath.Join(root, ".inspan"))
	list = append(list, filepath.SplitList(os.Getenv("PATH"))...)
	var seen []string
	for _, dir := range list {
		info, err := os.Stat(dir)
		if err != nil || !info.IsDir() || !filepath.IsAbs(dir) || slices.Contains(seen, dir) {
			continue
		}
		seen = append(seen, dir)
		// In a folder with the sticky bit, such as /tmp, others can still add files.
		if info.Mode().Perm()&0o002 != 0 {
			out = append(out, Finding{
				Check: "folder", State: Warn, Found: "every user of this machine can change " + dir, Remedy: "chmod o-w " + dir,
			})
		}
	}
	return out
}

// languages looks for language servers for the languages at the top of the folder.
func languages(root string) (out []Finding) {
	var found []string
	served, lacking := map[string]bool{}, map[string][]string{}
	for _, s := range lsp.Usual() {
		language := s.Name
		for _, id := range s.Languages {
			language = min(language, id)
		}
		if installed(s.Command[0], root) {
			found = append(found, s.Name)
			served[language] = true
			continue
		}
		if slices.ContainsFunc(s.RootMarkers, func(name string) bool {
			return name != "Makefile" && exists(filepath.Join(root, name)) // a Makefile builds any language
		}) {
			lacking[language] = append(lacking[language], s.Command[0])
		}
	}
	f := Finding{Check: "language servers", State: Good, Found: "none is installed"}
	if len(found) > 0 {
		f.Found = strings.Join(found, ", ")
	}
	out = append(out, f)
	for language, programs := range lacking {
		if !served[language] {
			out = append(out, Finding{
				Check: "language servers", State: Warn, Found: "none for the project in this folder", Remedy: "install " +
					strings.Join(programs, " or "),
			})
		}
	}
	advice := out[1:]
	slices.SortStableFunc(advice, func(a, b Finding) int { return strings.Compare(a.Remedy, b.Remedy) })
	return out
}

// installed reports whether a program is in PATH, outside of the folder.
func installed(name, root string) bool {
	return slices.ContainsFunc(filepath.SplitList(os.Getenv("PATH")), func(dir string) bool {
		info, err := os.Stat(filepath.Join(dir, name))
		return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 && !text.Inside(root, dir)
	})
}

// memories finds memory files that are too long for prompts.
func memories(a *app.App, root string) (out []Finding) {
	if a.Config.Memory.Off {
		return nil
	}
	store := a.Knowledge.Memory(root)
	for _, scope := range memory.Scopes() {
		path := filepath.Join(store.Dirs[scope], "MEMORY.md")
		lines, size, err := counted(path)
		f := Finding{Check: "memory " + string(scope), State: Warn}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			f.Found, f.Remedy = err.Error(), "make the file readable, or remove it"
		case lines > memory.MaxLines || size > memory.MaxBytes:
			f.Found = fmt.Sprintf("%s has %s and %s bytes; prompts leave out everything beyond %d lines or %s bytes",
				path, text.Count(lines, "line"), text.Thousands(size), memory.MaxLines, text.Thousands(memory.MaxBytes))
			f.Remedy = "move long entries into topic files next to it, or ask the agent to tidy the memory"
		default:
			continue
		}
		out = append(out, f)
	}
	return out
}

// counted returns the number of lines and bytes of a file.
func counted(path string) (lines, size int, err error) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > 16<<20 { // too large for a memory file
		if err == nil {
			err = fmt.Errorf("%s is not a text file", path)
		}
		return 0, 0, err
	}
	data, err := keep.Read(path)
	text := strings.TrimSuffix(string(data), "\n")
	return strings.Count(text, "\n") + 1, len(data), err
}
