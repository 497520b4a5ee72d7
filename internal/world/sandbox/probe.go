//go:build unix

package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/tool"
)

// Check is the result of testing one restriction.
type Check struct {
	Name string // such as "read box: write"
	OK   bool
	Text string // for people: the attempt and, if not OK, the problem
}

// Probe tests the sandbox by trying to escape it, in a temporary workspace. Each attempt is also made without
// the sandbox, where it must succeed: otherwise a test could pass because its target is missing. Of the options
// it uses Self, Limits, Container and Landlock.
func Probe(ctx context.Context, o Options) []Check {
	p, err := newProbe(o)
	if err != nil {
		return []Check{{Name: "setup", Text: err.Error()}}
	}
	defer p.close()
	checks := describe(o)
	if failed(checks) {
		return checks
	}
	checks = append(checks,
		Check{Name: "read box", OK: p.env.Walls.Read, Text: or(p.env.Walls.Read, "can be built", p.env.Walls.Why)},
		Check{Name: "workspace box", OK: p.env.Walls.Workspace, Text: or(p.env.Walls.Workspace, "can be built", p.env.Walls.Why)},
	)
	for _, level := range []tool.Level{tool.BoxRead, tool.BoxWorkspace} {
		if level == tool.BoxRead && !p.env.Walls.Read || level == tool.BoxWorkspace && !p.env.Walls.Workspace {
			continue
		}
		for _, try := range p.tries() {
			checks = append(checks, p.check(ctx, level, try))
		}
	}
	if p.env.Walls.Workspace {
		checks = append(checks, p.works(ctx), p.appears(ctx))
		if !p.inside {
			checks = append(checks, p.throws(ctx))
		}
	}
	return checks
}

// failed reports whether a check failed.
func failed(checks []Check) bool {
	return slices.ContainsFunc(checks, func(c Check) bool { return !c.OK })
}

func or(ok bool, yes, no string) string {
	if ok {
		return yes
	}
	return no
}

// probe is a test environment with a target behind each restriction.
type probe struct {
	env      tool.Env
	open     tool.Env // without a box or a container
	inside   bool     // in containers
	dir      string
	listener net.Listener
}

// try is one attempt. The script exits with 0 if it escaped.
type try struct {
	name, script string
	read         bool // only the read box stops it
	inside       bool // the target is also in the container, if there is one; otherwise only outside
}

func newProbe(o Options) (*probe, error) {
	dir, err := os.MkdirTemp("", "inspan-probe-")
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	p := &probe{dir: dir, inside: o.Container != nil}
	for name, text := range map[string]string{
		"ws/file": "plain", "ws/.env": "secret",
		"ws/.git/config": "", "ws/.git/hooks/x": "", "out/file": "private",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			p.close()
			return nil, err
		}
	}
	if p.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		p.close()
		return nil, err
	}
	p.env, err = Local(filepath.Join(dir, "ws"), nil, Options{
		Self: o.Self, Limits: o.Limits, Container: o.Container, Landlock: o.Landlock, State: filepath.Join(dir, "state"),
		Map: places.Map{Home: filepath.Join(dir, "home"), State: []string{filepath.Join(dir, "state")}},
	})
	if err == nil {
		p.open, err = Local(filepath.Join(dir, "ws"), nil, Options{})
	}
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *probe) close() {
	if p.listener != nil {
		_ = p.listener.Close()
	}
	_ = p.env.Close()
	_ = os.RemoveAll(p.dir)
}

func (p *probe) tries() []try {
	beyond, host := filepath.Join(p.dir, "out"), strconv.Itoa(os.Getpid())
	port := strconv.Itoa(p.listener.Addr().(*net.TCPAddr).Port)
	out := []try{
		{"write in the workspace", "echo x >written", true, true},
		{"change the mode of a file", "chmod 700 file", true, true},
		{"write outside", "echo x >'" + beyond + "/new'", false, false},
		{"read outside", "cat '" + beyond + "/file'", false, false},
		{"read a secret", "cat .env", false, true},
		{"write a hook of git", "echo x >.git/hooks/new", false, true},
		{"signal inspan", "kill -0 " + host, false, false},
		{"connect to a port of this machine", "bash -c 'exec 9<>/dev/tcp/127.0.0.1/" + port + "'", false, false},
		{"read the environment of inspan", "cat /proc/" + host + "/environ >/dev/null", false, false},
	}
	if p.inside {
		// A program that an image lacks must not count as a restriction.
		out = slices.DeleteFunc(out, func(t try) bool { return strings.HasPrefix(t.script, "bash ") })
		out = append(out, try{"see a network", network, false, false}, try{"write to the image", "echo x >/inspan-probe", false, true})
	}
	return out
}

// network exits with 0 if another network than loopback exists.
const network = `while read -r name rest; do case $name in lo:*|*"|"*|Inter*) ;; *:*) [ -e "/sys/class/net/${name%%:*}" ] && exit 0 ;; ` +
	`esac; done </proc/net/dev; exit 1`

// run returns the exit code of a script.
func (p *probe) run(ctx context.Context, level tool.Level, script string) (int, string, tool.Process) {
	return p.runIn(ctx, p.env, tool.Box{Level: level}, script)
}

func (p *probe) runIn(ctx context.Context, env tool.Env, box tool.Box, script string) (int, string, tool.Process) {
	var out bytes.Buffer
	proc, err := env.Procs.Start(ctx, tool.Command{Args: []string{"sh", "-c", script}, Dir: env.Root, Output: &out, Box: box})
	if err != nil {
		return -1, err.Error(), nil
	}
	code, err := proc.Wait()
	if err != nil {
		return -1, err.Error(), proc
	}
	return code, strings.TrimSpace(out.String()), proc
}

func (p *probe) check(ctx context.Context, level tool.Level, t try) Check {
	c := Check{Name: fmt.Sprintf("%s box: %s", level, t.name)}
	boxed, text, _ := p.run(ctx, level, t.script)
	outside := p.env
	if p.inside && !t.inside {
		outside = p.open
	}
	free, why, _ := p.runIn(ctx, outside, tool.Box{Level: tool.BoxNone}, t.script)
	stopped := level == tool.BoxRead || !t.read
	switch {
	case boxed < 0:
		c.Text = "not tried: " + text
	case free != 0:
		c.Text = "proves nothing: it fails without a box too: " + why
	case stopped && boxed == 0:
		c.Text = "NOT STOPPED"
	case !stopped && boxed != 0:
		c.Text = "stopped, but must work: " + text
	default:
		c.OK, c.Text = true, or(stopped, "stopped; works without a box", "works")
	}
	return c
}

// works checks that the workspace box allows what it must.
func (p *probe) works(ctx context.Context) Check {
	code, text, _ := p.run(ctx, tool.BoxWorkspace, "echo x >fresh && rm fresh && echo x >$TMPDIR/x")
	return Check{"workspace box: write where it may", code == 0, or(code == 0, "works", text)}
}

// throws checks that a box with a throwaway workspace leaves it unchanged.
func (p *probe) throws(ctx context.Context) Check {
	c := Check{Name: "throwaway workspace"}
	if !p.env.Walls.Throwaway {
		c.Text = p.env.Walls.NoThrowaway
		return c
	}
	file := filepath.Join(p.env.Root, "file")
	before, _ := keep.Read(file)
	box := tool.Box{Level: tool.BoxWorkspace, Throwaway: true}
	code, text, _ := p.runIn(ctx, p.env, box, "echo x >>file && echo x >thrown")
	after, _ := keep.Read(file)
	_, err := os.Lstat(filepath.Join(p.env.Root, "thrown"))
	switch {
	case code != 0:
		c.Text = "not tried: " + text
	case err == nil || !bytes.Equal(before, after):
		c.Text = "NOT THROWN AWAY"
	default:
		c.OK, c.Text = true, "what is written is thrown away"
	}
	return c
}

// appears checks that a protected place that did not exist is removed.
func (p *probe) appears(ctx context.Context) Check {
	c := Check{Name: "workspace box: make a new repository"}
	code, text, proc := p.run(ctx, tool.BoxWorkspace, "mkdir -p new/.git/hooks")
	_, err := os.Lstat(filepath.Join(p.env.Root, "new", ".git"))
	r, ok := proc.(interface{ Refused() []string })
	switch {
	case code != 0:
		c.Text = "not tried: " + text
	case err == nil || !ok || len(r.Refused()) == 0:
		c.Text = "NOT TAKEN AWAY"
	default:
		c.OK, c.Text = true, "taken away"
	}
	return c
}
