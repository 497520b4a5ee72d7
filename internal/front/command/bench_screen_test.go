//go:build linux

package command

// What a person at a terminal waits for, measured on the built command at a real
// one of the kernel's. A terminal that hangs ends the benchmark: every wait has
// its end.

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/testkit/anthropictest"
	"github.com/inspan/inspan/llm"
)

const (
	ptyPatience = 20 * time.Second // for anything to show
	ptyLife     = 2 * time.Minute  // of a command, at most
)

// ptyScreen is a person's end of a terminal with the command at the other one.
type ptyScreen struct {
	b     testing.TB
	file  *os.File // what the person types and sees
	cmd   *exec.Cmd
	began time.Time
	ended chan struct{}

	mu   sync.Mutex
	seen []byte // since the last expect
	want []byte
	hit  chan time.Time
}

// openPty returns both ends of a new terminal.
func openPty(width, height uint16) (person, program *os.File, err error) {
	person, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	fd := int(person.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: height, Col: width})
	}
	if err == nil {
		program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		_ = person.Close()
		return nil, nil, err
	}
	return person, program, nil
}

// onPty starts the command at a terminal of 120 by 40. It is gone when the
// benchmark is, and at the latest after ptyLife.
func onPty(b *testing.B, h home, args ...string) *ptyScreen {
	b.Helper()
	person, program, err := openPty(120, 40)
	if err != nil {
		b.Skipf("there is no terminal to be had here: %v", err)
	}
	ctx, cancel := context.WithTimeout(b.Context(), ptyLife)
	s := &ptyScreen{b: b, file: person, cmd: h.command(ctx, args...), ended: make(chan struct{})}
	s.cmd.Env = append(s.cmd.Env, "TERM=xterm-256color", "COLORTERM=truecolor", "LANG=C.UTF-8")
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = program, program, program
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	s.expect("say what to do")
	s.began = time.Now()
	err = s.cmd.Start()
	_ = program.Close()
	if err != nil {
		cancel()
		_ = person.Close()
		b.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(s.read)
	go func() { _ = s.cmd.Wait(); close(s.ended) }()
	b.Cleanup(func() {
		cancel()
		<-s.ended
		reading.Wait() // the program's end is closed, so reading fails
		_ = person.Close()
	})
	return s
}

// read looks at the written output until the other end is closed.
func (s *ptyScreen) read() {
	buf := make([]byte, 64<<10)
	for {
		n, err := s.file.Read(buf)
		at := time.Now()
		s.mu.Lock()
		s.seen = append(s.seen, buf[:n]...)
		if s.want != nil && bytes.Contains(s.seen, s.want) {
			s.want = nil
			s.hit <- at
		}
		if keep := 256 << 10; len(s.seen) > keep {
			s.seen = append(s.seen[:0], s.seen[len(s.seen)-keep/2:]...)
		}
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// expect sets the text that saw waits for. It must come before the action that causes it.
func (s *ptyScreen) expect(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen, s.want, s.hit = s.seen[:0], []byte(text), make(chan time.Time, 1)
}

// saw waits for the expected text, and returns the time of its arrival.
func (s *ptyScreen) saw() time.Time {
	s.b.Helper()
	timer := time.NewTimer(ptyPatience)
	defer timer.Stop()
	select {
	case at := <-s.hit:
		return at
	case <-s.ended:
	case <-timer.C:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.b.Fatalf("%q never came: %q", s.want, s.seen)
	return time.Time{}
}

// press types keys.
func (s *ptyScreen) press(keys string) {
	s.b.Helper()
	if err := s.file.SetWriteDeadline(time.Now().Add(ptyPatience)); err != nil {
		s.b.Fatal(err)
	}
	if _, err := s.file.WriteString(keys); err != nil {
		s.b.Fatal(err)
	}
}

// leave ends the command as a person does.
func (s *ptyScreen) leave() {
	s.b.Helper()
	s.press("\x15\x03\x03\x03")
	select {
	case <-s.ended:
	case <-time.After(ptyPatience):
		s.b.Fatal("the command does not end")
	}
}

// cpu is the processor time the command has used so far, in seconds.
func (s *ptyScreen) cpu() float64 {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		s.b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(raw), ") ") // after the name
	fields := strings.Fields(rest)
	user, err1 := strconv.ParseFloat(fields[11], 64)
	system, err2 := strconv.ParseFloat(fields[12], 64)
	if err1 != nil || err2 != nil {
		s.b.Fatal(err1, err2)
	}
	return (user + system) / 100 // of a second, on every Linux of today
}

// received is how much the command has read so far, in MB.
func (s *ptyScreen) received() float64 {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", s.cmd.Process.Pid))
	if err != nil {
		s.b.Fatal(err)
	}
	var n float64
	if _, err := fmt.Sscanf(string(raw), "rchar: %f", &n); err != nil {
		s.b.Fatal(err)
	}
	return n / (1 << 20)
}

// BenchmarkFirstFrame measures from the start of the process to the prompt on
// the terminal, twenty starts a round, each in a folder that is new.
func BenchmarkFirstFrame(b *testing.B) {
	var took []float64
	for b.Loop() {
		for range 20 {
			s := onPty(b, withoutModel(b))
			took = append(took, ms(s.saw().Sub(s.began)))
			s.leave()
		}
	}
	b.ReportMetric(median(took), "ms/start")
	b.ReportMetric(slices.Max(took), "worst-ms/start")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkServersAtStart measures how much twenty MCP servers in the settings add to the first frame: starts with and
// without them, alternating.
func BenchmarkServersAtStart(b *testing.B) {
	var without, with []float64
	for b.Loop() {
		for range 20 {
			for _, many := range []int{0, 20} {
				h := withoutModel(b)
				settings := "model = \"script/commands\"\n"
				for n := range many {
					settings += fmt.Sprintf("[mcp.servers.s%d]\ncommand = [\"sh\", \"-c\", \"read a\"]\n", n)
				}
				if err := os.WriteFile(filepath.Join(h.dir, "config", "config.toml"), []byte(settings), 0o600); err != nil {
					b.Fatal(err)
				}
				s := onPty(b, h)
				took := ms(s.saw().Sub(s.began))
				s.leave()
				if many == 0 {
					without = append(without, took)
				} else {
					with = append(with, took)
				}
			}
		}
	}
	b.ReportMetric(median(without), "ms/start")
	b.ReportMetric(median(with), "ms/start-with-20")
	b.ReportMetric(median(with)-median(without), "ms/added")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkReplyOnPty shows a reply of 10,000 lines that comes at 2,000 lines a second, and measures the share of a
// core that it takes, and the memory.
func BenchmarkReplyOnPty(b *testing.B) {
	var text strings.Builder
	for i := range 10_000 {
		line := fmt.Sprintf("Line %d says **something** of `interest` in about as many words as usual,", i)
		fmt.Fprintf(&text, "%-79s\n", line+" and on.")
		if i%8 == 7 {
			text.WriteByte('\n')
		}
	}
	text.WriteString("The very end.\n")
	url := anthropictest.Start(b, &anthropictest.Server{Answer: func(*http.Request, []byte) anthropictest.Answer {
		return anthropictest.Answer{Parts: llm.Say(text.String()), Split: 200, Pace: time.Millisecond}
	}})
	var used, lasted, share, most []float64
	for b.Loop() {
		s := onPty(b, newHome(b, url))
		s.saw()
		s.expect("Line 0 ")
		s.press("go\r")
		began, before := s.saw(), s.cpu()
		s.expect("The very end.")
		end := s.saw()
		cpu, wall := s.cpu()-before, end.Sub(began).Seconds()
		used, lasted, share = append(used, cpu), append(lasted, wall), append(share, 100*cpu/wall)
		most = append(most, resident(b, s.cmd.Process.Pid, "VmHWM"))
		s.leave()
	}
	b.ReportMetric(median(used), "cpu-s")
	b.ReportMetric(median(lasted), "wall-s")
	b.ReportMetric(median(share), "%core")
	b.ReportMetric(median(most), "MB-peak")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkKeyOnPty measures how long a key takes to show while a command prints
// about 10 MB a second, 500 keys a round.
func BenchmarkKeyOnPty(b *testing.B) {
	var took, rate []float64
	for b.Loop() {
		h := withoutModel(b)
		line := strings.Repeat(strings.Repeat("#", 99)+"\n", 1024)
		if err := os.WriteFile(filepath.Join(h.work, "flood"), []byte(line), 0o600); err != nil {
			b.Fatal(err)
		}
		s := onPty(b, h, "--mode", "auto")
		s.saw()
		s.expect("####")
		s.press("bash: while cat flood; do sleep 0.007; done\r")
		began, before := s.saw(), s.received()
		for i := range 500 {
			key := string(rune(0x4e00 + i))
			s.expect(key)
			at := time.Now()
			s.press(key)
			took = append(took, ms(s.saw().Sub(at)))
			if i%40 == 39 {
				s.press("\x15") // the line is emptied
			}
		}
		rate = append(rate, (s.received()-before)/time.Since(began).Seconds())
		s.leave()
	}
	b.ReportMetric(median(took), "ms-p50")
	b.ReportMetric(took[len(took)*99/100], "ms-p99") // median has put them in order
	b.ReportMetric(took[len(took)-1], "ms-max")
	b.ReportMetric(median(rate), "MB/s-printed")
	b.ReportMetric(0, "ns/op")
}
