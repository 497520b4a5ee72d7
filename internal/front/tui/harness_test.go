package tui_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/vt"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/front/tui"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/tool"
)

// screen is a terminal with the front end in it.
type screen struct {
	t    testing.TB
	in   *io.PipeWriter
	tui  *tui.TUI
	done chan struct{}
	code int
	err  error

	mu      sync.Mutex
	cond    *sync.Cond
	term    *vt.Emulator
	written int
	raw     strings.Builder
}

// Write implements io.Writer for the front end.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written += len(p)
	s.raw.Write(p)
	_, err := s.term.Write(bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n"))) // as a terminal that is not raw does
	s.cond.Broadcast()
	return len(p), err
}

// newScreen is a terminal of a size, and where its keys come from.
func newScreen(t testing.TB, width, height int) (*screen, io.Reader) {
	term := vt.NewEmulator(width, height)
	var drained sync.WaitGroup
	drained.Go(func() { _, _ = io.Copy(io.Discard, term) }) // replies that no one waits for
	s := &screen{t: t, term: term, done: make(chan struct{})}
	s.cond = sync.NewCond(&s.mu)
	in, keys := io.Pipe()
	s.in = keys
	t.Cleanup(func() {
		_ = keys.Close()
		_ = term.InputPipe().(io.Closer).Close()
		drained.Wait()
	})
	return s, in
}

// runs runs the terminal program until the test ends.
func (s *screen) runs(run func(context.Context) (int, error)) {
	ctx, cancel := context.WithCancel(s.t.Context())
	go func() {
		defer close(s.done)
		s.code, s.err = run(ctx)
		s.mu.Lock()
		s.cond.Broadcast()
		s.mu.Unlock()
	}()
	s.t.Cleanup(func() {
		cancel()
		<-s.done
	})
}

// start shows a front end in a terminal of a size. The agent has the tools of
// agentTools and answers with the steps, then with the commands of the prompt.
func start(t testing.TB, width, height int, change func(*tui.TUI), steps ...script.Step) *screen {
	t.Helper()
	s, in := newScreen(t, width, height)
	state, root := t.TempDir(), t.TempDir()
	a := app.New(&config.Installation{StateDir: state})
	s.tui = &tui.TUI{
		App: a, Root: root, In: in, Out: s, Width: width, Height: height,
		Host: func(o app.Options, _ func(string)) *inspan.Host {
			return &inspan.Host{Dir: a.Store().Dir, Agent: func(_ context.Context, at inspan.SessionSpec) (*inspan.Agent, error) {
				return &inspan.Agent{
					Model: &script.Model{Steps: steps}, Tools: agentTools(),
					Mode: o.Mode, Env: tool.Env{Root: at.Root}, Limits: inspan.Limits{Retry: -1},
				}, nil
			}}
		},
	}
	if change != nil {
		change(s.tui)
	}
	s.runs(s.tui.Run)
	s.wait("the prompt", func(text string) bool { return strings.Contains(text, "›") })
	return s
}

// agentTools are a tool that reads, one that changes and one that shows progress until the test ends it.
func agentTools() []tool.Tool {
	type word struct {
		Word string `json:"word"`
	}
	read := tool.New("look", "reads", func(_ context.Context, _ *tool.Call, in word) (tool.Result, error) {
		if in.Word == "bad" {
			return tool.Result{}, fmt.Errorf("there is nothing \x1b[31mlike\x1b[0m it")
		}
		return tool.Text(strings.Repeat(in.Word+"\n", 6) + "\x1b]0;evil\x07"), nil
	})
	read.Effects = func(_ context.Context, c *tool.Call) ([]tool.Effect, error) {
		return []tool.Effect{{Kind: tool.Read, Path: filepath.Join(c.Env.Root, "a")}}, nil
	}
	write := tool.New("note", "changes", func(_ context.Context, _ *tool.Call, in word) (tool.Result, error) {
		return tool.Result{Parts: llm.Say("noted " + in.Word), Files: []tool.File{{
			Path: "/w/a", Written: true,
			Diff: "--- a\n+++ a\n@@ -1 +1 @@\n-old\n+" + in.Word + "\n",
		}}}, nil
	})
	write.Effects = func(_ context.Context, c *tool.Call) ([]tool.Effect, error) {
		return []tool.Effect{{Kind: tool.Write, Path: filepath.Join(c.Env.Root, "a")}}, nil
	}
	slow := tool.New("slow", "takes long", func(ctx context.Context, c *tool.Call, in word) (tool.Result, error) {
		for i := 0; ; i++ {
			c.Progress(fmt.Sprintf("at %d\n%s", i, in.Word))
			select {
			case <-ctx.Done():
				return tool.Result{}, ctx.Err()
			case <-time.After(time.Millisecond):
			}
		}
	})
	slow.Effects = read.Effects
	asker := tool.New("ask", "asks the person", func(_ context.Context, c *tool.Call, _ struct {
		Question string   `json:"question"`
		Options  []string `json:"options"`
	},
	) (tool.Result, error) {
		return tool.Text("the person said " + c.Answer), nil
	})
	asker.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) {
		return []tool.Effect{{Kind: tool.Question}}, nil
	}
	todo := tool.New("todo", "sets the list", func(context.Context, *tool.Call, struct{}) (tool.Result, error) {
		return tool.Result{Todo: []tool.Todo{
			{Text: "read", State: tool.TodoDone},
			{Text: "write it", State: tool.TodoDoing},
			{Text: "test", State: tool.TodoOpen},
		}}, nil
	})
	todo.Effects = read.Effects
	return []tool.Tool{read, write, slow, asker, todo}
}

// sequences are all that was written to the terminal.
func (s *screen) sequences() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.raw.String()
}

// text is the whole text of the terminal, including the scrollback.
func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.locked()
}

func (s *screen) locked() string {
	var b strings.Builder
	for y := range s.term.ScrollbackLen() {
		b.WriteString(rowOf(s.term.Width(), func(x int) *uv.Cell { return s.term.ScrollbackCellAt(x, y) }))
	}
	for y := range s.term.Height() {
		b.WriteString(rowOf(s.term.Width(), func(x int) *uv.Cell { return s.term.CellAt(x, y) }))
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func rowOf(width int, cell func(int) *uv.Cell) string {
	var b strings.Builder
	for x := range width {
		if c := cell(x); c == nil || c.Content == "" {
			if c == nil || c.Width > 0 {
				b.WriteByte(' ')
			}
		} else {
			b.WriteString(c.Content)
		}
	}
	return strings.TrimRight(b.String(), " ") + "\n"
}

// wait waits until the terminal shows something.
func (s *screen) wait(what string, ok func(text string) bool) string {
	s.t.Helper()
	late := false
	timer := time.AfterFunc(testkit.Patience, func() {
		s.mu.Lock()
		late = true
		s.cond.Broadcast()
		s.mu.Unlock()
	})
	defer timer.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		text := s.locked()
		switch {
		case ok(text):
			return text
		case late:
			s.t.Fatalf("there never was %s:\n%s", what, text)
		}
		select {
		case <-s.done:
			s.t.Fatalf("it ended (%d, %v) before there was %s:\n%s", s.code, s.err, what, text)
		default:
		}
		s.cond.Wait()
	}
}

// shows waits until a text is on the terminal.
func (s *screen) shows(texts ...string) string {
	s.t.Helper()
	return s.wait(fmt.Sprintf("%q", texts), func(all string) bool {
		for _, text := range texts {
			if !strings.Contains(all, text) {
				return false
			}
		}
		return true
	})
}

// press sends keys as a terminal does.
func (s *screen) press(keys string) {
	s.t.Helper()
	if _, err := io.WriteString(s.in, keys); err != nil {
		s.t.Fatal(err)
	}
}

// typed sends keys and waits until the prompt shows them, then sends the rest.
func (s *screen) typed(text, then string) {
	s.t.Helper()
	s.press(text)
	s.shows("› " + text)
	s.press(then)
}

// ends waits for the end of the front end.
func (s *screen) ends() (code int, err error) {
	s.t.Helper()
	select {
	case <-s.done:
	case <-time.After(testkit.Patience):
		s.t.Fatal("it does not end:\n" + s.text())
	}
	return s.code, s.err
}

func call(name, args string) script.Step {
	return script.Step{Parts: llm.Parts{llm.Call{Name: name, Args: json.RawMessage(args)}}}
}

func sayStep(text string) script.Step { return script.Step{Parts: llm.Say(text)} }

const (
	enter = "\r"
	esc   = "\x1b"
	ctrlC = "\x03"
	ctrlD = "\x04"
	ctrlO = "\x0f"
)
