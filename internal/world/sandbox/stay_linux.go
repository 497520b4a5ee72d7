package sandbox

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/inspan/inspan/internal/world/sandbox/processes"
	"github.com/inspan/inspan/internal/world/sandbox/protocol"
	"github.com/inspan/inspan/tool"
)

// A keeper can be told to go on when the program that started it has ended. Then it ends
// its family when it gets SIGTERM.

// maxKeptOutput is how much of what a kept family prints goes to its file, in bytes.
const maxKeptOutput = 16 << 20

// stay has the keeper go on without whoever it talks to. The file for the output has come
// along and, if there is one, the pipe that the family prints to. If the family has ended,
// that is for the one who asks to read.
func (k *keeper) stay(fds []int) {
	k.staying.Lock()
	defer k.staying.Unlock()
	if k.over {
		protocol.CloseAll(fds)
		return
	}
	out := os.NewFile(uintptr(fds[0]), "file")
	if len(fds) > 1 {
		k.out = processes.NewCopier(os.NewFile(uintptr(fds[1]), "pipe"), &filling{out, maxKeptOutput}, processes.OutputGrace)
		go k.out.Run()
	}
	k.stays.Store(true)
	k.tell(protocol.Report{Op: protocol.OpKept, Ports: k.ports.report(out)})
}

// settle has what the family has printed in its file, now that it has ended.
func (k *keeper) settle() {
	k.staying.Lock()
	k.over = true
	k.staying.Unlock()
	if k.out != nil {
		k.out.Finish()
	}
}

// filling is a file until it is full.
type filling struct {
	file *os.File
	left int // bytes
}

func (f *filling) Write(p []byte) (int, error) {
	n, err := f.file.Write(p[:min(len(p), f.left)])
	f.left -= n
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	return n, err
}

// heed follows signals: only a keeper that goes on alone is meant by one.
func (p *post) heed(signals <-chan os.Signal) {
	for s := range signals {
		if s == syscall.SIGTERM && p.stays.Load() {
			go p.now.Load().dismiss()
		}
	}
}

// dismiss asks the whole family to end, and kills what is left when the grace is over.
func (k *keeper) dismiss() {
	k.family.Terminate()
	late := time.NewTimer(processes.TermGrace)
	defer late.Stop()
	select {
	case <-k.family.Done:
	case <-late.C:
		k.killAll()
	}
}

// KeptRuns reports whether a process that was kept still runs. It is not known of one that
// was kept in another container, or on another machine that has the same files.
func KeptRuns(k tool.Kept) (runs, known bool) {
	boot, rest, _ := strings.Cut(k.Mark, "-")
	namespace, _, _ := strings.Cut(rest, "-")
	if boot == processes.BootID() && namespace != processes.Namespace() {
		return false, false
	}
	return processes.Identity(k.PID) == k.Mark && !processes.Ended(k.PID), true
}

// keptGrace is longer than a keeper gives its family.
const keptGrace = processes.TermGrace + patience

// EndKept ends a process that was kept, with all its descendants.
func EndKept(ctx context.Context, k tool.Kept) error {
	if _, known := KeptRuns(k); !known {
		return errors.New("it runs in another container; end it there")
	}
	_, err := End(ctx, k.PID, keptGrace, func() bool { runs, _ := KeptRuns(k); return runs })
	return err
}
