package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/config"
	"github.com/inspan/inspan/internal/keep"
	"github.com/inspan/inspan/internal/sandbox"
	"github.com/inspan/inspan/internal/tools"
	"github.com/inspan/inspan/tool"
)

// Service is what goes on after its session has ended. Each has a file in the state
// folder for as long as it runs.
type Service struct {
	tool.Kept
	Session string    `json:"session"`
	Job     string    `json:"job,omitempty"` // empty: it was no job
	Command string    `json:"command"`
	Since   time.Time `json:"since"` // when the session has let go of it
	Output  string    `json:"output,omitempty"`

	file string
}

// noKeep says why nothing can outlive a session; empty: it can.
func (a *App) noKeep(o Options) string {
	switch {
	case a.Config.Leftovers == config.LeftoversEnd:
		return "leftovers = \"end\" in the settings ends everything with the session"
	case runtime.GOOS != "linux" || a.Self == "":
		return "here nothing can go on without inspan, which takes Linux"
	case o.Container != "" || a.Config.Sandbox.Container != "":
		return "commands run in containers, which end with inspan"
	}
	return ""
}

// mayKeep reports whether some rule lets bash keep what it starts.
func mayKeep(rules []inspan.Rule) bool {
	return slices.ContainsFunc(rules, func(r inspan.Rule) bool {
		return r.Action == tool.Allow && (r.Text == string(tool.Keep) || strings.HasPrefix(r.Text, string(tool.Keep)+"("))
	})
}

// leave lets go of what is to outlive a session, and ends the rest. What is to outlive one
// that works for another, that one has.
func (a *App) leave(id string, shell *tools.Shell, normal bool, mode string) (out inspan.Leftovers) {
	n := 0
	out.Kept, out.Ended = shell.Leave(tools.Leaving{
		To:  a.Shell(parentOf(id)),
		All: a.Config.Keeps(mode), None: !normal || a.Config.Leftovers == config.LeftoversEnd,
		Keep: func(l tool.Leftover, p tool.Keepable) (tool.Leftover, error) {
			n++
			l.Output = filepath.Join(a.Store().Dir, id, fmt.Sprintf("kept-%d-%d.log", os.Getpid(), n))
			s := Service{Session: id, Job: l.Job, Command: l.Command, Since: time.Now(), Output: l.Output}
			ports, err := p.Keep(l.Output, func(k tool.Kept) error {
				s.Kept, l.PID = k, k.PID
				return a.register(&s)
			})
			l.Ports = ports
			if err != nil {
				return l, errors.Join(err, s.forget())
			}
			return l, nil
		},
	})
	return out
}

func (a *App) services() string { return filepath.Join(a.StateDir, "kept") }

// register writes the file of a service.
func (a *App) register(s *Service) error {
	raw, err := json.Marshal(s)
	if err == nil {
		err = keep.MakeDir(a.services())
	}
	if err != nil {
		return err
	}
	path := filepath.Join(a.services(), strconv.Itoa(s.PID)+"-"+s.Mark+".json")
	if err := keep.Write(path, raw); err != nil {
		return err
	}
	s.file = path
	return nil
}

// forget removes the file of a service that has one.
func (s *Service) forget() error {
	if s.file == "" {
		return nil
	}
	return os.Remove(s.file)
}

// Services are what goes on of sessions that have ended, the oldest first. The files of
// those that run no more are removed.
func (a *App) Services() ([]Service, error) {
	names, err := filepath.Glob(filepath.Join(a.services(), "*.json"))
	if err != nil {
		return nil, err
	}
	var out []Service
	for _, name := range names {
		s := Service{file: name}
		raw, err := os.ReadFile(name)
		if err != nil || json.Unmarshal(raw, &s) != nil {
			continue // it went meanwhile
		}
		runs, known := sandbox.KeptRuns(s.Kept)
		switch {
		case runs:
			out = append(out, s)
		case known:
			_ = s.forget() // else the next one does
		}
	}
	slices.SortFunc(out, func(a, b Service) int { return a.Since.Compare(b.Since) })
	return out, nil
}

// WithServices adds what goes on of sessions that have ended to those that are driven.
func (a *App) WithServices(list []Driven) ([]Driven, error) {
	services, err := a.Services()
	if err != nil {
		return nil, err
	}
	host, _ := os.Hostname() // as for those that are driven
	for _, s := range services {
		list = append(list, Driven{ID: s.Session, Parent: parentOf(s.Session), PID: s.PID, Host: host, Since: s.Since, State: StateKept, What: s.Command})
	}
	return list, nil
}

// EndServices ends what goes on of a session and of those that worked for it, and returns
// it.
func (a *App) EndServices(ctx context.Context, id string) ([]Service, error) {
	list, err := a.Services()
	if err != nil {
		return nil, err
	}
	var ended []Service
	for _, s := range list {
		if s.Session != id && !strings.HasPrefix(s.Session, id+".") {
			continue
		}
		if err := sandbox.EndKept(ctx, s.Kept); err != nil {
			return ended, fmt.Errorf("end %q: %w", s.Command, err)
		}
		ended = append(ended, s)
		_ = s.forget() // else the next who looks does
	}
	return ended, nil
}
