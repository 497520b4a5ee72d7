package equipment

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/inspan/inspan/internal/extend/custom"
	"github.com/inspan/inspan/tool"
)

// Session is the session that dynamic tools are listed for.
type Session struct {
	Root, Sum string // Sum is as in [consent.Store.ReviewRunning]
	Env       tool.Env
	Own       []tool.Tool                       // permanent tools
	Servers   []tool.Tool                       // that manage MCP servers
	Offered   func(context.Context) []tool.Tool // tools of these servers; nil means none
	Wrap      func([]tool.Tool) []tool.Tool
	Warn      func(string)
	Scripts   bool // scripts can be tools
	// Elsewhere says that the session works on another machine, so programs of this machine are not its tools.
	Elsewhere bool
}

// extra holds the known programs of a workspace and their trust.
type extra struct {
	Session
	mu      sync.Mutex
	trusted map[string]string              // digests by path
	pinned  func(path, digest string) bool // of the person's own programs
}

// Tools returns a function that lists the dynamic tools of a session: programs in the user's folders and, as
// far as their content is trusted, in the workspace, and the tools of MCP servers.
func (s *Set) Tools(of Session) func(context.Context) []tool.Tool {
	x, folders := s.programs(of)
	granted := func(w custom.Want) (value string, ok bool) { // the variables that the settings give to a tool
		if !slices.Contains(s.Config.ToolSecrets[w.Source][w.Tool], w.Name) {
			return "", false
		}
		return os.Getenv(w.Name), true
	}
	set := &custom.Set{Env: x.Env, Secret: granted, Warn: x.Warn, Folders: folders, Reserved: []string{"tool_search", "call_tool"}}
	set.Reserved = append(set.Reserved, namesOf(slices.Concat(x.Own, x.Servers))...)
	return func(ctx context.Context) []tool.Tool {
		s.review(x)
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

// programs returns the folders of a session's programs, and the known facts about them.
func (s *Set) programs(of Session) (*extra, []custom.Folder) {
	x := &extra{Session: of}
	if of.Elsewhere {
		return x, nil
	}
	folders := []custom.Folder{
		{Dir: s.ToolsDir(), Source: "user", Trusted: x.pins, Remedy: "approve it with 'inspan tools promote NAME --user'"},
		{Dir: filepath.Join(x.Root, ".inspan", "tools"), Source: "project", Trusted: x.trusts},
	}
	for _, p := range s.Plugins() {
		folders = append(folders, p.Tools...)
	}
	return x, folders
}

// review updates which programs may run.
func (s *Set) review(x *extra) {
	review, err := s.Consent.ReviewRunning(x.Root, x.Sum)
	pinned := s.pinned()
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.trusted, x.pinned = map[string]string{}, pinned; err != nil {
		return
	}
	for _, i := range review.Trusted {
		x.trusted[filepath.Join(x.Root, filepath.FromSlash(i.Path))] = i.Digest
	}
}

// Programs returns the programs that can be tools of a session, by their names and contents. It starts none.
func (s *Set) Programs(of Session) []string {
	x, folders := s.programs(of)
	s.review(x)
	return custom.Digests(folders)
}

func namesOf(list []tool.Tool) (names []string) {
	for _, t := range list {
		names = append(names, t.Name)
	}
	return names
}

// OwnTools returns how many programs in the tool folders are usable in the folder root, and the problems of the
// others.
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

// trusts reports whether the content of a workspace program is trusted.
func (x *extra) trusts(path, digest string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return digest != "" && x.trusted[path] == digest
}

// pins reports whether the content of one of the person's programs may run.
func (x *extra) pins(path, digest string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.pinned(path, digest)
}
