package keeper

import (
	"io"
	"os"
	"syscall"
	"time"

	"github.com/inspan/inspan/internal/world/sandbox/processes"
	"github.com/inspan/inspan/internal/world/sandbox/protocol"
)

// maxKeptOutput bounds the output of a kept family that is stored, in bytes.
const maxKeptOutput = 16 << 20

// goOnAlone lets the keeper continue without inspan. The descriptors are the output file and, optionally, the
// pipe with the family's output. If the family has ended, inspan reads the rest.
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

// finishOutput copies the remaining output of the ended family to its file.
func (c *command) finishOutput() {
	c.staying.Lock()
	c.over = true
	c.staying.Unlock()
	if c.out != nil {
		c.out.Finish()
	}
}

// cappedFile is a file that accepts a limited number of bytes.
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

// followSignals handles signals. They concern only a keeper that continues alone.
func (k *keeper) followSignals(signals <-chan os.Signal) {
	for s := range signals {
		if s == syscall.SIGTERM && k.stays.Load() {
			go k.now.Load().endFamily()
		}
	}
}

// endFamily terminates the whole family, and kills the rest after the grace period.
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
