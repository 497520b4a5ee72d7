//go:build linux || darwin

package memory_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/extend/memory"
	"github.com/inspan/inspan/internal/testkit"
)

const childEnv = "MEMORY_TEST_CHILD" // a line of words: be a child process

func TestMain(m *testing.M) {
	if args := os.Getenv(childEnv); args != "" {
		if err := child(strings.Split(args, "|")); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child adds entries in a process of its own, and says each that was added.
func child(args []string) error {
	s := &memory.Store{Dirs: map[memory.Scope]string{memory.User: args[0]}}
	count, err := strconv.Atoi(args[2])
	for i := 0; i < count && err == nil; i++ {
		text := fmt.Sprintf("%s says %d", args[1], i%24)
		var old []string
		if x, _ := s.Index(); i >= 24 {
			for _, e := range x.Entries {
				if e.Text == text {
					old = []string{e.ID}
				}
			}
			if len(old) > 0 {
				_, err = s.Remove(context.Background(), memory.User, old[0])
			}
		}
		if err == nil {
			err = testkit.Patiently(func() error {
				_, err := s.Add(context.Background(), memory.User, memory.Entry{Text: text, Topic: "t"}, "more on "+text)
				return err
			})
		}
		if err == nil {
			_, err = fmt.Println(text)
		}
	}
	return err
}

func command(t testing.TB, dir, name string, count int) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%s|%d", childEnv, dir, name, count))
	cmd.Stderr = os.Stderr
	return cmd
}

func TestManyProcesses(t *testing.T) {
	const processes, each = 8, 24 // 192 entries and the heading
	s := store(t)
	var running []*exec.Cmd
	out := make([]*bufio.Scanner, processes)
	for i := range processes {
		cmd := command(t, s.Dirs[memory.User], fmt.Sprint("p", i), each)
		pipe, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		out[i] = bufio.NewScanner(pipe)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		running = append(running, cmd)
	}
	seen := 0
	for out[0].Scan() { // readers take no lock and never see a part
		n := len(index(t, s).Entries)
		if n < seen || n == 0 {
			t.Fatalf("%d entries, then %d", seen, n)
		}
		seen = n
	}
	for i, cmd := range running {
		for out[i].Scan() {
			if text := out[i].Text(); strings.HasPrefix(text, "error") {
				t.Error(text)
			}
		}
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	got := map[string]int{}
	for _, text := range texts(index(t, s)) {
		got[text]++
	}
	topic, err := s.Topic(memory.User, "t")
	if err != nil {
		t.Fatal(err)
	}
	for i := range processes {
		for k := range each - 4 {
			text := fmt.Sprintf("p%d says %d", i, k)
			if got[text] != 1 || strings.Count(topic.Text, "more on "+text+"\n") != 1 {
				t.Errorf("%s is there %d times, %d in the topic", text, got[text], strings.Count(topic.Text, "more on "+text+"\n"))
			}
		}
	}
}

// TestKilledAnywhere kills writers at random moments. The files are whole, acknowledged entries are there, and the next
// writer need not wait.
func TestKilledAnywhere(t *testing.T) {
	s := store(t)
	killed := 0
	for round := range 30 {
		cmd := command(t, s.Dirs[memory.User], "p", 100_000)
		pipe, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(pipe)
		lines.Scan()
		timer := time.AfterFunc(time.Duration(rand.IntN(20_000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
		n := 1
		for lines.Scan() {
			n++
		}
		_ = cmd.Wait()
		timer.Stop()
		if cmd.ProcessState.ExitCode() == -1 {
			killed++
		}
		x := index(t, s)
		if len(x.Problems) > 0 || len(x.Entries) < min(n, 24)-1 || len(x.Entries) > 25 {
			t.Fatalf("round %d: %d said, %d entries, %v", round, n, len(x.Entries), x.Problems)
		}
		for _, e := range x.Entries {
			if _, err := s.Remove(t.Context(), memory.User, e.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	if killed < 20 {
		t.Errorf("only %d were killed", killed)
	}
	if entries, err := os.ReadDir(s.Dirs[memory.User]); err != nil || len(entries) > 2 {
		t.Errorf("leftovers: %v, %v", entries, err)
	}
}

// TestStoppedWriter checks that a writer that waits for another can be cancelled.
func TestStoppedWriter(t *testing.T) {
	s := store(t)
	add(t, s, memory.User, memory.Entry{Text: "a"}, "")
	f, err := os.Open(s.Dirs[memory.User])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Add(ctx, memory.User, memory.Entry{Text: "b"}, ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if n := len(index(t, s).Entries); n != 1 {
		t.Error(n)
	}
}

// TestLinksAndPipes checks that only regular files of the folder itself are read and written, and that others block
// nothing.
func TestLinksAndPipes(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside.md")
	link := func(t *testing.T, path string) {
		if err := os.WriteFile(outside, []byte("- secret\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(outside, path); err != nil {
			t.Fatal(err)
		}
	}
	for name, make := range map[string]func(t *testing.T, path string){
		"a link": link,
		"a pipe": func(t *testing.T, path string) {
			if err := syscall.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"a folder": func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := store(t)
			put(t, s, memory.Team, "topics/x.md", "x")
			make(t, filepath.Join(s.Dirs[memory.Team], "MEMORY.md"))
			make(t, filepath.Join(s.Dirs[memory.Team], "topics", "t.md"))
			if x, err := s.Index(); err == nil || len(x.Entries) > 0 {
				t.Error(x, err)
			}
			if _, err := s.Add(t.Context(), memory.Team, memory.Entry{Text: "a"}, ""); err == nil {
				t.Error("it was written over")
			}
			if _, err := s.Topic(memory.Team, "t"); err == nil {
				t.Error("a topic was read")
			}
			if err := os.Remove(filepath.Join(s.Dirs[memory.Team], "MEMORY.md")); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Add(t.Context(), memory.Team, memory.Entry{Text: "a", Topic: "t"}, "b"); err == nil {
				t.Error("a topic was written over")
			}
			if list, err := s.Topics(memory.Team); err != nil || len(list) != 1 {
				t.Error(list, err)
			}
			if data, err := os.ReadFile(outside); err == nil && string(data) != "- secret\n" {
				t.Errorf("%s", data)
			}
		})
	}
	for _, at := range []string{".inspan", ".inspan/memory", ".inspan/memory/topics"} {
		s := store(t)
		path := filepath.Join(s.Root, filepath.FromSlash(at))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		away := t.TempDir()
		for _, dir := range []string{"memory/topics", "topics"} {
			if err := os.MkdirAll(filepath.Join(away, dir), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(away, "MEMORY.md"), []byte("- secret\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(away, path); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Add(t.Context(), memory.Team, memory.Entry{Text: "a", Topic: "t"}, "b"); err == nil {
			t.Errorf("a link at %s was followed", at)
		}
		if x, _ := s.Index(); len(x.Entries) > 0 {
			t.Errorf("a link at %s was read through: %v", at, x)
		}
		if _, err := os.Stat(filepath.Join(away, "topics", "t.md")); err == nil {
			t.Errorf("a link at %s was written through", at)
		}
	}
}
