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
	done  chan struct{} // closed when Run has returned
	spent chan struct{} // closed when the pipe is no longer read
}

// NewCopier returns a Copier from r to w. Grace is how long it continues to read after the process has ended.
func NewCopier(r *os.File, w io.Writer, grace time.Duration) *Copier {
	return &Copier{r: r, w: w, grace: grace, done: make(chan struct{}), spent: make(chan struct{})}
}

// Discard closes a Copier that was not started.
func (c *Copier) Discard() { c.r.Close() }

// Run copies until the end of the pipe or its deadline. After an error of the writer it continues to read, so
// that the process is not blocked by a full pipe.
func (c *Copier) Run() {
	defer close(c.done)
	c.read(func(data []byte) { c.write(data) })
}

// read passes on data until the end of the pipe or its deadline.
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

// Finish is called when the process has ended: its output is in the pipe by then. Descendants that hold the
// pipe may write during the grace period. Their later output is read and discarded, so that they don't die of a
// broken pipe.
func (c *Copier) Finish() {
	grace := time.NewTimer(c.grace)
	defer grace.Stop()
	select {
	case <-c.done:
		c.close()
		return
	case <-grace.C:
	}
	_ = c.r.SetReadDeadline(time.Now()) // pipes support deadlines
	<-c.done
	c.drain()
	go func() {
		defer c.close()
		c.read(func([]byte) {})
	}()
}

func (c *Copier) close() {
	c.w = nil // released early, because the process may be referenced longer
	c.r.Close()
	close(c.spent)
}

// Duplicate returns a duplicate of the pipe's descriptor, -1 if it has no writers left. An os.File would set it
// to blocking mode, on our side too.
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

// drain copies the current content of the pipe without waiting for more. On a busy machine the grace period can
// end before Run could read it. The bound limits a descendant that writes without end.
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
