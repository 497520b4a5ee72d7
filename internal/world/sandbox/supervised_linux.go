package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/world/sandbox/gitcopies"
	"github.com/inspan/inspan/internal/world/sandbox/ports"
	"github.com/inspan/inspan/internal/world/sandbox/processes"
	"github.com/inspan/inspan/internal/world/sandbox/protocol"
	"github.com/inspan/inspan/tool"
)

// patience is how long kill waits for the last descendant to be gone. Only
// what runs as another user, or hangs in the kernel, takes longer.
const patience = 5 * time.Second

// answerTime is how long a keeper may take to answer. One that dies closes its connection, so only a busy
// machine makes it this late.
const answerTime = time.Minute

// supervised runs a process through a keeper of its own.
type supervised struct {
	boxes   *boxes
	command tool.Command
	mark    string
	order   protocol.Order
	program string // as the caller named it
	cold    bool   // the build cache of Go is empty
	bare    bool   // only to see whether it works: nothing in the workspace is looked at

	cancelled <-chan struct{} // the start; nil: never

	keeperLink
	walls   string // that the command needs, see fingerprint; empty: those of no other, or none
	leader  int    // the process id of the command, as its keeper numbers it
	writing sync.Mutex

	outside  *outside          // of a workspace box
	copies   []*gitcopies.Copy // of git directories
	undo     []func()          // each takes away what was made for it in the session's folder
	session  int               // of the command, as this process numbers it; 0 if it can't be told
	left     chan bool         // answers to opLeft
	stays    chan struct{}     // closed when the keeper has said that it goes on
	ports    []tool.Port       // what it listens on; set before stays is closed
	offered  bool              // the keeper has sockets for its ports
	letGo    atomic.Bool       // it goes on
	gone     chan struct{}     // closed when the connection has ended
	farewell bool              // the keeper said that nobody is left; set before gone is closed
}

// launch implements runner.
func (k *supervised) launch(cmd *exec.Cmd, e WaitForEnd, ended func(int, error)) error {
	err := k.launchOnce(cmd, e, ended)
	if k.flattened(err) {
		return k.launchOnce(cmd, e, ended)
	}
	return err
}

func (k *supervised) launchOnce(cmd *exec.Cmd, e WaitForEnd, ended func(int, error)) error {
	k.program = cmd.Args[0]
	k.order.Path, k.order.Args, k.order.Dir, k.order.Env = cmd.Path, cmd.Args, cmd.Dir, cmd.Env
	k.order.TTY, k.order.Serves = k.command.TTY != (tool.TTY{}), k.command.Serves
	if err := k.boxes.plan(k); err != nil {
		return err
	}
	return k.begin(e, ended)
}

// launchPath starts a program that gets nothing and says nothing.
func (k *supervised) launchPath(path string, ended func(int, error)) error {
	k.program = path
	k.order.Path, k.order.Args, k.order.Dir, k.order.Env = path, []string{path}, "/", []string{}
	if err := k.boxes.plan(k); err != nil {
		return err
	}
	return k.begin(WaitForEnd{}, ended)
}

func (k *supervised) begin(e WaitForEnd, ended func(int, error)) error {
	k.left, k.stays, k.gone = make(chan bool, 1), make(chan struct{}), make(chan struct{})
	if err := k.makePlaces(); err != nil {
		return err
	}
	if k.order.Level == tool.BoxWorkspace && !k.bare && k.order.Throwaway == "" {
		k.outside = k.boxes.outside(k)
	}
	if err := k.boxes.giveToKeeper(k, e); err != nil {
		k.release()
		return err
	}
	if !k.order.Isolated && !k.order.Container {
		k.session = k.leader
	}
	if k.outside != nil {
		k.outside.start()
	}
	go k.listen(ended)
	if k.command.Keep {
		_ = k.offer() // it is tried again, and told, when the command is let go
	}
	return nil
}

// makePlaces makes in the session's folder for temporary files what the box needs there:
// a place for what it throws away, and those at which it sees other things.
func (k *supervised) makePlaces() (err error) {
	if k.command.Box.Throwaway {
		if err := k.discard(); err != nil {
			return fmt.Errorf("%w: %w", tool.ErrNoBox, err)
		}
	}
	if err := k.copyGit(); err != nil {
		k.release()
		return fmt.Errorf("%w: %w", tool.ErrNoBox, err)
	}
	if k.order.Tmp == "" {
		return nil
	}
	paths := slices.Clone(k.order.Write)
	for _, g := range k.order.Read {
		paths = append(paths, g.Path)
	}
	for _, path := range k.command.Results {
		if k.boxes.temp.Owns(path) { // what is below a folder of the machine's stays in the session
			k.boxes.temp.NoteWritten(path)
		}
	}
	leave, err := k.boxes.temp.MountPoints(paths)
	if err != nil {
		k.release()
		return fmt.Errorf("%w: %w", tool.ErrNoBox, err)
	}
	if leave != nil {
		k.undo = append(k.undo, leave)
	}
	return nil
}

// release gives back what a box needs outside of it.
func (k *supervised) release() {
	k.outside.release()
	k.removePlaces()
}

// lendPlaces leaves to the keeper what was made for the box, unless the keeper has it from an
// earlier command.
func (k *supervised) lendPlaces() {
	if k.undoEarlier == nil {
		k.undoEarlier = k.undo
		return
	}
	k.removePlaces()
}

// removePlaces takes away what was made for the box in the session's folder.
func (k *supervised) removePlaces() {
	for _, f := range k.undo {
		f()
	}
}

// sendOrder gives the keeper its order and the descriptors of the command.
func (k *supervised) sendOrder(e WaitForEnd) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	files := []*os.File{null, null, null}
	if e.in != nil {
		files[0] = e.in
	}
	if e.out != nil {
		files[1], files[2] = e.out, e.out
	}
	if e.report != nil {
		files = append(files, e.report)
	}
	var fds []int
	for _, f := range files {
		fds = append(fds, int(f.Fd()))
	}
	line, err := protocol.Encode(protocol.Request{Op: protocol.OpRun, N: k.number, Order: k.orderToSend(), Files: len(fds)})
	if err != nil {
		return err
	}
	n, _, err := k.conn.WriteMsgUnix(line, unix.UnixRights(fds...), nil)
	if err == nil && n < len(line) {
		_, err = k.conn.Write(line[n:])
	}
	return err
}

// orderToSend is the order, without the walls if they stand.
func (k *supervised) orderToSend() *protocol.Order {
	o := k.order
	if o.Stands {
		return &protocol.Order{Path: o.Path, Args: o.Args, Dir: o.Dir, Env: o.Env, TTY: o.TTY, Stands: true}
	}
	return &o
}

// kind is which keepers can run the command.
func (k *supervised) kind() keeperKind {
	return keeperKind{level: k.order.Level, isolated: k.order.Isolated, overlays: k.order.Overlays()}
}

// refusal turns the keeper's report of a failed start into an error.
func (k *supervised) refusal(r protocol.Report) error {
	if r.Op != protocol.OpFailed {
		return fmt.Errorf("the keeper answered %q", r.Op)
	}
	if r.Text != "" {
		return fmt.Errorf("%w: %s", tool.ErrNoBox, r.Text)
	}
	return &fs.PathError{Op: "run", Path: k.program, Err: syscall.Errno(r.Errno)}
}

// listen follows the reports of the keeper until there are no more.
func (k *supervised) listen(ended func(int, error)) {
	told, again := false, false
	for !k.farewell {
		r, err := k.next()
		if err != nil {
			break
		}
		switch r.Op {
		case protocol.OpExited:
			told = true
			ended(processes.ExitCode(syscall.WaitStatus(r.Status)), nil)
		case protocol.OpLeft:
			k.left <- r.Left
		case protocol.OpKept:
			k.ports = r.Ports
			close(k.stays)
		case protocol.OpRefused:
			if k.outside != nil {
				k.outside.refuse(r.Text)
			}
		case protocol.OpConnection:
			k.outside.accept(k.lines.Take())
		case protocol.OpGone:
			k.farewell, again = true, r.Again
		}
	}
	if !k.farewell && !k.letGo.Load() {
		k.abandoned()
	}
	if !k.letGo.Load() {
		k.takeOverGit()
	}
	if k.outside != nil {
		k.outside.finish()
	}
	if again {
		k.lendPlaces()
		k.boxes.waiting.add(k.kind(), k.keeperLink) // whoever waits for the end may start the next one
		close(k.gone)
		return
	}
	switch {
	case k.letGo.Load():
	case len(k.order.Copies) > 0:
		k.boxes.replaceKeeper(k.kind(), k.removePlaces)
	default:
		k.removePlaces()
	}
	close(k.gone)
	if k.letGo.Load() {
		if !told {
			ended(-1, errGoesOn)
		}
		k.forget()
		return
	}
	if !told {
		ended(-1, errors.New("wait for process: its keeper was killed"))
	}
	k.drop()
}

// abandoned ends what a keeper that died without a farewell may have left
// behind, as far as it can be found without it.
func (k *supervised) abandoned() {
	processes.KillMarked(k.mark)
	if k.session != 0 {
		processes.KillSession(k.session)
	}
	if k.order.Temp != "" {
		_ = os.RemoveAll(k.order.Temp)
	}
}

// ask sends a request and what goes with it. If the keeper is gone there is nothing to ask.
func (k *supervised) ask(r protocol.Request, fds ...int) error {
	r.N = k.number
	line, err := protocol.Encode(r)
	if err != nil {
		return err
	}
	k.writing.Lock()
	defer k.writing.Unlock()
	if len(fds) == 0 {
		_, err = k.conn.Write(line)
		return err
	}
	_, _, err = k.conn.WriteMsgUnix(line, unix.UnixRights(fds...), nil)
	return err
}

// end implements runner.
func (k *supervised) end() {
	_ = k.ask(protocol.Request{Op: protocol.OpEnd})
	k.waitOrRemove(processes.TermGrace + patience)
}

// kill implements runner.
func (k *supervised) kill() {
	_ = k.ask(protocol.Request{Op: protocol.OpKill})
	k.waitOrRemove(patience)
}

// waitOrRemove waits for the end, and has the engine bring it about if the keeper in
// a container can't.
func (k *supervised) waitOrRemove(most time.Duration) {
	if !k.await(most) && k.instance != nil {
		k.instance.remove()
	}
}

// await reports whether the keeper has ended in time.
func (k *supervised) await(most time.Duration) bool {
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case <-k.gone:
		return true
	case <-late.C:
		return false
	}
}

// alive implements runner. The keeper goes with the last of them.
func (k *supervised) alive() bool {
	select {
	case <-k.gone:
		return false
	default:
		return true
	}
}

// settle implements runner.
func (k *supervised) settle() bool {
	_ = k.ask(protocol.Request{Op: protocol.OpLeft})
	select {
	case left := <-k.left:
		if !left {
			k.await(patience)
			return false
		}
		k.takeOverGit() // what goes on gives what it changes later when it ends
		return true
	case <-k.gone:
		return false
	}
}

// keep lets the keeper and its family go on without this program. From the answer on the
// keeper does not mind the end of the connection.
func (k *supervised) keep(out *os.File, pipe int, register func(tool.Kept) error) ([]tool.Port, error) {
	switch {
	case k.pid == 0:
		return nil, errNotKept
	case k.order.Throwaway != "":
		return nil, errThrown
	}
	name := tool.Kept{PID: k.pid, Mark: processes.Identity(k.pid)}
	if !k.alive() || name.Mark == "" {
		return nil, os.ErrProcessDone
	}
	if err := register(name); err != nil {
		return nil, err
	}
	unreachable := k.offer()
	fds := []int{int(out.Fd())}
	if pipe >= 0 {
		fds = append(fds, pipe)
	}
	if err := k.ask(protocol.Request{Op: protocol.OpKeep, Pipe: pipe >= 0}, fds...); err != nil {
		return nil, err
	}
	late := time.NewTimer(answerTime)
	defer late.Stop()
	select {
	case <-k.stays:
	case <-k.gone: // maybe after it went on
		select {
		case <-k.stays:
		default:
			return nil, os.ErrProcessDone
		}
	case <-late.C:
		return nil, errors.New("the keeper does not answer")
	}
	k.letGo.Store(true)
	k.takeOverGit()    // for the last time: nobody is there when it ends
	_ = k.conn.Close() // never fails
	<-k.gone
	if unreachable != nil {
		return []tool.Port{{Error: unreachable.Error()}}, nil
	}
	return k.ports, nil
}

// fetched counts what the process has fetched from registries.
func (k *supervised) fetched() map[string]int {
	if k.outside == nil {
		return nil
	}
	k.outside.mu.Lock()
	defer k.outside.mu.Unlock()
	return maps.Clone(k.outside.fetched)
}

// refused lists in words what the walls took away or kept from the process.
func (k *supervised) refused() (list []string) {
	switch {
	case k.order.Throwaway != "":
		list = []string{thrownAway}
	case k.outside != nil:
		list = k.outside.refused()
	}
	if k.builtCold() {
		list = append(list, builtCold)
	}
	return list
}

// offer gives the keeper of a box with a network of its own sockets of this machine's.
func (k *supervised) offer() error {
	if !k.order.Isolated || k.offered {
		return nil
	}
	four, err := ports.NewSockets(unix.AF_INET)
	defer protocol.CloseAll(four)
	if err != nil {
		return errors.Join(errors.New("its ports can't be reached from outside of the sandbox"), err)
	}
	six, _ := ports.NewSockets(unix.AF_INET6) // not every machine has it
	defer protocol.CloseAll(six)
	err = k.ask(protocol.Request{Op: protocol.OpOffer, Four: len(four), Six: len(six)}, slices.Concat(four, six)...)
	k.offered = err == nil
	return err
}
