package app

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"github.com/inspan/inspan/internal/extend/hook"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

// StatusLine runs the status line command of the settings, in the same sandbox as hooks. It is safe for
// concurrent use.
type StatusLine struct {
	App *App

	mu  sync.Mutex
	env tool.Env // of the folder of the last run
}

// Run runs the command in a folder, and returns its output.
func (l *StatusLine) Run(ctx context.Context, root string, mode tool.Mode, state string) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	root, err := filepath.Abs(root)
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err != nil {
		return "", err
	}
	if l.env.Root != root {
		if err := l.env.Close(); err != nil {
			return "", err
		}
		if l.env, err = l.App.Permission.Env(root); err != nil {
			l.env = tool.Env{}
			return "", err
		}
	}
	set := l.App.Config
	walls, c := hook.Walls{Own: true, Outside: set.Sandbox.Outside}, hook.Config{Command: set.TUI.StatusLine}
	printed, complaints, code, err := sandbox.CaptureFrom(ctx, l.env, tool.Command{
		Args: []string{"sh", "-c", c.Command}, Dir: root, Stdin: strings.NewReader(state), Box: walls.Box(ctx, l.env, mode, c),
	})
	if err == nil && code != 0 {
		err = fmt.Errorf("exit code %d: %s", code, complaints)
	}
	return string(printed), err
}

// Close ends the sandbox of the command.
func (l *StatusLine) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.env.Close()
	l.env = tool.Env{}
	return err
}
