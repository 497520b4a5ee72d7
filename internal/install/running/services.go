package running

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
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/kin"
	"github.com/inspan/inspan/internal/extend/tools"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/world/ability"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

// Service is a process that continues after its session has ended. While it runs, it has a file in the state
// folder.
type Service struct {
	ability.Kept
	Session string    `json:"session"`
	Job     string    `json:"job,omitempty"` // empty if it was not a job
	Command string    `json:"command"`
	Since   time.Time `json:"since"` // when the session released it
	Output  string    `json:"output,omitempty"`

	file string
}

// NoKeep gives the reason why nothing can outlive a session whose commands run in a container of this image, or in
// none if it is empty; empty if something can.
func (t *Table) NoKeep(image string) string {
	switch {
	case t.Config.Leftovers == config.LeftoversEnd:
		return "leftovers = \"end\" in the settings ends everything with the session"
	case runtime.GOOS != "linux" || t.Self == "":
		return "processes can continue without inspan only on Linux"
	case image != "" || t.Config.Sandbox.Container != "":
		return "commands run in containers, which end with inspan"
	}
	return ""
}

// MayKeep reports whether a rule lets bash keep the processes that it starts.
func MayKeep(rules []inspan.Rule) bool {
	return slices.ContainsFunc(rules, func(r inspan.Rule) bool {
		return r.Action == tool.Allow && (r.Text == string(tool.Keep) || strings.HasPrefix(r.Text, string(tool.Keep)+"("))
	})
}

// NewShell returns the shell of a session that is opened here. NoKeep is as in [Table.NoKeep]; withheld returns
// variables that commands don't get in a mode. The session must call Drop.
func (t *Table) NewShell(id, noKeep string, withheld func(mode tool.Mode) map[string]string) *tools.Shell {
	protected := t.Config.Protected
	if protected == nil {
		protected = []string{"main", "master"}
	}
	shell := &tools.Shell{Home: keep.Home(), Protected: protected, NoKeep: noKeep, Withheld: withheld}
	t.shells.Store(id, shell)
	return shell
}

// Shell returns the shell of a session that is open here, with its jobs; nil if it is not.
func (t *Table) Shell(id string) *tools.Shell {
	sh, _ := t.shells.Load(id)
	shell, _ := sh.(*tools.Shell)
	return shell
}

// Drop closes the shell of a session, and then its environment. If jobs continue for the parent session, the
// parent closes the environment later.
func (t *Table) Drop(id string, shell *tools.Shell, end func() error) error {
	t.shells.CompareAndDelete(id, shell)
	shell.Close()
	if shell.Pass(t.Shell(kin.Parent(id)), end) {
		return nil
	}
	return end()
}

// Leave releases what should outlive a session, and ends the rest. If the session works for another, that one
// takes over.
func (t *Table) Leave(id string, shell *tools.Shell, normal bool, mode tool.Mode) (out inspan.Leftovers) {
	n := 0
	out.Kept, out.Ended = shell.Leave(tools.Leaving{
		To:  t.Shell(kin.Parent(id)),
		All: t.Config.Keeps(mode), None: !normal || t.Config.Leftovers == config.LeftoversEnd,
		Keep: func(l tool.Leftover, p ability.Keepable) (tool.Leftover, error) {
			n++
			l.Output = filepath.Join(t.SessionsDir(), id, fmt.Sprintf("kept-%d-%d.log", os.Getpid(), n))
			s := Service{Session: id, Job: l.Job, Command: l.Command, Since: time.Now(), Output: l.Output}
			ports, err := p.Keep(l.Output, func(k ability.Kept) error {
				s.Kept, l.PID = k, k.PID
				return t.register(&s)
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

func (t *Table) services() string { return filepath.Join(t.StateDir, "kept") }

// register writes the file of a service.
func (t *Table) register(s *Service) error {
	raw, err := json.Marshal(s)
	if err == nil {
		err = keep.MakeDir(t.services())
	}
	if err != nil {
		return err
	}
	path := filepath.Join(t.services(), strconv.Itoa(s.PID)+"-"+s.Mark+".json")
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

// Services lists what continues after ended sessions, the oldest first. It removes the files of those that no
// longer run.
func (t *Table) Services() ([]Service, error) {
	names, err := filepath.Glob(filepath.Join(t.services(), "*.json"))
	if err != nil {
		return nil, err
	}
	var out []Service
	for _, name := range names {
		s := Service{file: name}
		raw, err := keep.Read(name)
		if err != nil || json.Unmarshal(raw, &s) != nil {
			continue // it has ended meanwhile
		}
		runs, known := sandbox.KeptRuns(s.Kept)
		switch {
		case runs:
			out = append(out, s)
		case known:
			_ = s.forget() // otherwise the next reader does
		}
	}
	slices.SortStableFunc(out, func(a, b Service) int { return a.Since.Compare(b.Since) })
	return out, nil
}

// WithServices adds what continues after ended sessions to the driven sessions.
func (t *Table) WithServices(list []Driven) ([]Driven, error) {
	services, err := t.Services()
	if err != nil {
		return nil, err
	}
	host, _ := os.Hostname() // as for those that are driven
	for _, s := range services {
		list = append(list, Driven{
			ID: s.Session, Parent: kin.Parent(s.Session),
			PID: s.PID, Host: host, Since: s.Since, State: StateKept, What: s.Command,
		})
	}
	return list, nil
}

// EndServices ends what continues after a session and those that worked for it, and returns it.
func (t *Table) EndServices(ctx context.Context, id string) ([]Service, error) {
	list, err := t.Services()
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
		_ = s.forget() // otherwise the next reader does
	}
	return ended, nil
}
