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

	"github.com/inspan/inspan/internal/world/ability"
	"github.com/inspan/inspan/internal/world/sandbox/gitcopies"
	"github.com/inspan/inspan/internal/world/sandbox/ports"
	"github.com/inspan/inspan/internal/world/sandbox/processes"
	"github.com/inspan/inspan/internal/world/sandbox/protocol"
	"github.com/inspan/inspan/tool"
)

// patience bounds how long kill waits for the last descendant to end. Only processes of another user, or
// blocked in the kernel, take longer.
const patience = 5 * time.Second

// answerTime bounds the response of a keeper. A dying keeper closes its connection, so only a busy machine
// makes it this late.
const answerTime = time.Minute

// supervised runs a process through its own keeper.
type supervised struct {
	boxes   *boxes
	command tool.Command
	mark    string
	order   protocol.Order
	program string // as the caller named it
	cold    bool   // Go's build cache is empty
	bare    bool   // only a test of the box: the workspace is not scanned

	cancelled <-chan struct{} // cancels the start; nil means never

	keeperLink
	walls   string // fingerprint of the box; empty means it can't be shared, or there is none
	leader  int    // process id of the command in the keeper's namespace
	writing sync.Mutex

	outside  *outside          // of a workspace box
	copies   []*gitcopies.Copy // of git directories
	undo     []func()          // each removes a file that was made for it in the session's folder
	session  int               // process id of the command in our namespace; 0 if unknown
	left     chan bool         // responses to opLeft
	stays    chan struct{}     // closed when the keeper has confirmed that it continues
	ports    []tool.Port       // its listening ports; set before stays is closed
	offered  bool              // the keeper has sockets for its ports
	letGo    atomic.Bool       // it continues
	gone     chan struct{}     // closed when the connection has ended
	farewell bool              // the keeper reported that no descendant is left; set before gone is closed
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

// launchPath starts a program without input and output.
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
		_ = k.offer() // retried, and its error reported, when the command is detached
	}
	return nil
}

// makePlaces creates the files that the box needs in the session's folder for temporary files: a place for
// discarded changes, and mount points.
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
		if k.boxes.temp.Owns(path) { // paths below a folder of the machine stay in the session
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

// release releases the box's resources outside of it.
func (k *supervised) release() {
	k.outside.release()
	k.removePlaces()
}

// lendPlaces leaves the files of the box to the keeper, unless the keeper already has them from an earlier
// command.
func (k *supervised) lendPlaces() {
	if k.undoEarlier == nil {
		k.undoEarlier = k.undo
		return
	}
	k.removePlaces()
}

// removePlaces removes the files of the box from the session's folder.
func (k *supervised) removePlaces() {
	for _, f := range k.undo {
		f()
	}
}

// sendOrder sends the keeper its order and the descriptors of the command.
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

// orderToSend returns the order, without the box if it already exists.
func (k *supervised) orderToSend() *protocol.Order {
	o := k.order
	if o.Stands {
		return &protocol.Order{Path: o.Path, Args: o.Args, Dir: o.Dir, Env: o.Env, TTY: o.TTY, Stands: true}
	}
	return &o
}

// kind returns the kind of keepers that can run the command.
func (k *supervised) kind() keeperKind {
	return keeperKind{level: k.order.Level, isolated: k.order.Isolated, overlays: k.order.Overlays()}
}

// refusal converts the keeper's report of a failed start into an error.
func (k *supervised) refusal(r protocol.Report) error {
	if r.Op != protocol.OpFailed {
		return fmt.Errorf("the keeper answered %q", r.Op)
	}
	if r.Text != "" {
		return fmt.Errorf("%w: %s", tool.ErrNoBox, r.Text)
	}
	return &fs.PathError{Op: "run", Path: k.program, Err: syscall.Errno(r.Errno)}
}

// listen handles the reports of the keeper until there are no more.
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
		k.boxes.waiting.add(k.kind(), k.keeperLink) // a caller that waits for the end may start the next one
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

// abandoned ends what a keeper that died unexpectedly may have left behind, as far as it can be found.
func (k *supervised) abandoned() {
	processes.KillMarked(k.mark)
	if k.session != 0 {
		processes.KillSession(k.session)
	}
	if k.order.Temp != "" {
		_ = os.RemoveAll(k.order.Temp)
	}
}

// ask sends a request with its descriptors. If the keeper is gone it does nothing.
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

// waitOrRemove waits for the end. If the keeper in a container doesn't end, the engine removes it.
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

// alive implements runner. The keeper ends with its last descendant.
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
		k.takeOverGit() // a continuing process passes on later changes when it ends
		return true
	case <-k.gone:
		return false
	}
}

// keep lets the keeper and its family continue without this program. Once the keeper has confirmed, it ignores
// the end of the connection.
func (k *supervised) keep(out *os.File, pipe int, register func(ability.Kept) error) ([]tool.Port, error) {
	switch {
	case k.pid == 0:
		return nil, errNotKept
	case k.order.Throwaway != "":
		return nil, errThrown
	}
	name := ability.Kept{PID: k.pid, Mark: processes.Identity(k.pid)}
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
	case <-k.gone: // possibly after it continued
		select {
		case <-k.stays:
		default:
			return nil, os.ErrProcessDone
		}
	case <-late.C:
		return nil, errors.New("the keeper does not answer")
	}
	k.letGo.Store(true)
	k.takeOverGit()    // the last time: inspan is gone when it ends
	_ = k.conn.Close() // never fails
	<-k.gone
	if unreachable != nil {
		return []tool.Port{{Error: unreachable.Error()}}, nil
	}
	return k.ports, nil
}

// fetched returns the number of requests of the process to each registry.
func (k *supervised) fetched() map[string]int {
	if k.outside == nil {
		return nil
	}
	k.outside.mu.Lock()
	defer k.outside.mu.Unlock()
	return maps.Clone(k.outside.fetched)
}

// refused lists in words what the sandbox removed or denied.
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

// offer gives the keeper of a box with its own network sockets of this machine's network.
func (k *supervised) offer() error {
	if !k.order.Isolated || k.offered {
		return nil
	}
	four, err := ports.NewSockets(unix.AF_INET)
	defer protocol.CloseAll(four)
	if err != nil {
		return errors.Join(errors.New("its ports can't be reached from outside of the sandbox"), err)
	}
	six, _ := ports.NewSockets(unix.AF_INET6) // not every machine has IPv6
	defer protocol.CloseAll(six)
	err = k.ask(protocol.Request{Op: protocol.OpOffer, Four: len(four), Six: len(six)}, slices.Concat(four, six)...)
	k.offered = err == nil
	return err
}
