package keeper

import (
	"io"
	"os"
	"syscall"
	"time"

	"github.com/inspan/inspan/internal/world/sandbox/processes"
	"github.com/inspan/inspan/internal/world/sandbox/protocol"
)

// maxKeptOutput is how much of what a kept family prints goes to its file, in bytes.
const maxKeptOutput = 16 << 20

// goOnAlone has the keeper go on without whoever it talks to. The file for the output has come
// along and, if there is one, the pipe that the family prints to. If the family has ended,
// that is for the one who asks to read.
func (c *command) goOnAlone(fds []int) {
	c.staying.Lock()
	defer c.staying.Unlock()
	if c.over {
		protocol.CloseAll(fds)
		return
	}
	out := os.NewFile(uintptr(fds[0]), "file")
	if len(fds) > 1 {
		c.out = processes.NewCopier(os.NewFile(uintptr(fds[1]), "pipe"), &cappedFile{out, maxKeptOutput}, processes.OutputGrace)
		go c.out.Run()
	}
	c.stays.Store(true)
	c.tell(protocol.Report{Op: protocol.OpKept, Ports: c.ports.Report(out)})
}

// finishOutput has what the family has printed in its file, now that it has ended.
func (c *command) finishOutput() {
	c.staying.Lock()
	c.over = true
	c.staying.Unlock()
	if c.out != nil {
		c.out.Finish()
	}
}

// cappedFile is a file until it is full.
type cappedFile struct {
	file *os.File
	left int // bytes
}

func (f *cappedFile) Write(p []byte) (int, error) {
	n, err := f.file.Write(p[:min(len(p), f.left)])
	f.left -= n
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	return n, err
}

// followSignals follows signals: only a keeper that goes on alone is meant by one.
func (k *keeper) followSignals(signals <-chan os.Signal) {
	for s := range signals {
		if s == syscall.SIGTERM && k.stays.Load() {
			go k.now.Load().endFamily()
		}
	}
}

// endFamily asks the whole family to end, and kills what is left when the grace is over.
func (c *command) endFamily() {
	c.family.Terminate()
	late := time.NewTimer(processes.TermGrace)
	defer late.Stop()
	select {
	case <-c.family.Done:
	case <-late.C:
		c.killAll()
	}
}
