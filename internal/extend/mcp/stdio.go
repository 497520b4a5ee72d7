package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/secret"
	"github.com/inspan/inspan/internal/world/ability"
	"github.com/inspan/inspan/tool"
)

// launch reads assignments from standard input up to a line equal to the first argument, and then executes the
// program with the rest of standard input. So secrets never appear in the process list. The protocol comes
// through descriptor 3, apart from standard error. If the program is missing, it exits with 127.
const launch = `s=; while IFS= read -r l && [ "$l" != "$1" ]; do s="$s$l
"; done; shift; eval "$s"; unset s l; command -v "$1" >/dev/null 2>&1 || exit 127; exec "$@" 1>&3 3>&-`

// missing is the exit code of launch if the program is missing.
const missing = 127

// maxWaiting is how many bytes may wait for a server to read them.
const maxWaiting = 64 << 20

// Times that a server may take to exit after its input is closed, and after SIGTERM.
const (
	endTime  = 500 * time.Millisecond
	termTime = 700 * time.Millisecond
)

// program is a server process.
type program struct {
	out    *keep.Input
	in     *io.PipeReader // what it writes
	into   *io.PipeWriter // the other end of in
	frames frames
	errors ends
	boxed  bool

	process tool.Process
	cancel  context.CancelFunc
	dead    chan struct{} // closed when the process has ended

	mu  sync.Mutex
	why error // how it ended; nil means it runs
}

// startProgram starts the process of a server; the caller then calls see. Skipped is called for lines that are
// not messages. Legacy says that the connection begins with a handshake.
func startProgram(env tool.Env, level tool.Level, s Server, legacy bool, skipped func(line []byte)) (*program, error) {
	if env.Procs == nil {
		return nil, final("processes can't be started here")
	}
	box := s.box(context.Background(), env, level)
	p := &program{out: keep.NewInput(maxWaiting), dead: make(chan struct{}), boxed: box.Level == tool.BoxWorkspace}
	p.in, p.into = io.Pipe()
	p.frames = frames{to: p.into, noise: &p.errors, skipped: skipped, answered: !legacy}
	setup, end, err := assignments(s.Env)
	if err != nil {
		return nil, err
	}
	if _, err := p.out.Write([]byte(setup)); err != nil {
		return nil, err
	}
	var ctx context.Context
	ctx, p.cancel = context.WithCancel(context.Background())
	p.process, err = env.Procs.Start(ctx, tool.Command{
		Args: append([]string{"sh", "-c", launch, "sh", end}, s.Command...), Dir: s.dir(env.Root),
		Stdin: p.out, Output: &p.errors, Report: p, Box: box, Serves: true,
	})
	if err != nil {
		p.cancel()
		_ = p.out.Close() // never fails
		return nil, startError(err, env.Walls)
	}
	return p, nil
}

func (s Server) dir(root string) string {
	if filepath.IsAbs(s.Dir) {
		return s.Dir
	}
	return filepath.Join(root, s.Dir)
}

// box returns the sandbox for the program. Unresolvable paths stay closed.
func (s Server) box(ctx context.Context, env tool.Env, level tool.Level) tool.Box {
	switch {
	case s.Bare && s.Source == User:
		level = tool.BoxNone
	case level == tool.BoxDefault:
		level = tool.BoxWorkspace
	}
	b := tool.Box{Level: level}
	if level != tool.BoxWorkspace {
		return b
	}
	b.Hosts = slices.Concat(s.Hosts, registries(s.Command[0]))
	b.Cache = strings.Join(append([]string{"mcp", s.Source}, s.Command...), "\x00") // so that it is fetched once
	read := s.Read
	if s.Own() { // otherwise a file of a repository could open folders
		read = slices.Concat(read, keep.Installed(s.Command), []string{s.Dir})
	}
	for paths, into := range map[*[]string]*[]string{&read: &b.Read, &s.Write: &b.Write} {
		for _, path := range *paths {
			if at, err := env.Files.Resolve(ctx, path); err == nil && filepath.IsAbs(path) {
				*into = append(*into, at)
			}
		}
	}
	return b
}

// registries returns the hosts that a package runner downloads the server from, as most published configurations
// do.
func registries(program string) []string {
	switch strings.TrimSuffix(filepath.Base(program), ".cmd") {
	case "npx", "bunx", "pnpx", "npm", "pnpm", "yarn", "bun":
		return []string{"registry.npmjs.org"}
	case "uvx", "uv", "pipx":
		return []string{"pypi.org", "files.pythonhosted.org"}
	}
	return nil
}

func startError(err error, walls tool.Walls) error {
	switch {
	case errors.Is(err, tool.ErrNoBox):
		return final("%w: %s", err, walls.Why)
	case errors.Is(err, fs.ErrNotExist):
		return final("%w", err)
	}
	return err
}

// assignments returns lines for launch, and the line that ends them.
func assignments(env map[string]string) (text, end string, err error) {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if strings.ContainsRune(env[name], 0) {
			return "", "", final("the value of %s contains a NUL byte", name)
		}
		fmt.Fprintf(&b, "export %s='%s'\n", name, strings.ReplaceAll(env[name], "'", `'\''`))
	}
	end = "#"
	for strings.Contains("\n"+b.String(), "\n"+end+"\n") {
		end += "#"
	}
	return b.String() + end + "\n", end, nil
}

// Write receives the server's output. A server that does not speak the protocol is stopped.
func (p *program) Write(data []byte) (int, error) {
	n, err := p.frames.Write(data)
	if err != nil {
		if !errors.Is(err, io.ErrClosedPipe) {
			p.end(err)
		}
		p.cancel()
	}
	return n, err
}

// awaitExit waits for the end of the process and cleans up.
func (p *program) awaitExit() {
	code, err := p.process.Wait()
	switch {
	case err != nil:
	case code == missing && p.said() == "":
		err = final("its program is not installed")
	default:
		err = fmt.Errorf("the program ended (exit code %d)", code)
	}
	if said := p.said(); said != "" {
		err = fmt.Errorf("%w; it said: %s", err, said)
		switch {
		case !p.boxed:
		case regexp.MustCompile(shut).MatchString(said):
			err = fmt.Errorf("%w; it runs in the sandbox, which has a /tmp of its own, and where --read PATH of 'inspan mcp add' (read = [...] in the "+
				"settings) opens a folder to it, and --write PATH one that it changes", err)
		case regexp.MustCompile(unreached).MatchString(said) && len(p.refused()) == 0:
			err = fmt.Errorf("%w; it runs in the sandbox, where --host HOST of 'inspan mcp add' (hosts = [...] in the settings) opens a host to it", err)
		}
	}
	p.end(p.withRefusals(err))
	_ = p.into.CloseWithError(io.EOF) // never fails
	_ = p.out.Close()
	if l, ok := p.process.(ability.Leaver); !ok || l.Left() {
		p.process.Kill()
	}
	p.cancel()
	close(p.dead)
}

// withRefusals adds to an error what the sandbox refused to the program, and how to allow it. It waits for the
// program's end.
func (p *program) withRefusals(err error) error {
	for i, refused := range p.refused() {
		if i == mostRefused {
			break
		}
		host, _, closed := strings.Cut(refused, "; allow with ")
		if closed {
			refused = host + "; --host HOST of 'inspan mcp add' (hosts = [...] in the settings) opens a host to it"
		}
		err = fmt.Errorf("%w; the sandbox %s", err, refused)
	}
	return err
}

// refused returns the accesses that the sandbox refused to the program.
func (p *program) refused() []string {
	if r, ok := p.process.(ability.Refuser); ok {
		return r.Refused()
	}
	return nil
}

// mostRefused bounds how many refusals are reported.
const mostRefused = 3

// shut matches messages of programs about things the sandbox refused.
const shut = `(?i)no such file|cannot find|can't (open|find)|not found|no module named|permission denied|read-only file ` +
	`?system|ENOENT|EACCES|EPERM|EROFS`

// unreached matches messages of programs about hosts that they can't reach.
const unreached = `(?i)network is unreachable|no route to host|connection refused|name resolution|no such host|could ?n.t resolve|` +
	`nodename nor servname|getaddrinfo|ENOTFOUND|EAI_AGAIN|ENETUNREACH|ECONNREFUSED`

// said returns the program's standard error, shortened in the middle and without keys: people paste it into
// reports.
func (p *program) said() string {
	head, tail := p.errors.text()
	return printed(head + tail)
}

// printed makes a server's text safe to show to people.
func printed(s string) string { return strings.TrimSpace((&secret.Vault{}).Redact(text.Printed(s))) }

// end records why the program ended. The first reason counts.
func (p *program) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.why == nil {
		p.why = err
	}
}

// ended returns the reason why the program ended, nil while it runs.
func (p *program) ended() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.why
}

// stop ends the program: it closes its input, then sends SIGTERM, then kills it.
func (p *program) stop() {
	_ = p.out.Close()
	_ = p.in.Close()
	for _, step := range []struct {
		patience time.Duration
		then     func()
	}{{endTime, p.cancel}, {termTime, p.process.Kill}} {
		timer := time.NewTimer(step.patience)
		select {
		case <-p.dead:
		case <-timer.C:
			step.then()
		}
		timer.Stop()
	}
	<-p.dead
}

// transport returns the transport to the program.
func (p *program) transport() sdk.Transport {
	return &sdk.IOTransport{Reader: p.in, Writer: p.out, MaxLineLength: maxFrame + 1}
}
