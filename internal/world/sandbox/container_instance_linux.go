package sandbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/inspan/inspan/internal/world/sandbox/files"
	"github.com/inspan/inspan/internal/world/sandbox/keeper"
	"github.com/inspan/inspan/internal/world/sandbox/paths"
	"github.com/inspan/inspan/internal/world/sandbox/protocol"
	"github.com/inspan/inspan/tool"
)

// In a container, a keeper is the first process: the same program, mounted into the container, which connects
// to inspan through a socket in a mounted folder. It receives the descriptors of the command there, so an
// engine carries no streams, exit codes or signals, and needs no variables. When the connection ends, however
// inspan died, the keeper ends, and the kernel ends all other processes in the container.

const (
	// startIn bounds the start of a container by the engine.
	startIn = 90 * time.Second
	// removeIn bounds the removal of an ended container.
	removeIn = 10 * time.Second
)

// instance is a container that is starting or running.
type instance struct {
	engine *engine
	name   string
	client *exec.Cmd // of the engine
	errors tail
	ended  chan struct{} // closed when the client has ended
}

// startContainer starts a container and passes the command to its keeper.
func (b *boxes) startContainer(k *supervised) error {
	if err := b.engine.ready(); err != nil {
		return fmt.Errorf("%w: %w", tool.ErrNoBox, err)
	}
	if b.Root == "/" {
		return fmt.Errorf("%w: the root of the machine can't be the workspace of a container", tool.ErrNoBox)
	}
	dir, err := b.makeSocketFolder()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) // everything is mounted once the keeper has connected
	list := binds(k.order, dir)
	if k.order.Walls, err = wallsOf(list); err != nil {
		return err
	}
	in := &instance{engine: b.engine, name: containerName(rand.Text()), ended: make(chan struct{})}
	args, err := b.engine.arguments(in.name, k.order, append(list,
		bind{from: b.engine.self, to: keeper.ContainerProgram}, bind{from: filepath.Join(dir, "door"), to: keeper.ContainerFolder}))
	if err != nil {
		return err
	}
	conn, err := in.open(filepath.Join(dir, "door"), args, k.cancelled)
	if err != nil {
		return err
	}
	k.keeperLink = newLink(conn)
	k.instance = in
	return nil
}

// makeSocketFolder creates the folders for the socket and for masks.
func (b *boxes) makeSocketFolder() (string, error) {
	parent := files.TempFolder()
	if b.o.State != "" {
		parent = b.o.State // some engines can't access the temporary folder
		if err := os.MkdirAll(parent, 0o700); err != nil {
			return "", err
		}
	}
	dir, err := os.MkdirTemp(parent, "container-")
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	err = errors.Join(os.Mkdir(filepath.Join(dir, "door"), 0o700), os.WriteFile(dir+maskFile, nil, 0), os.Mkdir(dir+maskFolder, 0))
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}

// arguments returns the arguments for the engine, without the path of its program. None is secret.
func (e *engine) arguments(name string, o protocol.Order, list []bind) ([]string, error) {
	uid, gid := os.Geteuid(), os.Getegid()
	args := []string{"run", "--rm", "--pull=never", "--name=" + name, "--log-driver=none", "--no-healthcheck", "--workdir=/", "--entrypoint=" +
		keeper.ContainerProgram, "--security-opt=label=disable"}
	switch {
	case e.podman && e.rootless:
		args = append(args, "--userns=keep-id")
	case e.rootless:
		uid, gid = 0, 0 // maps to this user
	}
	args = append(args, "--user="+strconv.Itoa(uid)+":"+strconv.Itoa(gid))
	if e.podman {
		args = append(args, "--http-proxy=false")
	}
	if o.Level != tool.BoxNone {
		args = append(args, e.closed(o)...)
	}
	for _, m := range list {
		more, err := m.args()
		if err != nil {
			return nil, err
		}
		args = append(args, more...)
	}
	return append(args, "--", e.o.Container.Image), nil
}

// closed returns the options for the restrictions of a box.
func (e *engine) closed(o protocol.Order) []string {
	args := []string{"--network=none", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges"}
	for _, dir := range []string{"/tmp", "/var/tmp", "/run"} {
		if o.Root != dir && (o.Tmp == "" || dir == "/run") {
			args = append(args, "--tmpfs="+dir+":rw,exec,nosuid,nodev,mode=1777")
		}
	}
	processes := e.o.Limits.Processes
	if processes == 0 {
		processes = defaultProcesses
	}
	args = append(args, "--pids-limit="+strconv.Itoa(processes))
	if memory := e.o.Limits.Memory; memory > 0 {
		args = append(args, "--memory="+strconv.FormatInt(memory, 10))
	}
	return args
}

// open starts the container and waits for its keeper.
func (in *instance) open(door string, args []string, cancelled <-chan struct{}) (*net.UnixConn, error) {
	listener, err := listenAt(door)
	if err != nil {
		return nil, err
	}
	defer func() { _ = listener.Close() }()
	if err := in.start(args); err != nil {
		return nil, err
	}
	type answer struct {
		conn *net.UnixConn
		err  error
	}
	came := make(chan answer, 1)
	go func() {
		conn, err := listener.AcceptUnix()
		came <- answer{conn, err}
	}()
	late := time.NewTimer(startIn)
	defer late.Stop()
	select {
	case a := <-came:
		return a.conn, a.err
	case <-in.ended:
		return nil, in.refusal()
	case <-cancelled:
		err = fmt.Errorf("the container was starting: %w", context.Canceled)
	case <-late.C:
		err = fmt.Errorf("%w: the container did not start in %v", tool.ErrNoBox, startIn)
	}
	in.remove()
	return nil, err
}

// listenAt creates the socket. The full path of its folder may be too long for a socket address.
func listenAt(door string) (*net.UnixListener, error) {
	folder, err := os.Open(door)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: paths.DescriptorPath(folder) + keeper.ContainerSocket, Net: "unix"})
	if err == nil {
		listener.SetUnlinkOnClose(false) // removed with its folder
	}
	return listener, err
}

// start starts the client. It does not die with this process: the container ends first, and some clients clean
// up after it.
func (in *instance) start(args []string) error {
	in.client = exec.Command(in.engine.path, args...)
	in.client.Dir, in.client.Stderr, in.client.WaitDelay = "/", &in.errors, time.Second
	in.client.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := in.client.Start(); err != nil {
		return err
	}
	go func() {
		_ = in.client.Wait()
		close(in.ended)
	}()
	return nil
}

// refusal returns the reason why the container did not start.
func (in *instance) refusal() error {
	if _, err := in.engine.image(); err != nil {
		return fmt.Errorf("%w: %w", tool.ErrNoBox, err)
	}
	return fmt.Errorf("%w: %s: %w", tool.ErrNoBox, filepath.Base(in.engine.path),
		cmp.Or(in.errors.err(), errors.New("the container ended before it had begun")))
}

// wait waits until the engine has finished with the container, or stops it.
func (in *instance) wait() {
	late := time.NewTimer(removeIn)
	defer late.Stop()
	select {
	case <-in.ended:
	case <-late.C:
		in.remove()
	}
}

// remove removes the container from outside.
func (in *instance) remove() {
	_, _ = in.engine.ask(in.engine.removal(in.name)...)
	_ = in.client.Process.Kill() // fails if it has ended, as intended
	<-in.ended
	_, _ = in.engine.ask(in.engine.removal(in.name)...) // it may have started in between
}
