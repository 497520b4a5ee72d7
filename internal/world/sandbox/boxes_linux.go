package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/inspan/inspan/internal/world/sandbox/files"
	"github.com/inspan/inspan/internal/world/sandbox/gitfiles"
	"github.com/inspan/inspan/internal/world/sandbox/sensitive"
	"github.com/inspan/inspan/internal/world/sandbox/walls"
	"github.com/inspan/inspan/tool"
)

// Default limits; see [Limits].
const (
	defaultProcesses    = 4096
	defaultFileSize     = 16 << 30
	defaultReadFileSize = 256 << 20
)

// boxes builds the sandboxes of processes.
type boxes struct {
	*sensitive.Workspace
	o      Options
	engine *engine // nil means no containers

	network         sessionNetwork
	waiting         waitingKeepers
	mounts          mounts
	known           knownSecrets
	watches         watchPool
	newRepositories repositoryWatch
	temp            *files.Temp // nil means each box has its own folder
	cache           cache

	gitKinds func() []gitfiles.Kind
	flat     atomic.Bool // copies of git directories don't work here
	giving   sync.Mutex  // held while the changes of a box in copies of git directories are taken over

	base   sync.Once
	system []string // readable for every box
	etc    sync.Once
	closed []string // below /etc
}

func newProcs(root string, o Options) *procs {
	m := o.Map
	except := slices.Concat([]string{root, m.Home, m.Settings}, m.State, m.Apart, m.Also)
	ps := &procs{mark: rand.Text(), boxes: boxes{
		Workspace: &sensitive.Workspace{Root: root, Places: m, State: o.State},
		o:         o, gitKinds: sync.OnceValue(gitfiles.Allowed), engine: newEngine(o),
		temp: &files.Temp{Results: o.Results, Except: slices.DeleteFunc(except, func(path string) bool { return path == "" })},
	}}
	ps.boxes.Copies = ps.boxes.overlays
	return ps
}

// sessionTemp returns the session's own folder for temporary files.
func (b *boxes) sessionTemp() *files.Temp { return b.temp }

// close ends everything that the boxes share.
func (b *boxes) close() error {
	b.waiting.close()
	b.network.close()
	b.watches.close()
	b.newRepositories.close()
	return errors.Join(b.mounts.close(), b.temp.Close(), b.cache.close())
}

func (b *boxes) options() Options { return b.o }

// runner returns the runner for the command.
func (b *boxes) runner(ctx context.Context, c tool.Command, mark string) (runner, error) {
	level := b.o.level(c.Box)
	if b.o.Self == "" {
		if level != tool.BoxNone || b.engine != nil {
			return nil, fmt.Errorf("%w: this program has no keeper", tool.ErrNoBox)
		}
		return &direct{mark: mark}, nil
	}
	if level != tool.BoxNone && level != tool.BoxRead && level != tool.BoxWorkspace {
		return nil, fmt.Errorf("%w: there is no box %q", tool.ErrNoBox, level)
	}
	if err := b.throwable(c.Box); err != nil {
		return nil, fmt.Errorf("%w: %w", tool.ErrNoBox, err)
	}
	if b.engine != nil && level == tool.BoxWorkspace && len(c.Box.Hosts) > 0 {
		return nil, fmt.Errorf("%w: single hosts can't be opened in a container", tool.ErrNoBox)
	}
	if b.engine == nil && level == tool.BoxWorkspace && !c.Box.Throwaway {
		c.Box.Hosts = slices.Concat(c.Box.Hosts, b.o.Registries)
	}
	return &supervised{boxes: b, command: c, mark: mark, cancelled: ctx.Done()}, nil
}

// plan plans the box of a command.
func (b *boxes) plan(k *supervised) error {
	o := &k.order
	o.Level, o.Root, o.ABI = b.o.level(k.command.Box), b.Root, b.o.Landlock
	if b.engine != nil {
		o.Container, o.Image = true, k.command.Env == nil
	}
	if o.Level == tool.BoxNone {
		if b.engine != nil {
			o.Read, o.Write = plainGrants(k.command.Box.Read), append(b.Folders(), k.command.Box.Write...)
		}
		return nil
	}
	o.Limits = b.limits(o.Level)
	var found []sensitive.Place
	var err error
	if !k.bare {
		found, err = b.Find(true)
		found = slices.DeleteFunc(found, func(s sensitive.Place) bool { return s.Named && passed(k.command.Pass, s.Path) })
	}
	if err == nil {
		o.Read, err = b.grants(k.command, found)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", tool.ErrNoBox, err)
	}
	if err := b.planShared(k); err != nil {
		return fmt.Errorf("%w: %w", tool.ErrNoBox, err)
	}
	if o.Level == tool.BoxWorkspace {
		return b.planWorkspace(k, found)
	}
	if b.engine == nil && !o.Isolated {
		o.Temp = filepath.Join(files.TempFolder(), "inspan-"+rand.Text())
	}
	return nil
}

// planShared gives a box the resources that its session shares: to every workspace box, and to a read box that
// may see the session's temporary files. If Landlock can't confine signals, or outside processes must be
// invisible, every read box gets its own namespaces.
func (b *boxes) planShared(k *supervised) (err error) {
	o := &k.order
	own := func(path string) bool {
		_, _, ok := b.temp.Split(path)
		return ok && b.temp.Owns(path)
	}
	sees := !k.bare && (o.Level == tool.BoxWorkspace || own(o.Dir) || slices.ContainsFunc(k.command.Box.Read, own))
	o.Isolated = b.engine == nil && (sees || o.Level == tool.BoxWorkspace || !walls.KeepsSignals(o.ABI) || b.o.Alone)
	if !sees {
		return nil
	}
	o.AllTmp = o.Level == tool.BoxRead && slices.Contains(k.command.Box.Read, walls.TempFolders()[0][0])
	o.Read = slices.DeleteFunc(o.Read, func(g walls.Grant) bool { return own(g.Path) })
	o.Tmp, err = b.temp.Open()
	return err
}

// passed reports whether a file that is secret by its name is open to a command.
func passed(p tool.Pass, path string) bool {
	return slices.Contains(p.Read, path) || slices.Contains(p.Write, path)
}

func (b *boxes) limits(level tool.Level) walls.Limits {
	l := b.o.Limits
	out := walls.Limits{
		CPU: uint64(l.CPU.Seconds()), Memory: uint64(l.Memory),
		Processes: uint64(l.Processes), FileSize: uint64(l.FileSize),
	}
	if out.FileSize == 0 {
		out.FileSize = defaultFileSize
		if level == tool.BoxRead {
			out.FileSize = defaultReadFileSize
		}
	}
	if b.engine != nil {
		out.Memory, out.Processes = 0, 0 // passed to the engine
		return out
	}
	if out.Processes == 0 && level == tool.BoxWorkspace {
		out.Processes = defaultProcesses
	}
	return out
}
