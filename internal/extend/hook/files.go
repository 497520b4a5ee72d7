package hook

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/inspan/inspan/internal/safety/foreign"
	"github.com/inspan/inspan/tool"
)

// Timeouts of Claude Code for hooks without one.
const (
	claudeTimeout       = 10 * time.Minute
	claudePromptTimeout = 30 * time.Second
)

// known is an event of Claude Code that inspan supports.
type known struct {
	name    string
	moment  tool.Moment
	matches bool // its matcher has a meaning
}

func events() []known {
	return []known{
		{"SessionStart", tool.SessionStart, true},
		{"UserPromptSubmit", tool.PromptSaid, false},
		{"PreToolUse", tool.BeforeCall, true},
		{"PostToolUse", tool.AfterCall, true},
		{"PostToolUseFailure", tool.AfterCall, true},
		{"SubagentStart", tool.AgentStart, true},
		{"SubagentStop", tool.AgentStop, true},
		{"Stop", tool.RunStop, false},
		{"PreCompact", tool.BeforeCompact, true},
		{"PostCompact", tool.AfterCompact, true},
		{"SessionEnd", tool.SessionEnd, true},
		{"TeammateIdle", tool.TeammateIdle, false},
		{"TaskCompleted", tool.TaskCompleted, false},
	}
}

// group and handler are the levels below an event in a file of Claude Code.
type group struct {
	Matcher string            `json:"matcher"`
	Hooks   []json.RawMessage `json:"hooks"`
}

type handler struct {
	Type        string            `json:"type"`
	Command     string            `json:"command"`
	Args        []string          `json:"args"`
	URL         string            `json:"url"`
	Headers     map[string]string `json:"headers"`
	AllowedEnv  []string          `json:"allowedEnvVars"`
	Timeout     float64           `json:"timeout"`
	Async       bool              `json:"async"`
	AsyncRewake bool              `json:"asyncRewake"`
	Shell       string            `json:"shell"`
	If          string            `json:"if"`
	OnFailure   string            `json:"onFailure"`
}

// ReadClaude reads the hooks of Claude Code from a settings.json, or from the hooks.json of a plugin, in the order in
// which they run. Source is the name of the file that people see. Don't run hooks of a repository before a person has
// trusted them.
//
// The notes tell people which hooks of the file do not run here, or run differently. An error means that the file
// can't be read at all. A file without hooks is not an error.
func ReadClaude(data []byte, source string) (hooks []Config, notes []string, err error) {
	var file struct {
		Hooks   map[string]json.RawMessage `json:"hooks"`
		Disable bool                       `json:"disableAllHooks"`
	}
	if err := foreign.Unmarshal(data, &file); err != nil {
		return nil, nil, fmt.Errorf("read hooks of %s: %w", source, err)
	}
	if file.Disable {
		return nil, []string{source + ": all of its hooks are switched off (disableAllHooks)"}, nil
	}
	r := reading{source: source}
	for _, e := range events() {
		if raw, ok := file.Hooks[e.name]; ok {
			r.event(e, raw)
			delete(file.Hooks, e.name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(file.Hooks)) {
		r.note(name, errors.New("inspan has no such moment, so its hooks do not run"))
	}
	return r.hooks, r.notes, nil
}

// reading is the state of reading a file.
type reading struct {
	source string
	hooks  []Config
	notes  []string
}

func (r *reading) note(at string, err error) {
	r.notes = append(r.notes, fmt.Sprintf("%s: hooks.%s: %v", r.source, brief(at), err))
}

// broken notes what can't be read. A guard denies instead of running: Claude Code's guards must not vanish with a typo.
func (r *reading) broken(at string, c Config, err error) {
	if c.OnFailure != Deny {
		r.note(at, fmt.Errorf("it does not run: %w", err))
		return
	}
	c.Broken = fmt.Sprintf("hooks.%s can't be read: %v", brief(at), err)
	r.hooks = append(r.hooks, c)
	r.note(at, fmt.Errorf("it denies everything that it might guard, as it can't be read: %w", err))
}

func (r *reading) event(e known, raw json.RawMessage) {
	var groups []json.RawMessage
	if err := json.Unmarshal(raw, &groups); err != nil {
		r.broken(e.name, handler{}.config(e, "", r.source), fmt.Errorf("it is not a list: %w", err))
		return
	}
	for i, raw := range groups {
		at := fmt.Sprintf("%s[%d]", e.name, i)
		var g group
		if err := json.Unmarshal(raw, &g); err != nil {
			r.broken(at, handler{}.config(e, "", r.source), err)
			continue
		}
		if len(g.Hooks) == 0 {
			r.note(at, errors.New("it has no hooks in it"))
		}
		for j, raw := range g.Hooks {
			r.handler(fmt.Sprintf("%s.hooks[%d]", at, j), e, g.Matcher, raw)
		}
	}
}

func (r *reading) handler(at string, e known, match string, raw json.RawMessage) {
	var h handler
	err := json.Unmarshal(raw, &h)
	if err == nil {
		if other := h.unsupported(); other != nil {
			r.note(at, fmt.Errorf("it does not run: %w", other))
			return
		}
		err = h.check()
	}
	c := h.config(e, match, r.source)
	if err == nil {
		err = c.Check()
	}
	if err != nil {
		r.broken(at, c, err)
		return
	}
	if h.OnFailure == "block" && c.OnFailure != Deny {
		r.note(at, errors.New("onFailure applies only to PreToolUse and UserPromptSubmit, and to none in the background"))
	}
	if h.AsyncRewake {
		r.note(at, errors.New("it runs in the background, so its later answers are ignored (asyncRewake)"))
	}
	r.hooks = append(r.hooks, c)
	if e.name == "SessionStart" { // in Claude Code it also follows a compaction
		c.On = tool.AfterCompact
		r.hooks = append(r.hooks, c)
	}
}

// unsupported returns an error for a feature that Claude Code has and inspan lacks.
func (h handler) unsupported() error {
	switch {
	case slices.Contains([]string{"prompt", "agent", "mcp_tool"}, h.Type):
		return fmt.Errorf("inspan has no hooks of type %q; use command or http", h.Type)
	case h.Shell == "powershell":
		return fmt.Errorf("inspan does not run hooks in %q; use bash", h.Shell)
	}
	return nil
}

// check returns an error for a feature that neither has.
func (h handler) check() error {
	switch {
	case h.Type != "command" && h.Type != "http":
		return fmt.Errorf("unknown hook type %q; use command or http", h.Type)
	case h.Type == "command" && h.Command == "":
		return errors.New("it has no command")
	case h.Type == "http" && h.URL == "":
		return errors.New("it has no url")
	case h.Shell != "" && h.Shell != "bash" && h.Shell != "sh":
		return fmt.Errorf("unknown shell %q; use bash", h.Shell)
	}
	return nil
}

func (h handler) config(e known, match, source string) Config {
	c := Config{
		On: e.moment, Match: match, Event: e.name, Claude: true, Source: source, If: h.If,
		Background: h.Async || h.AsyncRewake, Timeout: h.wait(e.name),
	}
	if !e.matches {
		c.Match = ""
	}
	if h.Type == "http" {
		c.URL, c.Headers, c.HeaderEnv = h.URL, h.Headers, h.AllowedEnv
	} else {
		c.Command, c.Args = h.Command, h.Args
	}
	// A command that can deny is a guard: nothing passes unchecked.
	guards := h.OnFailure == "block" || h.OnFailure == "" && h.Type != "http"
	if guards && deniable(e.moment) && !c.Background {
		c.OnFailure = Deny
	}
	return c
}

func (h handler) wait(event string) time.Duration {
	switch {
	case h.Timeout >= maxTimeout.Seconds():
		return maxTimeout
	case h.Timeout > 0:
		return time.Duration(h.Timeout * float64(time.Second))
	case event == "UserPromptSubmit":
		return claudePromptTimeout
	}
	return claudeTimeout
}
