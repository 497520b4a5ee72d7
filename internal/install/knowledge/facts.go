package knowledge

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/extend/memory"
	"github.com/inspan/inspan/internal/extend/skill"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/kernel/session"
	"github.com/inspan/inspan/internal/safety/consent"
	"github.com/inspan/inspan/internal/safety/guard"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/safety/policy"
	"github.com/inspan/inspan/tool"
)

// Base is the knowledge that sessions share: memory, instructions, past sessions and the machine.
type Base struct {
	*config.Installation
	Consent  *consent.Store
	Sessions *session.Store
	Places   func(root string) places.Map
	Redact   func(event.Body) event.Body // removes this user's secrets; nil means none are known
	// Apart ignores files in the person's home, as in [equipment.Set].
	Apart bool
	// TeamOnly lets sessions without memory read the team's in their workspace.
	TeamOnly bool
	// Instead returns the content to use instead of an instruction file; a missing file has empty content. Nil
	// means files are used as they are.
	Instead func(path string, content []byte) []byte
}

// Prompt holds the parts of a new session's prompt that are not in the settings.
type Prompt struct {
	Replace, Append string    // as in [Input]
	Style           string    // as in [Input]
	Root            string    // where the search for instruction files begins
	Mode            tool.Mode // empty means ask
	Limits          inspan.Limits
	Skills          *skill.Library // nil means the agent can't load any
	Memory          *memory.Store
	Remembers       bool // the agent has the tool memory
	Elsewhere       bool // the session's files and commands are on another machine
}

// System returns the system prompt of a new session of an agent.
func (k *Base) System(ctx context.Context, agent *inspan.Agent, p Prompt, warn func(string)) []event.Added {
	root := agent.Env.Root
	in := Input{Replace: p.Replace, Style: p.Style, Append: p.Append}
	var beside sync.WaitGroup
	beside.Go(func() { in.Facts = k.facts(ctx, agent, p) })
	in.Memory, in.Claimed = k.memoryText(p.Memory, warn)
	if !p.Elsewhere {
		in.Files, _ = k.instructions(p.Root, root)
		in.Skills = skillList(p.Skills, warn)
	}
	if beside.Wait(); p.Remembers && !k.Config.Memory.Off && p.Mode != tool.ModePlan {
		in.Facts = append(in.Facts, toRemember)
	}
	blocks, warnings := Blocks(in)
	for _, w := range warnings {
		warn(w)
	}
	return asSeen(blocks, warn)
}

// toRemember tells a model about the memory, because tool_search may hide its tool.
const toRemember = "memory: keep unasked, with the tool memory, what holds beyond this session: preferences and corrections of the person, " +
	"decisions and why, traps"

// Instructions returns a function that reads the instruction files between a workspace and a file in it,
// without texts that the workspace's prompt already has.
func (k *Base) Instructions(root string) func(path string) []event.Added {
	above := sync.OnceValue(func() texts {
		_, taken := k.instructions(root, root)
		return taken
	})
	return func(path string) []event.Added {
		return asSeen(nested(maps.Clone(above()).gather(in(ofProject(root, downTo(root, filepath.Dir(path)))), k.reader(root))), func(string) {})
	}
}

// asSeen spells out invisible characters in the blocks of a prompt. It warns the model and the person about
// them.
func asSeen(blocks []event.Added, warn func(string)) []event.Added {
	for i, b := range blocks {
		shown, hidden := guard.Marker{}.Instructions(b.Text, text.Visible(b.Source))
		if blocks[i].Text = shown; hidden {
			warn(text.Visible(b.Source) + " contains invisible characters; " +
				"inspan spells them out and tells the model not to follow that text")
		}
	}
	return blocks
}

// Beside returns the text that tells a model about further folders of the session.
func Beside(folders []string) string {
	if len(folders) == 0 {
		return ""
	}
	list := make([]string, len(folders))
	for i, dir := range folders {
		list[i] = "- " + text.Line(dir)
	}
	return "These folders belong to the work too. Tools and commands may use them as they may the workspace, by absolute paths:\n" +
		strings.Join(list, "\n")
}

// facts returns the statements of the prompt about the surroundings of a new session.
func (k *Base) facts(ctx context.Context, agent *inspan.Agent, p Prompt) []string {
	l, date := p.Limits, "date: "+time.Now().Format("Monday, 2 January 2006")
	if p.Elsewhere {
		return []string{"workspace: the folder in which your tools start, on another machine", date}
	}
	truth := policy.Session{
		Mode: cmp.Or(p.Mode, tool.ModeAsk), Walls: agent.Env.Walls, Throwaway: agent.Env.Throwaway, Unattended: agent.Unattended,
		Turns: max(cmp.Or(l.Turns, loop.DefaultTurns), 0), Cost: max(l.Cost, 0), Time: max(l.Time, 0), // below 0 means none
	}
	list := append([]string{"workspace: " + agent.Env.Root, date}, truth.Facts()...)
	lever := agent.Opening.Levers.Bootstrap
	if !lever.Active(agent.Unattended) {
		return append(list, "system: "+runtime.GOOS+"/"+runtime.GOARCH)
	}
	return append(list, Survey(ctx, agent.Env, k.machine(ctx, agent.Env), lever.Strength(0))...)
}

// freshMachine is how long cached facts about a machine are valid.
const freshMachine = 24 * time.Hour

// machine returns the facts about the machine. They are cached for freshMachine.
func (k *Base) machine(ctx context.Context, env tool.Env) Machine {
	type known struct {
		Key     string
		At      time.Time
		Machine Machine
	}
	path, key := filepath.Join(k.StateDir, "machine.json"), os.Getenv("PATH")+"\x00"+k.Config.Sandbox.Container
	var m known
	if data, err := keep.Read(path); err == nil && json.Unmarshal(data, &m) == nil && m.Key == key && time.Since(m.At) < freshMachine {
		return m.Machine
	}
	m = known{key, time.Now(), AskMachine(ctx, env)}
	if data, err := json.Marshal(m); err == nil {
		_ = keep.Write(path, data) // on failure the next session surveys again
	}
	return m.Machine
}

// maxSkills bounds the list of skills in the prompt, in bytes.
const maxSkills = 24 << 10

// skillList returns the prompt's text about the skills of a library; empty if there are none. Without the skill
// tool the library is nil.
func skillList(l *skill.Library, warn func(string)) string {
	if l == nil {
		return ""
	}
	skills, warnings := l.List()
	for _, w := range warnings {
		warn(w)
	}
	index := skill.Index(skills, maxSkills)
	if index == "" {
		return ""
	}
	return "Skills, which the tool skill loads. Where one matches the task, load it before you begin:\n" + index
}
