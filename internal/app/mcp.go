package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/config"
	"github.com/inspan/inspan/internal/consent"
	"github.com/inspan/inspan/internal/mcp"
	"github.com/inspan/inspan/internal/secret"
	"github.com/inspan/inspan/internal/text"
	"github.com/inspan/inspan/internal/words"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// serverFiles are the files of a workspace that name MCP servers, as far as their
// exact content is trusted.
func serverFiles() []string { return []string{".mcp.json", filepath.Join(".inspan", "mcp.json")} }

// meetTime is how long a run waits for servers that were never met; those that were are
// offered at once.
const meetTime = 15 * time.Second

// Servers lists the MCP servers of a workspace: the person's, those that the client
// brought, those of plugins, and those of files of the workspace that are trusted.
// Of two with one name the first counts. Sum is as in [App.Review].
func (a *App) Servers(root, sum string, client []mcp.Server, warn func(string)) []mcp.Server {
	if a.Config.MCP.Off {
		return nil
	}
	all := slices.Concat(a.Config.MCP.List(), client, a.pluginServers(warn), a.workspaceServers(root, sum, warn))
	var out []mcp.Server
	for _, s := range all {
		if i := slices.IndexFunc(out, func(o mcp.Server) bool { return o.Name == s.Name }); i >= 0 {
			warn(fmt.Sprintf("there are two MCP servers called %s: that of the %s is used, not that of the %s", s.Name, out[i].Source, s.Source))
			continue
		}
		out = append(out, s)
	}
	return out
}

func (a *App) pluginServers(warn func(string)) []mcp.Server {
	var out []mcp.Server
	plugins, _ := a.enabledPlugins()
	for _, p := range plugins {
		if len(p.Servers) == 0 {
			continue
		}
		data, err := json.Marshal(map[string]any{"mcpServers": p.Servers})
		if err != nil {
			continue // they came as JSON
		}
		for _, s := range readServers("plugin "+p.Name, data, "plugin "+p.Name, warn) {
			s.Read = append(s.Read, p.Dir)
			out = append(out, s)
		}
	}
	return out
}

func (a *App) workspaceServers(root, sum string, warn func(string)) []mcp.Server {
	var out []mcp.Server
	for _, name := range serverFiles() {
		data, err := config.ReadFile(filepath.Join(root, name))
		if err != nil {
			continue // mostly there is none; what it is otherwise, a review says
		}
		review, err := a.Review(root, sum)
		trusted := func(i consent.Item) bool { return i.Path == filepath.ToSlash(name) }
		if err != nil || !slices.ContainsFunc(review.Trusted, trusted) {
			continue
		}
		// What was read must be what is trusted.
		if again, err := config.ReadFile(filepath.Join(root, name)); err != nil || string(again) != string(data) {
			warn(name + " changed while it was read; its servers are not used")
			continue
		}
		out = append(out, readServers(name, data, mcp.Project, warn)...)
	}
	return out
}

func readServers(path string, data []byte, source string, warn func(string)) []mcp.Server {
	list, problems, err := mcp.ReadFile(path, data)
	if err != nil {
		problems = append(problems, err.Error())
	}
	for _, p := range problems {
		warn(text.Visible(p))
	}
	for i := range list {
		list[i].Source = source
	}
	return list
}

// Hub is the connection to the servers of a workspace. All sessions there share it.
type Hub struct {
	*mcp.Manager
	close func()
}

// served says how the servers are, for the run of a session, which waits for those that
// are not known yet. It is nil if there are none.
func (h *Hub) served() func(context.Context, func(string)) []event.Server {
	if h == nil {
		return nil
	}
	return func(ctx context.Context, tell func(string)) []event.Server {
		h.Revive(ctx)
		ctx, cancel := context.WithTimeout(ctx, meetTime)
		defer cancel()
		h.Meet(ctx, func(names []string) {
			word := "server"
			if len(names) > 1 {
				word += "s"
			}
			tell(fmt.Sprintf("waiting for the MCP %s %s, which inspan meets for the first time", word, strings.Join(names, ", ")))
		})
		var out []event.Server
		for _, s := range h.Status() {
			out = append(out, event.Server{Name: s.Name, State: string(s.State), Why: s.Why, Tools: s.Tools})
		}
		return out
	}
}

// Close lets go of it. The servers end with the last one that does. Further calls do
// nothing.
func (h *Hub) Close() { h.close() }

// hubs are the open ones, by what they are made of.
type hubs struct {
	mu   sync.Mutex
	open map[string]*sharedHub
}

type sharedHub struct {
	root    string
	manager *mcp.Manager
	users   map[*Hub]bool
}

// Hub starts the servers of a workspace in the background, unless they are started
// already; nil if there are none. Whoever gets it closes it.
func (a *App) Hub(root string, servers []mcp.Server, env tool.Env) *Hub {
	if len(servers) == 0 {
		return nil
	}
	key := root + "\x00" + fmt.Sprintf("%+v", servers)
	a.hubs.mu.Lock()
	defer a.hubs.mu.Unlock()
	if a.hubs.open == nil {
		a.hubs.open = map[string]*sharedHub{}
	}
	s := a.hubs.open[key]
	if s == nil {
		s = &sharedHub{root: root, users: map[*Hub]bool{}}
		s.manager = a.manager(servers, env)
		a.hubs.open[key] = s
		s.manager.Start()
	}
	h := &Hub{Manager: s.manager}
	h.close = sync.OnceFunc(func() { a.hubs.drop(key, h) })
	s.users[h] = true
	return h
}

func (h *hubs) drop(key string, user *Hub) {
	h.mu.Lock()
	s := h.open[key]
	delete(s.users, user)
	last := len(s.users) == 0
	if last {
		delete(h.open, key)
	}
	h.mu.Unlock()
	if last {
		s.manager.Close()
	}
}

// HubAt starts the servers of a workspace for somebody who has no session there. Warn is
// told of what is wrong with their settings.
func (a *App) HubAt(root, sum string, client []mcp.Server, warn func(string)) (*Hub, error) {
	env, err := a.Env(root)
	if err != nil {
		return nil, err
	}
	h := a.Hub(env.Root, a.Servers(env.Root, sum, client, warn), env)
	if h != nil {
		letGo := h.close
		h.close = func() {
			letGo()
			_ = env.Close() // what others still use of it goes on, and is swept later
		}
	}
	return h, nil
}

// Env is the world that programs of a workspace run in.
func (a *App) Env(root string) (tool.Env, error) {
	rules, err := a.rules(root, Options{})
	if err != nil {
		return tool.Env{}, err
	}
	return a.env(root, nil, rules, "")
}

// Managers are those of the servers that are started for a workspace.
func (a *App) Managers(root string) []*mcp.Manager {
	a.hubs.mu.Lock()
	defer a.hubs.mu.Unlock()
	var out []*mcp.Manager
	for _, h := range a.hubs.open {
		if h.root == root {
			out = append(out, h.manager)
		}
	}
	return out
}

// manager makes what keeps the connections to servers.
func (a *App) manager(servers []mcp.Server, env tool.Env) *mcp.Manager {
	// Servers are reached where the person, or a file that they trust, says. What comes
	// from them is bounded message by message.
	reach := func(s mcp.Server) *http.Client {
		guard := a.guardAt(s.URL)
		guard.MaxBytes = 1 << 40
		return guard.Client()
	}
	m := &mcp.Manager{
		Env: env, HTTP: reach, Servers: servers, Expand: a.expand, Withheld: a.withheld,
		Pins: mcp.Pins{Dir: filepath.Join(a.StateDir, "mcp")}, Sample: a.sample, Auth: authorizer{a},
	}
	if a.Config.Sandbox.Off {
		m.Level = tool.BoxNone
	}
	return m
}

// expand is the value of a variable for a server. Those that are not the person's own
// get what looks like a secret only where the settings say so.
func (a *App) expand(s mcp.Server, name string) string {
	if a.withheld(s, name) {
		return ""
	}
	return os.Getenv(name)
}

// withheld reports whether a server does not get a variable that there is.
func (a *App) withheld(s mcp.Server, name string) bool {
	own := s.Source == mcp.User || s.Source == mcp.Client
	return !own && os.Getenv(name) != "" && secret.Named(name) && !slices.Contains(a.Config.MCP.Secrets[s.Name], name)
}

// sample has the model of the settings answer a server.
func (a *App) sample(ctx context.Context, req llm.Request) (reply *llm.Reply, cost float64, err error) {
	choice, err := a.Model(ctx, a.Config.Agents.Small, "")
	if err != nil {
		return nil, 0, err
	}
	req.Purpose = "sampling"
	by := choice.Model.Info()
	for chunk, err := range a.budgeted(choice.Model).Stream(ctx, req) {
		switch {
		case err != nil:
			return nil, 0, err
		case chunk.Routed != nil:
			by = chunk.Routed.Info
		case chunk.Reply != nil:
			price, _ := by.Prices.At(time.Now())
			return chunk.Reply, price.Cost(chunk.Reply.Used(req)), nil
		}
	}
	return nil, 0, errors.New("the stream ended without a reply")
}

// PromptNamed is a prompt of a server as a slash command: its name, and what it takes.
type PromptNamed struct {
	mcp.Prompt
	Command string // mcp__SERVER__PROMPT
	Usage   string
}

// Prompts lists the prompts of the servers that are started for a workspace.
func (a *App) Prompts(root string) []PromptNamed {
	var out []PromptNamed
	for _, m := range a.Managers(root) {
		for _, p := range m.Prompts() {
			var args []string
			for _, arg := range p.Args {
				open, end := "[", "]"
				if arg.Required {
					open, end = "<", ">"
				}
				args = append(args, open+arg.Name+end)
			}
			out = append(out, PromptNamed{p, "mcp__" + p.Server + "__" + strings.Map(dashed, p.Name), strings.Join(args, " ")})
		}
	}
	return out
}

func dashed(r rune) rune {
	if r == ' ' || r == '/' || r == '\t' {
		return '-'
	}
	return r
}

// FillPrompt returns the text of a prompt for the model. Words are its arguments in
// order, the last one taking the rest; NAME=VALUE names one. The text is marked as
// the server's.
func (a *App) FillPrompt(ctx context.Context, root string, p mcp.Prompt, line string) (string, error) {
	args, err := promptArgs(p.Args, line)
	if err != nil {
		return "", err
	}
	err = errors.New("the MCP server " + p.Server + " is not connected")
	for _, m := range a.Managers(root) {
		text, failed := m.Prompt(ctx, p.Server, p.Name, args)
		if failed == nil {
			return "The person uses a prompt of the MCP server " + p.Server + ", which has written it:\n\n" + text, nil
		}
		err = failed
	}
	return "", err
}

// promptArgs gives words to arguments.
func promptArgs(want []mcp.Arg, line string) (map[string]string, error) {
	out := map[string]string{}
	rest := strings.TrimSpace(line)
	var open []string
	for _, a := range want {
		open = append(open, a.Name)
	}
	for rest != "" {
		word, after, _ := strings.Cut(rest, " ")
		if name, value, named := strings.Cut(word, "="); named && slices.Contains(open, name) {
			out[name], rest = value, strings.TrimSpace(after)
			open = slices.DeleteFunc(open, func(o string) bool { return o == name })
			continue
		}
		switch len(open) {
		case 0:
			return nil, fmt.Errorf("%q is one argument too many", word)
		case 1:
			out[open[0]], rest, open = rest, "", nil
		default:
			out[open[0]], rest, open = word, strings.TrimSpace(after), open[1:]
		}
	}
	for _, a := range want {
		if _, given := out[a.Name]; a.Required && !given {
			return nil, fmt.Errorf("it needs %s: %s", a.Name, words.OneLine(a.Doc, 200))
		}
	}
	return out, nil
}
