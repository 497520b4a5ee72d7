// Package hold confines a running call to its verdict.
//
// Between the verdict and the run, a link may change its target, or a repository may begin to name programs. [Env]
// gives the call access to the judged effects, and refuses everything else.
package hold

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/kernel/redact"
	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/safety/policy"
	"github.com/inspan/inspan/internal/safety/secret"
	"github.com/inspan/inspan/tool"
)

// verdict is the basis on which a call was allowed.
type verdict struct {
	effects []tool.Effect       // in their stored form
	stored  func(string) string // returns a text in its stored form
	asked   bool                // a person was asked, and saw the variables that the shell exports
}

// Env returns the environment for a call that is about to run, confined to its verdict. Asked means that a person was
// asked about the call. Pass holds the sensitive places that rules open. Vault resolves the placeholders in the effects.
func Env(c *tool.Call, judged redact.Resolved, asked bool, pass tool.Pass, vault *secret.Vault) tool.Env {
	effects, resolved := judged.Effects, redact.Effects(judged.Effects, vault.Resolve)
	env, unbounded, external := temporary(opened(c, resolved, pass), resolved), false, false
	for _, e := range effects {
		unbounded = unbounded || e.Kind == tool.External && e.Text == ""
		external = external || e.Kind == tool.External
	}
	if unbounded {
		return env
	}
	by := verdict{effects, judged.Hide, asked}
	if env.Files != nil {
		env.Files = files{env.Files, by}
	}
	if env.HTTP != nil {
		env.HTTP = client{env.HTTP, by}
	}
	// In yolo, processes with external effects are bound only to the variables that a person has seen.
	if free := c.Mode == tool.ModeYolo; env.Procs != nil && (!free || !external || asked) {
		env.Procs = procs{
			Procs: env.Procs, verdict: by, yolo: free, external: external,
			reads:     env.Walls.Read && !free && tool.ReadOnly(effects),
			throwaway: slices.ContainsFunc(effects, func(e tool.Effect) bool { return e.Throwaway }),
		}
	}
	return env
}

// temporary returns an environment in which the call writes to the machine's own temporary folder instead of the
// session's, for paths where the verdict says so.
func temporary(env tool.Env, effects []tool.Effect) tool.Env {
	var machine []string
	for _, e := range effects {
		if e.Kind == tool.Write && !e.Temporary && env.IsTemporary(e.Path, true) {
			machine = append(machine, e.Path)
		}
	}
	if machine == nil {
		return env
	}
	own := env.Temporary
	env.Files = env.Unwalled().Files
	env.Temporary = func(path string, boxed bool) bool { return !slices.Contains(machine, path) && own(path, boxed) }
	return env
}

// opener is an optional interface of [tool.Files] that keep sensitive places closed.
type opener interface {
	// Opened returns the same files with the sensitive places of p open.
	Opened(p tool.Pass) tool.Files
}

// opened returns an environment with access to the sensitive places among the judged effects.
func opened(c *tool.Call, effects []tool.Effect, pass tool.Pass) tool.Env {
	env := c.Env
	pass.All = c.Mode == tool.ModeYolo
	for _, e := range effects {
		switch {
		case e.Sensitive == "":
		case e.Kind == tool.Read:
			pass.Read = append(pass.Read, e.Path)
		case e.Kind == tool.Write:
			pass.Write = append(pass.Write, e.Path)
		}
	}
	if files, ok := env.Files.(opener); ok && pass.Any() {
		env.Files = files.Opened(pass)
	}
	if env.Procs != nil && pass.Any() {
		env.Procs = passing{env.Procs, pass}
	}
	return env
}

// passing starts processes with access to sensitive places.
type passing struct {
	tool.Procs
	pass tool.Pass
}

// Start implements [tool.Procs].
func (p passing) Start(ctx context.Context, c tool.Command) (tool.Process, error) {
	c.Pass = p.pass
	return p.Procs.Start(ctx, c)
}

// Named starts processes with environment variables that name their span and agent.
type Named struct {
	tool.Procs
	Call *tool.Call
}

// Start implements [tool.Procs].
func (p Named) Start(ctx context.Context, c tool.Command) (tool.Process, error) {
	who := p.Call.Who
	c.Vars = append(c.Vars[:len(c.Vars):len(c.Vars)], "TRACEPARENT="+p.Call.Traceparent,
		"INSPAN_SESSION="+p.Call.Session, "INSPAN_AGENT="+who.Kind, "INSPAN_PARENT="+who.Parent, "INSPAN_LEAD="+who.Lead)
	return p.Procs.Start(ctx, c)
}

// covers reports whether one of the effects includes this one.
func (v verdict) covers(kind tool.EffectKind, object string) bool {
	object = v.stored(object)
	return slices.ContainsFunc(v.effects, func(e tool.Effect) bool {
		switch {
		case e.Kind != kind:
			return false
		case kind == tool.Network:
			return e.Text == object || e.Text == "" && object == "*"
		}
		return text.Inside(e.Path, object)
	})
}

// differs returns the name of a variable that has changed since the verdict; empty if there is none.
func (v verdict) differs(vars []string) string {
	var was []string
	for _, e := range v.effects {
		if e.Vars != "" {
			was = append(was, strings.Split(e.Vars, "\n")...)
		}
	}
	is := make([]string, len(vars))
	for i, kv := range vars {
		is[i] = v.stored(Exported([]string{kv}))
	}
	for _, lists := range [][2][]string{{is, was}, {was, is}} {
		for _, line := range lists[0] {
			if !slices.Contains(lists[1], line) {
				name, _, _ := strings.Cut(line, "=")
				return name
			}
		}
	}
	return ""
}

// reaches reports whether one of the effects includes the host.
func (v verdict) reaches(u *url.URL) bool {
	port := netguard.Port(u)
	return port > 0 && slices.ContainsFunc(v.effects, func(e tool.Effect) bool {
		return policy.Reaches(e, v.stored(u.Hostname()), port)
	})
}

// notJudged returns the error for access that is not among the judged effects.
func notJudged(op, path, access string) error {
	return &fs.PathError{Op: op, Path: path, Err: fmt.Errorf("it now needs %s, which was not part of its approval: %w",
		access, fs.ErrPermission)}
}

// files lets a call change only files among the judged effects.
type files struct {
	tool.Files
	verdict verdict
}

// Change implements [tool.Files].
func (f files) Change(ctx context.Context, c tool.Change) error {
	path, err := f.Resolve(ctx, c.Path)
	if err != nil {
		return err
	}
	if !f.verdict.covers(tool.Write, path) {
		return notJudged("change", c.Path, path)
	}
	c.Path, c.Exact = path, true
	return f.Files.Change(ctx, c)
}

// shownFiles lets a call change a file that a person was shown only if the file has not changed since.
type shownFiles struct {
	tool.Files
	stored func(string) string

	mu  sync.Mutex
	was map[string]string // shown digests, by path, of files that the call has not changed yet
}

// Shown refuses changes of files that have changed since a person was shown them. Hide comes from the call's
// [redact.Resolved].
func Shown(files tool.Files, shown []tool.File, hide func(string) string) tool.Files {
	if files == nil || len(shown) == 0 {
		return files
	}
	f := &shownFiles{Files: files, stored: hide, was: map[string]string{}}
	for _, s := range shown {
		f.was[s.Path] = cmp.Or(s.Digest, tool.NoFile)
	}
	return f
}

// Change implements [tool.Files].
func (f *shownFiles) Change(ctx context.Context, c tool.Change) error {
	path, err := f.Resolve(ctx, c.Path)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	was, shown := f.was[f.stored(path)]
	switch {
	case !shown:
		return f.Files.Change(ctx, c)
	case c.IfDigest == "" || c.IfDigest == was:
		c.IfDigest = was
		err = f.Files.Change(ctx, c)
	default:
		err = tool.ErrChanged
	}
	if errors.Is(err, tool.ErrChanged) {
		return fmt.Errorf("%s changed after the person was shown it, so nothing was written; read it again", c.Path)
	}
	if err == nil {
		delete(f.was, f.stored(path))
	}
	return err
}

// procs starts processes in a sandbox with access to the judged effects only.
type procs struct {
	tool.Procs
	verdict   verdict
	reads     bool // the call only reads, so it must use the read box
	throwaway bool // its changes of the workspace must be discarded
	yolo      bool // mode yolo, which does not ask about variables of other commands
	external  bool // it has an external effect, so its access is not known
}

// Start implements [tool.Procs].
func (p procs) Start(ctx context.Context, c tool.Command) (tool.Process, error) {
	if widened := !p.yolo && (c.Box.Level == tool.BoxNone || len(c.Box.Hosts) > 0); widened || p.verdict.asked {
		if name := p.verdict.differs(c.Vars); name != "" {
			return nil, notJudged("run", c.Args[0], "a new value of the variable "+name+", which another command has changed since")
		}
	}
	if c.Keep && !slices.ContainsFunc(p.verdict.effects, func(e tool.Effect) bool { return e.Kind == tool.Keep }) {
		return nil, notJudged("run", c.Args[0], "to continue after the session")
	}
	if p.external {
		return p.Procs.Start(ctx, c)
	}
	if p.reads && c.Box.Level == tool.BoxDefault {
		c.Box.Level = tool.BoxRead
	}
	if p.reads && c.Box.Level != tool.BoxRead {
		return nil, notJudged("run", c.Args[0], "more than read access")
	}
	if p.throwaway && !c.Box.Throwaway {
		return nil, notJudged("run", c.Args[0], "to keep its changes of the workspace")
	}
	for _, open := range []struct {
		kind tool.EffectKind
		list []string
	}{{tool.Read, c.Box.Read}, {tool.Write, c.Box.Write}, {tool.Network, c.Box.Hosts}} {
		for _, object := range open.list {
			if !p.verdict.covers(open.kind, object) {
				return nil, notJudged("run", c.Args[0], object)
			}
		}
	}
	return p.Procs.Start(ctx, c)
}

// client reaches only hosts among the judged effects.
type client struct {
	tool.HTTP
	verdict verdict
}

// Do implements [tool.HTTP].
func (h client) Do(req *http.Request) (*http.Response, error) {
	if !h.verdict.reaches(req.URL) {
		return nil, notJudged(req.Method, req.URL.Redacted(), req.URL.Host)
	}
	return h.HTTP.Do(req)
}
