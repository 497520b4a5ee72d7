//go:build unix

package processes

import (
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Copier copies from a pipe to a writer.
type Copier struct {
	r     *os.File
	w     io.Writer
	grace time.Duration
	done  chan struct{} // closed when run has returned
	spent chan struct{} // closed when the pipe is read no more
}

func NewCopier(r *os.File, w io.Writer, grace time.Duration) *Copier {
	return &Copier{r: r, w: w, grace: grace, done: make(chan struct{}), spent: make(chan struct{})}
}

// Discard gives up one that does not run.
func (c *Copier) Discard() { c.r.Close() }

// Run copies until the end of the pipe or its deadline. After an error of the
// writer it goes on reading, so that the process is not stopped by a full
// pipe.
func (c *Copier) Run() {
	defer close(c.done)
	c.read(func(data []byte) { c.write(data) })
}

// read hands on what comes until the end of the pipe or its deadline.
func (c *Copier) read(to func([]byte)) {
	buf := make([]byte, 64<<10)
	for {
		n, err := c.r.Read(buf)
		to(buf[:n])
		if err != nil {
			return
		}
	}
}

func (c *Copier) write(data []byte) {
	if len(data) == 0 || c.w == nil {
		return
	}
	if _, err := c.w.Write(data); err != nil {
		c.w = nil
	}
}

// Finish is called when the process has ended: what it wrote is in the pipe by
// now. Descendants that still hold the pipe have the grace to go on. What they write
// later is read too, and lost: they must not die of a pipe that nobody reads.
func (c *Copier) Finish() {
	grace := time.NewTimer(c.grace)
	defer grace.Stop()
	select {
	case <-c.done:
		c.close()
		return
	case <-grace.C:
	}
	_ = c.r.SetReadDeadline(time.Now()) // pipes have deadlines
	<-c.done
	c.drain()
	go func() {
		defer c.close()
		c.read(func([]byte) {})
	}()
}

func (c *Copier) close() {
	c.w = nil // it need not live as long as the process is known
	c.r.Close()
	close(c.spent)
}

// Duplicate returns the descriptor of the pipe once more, -1 if nobody writes to it any longer.
// An os.File would make it one that blocks, for us too.
func (c *Copier) Duplicate() int {
	raw, err := c.r.SyscallConn()
	fd := -1
	if err == nil {
		err = raw.Control(func(r uintptr) { fd, _ = unix.FcntlInt(r, unix.F_DUPFD_CLOEXEC, 0) })
	}
	if err != nil {
		return -1 // it is closed
	}
	return fd
}

// Stop stops reading.
func (c *Copier) Stop() { _ = c.r.SetReadDeadline(time.Now()) }

// drain copies what is in the pipe now and does not wait for more. On a busy
// machine the grace can be over before run came to read it. The bound keeps a
// descendant that writes without end from holding us.
func (c *Copier) drain() {
	_ = c.r.SetReadDeadline(time.Time{})
	raw, err := c.r.SyscallConn()
	if err != nil {
		return
	}
	buf := make([]byte, 64<<10)
	for range 16 {
		n := 0
		err := raw.Read(func(fd uintptr) bool {
			n, _ = syscall.Read(int(fd), buf)
			return true
		})
		if err != nil || n <= 0 {
			return
		}
		c.write(buf[:n])
	}
}
