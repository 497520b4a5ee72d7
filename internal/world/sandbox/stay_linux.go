package sandbox

import (
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

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
		k.out = newCopier(os.NewFile(uintptr(fds[1]), "pipe"), &filling{out, maxKeptOutput}, outputGrace)
		go k.out.run()
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
		k.out.finish()
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
	k.family.ask()
	late := time.NewTimer(termGrace)
	defer late.Stop()
	select {
	case <-k.family.done:
	case <-late.C:
		k.killAll()
	}
}

// ask sends SIGTERM to all descendants.
func (f *family) ask() {
	f.signals.Lock()
	defer f.signals.Unlock()
	if f.over() {
		return
	}
	if os.Getpid() == 1 {
		_ = syscall.Kill(-1, syscall.SIGTERM)
		return
	}
	for _, pid := range Descendants(os.Getpid()) {
		_ = syscall.Kill(pid, syscall.SIGTERM)
	}
}

// markOf tells a process from all others that had or will have its number, on this
// machine and on others; empty if there is none.
func markOf(pid int) string {
	start := startOf(pid)
	if start == "" {
		return ""
	}
	return strings.Join([]string{bootID(), processNamespace(), start}, "-")
}

// KeptRuns reports whether a process that was kept still runs. It is not known of one that
// was kept in another container, or on another machine that has the same files.
func KeptRuns(k tool.Kept) (runs, known bool) {
	boot, rest, _ := strings.Cut(k.Mark, "-")
	namespace, _, _ := strings.Cut(rest, "-")
	if boot == bootID() && namespace != processNamespace() {
		return false, false
	}
	return markOf(k.PID) == k.Mark && !zombie(k.PID), true
}

// zombie reports whether a process has ended, and its parent has not heard of it yet.
func zombie(pid int) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, rest, ok := strings.Cut(string(data), ") ")
	return err != nil || !ok || strings.HasPrefix(rest, "Z") || strings.HasPrefix(rest, "X")
}

// keptGrace is longer than a keeper gives its family.
const keptGrace = termGrace + patience

// EndKept ends a process that was kept, with all its descendants.
func EndKept(ctx context.Context, k tool.Kept) error {
	if _, known := KeptRuns(k); !known {
		return errors.New("it runs in another container; end it there")
	}
	_, err := End(ctx, k.PID, keptGrace, func() bool { runs, _ := KeptRuns(k); return runs })
	return err
}
