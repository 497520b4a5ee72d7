//go:build unix

package sandbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/world/ability"
	"github.com/inspan/inspan/tool"
)

const (
	// childSize is the number of bytes that a child of Children prints to each output.
	childSize = 1 << 20
	// childCode is its exit code.
	childCode = 7
	// childTime bounds all of them.
	childTime = time.Minute
)

// way is one way to start a process.
type way struct {
	name   string
	box    tool.Box
	tty    tool.TTY
	talks  bool   // it reads what it prints
	kept   bool   // it continues without this program, and prints most output then
	script string // exits with childCode
	lacks  string // why it is unavailable here; empty means it is available
}

// Children starts processes in each way that sessions do, many at a time, while other processes keep every core
// busy. It reads their output to the end, and checks that no byte, exit code or end is lost. The options are as
// for [Probe].
func Children(ctx context.Context, o Options) []Check {
	p, err := newProbe(o)
	if err != nil {
		return []Check{{Name: "setup", Text: err.Error()}}
	}
	defer p.close()
	ctx, stop := context.WithTimeout(ctx, childTime)
	defer stop()
	busy := p.burn(ctx)
	ways, each := p.ways(), 2*runtime.NumCPU()
	errs := make([][]error, len(ways))
	took := make([]time.Duration, len(ways))
	var all sync.WaitGroup
	for i, w := range ways {
		errs[i] = make([]error, each)
		if w.lacks != "" {
			continue
		}
		var group sync.WaitGroup
		began := time.Now()
		for n := range each {
			group.Go(func() { errs[i][n] = p.child(ctx, w, n) })
		}
		all.Go(func() { group.Wait(); took[i] = time.Since(began) })
	}
	all.Wait()
	checks := make([]Check, len(ways))
	for i, w := range ways {
		c := Check{Name: "children: " + w.name}
		switch err := errors.Join(errs[i]...); {
		case w.lacks != "":
			c.Text = "can't be started here: " + w.lacks
		case err != nil:
			c.Text = strings.ReplaceAll(err.Error(), "\n", "; ")
		default:
			c.OK = true
			c.Text = fmt.Sprintf("%d at once, each %d MiB, read to the end in %.1f s under load", each, 2*childSize>>20, took[i].Seconds())
		}
		checks[i] = c
	}
	stop()
	busy()
	return checks
}

// ways lists how sessions start processes: commands with and without each box, in a terminal, interactive
// servers, and jobs that continue alone.
func (p *probe) ways() []way {
	prints := fmt.Sprintf("head -c %d /dev/zero | tr '\\0' o; head -c %[1]d /dev/zero | tr '\\0' e >&2; exit %d", childSize, childCode)
	walls := p.env.Walls
	lacking := func(there bool, why string) string {
		if there {
			return ""
		}
		return or(why != "", why, "the system lacks what it takes")
	}
	workspace := tool.Box{Level: tool.BoxWorkspace}
	out := []way{
		{name: "without a box", box: tool.Box{Level: tool.BoxNone}, script: prints},
		{name: "in a read box", box: tool.Box{Level: tool.BoxRead}, script: prints, lacks: lacking(walls.Read, walls.Why)},
		{name: "in a workspace box", box: workspace, script: prints, lacks: lacking(walls.Workspace, walls.Why)},
		{
			name: "in a workspace box with a host", box: tool.Box{Level: tool.BoxWorkspace, Hosts: []string{"localhost"}},
			script: prints, lacks: lacking(walls.Hosts, walls.Why),
		},
		{
			name: "in a throwaway box", box: tool.Box{Level: tool.BoxWorkspace, Throwaway: true},
			script: prints, lacks: lacking(walls.Throwaway, walls.NoThrowaway),
		},
		{name: "that are talked to", box: tool.Box{Level: tool.BoxNone}, talks: true, script: fmt.Sprintf("cat; exit %d", childCode)},
	}
	if runtime.GOOS == "linux" {
		out = append(out,
			way{name: "in a terminal", box: tool.Box{Level: tool.BoxNone}, tty: tool.TTY{Rows: 24, Cols: 80}, script: prints},
			way{
				name: "that go on alone", box: workspace, kept: true, lacks: lacking(walls.Workspace, walls.Why),
				script: "read -r end; " + prints,
			})
	}
	return out
}

// child starts one process and checks that nothing of it is lost.
func (p *probe) child(ctx context.Context, w way, n int) error {
	var out printed
	var hold io.Closer
	c := tool.Command{Args: []string{"sh", "-c", w.script}, Dir: p.env.Root, Output: &out, Box: w.box, TTY: w.tty}
	if w.talks {
		c.Stdin = strings.NewReader(strings.Repeat("o", childSize) + strings.Repeat("e", childSize))
	}
	if w.kept {
		r, w, err := os.Pipe() // blocks it until closed
		if err != nil {
			return err
		}
		defer r.Close()
		defer w.Close()
		c.Stdin, c.Keep, hold = r, true, w
	}
	proc, err := p.env.Procs.Start(ctx, c)
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	if w.kept {
		return p.alone(ctx, proc, hold, fmt.Sprint("kept-", n))
	}
	code, err := proc.Wait()
	if err == nil && code != childCode {
		err = fmt.Errorf("ended with %d, and should with %d", code, childCode)
	}
	return errors.Join(err, out.whole())
}

// alone detaches a process that hold keeps from printing, and waits until its output file is complete.
func (p *probe) alone(ctx context.Context, proc tool.Process, hold io.Closer, name string) error {
	k, ok := proc.(ability.Keepable)
	if !ok {
		return errors.New("can't be kept")
	}
	file := filepath.Join(p.dir, name)
	if _, err := k.Keep(file, func(ability.Kept) error { return nil }); err != nil {
		proc.Kill()
		return fmt.Errorf("keep: %w", err)
	}
	_ = hold.Close()
	whole := func() error {
		raw, err := keep.Read(file)
		var out printed
		_, _ = out.Write(raw)
		return errors.Join(err, out.whole())
	}
	endedWithin(ctx, childTime, func() bool { return whole() != nil })
	return whole()
}

// burn keeps every core busy until the context ends. Wait returns after that.
func (p *probe) burn(ctx context.Context) (wait func()) {
	var all sync.WaitGroup
	for range runtime.NumCPU() {
		var work [4096]byte
		all.Go(func() {
			for ctx.Err() == nil {
				_ = sha256.Sum256(work[:])
			}
		})
	}
	return all.Wait
}

// printed counts the output of a child. One goroutine writes it.
type printed struct{ o, e int }

func (p *printed) Write(b []byte) (int, error) {
	p.o += bytes.Count(b, []byte("o"))
	p.e += bytes.Count(b, []byte("e"))
	return len(b), nil
}

// whole returns an error if output is missing.
func (p *printed) whole() error {
	if p.o != childSize || p.e != childSize {
		return fmt.Errorf("%d of %d bytes of standard output were read, %d of standard error", p.o, childSize, p.e)
	}
	return nil
}
