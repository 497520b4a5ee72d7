package equipment

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/extend/hook"
	"github.com/inspan/inspan/internal/extend/skill"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/safety/consent"
	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/tool"
)

// hooksEnd bounds how long closing a session waits for background hooks.
const hooksEnd = 5 * time.Second

// Hooks returns the hooks of a session: the user's own, and those of the workspace whose exact content the
// person trusts. All run in the sandbox of commands. The returned function ends them.
func (s *Set) Hooks(root, sum string, env tool.Env, warn func(string)) ([]tool.Hook, func(), error) {
	review, err := s.Consent.ReviewRunning(root, sum)
	if err != nil && sum != "" {
		return nil, nil, config.Error{Err: err}
	}
	still := func() error {
		now, err := s.Consent.ReviewRunning(root, sum)
		if err != nil {
			return err
		}
		for _, i := range slices.Concat(now.New, now.Changed, review.Trusted) {
			if !slices.ContainsFunc(now.Trusted, func(o consent.Item) bool { return o.Path == i.Path && o.Digest == i.Digest }) {
				return fmt.Errorf("%s has changed since you trusted it; 'inspan trust' shows it", i.Path)
			}
		}
		return nil
	}
	mine, err := s.ownHooks(warn)
	if err != nil {
		return nil, nil, config.Error{Err: err}
	}
	theirs, err := trustedHooks(root, review, warn)
	if err != nil {
		return nil, nil, err
	}
	if len(theirs) > 0 { // the files may have changed during reading
		if err := still(); err != nil {
			return nil, nil, fmt.Errorf("the hooks of this folder: %w", err)
		}
	}
	var out []tool.Hook
	var sets []*hook.Set
	add := func(list []hook.Config, own bool, as func(*hook.Set) tool.Hook) {
		if len(list) > 0 {
			s := s.hookSet(list, own, env, warn)
			out, sets = append(out, as(s)), append(sets, s)
		}
	}
	add(mine, true, func(s *hook.Set) tool.Hook { return s })
	add(theirs, false, func(s *hook.Set) tool.Hook { return tightening{s, still} })
	for _, p := range s.Plugins() {
		add(p.Hooks, false, func(s *hook.Set) tool.Hook { return tightening{s, p.Check} })
	}
	return out, func() { closing(sets...) }, nil
}

// ListHooks returns the hooks that a new session of a workspace runs. Their Source says where they are from.
func (s *Set) ListHooks(root string, warn func(string)) ([]hook.Config, error) {
	review, err := s.Consent.ReviewRunning(root, "")
	if err != nil {
		return nil, err
	}
	list, err := s.ownHooks(warn)
	if err != nil {
		return nil, err
	}
	theirs, err := trustedHooks(root, review, warn)
	list = append(list, theirs...)
	for _, p := range s.Plugins() {
		list = append(list, p.Hooks...)
	}
	return list, err
}

// ownHooks returns the hooks of the person's own settings. If a file that may have guards can't be read, nothing may
// run without them.
func (s *Set) ownHooks(warn func(string)) ([]hook.Config, error) {
	list := slices.Clone(s.Config.Hooks)
	for i := range list {
		list[i].Source = s.ConfigPath
	}
	if !s.Config.ClaudeHooks {
		return list, nil
	}
	claude, err := claudeHooks(keep.AtHome(".claude", "settings.json"), warn)
	return append(list, claude...), err
}

// trustedHooks returns the hooks of a workspace from the files that the person trusts.
func trustedHooks(root string, review consent.Review, warn func(string)) (list []hook.Config, err error) {
	if review.Runs(config.ProjectFile) {
		project, err := config.LoadProject(filepath.Join(root, config.ProjectFile))
		if err != nil {
			return nil, config.Error{Err: err}
		}
		for _, h := range project.Hooks {
			h.Source = config.ProjectFile
			list = append(list, h)
		}
	}
	for _, path := range config.ClaudeFiles() {
		if !review.Runs(path) {
			continue
		}
		claude, err := claudeHooks(filepath.Join(root, path), warn)
		if err != nil { // the error names the file, which also stops unattended work: permission.Set.Unread
			warn(fmt.Sprintf("hooks do not run: %v", err))
		}
		list = append(list, claude...)
	}
	return list, nil
}

// KindHooks returns the hooks of an agent role. The role relies on them as its guard, so a hook that can't run
// is an error. Hooks of roles from a repository or a plugin are rejected as untrusted.
func (s *Set) KindHooks(role skill.Role, env tool.Env, warn func(string)) ([]tool.Hook, func(), error) {
	if role.Hooks == nil {
		return nil, func() {}, nil
	}
	if role.Source != skill.FromUser {
		return nil, nil, fmt.Errorf("%s has hooks, which run only for kinds of agents in your own folders (~/.claude/agents); move it there", role.Name)
	}
	list, notes, err := hook.ReadClaude(role.Hooks, "the kind of agent "+role.Name)
	if err == nil && len(notes) > 0 {
		err = errors.New(strings.Join(notes, "; "))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s does not run without its hooks: %w", role.Name, err)
	}
	for i := range list {
		list[i].Kind = role.Name
	}
	set := s.hookSet(list, true, env, warn)
	return []tool.Hook{set}, func() { closing(set) }, nil
}

// closing waits up to hooksEnd for background hooks.
func closing(sets ...*hook.Set) {
	ctx, cancel := context.WithTimeout(context.Background(), hooksEnd)
	defer cancel()
	for _, s := range sets {
		s.Close(ctx)
	}
}

func (s *Set) hookSet(list []hook.Config, own bool, env tool.Env, warn func(string)) *hook.Set {
	// Hooks call addresses in the person's settings, which may be on this machine.
	env.HTTP = netguard.Here(s.Local()).Unredirected()
	return &hook.Set{
		Hooks: list, Env: env, Walls: hook.Walls{Own: own, Outside: s.Config.Sandbox.Outside}, Getenv: os.Getenv,
		Log:  func(id string) string { return filepath.Join(s.SessionsDir(), id, "log.jsonl") },
		Warn: func(_, text string) { warn(text) },
	}
}

// claudeHooks reads the hooks of a Claude Code settings file, if it exists.
func claudeHooks(path string, warn func(string)) ([]hook.Config, error) {
	data, err := config.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	list, notes, err := hook.ReadClaude(data, path)
	for _, n := range notes { // the notes name the file
		warn(n)
	}
	return list, err
}

// tightening wraps hooks from a repository or a plugin. They can't allow calls that would ask, and run only
// while everything that they may run is trusted.
type tightening struct {
	tool.Hook
	still func() error
}

// At implements [tool.Hook].
func (t tightening) At(ctx context.Context, p tool.Point) (tool.Outcome, error) {
	err := t.still()
	if err != nil && p.Moment == tool.BeforeCall && p.Mode == tool.ModeYolo {
		return tool.Outcome{}, nil // other moments report it; untrusted content must not deny calls in yolo
	}
	if err != nil {
		return tool.Outcome{}, fmt.Errorf("its hooks do not run: %w", err)
	}
	out, err := t.Hook.At(ctx, p)
	if out.Action == tool.Allow {
		out.Action = tool.Abstain
	}
	return out, err
}
