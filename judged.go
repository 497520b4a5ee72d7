package inspan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/inspan/inspan/internal/policy"
	"github.com/inspan/inspan/internal/secret"
	"github.com/inspan/inspan/tool"
)

// judged is what a call that runs was judged by. Between the verdict and the
// run a link may have come to lead elsewhere, or a repository to name programs:
// what is done then is refused.
type judged struct {
	effects []tool.Effect // as stored
	stored  func(string) string
	asked   bool // somebody was, and has seen the variables
}

// held is the environment of a call that runs: no wider than its verdict. The effects are as
// they are stored, and what they open is what their placeholders stand for.
func held(c *tool.Call, k known, asked bool, pass tool.Pass, vault *secret.Vault) tool.Env {
	effects, meant := k.effects, mappedEffects(k.effects, vault.Resolve)
	env, anything, external := placed(opened(c, meant, pass), meant), false, false
	for _, e := range effects {
		anything = anything || e.Kind == tool.External && e.Text == ""
		external = external || e.Kind == tool.External
	}
	if anything {
		return env
	}
	by := judged{effects, k.stored, asked}
	if env.Files != nil {
		env.Files = judgedFiles{env.Files, by}
	}
	if env.HTTP != nil {
		env.HTTP = judgedHTTP{env.HTTP, by}
	}
	if free := c.Mode == tool.ModeYolo; env.Procs != nil && (!free || !external || asked) {
		throws := slices.ContainsFunc(effects, func(e tool.Effect) bool { return e.Throwaway })
		env.Procs = judgedProcs{env.Procs, by, env.Walls.Read && !free && tool.ReadOnly(effects), throws, free, external}
	}
	return env
}

// placed is the environment of a call for which paths for temporary files are the machine's
// if it was judged so.
func placed(env tool.Env, effects []tool.Effect) tool.Env {
	var machine []string
	for _, e := range effects {
		if e.Kind == tool.Write && !e.Own && env.Own(e.Path, true) {
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

// opened is the environment of a call with open what it was judged to reach
// although it is sensitive: the policy is the one judge of that.
func opened(c *tool.Call, effects []tool.Effect, pass tool.Pass) tool.Env {
	env := c.Env
	pass = passOf(c.Mode, effects, pass)
	if files, ok := env.Files.(tool.Opener); ok && pass.Some() {
		env.Files = files.Opened(pass)
	}
	if env.Procs != nil && pass.Some() {
		env.Procs = passing{env.Procs, pass}
	}
	return env
}

// passing starts processes that may reach what the call was judged to reach.
type passing struct {
	tool.Procs
	pass tool.Pass
}

// Start implements [tool.Procs].
func (p passing) Start(ctx context.Context, c tool.Command) (tool.Process, error) {
	c.Pass = p.pass
	return p.Procs.Start(ctx, c)
}

// telling starts processes of a call that are told which span they belong to and who acts, whatever
// they were told before.
type telling struct {
	tool.Procs
	call *tool.Call
}

// Start implements [tool.Procs].
func (p telling) Start(ctx context.Context, c tool.Command) (tool.Process, error) {
	who := p.call.Who
	c.Vars = append(c.Vars[:len(c.Vars):len(c.Vars)], "TRACEPARENT="+p.call.Traceparent,
		"INSPAN_SESSION="+p.call.Session, "INSPAN_AGENT="+who.Kind, "INSPAN_PARENT="+who.Parent, "INSPAN_LEAD="+who.Lead)
	return p.Procs.Start(ctx, c)
}

// passOf is what a call was judged to reach although it is sensitive, beside what
// people have opened anyway.
func passOf(mode tool.Mode, effects []tool.Effect, p tool.Pass) tool.Pass {
	p.All = mode == tool.ModeYolo
	for _, e := range effects {
		switch {
		case e.Sensitive == "":
		case e.Kind == tool.Read:
			p.Read = append(p.Read, e.Path)
		case e.Kind == tool.Write:
			p.Write = append(p.Write, e.Path)
		}
	}
	return p
}

// by reports whether the call was judged by an effect that takes this one in.
func (j judged) by(kind tool.EffectKind, what string) bool {
	what = j.stored(what)
	return slices.ContainsFunc(j.effects, func(e tool.Effect) bool {
		switch {
		case e.Kind != kind:
			return false
		case kind == tool.Network:
			return e.Text == what || e.Text == "" && what == "*"
		}
		return tool.Inside(e.Path, what)
	})
}

// differs is the name of a variable that is not as the call was judged by it; empty: there is none.
func (j judged) differs(vars []string) string {
	var was []string
	for _, e := range j.effects {
		if e.Vars != "" {
			was = append(was, strings.Split(e.Vars, "\n")...)
		}
	}
	is := make([]string, len(vars))
	for i, kv := range vars {
		is[i] = j.stored(tool.Exported([]string{kv}))
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

// reaches reports whether the call was judged by a host that takes this one in.
func (j judged) reaches(u *url.URL) bool {
	port, err := strconv.Atoi(cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme]))
	return err == nil && slices.ContainsFunc(j.effects, func(e tool.Effect) bool {
		return policy.Reaches(e, j.stored(u.Hostname()), port)
	})
}

func notJudged(op, path, what string) error {
	return &fs.PathError{Op: op, Path: path, Err: fmt.Errorf("it has come to need %s, which this call was not judged by: %w",
		what, fs.ErrPermission)}
}

// judgedFiles are files of which only those can be changed that a call was
// judged by.
type judgedFiles struct {
	tool.Files
	judged judged
}

// Change implements [tool.Files].
func (f judgedFiles) Change(ctx context.Context, c tool.Change) error {
	path, err := f.Resolve(ctx, c.Path)
	if err != nil {
		return err
	}
	if !f.judged.by(tool.Write, path) {
		return notJudged("change", c.Path, path)
	}
	c.Path, c.Exact = path, true
	return f.Files.Change(ctx, c)
}

// shownFiles are files of which a call changes those that a person was shown only while they are what was
// shown: that is what was approved.
type shownFiles struct {
	tool.Files
	stored func(string) string

	mu  sync.Mutex
	was map[string]string // conditions of the changes by path; the call is free to change what it has changed
}

// asShown holds the files of a call to what a person was shown of them.
func asShown(files tool.Files, shown []tool.File, stored func(string) string) tool.Files {
	if files == nil || len(shown) == 0 {
		return files
	}
	f := &shownFiles{Files: files, stored: stored, was: map[string]string{}}
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
	case c.If == "" || c.If == was:
		c.If = was
		err = f.Files.Change(ctx, c)
	default:
		err = tool.ErrChanged
	}
	if errors.Is(err, tool.ErrChanged) {
		return fmt.Errorf("%s changed while the person was asked about this call; read it again, nothing was written to it", c.Path)
	}
	if err == nil {
		delete(f.was, f.stored(path))
	}
	return err
}

// judgedProcs starts processes within walls that open only what a call was
// judged by.
type judgedProcs struct {
	tool.Procs
	judged judged
	reads  bool // it was judged as one that only reads, and so stays in the read box
	throws bool // it was judged as one whose changes of the workspace are thrown away
	free   bool // in mode yolo a variable of another command asks nobody
	any    bool // it was judged as one that could reach anything
}

// Start implements [tool.Procs].
func (p judgedProcs) Start(ctx context.Context, c tool.Command) (tool.Process, error) {
	if led := !p.free && (c.Box.Level == tool.BoxNone || len(c.Box.Hosts) > 0); led || p.judged.asked {
		if name := p.judged.differs(c.Vars); name != "" {
			return nil, notJudged("run", c.Args[0], "the variable "+name+" as another command has left it since")
		}
	}
	if c.Keep && !slices.ContainsFunc(p.judged.effects, func(e tool.Effect) bool { return e.Kind == tool.Keep }) {
		return nil, notJudged("run", c.Args[0], "to go on after the session")
	}
	if p.any {
		return p.Procs.Start(ctx, c)
	}
	if p.reads && c.Box.Level == tool.BoxDefault {
		c.Box.Level = tool.BoxRead
	}
	if p.reads && c.Box.Level != tool.BoxRead {
		return nil, notJudged("run", c.Args[0], "more than to read")
	}
	if p.throws && !c.Box.Throwaway {
		return nil, notJudged("run", c.Args[0], "a workspace that stays changed")
	}
	for _, open := range []struct {
		kind tool.EffectKind
		list []string
	}{{tool.Read, c.Box.Read}, {tool.Write, c.Box.Write}, {tool.Network, c.Box.Hosts}} {
		for _, what := range open.list {
			if !p.judged.by(open.kind, what) {
				return nil, notJudged("run", c.Args[0], what)
			}
		}
	}
	return p.Procs.Start(ctx, c)
}

// judgedHTTP reaches only servers that a call was judged by.
type judgedHTTP struct {
	tool.HTTP
	judged judged
}

// Do implements [tool.HTTP].
func (h judgedHTTP) Do(req *http.Request) (*http.Response, error) {
	if !h.judged.reaches(req.URL) {
		return nil, notJudged(req.Method, req.URL.Redacted(), req.URL.Host)
	}
	return h.HTTP.Do(req)
}
