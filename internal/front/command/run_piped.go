package command

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/text"
)

const (
	maxPiped = 1 << 20         // bytes of standard input that are added to a task
	firstIn  = 2 * time.Second // until the first of them; an open pipe of a parent may never have any
)

// piped returns a task with the piped input after it, in a fence. A terminal and a device are not read.
func (c *command) piped(task string, args []string) (string, error) {
	f, ok := c.in.(*os.File)
	if !ok || piped(args) {
		return task, nil
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() && info.Mode()&os.ModeNamedPipe == 0 {
		return task, nil //nolint:nilerr // a closed standard input is empty
	}
	in, came := bufio.NewReader(f), make(chan struct{})
	go func() {
		_, _ = in.Peek(1) // the read below reports errors
		close(came)
	}()
	select {
	case <-came:
	case <-time.After(firstIn):
		c.warn("no text from standard input within 2 seconds; the task starts without it")
		return task, nil
	}
	raw, err := io.ReadAll(io.LimitReader(in, maxPiped+1))
	if err != nil {
		return "", fmt.Errorf("read standard input: %w", err)
	}
	return c.fenced(task, string(raw)), nil
}

// fenced adds text to a task, and says in it and in a warning if the text was cut.
func (c *command) fenced(task, said string) string {
	if strings.TrimSpace(said) == "" {
		return task
	}
	note := ""
	if len(said) > maxPiped {
		said, note = said[:maxPiped], "\n[cut after 1 MiB]"
		c.warn("standard input was cut after 1 MiB; 'inspan ask-corpus -' answers questions about more")
	}
	return task + "\n\nStandard input:\n\n" + text.Fenced("", strings.ToValidUTF8(said, "\uFFFD")) + note
}
