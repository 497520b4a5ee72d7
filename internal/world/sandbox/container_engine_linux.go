package sandbox

import (
	"cmp"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/world/sandbox/processes"
)

// engine is the command line of a container engine. It is safe for concurrent use.
type engine struct {
	o Options

	once     sync.Once
	err      error
	path     string
	version  string // as reported
	podman   bool
	rootless bool
	self     string // path of the keeper program, links resolved
}

// newEngine returns nil if no containers are configured.
func newEngine(o Options) *engine {
	if o.Container == nil {
		return nil
	}
	return &engine{o: o}
}

// answerIn bounds a query to the engine.
const answerIn = 20 * time.Second

// ready finds and checks the engine once.
func (e *engine) ready() error {
	e.once.Do(func() { e.err = e.find() })
	return e.err
}

func (e *engine) find() error {
	if e.o.Container.Image == "" {
		return errors.New("no image is named")
	}
	if e.o.Self == "" {
		return errors.New("this program has no keeper")
	}
	names := []string{"podman", "docker"}
	if e.o.Container.Engine != "" {
		names = []string{e.o.Container.Engine}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			e.path = path
			break
		}
	}
	if e.path == "" {
		return fmt.Errorf("there is no %s here to run containers with; install podman or docker", strings.Join(names, " or "))
	}
	var err error
	if e.version, err = e.ask("--version"); err != nil {
		return err
	}
	// On some systems "docker" is podman.
	e.podman = strings.HasPrefix(e.version, "podman")
	e.rootless = e.podman && os.Geteuid() != 0
	if !e.podman {
		options, err := e.ask("info", "--format", "{{.SecurityOptions}}")
		if err != nil {
			return err
		}
		e.rootless = strings.Contains(options, "name=rootless")
	}
	e.self, err = keeperProgram(e.o.Self)
	return err
}

// keeperProgram returns the resolved path of the program that will be the first process of containers. It must
// not depend on other files of this machine.
func keeperProgram(self string) (string, error) {
	path, err := filepath.EvalSymlinks(self)
	if err != nil {
		return "", fmt.Errorf("the keeper can't be found by its path any more, as after an update; start inspan again: %w", err)
	}
	there, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	running, err := os.Stat(self)
	if err != nil {
		return "", err
	}
	if !os.SameFile(there, running) {
		return "", fmt.Errorf("%s is another program by now, as after an update; start inspan again", path)
	}
	switch needs, err := needsLoader(path); {
	case err != nil:
		return "", err
	case needs:
		return "", fmt.Errorf("%s needs libraries of this machine, which an image may not have; build it with CGO_ENABLED=0", path)
	}
	return path, nil
}

// needsLoader reports whether a program is dynamically linked.
func needsLoader(path string) (bool, error) {
	file, err := elf.Open(path)
	if err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	defer func() { _ = file.Close() }() // it was only read
	return slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }), nil
}

// ask runs the engine and returns its output.
func (e *engine) ask(args ...string) (string, error) {
	ctx, stop := context.WithTimeout(context.Background(), answerIn)
	defer stop()
	out, complaint := newTail(), newTail()
	cmd := exec.CommandContext(ctx, e.path, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = "/", &out, &complaint, time.Second
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w", filepath.Base(e.path), args[0], cmp.Or(complaint.err(), err))
	}
	return out.String(), nil
}

// image returns the engine's id of the image. The error says how to get the image.
func (e *engine) image() (string, error) {
	if err := e.ready(); err != nil {
		return "", err
	}
	name := e.o.Container.Image
	id, err := e.ask("image", "inspect", "--format", "{{.Id}}", "--", name)
	if err != nil {
		return "", fmt.Errorf("the image %s is not here; get it with \"%s pull %s\": %w", name, filepath.Base(e.path), name, err)
	}
	return id, nil
}

// containerName returns the name of a new container. It identifies its owner: the boot, the process namespace,
// the process and its start time.
func containerName(random string) string {
	boot, namespace, start := processes.BootID(), processes.Namespace(), processes.Started(os.Getpid())
	return fmt.Sprintf("inspan-%s-%s-%d-%s-%s", boot, namespace, os.Getpid(), start, random)
}

// ownerless reports whether the process that created a container is gone.
func ownerless(name string) bool {
	parts := strings.Split(name, "-")
	if len(parts) != 6 || parts[0] != "inspan" || parts[1] == "" || parts[2] == "" {
		return false
	}
	pid, err := strconv.Atoi(parts[3])
	if err != nil || pid <= 0 || parts[4] == "" {
		return false
	}
	if parts[1] != processes.BootID() {
		return true
	}
	return parts[2] == processes.Namespace() && processes.Started(pid) != parts[4]
}

// tidy removes leftover containers of ended inspan processes. Containers end with their owner; they are left
// only if the engine was killed before removing them.
func (e *engine) tidy() {
	list, err := e.ask("ps", "--all", "--filter", "name=inspan-", "--format", "{{.Names}}")
	if err != nil {
		return
	}
	for name := range strings.FieldsSeq(list) {
		if ownerless(name) {
			_, _ = e.ask(e.removal(name)...)
		}
	}
}

func (e *engine) removal(name string) []string {
	if e.podman {
		return []string{"rm", "--force", "--time=0", name}
	}
	return []string{"rm", "--force", "--volumes", name}
}

// tail keeps the end of an engine's output.
type tail struct{ keep.Tail }

func newTail() tail { return tail{keep.Tail{Limit: 16 << 10}} }

func (t *tail) String() string { return strings.TrimSpace(t.Text()) }

// err returns the output as an error, nil for none.
func (t *tail) err() error {
	if text := t.String(); text != "" {
		return errors.New(text)
	}
	return nil
}

// describe returns the engine and image of containers; nothing without containers.
func describe(o Options) []Check {
	if o.Container == nil {
		return nil
	}
	e := newEngine(o)
	if err := e.ready(); err != nil {
		return []Check{{Name: "container engine", Text: err.Error()}}
	}
	engine := Check{Name: "container engine", OK: true, Text: e.path + ", " + e.version}
	if e.rootless {
		engine.Text += ", without root"
	}
	id, err := e.image()
	if err != nil {
		return []Check{engine, {Name: "container image", Text: err.Error()}}
	}
	return []Check{engine, {Name: "container image", OK: true, Text: o.Container.Image + " is " + id}}
}
