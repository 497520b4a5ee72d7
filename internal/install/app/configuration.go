package app

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/extend/hook"
	"github.com/inspan/inspan/internal/extend/skill"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// configuration is everything a session starts with that can affect the work of its agent.
type configuration struct {
	Version string
	Levers  event.Levers
	Config  config.Config
	Rules   []inspan.Rule
	Model   string
	Effort  string
	Mode    tool.Mode
	Limits  inspan.Limits
	System  []string // instructions, memory and the list of skills, without the facts of machine, folder and day
	Skills  []string // digests, by name
	Tools   []llm.ToolSpec
	// Programs are tools of the person, of plugins and of the workspace, and Servers those of MCP, by what starts them.
	Programs []string
	Servers  []string
	Kinds    []skill.Role // of agents
	Hooks    []hook.Config
}

// configured sets the digest of the configuration of a new session. It ignores the path of the workspace, so the
// same configuration has the same digest in every folder.
func (b *build) configured() error {
	if !b.at.New {
		return nil
	}
	a := b.agent
	c := configuration{
		Version: inspan.Version, Levers: a.Opening.Levers, Config: b.Config, Rules: a.Rules, Model: a.Model.Info().Route(),
		Effort: a.Effort, Mode: b.mode(), Limits: a.Limits,
	}
	for _, block := range a.System {
		if block.Source != "environment" {
			c.System = append(c.System, block.Source+"\n"+block.Text)
		}
	}
	if b.prompt.Skills != nil {
		list, _ := b.prompt.Skills.List()
		for _, s := range list {
			c.Skills = append(c.Skills, s.Name+" "+s.Sum)
		}
		slices.Sort(c.Skills)
	}
	for _, t := range a.Tools {
		c.Tools = append(c.Tools, t.Spec())
	}
	c.Programs = b.Extensions.Programs(b.visit)
	for _, s := range b.servers {
		c.Servers = append(c.Servers, fmt.Sprint(s.Name, s.Command, s.URL))
	}
	quiet := func(string) {} // the person was warned when the parts were read
	c.Kinds = slices.Clone(skill.Over(b.o.Kinds, b.Extensions.Roles(b.at.Root, quiet)))
	for i := range c.Kinds {
		c.Kinds[i].Source = ""
	}
	hooks, err := b.Extensions.ListHooks(b.at.Root, quiet)
	if err != nil {
		return err
	}
	for _, h := range hooks {
		h.Source = ""
		c.Hooks = append(c.Hooks, h)
	}
	raw, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("digest of the configuration: %w", err)
	}
	root, err := json.Marshal(a.Env.Root)
	if err != nil {
		return err
	}
	if root = bytes.Trim(root, `"`); len(root) > 1 {
		raw = bytes.ReplaceAll(raw, root, []byte("."))
	}
	sum := sha256.Sum256(raw)
	a.Opening.Config = hex.EncodeToString(sum[:16])
	return nil
}
