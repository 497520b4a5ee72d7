package equipment

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/inspan/inspan/internal/extend/custom"
	"github.com/inspan/inspan/internal/safety/consent"
	"github.com/inspan/inspan/tool"
)

// Session is the session that tools which come and go are listed for.
type Session struct {
	Root, Sum string // Sum is as in [consent.Store.ReviewRunning]
	Env       tool.Env
	Own       []tool.Tool                       // that are always there
	Servers   []tool.Tool                       // that deal with MCP servers
	Offered   func(context.Context) []tool.Tool // by these servers; nil: there are none
	Wrap      func([]tool.Tool) []tool.Tool
	Warn      func(string)
	Scripts   bool // can be tools
	// Elsewhere: the session works on another machine, so no program of this one is a tool of it.
	Elsewhere bool
}

// extra is what is known of the programs of a workspace.
type extra struct {
	Session
	mu      sync.Mutex
	trusted map[string]string              // digests by path
	pinned  func(path, digest string) bool // of the person's own
}

// Tools returns what lists the tools of a session that come and go: the programs in the folders of
// the user and, as far as their content is trusted, of the workspace, and what MCP servers offer.
func (s *Set) Tools(of Session) func(context.Context) []tool.Tool {
	x := &extra{Session: of}
	set := &custom.Set{
		Env: x.Env, Secret: s.granted, Warn: x.Warn,
		Folders: []custom.Folder{
			{Dir: s.ToolsDir(), Source: "user", Trusted: x.pins, Remedy: "approve it with 'inspan tools promote NAME --user'"},
			{Dir: filepath.Join(x.Root, ".inspan", "tools"), Source: "project", Trusted: x.trusts},
		},
		Reserved: []string{"tool_search", "call_tool"},
	}
	for _, p := range s.Plugins() {
		set.Folders = append(set.Folders, p.Tools...)
	}
	if of.Elsewhere {
		set.Folders = nil
	}
	set.Reserved = append(set.Reserved, namesOf(slices.Concat(x.Own, x.Servers))...)
	return func(ctx context.Context) []tool.Tool {
		x.learn(s.Consent.ReviewRunning(x.Root, x.Sum))
		x.pin(s.pinned())
		found := set.Tools(ctx)
		if x.Scripts {
			found = append(found, s.scripts(x.Root, append(namesOf(found), set.Reserved...))...)
		}
		if x.Offered != nil {
			found = slices.Concat(found, x.Offered(ctx))
		}
		return slices.Concat(x.Servers, x.Wrap(found))
	}
}

func namesOf(list []tool.Tool) (names []string) {
	for _, t := range list {
		names = append(names, t.Name)
	}
	return names
}

// OwnTools tells how many programs in the folders of tools can be used in the folder root,
// and what is wrong with the others.
func (s *Set) OwnTools(ctx context.Context, root string) (usable int, problems []string, err error) {
	env, err := s.Env(root)
	if err != nil {
		return 0, nil, err
	}
	come := s.Tools(Session{
		Root: env.Root, Env: env, Wrap: func(list []tool.Tool) []tool.Tool { return list },
		Warn: func(text string) { problems = append(problems, text) },
	})
	usable = len(come(ctx))
	return usable, problems, env.Close()
}

// trusts reports whether the content of a program of the workspace is trusted.
func (x *extra) trusts(path, digest string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return digest != "" && x.trusted[path] == digest
}

// pins reports whether the content of a program of the person's may run.
func (x *extra) pins(path, digest string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.pinned(path, digest)
}

func (x *extra) pin(may func(path, digest string) bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.pinned = may
}

// learn takes over what of the workspace is trusted now.
func (x *extra) learn(review consent.Review, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.trusted = map[string]string{}
	if err != nil {
		return
	}
	for _, i := range review.Trusted {
		x.trusted[filepath.Join(x.Root, filepath.FromSlash(i.Path))] = i.Digest
	}
}

// granted is the value of a variable that the settings give to a tool.
func (s *Set) granted(w custom.Want) (value string, ok bool) {
	if !slices.Contains(s.Config.ToolSecrets[w.Source][w.Tool], w.Name) {
		return "", false
	}
	return os.Getenv(w.Name), true
}
