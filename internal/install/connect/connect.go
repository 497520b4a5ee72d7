// Package connect manages a folder's connections to MCP servers, and the logins to these servers and to model
// providers.
package connect

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/extend/mcp"
	"github.com/inspan/inspan/internal/extend/plugin"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/safety/consent"
	"github.com/inspan/inspan/internal/safety/foreign"
	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/safety/secret"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// serverFiles returns the workspace files that configure MCP servers. They count if their exact content is
// trusted.
func serverFiles() []string { return []string{".mcp.json", filepath.Join(".inspan", "mcp.json")} }

// meetTime bounds how long a run waits for servers that were never connected before. Tools of known servers are
// offered at once.
const meetTime = 15 * time.Second

// Hubs holds the open connections, and makes new ones.
type Hubs struct {
	*config.Installation
	Logins  *Logins
	Consent *consent.Store
	Env     func(root string) (tool.Env, error) // environment for programs of a workspace
	Plugins func() []plugin.Enabled
	Sample  func(ctx context.Context, req llm.Request) (reply *llm.Reply, cost float64, err error) // answers servers that ask a model

	mu   sync.Mutex
	open map[string]*sharedHub // by workspace and servers
}

// configured returns the servers of settings, by name.
func configured(m config.MCP) []mcp.Server {
	var out []mcp.Server
	for _, name := range slices.Sorted(maps.Keys(m.Servers)) {
		s := m.Servers[name]
		out = append(out, mcp.Server{
			Name: name, Command: s.Command, Env: s.Env, Dir: s.Dir, Hosts: s.Hosts, Read: s.Read, Write: s.Write, Bare: s.Bare,
			URL: s.URL, Kind: s.Kind, Headers: s.Headers, Trust: s.Trust, Timeout: s.Timeout, Only: s.Only, Without: s.Without, Off: s.Off, Source: mcp.User,
		})
	}
	return out
}

// Add writes a server into the person's settings, as [config.AddServer] does, if it is valid.
func (h *Hubs) Add(name string, s config.MCPServer) error {
	if err := checkServers(config.MCP{Servers: map[string]config.MCPServer{name: s}}); err != nil {
		return err
	}
	return config.AddServer(h.ConfigPath, name, s)
}

// Servers lists the MCP servers of a workspace: those of the command line, the person's, the client's, those of
// plugins, and those of trusted workspace files. The first of two with the same name counts. Given are those of
// the command line or the client. Sum is as in [consent.Store.ReviewRunning].
func (h *Hubs) Servers(root, sum string, given []mcp.Server, warn func(string)) []mcp.Server {
	if h.Config.MCP.Off {
		return nil
	}
	all := slices.Concat(configured(h.Config.MCP), given, h.pluginServers(root, warn), h.workspaceServers(root, sum, warn))
	slices.SortStableFunc(all, func(a, b mcp.Server) int { return typed(b) - typed(a) })
	limits := config.Claudes(root)
	var out []mcp.Server
	for _, s := range all {
		why := config.ClaudeLimit(limits, func(l foreign.Limit) bool { return l.Servers.Bars(s.Name, s.Command, s.URL, s.Source == mcp.Project) })
		if why != "" {
			warn(fmt.Sprintf("the MCP server %s is not used: %s", s.Name, why))
			continue
		}
		if i := slices.IndexFunc(out, func(o mcp.Server) bool { return o.Name == s.Name }); i >= 0 {
			if out[i].Source == s.Source {
				warn(fmt.Sprintf("two MCP servers of the %s are called %s: inspan uses the first", s.Source, s.Name))
			} else {
				warn(fmt.Sprintf("two MCP servers are called %s: inspan uses that of the %s, not that of the %s", s.Name, out[i].Source, s.Source))
			}
			continue
		}
		out = append(out, s)
	}
	return out
}

// typed is 1 for a server of the command line, and 0 for others.
func typed(s mcp.Server) int {
	if s.Source == mcp.CommandLine {
		return 1
	}
	return 0
}

func (h *Hubs) pluginServers(root string, warn func(string)) []mcp.Server {
	var out []mcp.Server
	for _, p := range h.Plugins() {
		if len(p.Servers) == 0 {
			continue
		}
		data, err := json.Marshal(map[string]any{"mcpServers": p.Servers})
		if err != nil {
			continue // they were JSON before
		}
		for _, s := range readServers("plugin "+p.Name, root, data, "plugin "+p.Name, warn) {
			s.Read = append(s.Read, p.Dir)
			out = append(out, s)
		}
	}
	return out
}

func (h *Hubs) workspaceServers(root, sum string, warn func(string)) []mcp.Server {
	var out []mcp.Server
	for _, name := range serverFiles() {
		data, err := config.ReadFile(filepath.Join(root, name))
		if err != nil {
			continue // usually missing; other errors appear in the review
		}
		review, err := h.Consent.ReviewRunning(root, sum)
		trusted := func(i consent.Item) bool { return i.Path == filepath.ToSlash(name) }
		if err != nil || !slices.ContainsFunc(review.Trusted, trusted) {
			continue
		}
		// The content that was read must be the trusted one.
		if again, err := config.ReadFile(filepath.Join(root, name)); err != nil || string(again) != string(data) {
			warn(name + " changed while inspan read it; its servers are not used")
			continue
		}
		out = append(out, readServers(name, root, data, mcp.Project, warn)...)
	}
	return out
}

func readServers(path, root string, data []byte, source string, warn func(string)) []mcp.Server {
	list, problems, err := mcp.ReadFile(path, root, data)
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

// Hub is the connection to the servers of a workspace. All its sessions share it.
type Hub struct {
	*mcp.Manager
	logins *Logins
	close  func()
}

// Own returns the tools that manage the servers, independent of the servers' own; none without servers.
func (h *Hub) Own() []tool.Tool {
	if h == nil {
		return nil
	}
	list := []tool.Tool{mcpServerList(h.Manager), mcpResource(h.Manager), oauthFlow(h.logins.flow(h.Manager))}
	for i := range list {
		list[i].Ready = func(*tool.Call) { h.Ready() }
	}
	return list
}

// Offered returns the tools of the servers; none without servers.
func (h *Hub) Offered(ctx context.Context) []tool.Tool {
	if h == nil {
		return nil
	}
	h.Revive(ctx)
	return h.Tools()
}

// Served returns a function that reports the state of the servers for a session's run. It waits for unknown
// servers. It is nil without servers.
func (h *Hub) Served() func(context.Context, func(string)) []event.Server {
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
			tell(fmt.Sprintf("waiting for the MCP %s %s, used for the first time", word, strings.Join(names, ", ")))
		})
		var out []event.Server
		for _, s := range h.Status() {
			out = append(out, event.Server{Name: s.Name, State: string(s.State), Why: s.Why, Tools: s.Tools})
		}
		return out
	}
}

// Failed reports whether a server can't be used, and why.
func (h *Hub) Failed() (why string, failed bool) {
	for _, s := range h.Status() {
		if s.State != mcp.Ready && s.State != mcp.Login {
			return cmp.Or(s.Why, "it has not answered"), true
		}
	}
	return "", false
}

// Close releases the hub. The servers end when the last user has closed it. Further calls do nothing. A nil hub
// may be closed.
func (h *Hub) Close() {
	if h != nil {
		h.close()
	}
}

type sharedHub struct {
	root    string
	manager *mcp.Manager

	mu    sync.Mutex
	users map[*Hub]func(string) // each with its way to warn the person
}

// warn warns the people of all users.
func (s *sharedHub) warn(problem string) {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.users))
	s.mu.Unlock()
	for _, warn := range all {
		warn(problem)
	}
}

// Open starts the servers of a workspace in the background, unless they are running; nil if there are none.
// Servers with known tools start only when a model that could call them is asked, or when they are needed. The
// caller closes the hub. Warn is called with problems of the servers that their states don't tell, as long as the hub
// is open, maybe at the same time.
func (h *Hubs) Open(root string, servers []mcp.Server, env tool.Env, warn func(string)) *Hub {
	if len(servers) == 0 {
		return nil
	}
	key := root + "\x00" + fmt.Sprintf("%+v", servers)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open == nil {
		h.open = map[string]*sharedHub{}
	}
	s := h.open[key]
	first := s == nil
	if first {
		s = &sharedHub{root: root, users: map[*Hub]func(string){}, manager: h.manager(servers, env)}
		s.manager.Warn = s.warn
		h.open[key] = s
	}
	user := &Hub{Manager: s.manager, logins: h.Logins}
	user.close = sync.OnceFunc(func() { h.drop(key, user) })
	s.mu.Lock()
	s.users[user] = warn
	s.mu.Unlock()
	if first {
		s.manager.Rest()
	}
	return user
}

// OpenOne starts one server of settings, as [Hubs.Open] does.
func (h *Hubs) OpenOne(name string, s config.MCPServer, env tool.Env, warn func(string)) *Hub {
	return h.Open(env.Root, configured(config.MCP{Servers: map[string]config.MCPServer{name: s}}), env, warn)
}

func (h *Hubs) drop(key string, user *Hub) {
	h.mu.Lock()
	s := h.open[key]
	s.mu.Lock()
	delete(s.users, user)
	last := len(s.users) == 0
	s.mu.Unlock()
	if last {
		delete(h.open, key)
	}
	h.mu.Unlock()
	if last {
		s.manager.Close()
	}
}

// OpenAt starts the servers of a workspace without a session. Warn is called for errors in their settings, and as by
// [Hubs.Open].
func (h *Hubs) OpenAt(root, sum string, client []mcp.Server, warn func(string)) (*Hub, error) {
	env, err := h.Env(root)
	if err != nil {
		return nil, err
	}
	user := h.Open(env.Root, h.Servers(env.Root, sum, client, warn), env, warn)
	if user != nil {
		user.Start()
		letGo := user.close
		user.close = func() {
			letGo()
			_ = env.Close() // what others still use continues, and is cleaned up later
		}
	}
	return user, nil
}

// settleTime bounds how long a person waits for servers to connect. Each tries for 15 seconds, some twice.
const settleTime = 35 * time.Second

// Await waits until each server is connected or has failed, at most settleTime.
func (h *Hub) Await(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	h.Settle(ctx)
}

// Settled is OpenAt, and waits for the servers. A nil hub without an error means that there are none.
func (h *Hubs) Settled(ctx context.Context, root string, warn func(string)) (*Hub, error) {
	hub, err := h.OpenAt(root, "", nil, warn)
	if err != nil || hub == nil {
		return nil, err
	}
	hub.Await(ctx)
	return hub, nil
}

// With is Settled for a workspace that has the named server.
func (h *Hubs) With(ctx context.Context, root, name string, warn func(string)) (*Hub, error) {
	hub, err := h.Settled(ctx, root, warn)
	if err != nil {
		return nil, err
	}
	if hub != nil {
		for _, s := range hub.Status() {
			if s.Name == name {
				return hub, nil
			}
		}
		hub.Close()
	}
	return nil, noServer(name)
}

func noServer(name string) error {
	return fmt.Errorf("no MCP server %q; see 'inspan mcp list'", words.OneLine(name, 60))
}

// Leave logs out of the named server of a workspace, and revokes its tokens.
func (h *Hubs) Leave(ctx context.Context, root, name string, warn func(string)) error {
	for _, s := range h.Servers(root, "", nil, warn) {
		if s.Name == name {
			return h.Logins.LeaveServer(ctx, s)
		}
	}
	return noServer(name)
}

// Managers returns the managers of the servers that are open for a workspace. It starts all their servers:
// prompts and resources are unknown without them.
func (h *Hubs) Managers(root string) []*mcp.Manager {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []*mcp.Manager
	for _, h := range h.open {
		if h.root == root {
			h.manager.Start()
			out = append(out, h.manager)
		}
	}
	return out
}

// manager creates the manager of the connections to servers.
func (h *Hubs) manager(servers []mcp.Server, env tool.Env) *mcp.Manager {
	// A server's address comes from the person or a trusted file. Its responses are bounded message by message.
	reach := func(s mcp.Server) *http.Client {
		guard := netguard.For(s.URL, h.Local())
		guard.MaxBytes = 1 << 40
		return guard.Client()
	}
	servers = slices.Clone(servers)
	for i, s := range servers {
		if s.Auth != nil {
			servers[i].Auth = given{s.Auth, h.Logins}
		}
	}
	expand := func(s mcp.Server, name string) string { // servers that are not the person's own get few secrets
		if h.withheld(s, name) {
			return ""
		}
		return os.Getenv(name)
	}
	m := &mcp.Manager{
		Env: env, HTTP: reach, Servers: servers, Expand: expand, Withheld: h.withheld,
		Pins: mcp.Pins{Dir: filepath.Join(h.StateDir, "mcp")}, Sample: h.Sample, Auth: h.Logins,
	}
	if h.Config.Sandbox.Off {
		m.Level = tool.BoxNone
	}
	return m
}

// withheld reports whether an existing variable is withheld from a server: those that are not the person's own get
// secrets only if the settings say so.
func (h *Hubs) withheld(s mcp.Server, name string) bool {
	return !s.Own() && os.Getenv(name) != "" && secret.Named(name) && !slices.Contains(h.Config.MCP.Secrets[s.Name], name)
}

// PromptNamed is a server's prompt as a slash command, with its name and usage.
type PromptNamed struct {
	mcp.Prompt
	Command string // mcp__SERVER__PROMPT
	Usage   string
}

// Prompts lists the prompts of the servers that are open for a workspace.
func (h *Hubs) Prompts(root string) []PromptNamed {
	var out []PromptNamed
	dashed := strings.NewReplacer(" ", "-", "/", "-", "\t", "-")
	for _, m := range h.Managers(root) {
		for _, p := range m.Prompts() {
			var args []string
			for _, arg := range p.Args {
				open, end := "[", "]"
				if arg.Required {
					open, end = "<", ">"
				}
				args = append(args, open+arg.Name+end)
			}
			out = append(out, PromptNamed{p, "mcp__" + p.Server + "__" + dashed.Replace(p.Name), strings.Join(args, " ")})
		}
	}
	return out
}

// Fill returns the text of a prompt for the model. The words of line are its arguments in order, the last one
// taking the rest; NAME=VALUE names one. The text is marked as the server's.
func (h *Hubs) Fill(ctx context.Context, root string, p mcp.Prompt, line string) (string, error) {
	args, err := promptArgs(p.Args, line)
	if err != nil {
		return "", err
	}
	err = errors.New("the MCP server " + p.Server + " is not connected")
	for _, m := range h.Managers(root) {
		text, failed := m.Prompt(ctx, p.Server, p.Name, args)
		if failed == nil {
			return "The person uses a prompt of the MCP server " + p.Server + ", which has written it:\n\n" + text, nil
		}
		err = failed
	}
	return "", err
}

// promptArgs assigns words to arguments.
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
			return nil, fmt.Errorf("%q is an extra argument", word)
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
