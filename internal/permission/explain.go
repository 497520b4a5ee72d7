package permission

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/inspan/inspan/internal/keep"
	"github.com/inspan/inspan/internal/policy"
	"github.com/inspan/inspan/internal/shell"
	"github.com/inspan/inspan/internal/tools"
	"github.com/inspan/inspan/tool"
)

// Explained is what would become of a command line.
type Explained struct {
	Root     string
	Mode     tool.Mode
	Plan     shell.Plan
	Verdict  tool.Verdict
	Findings []policy.Finding
	Rules    []string // the narrowest that would allow what asks; empty: nothing asks, or it can only be allowed once
}

// Explain tells what would become of a command line in a workspace, in a mode;
// empty means the one new sessions start with. Nothing is run.
func (s *Set) Explain(ctx context.Context, root string, mode tool.Mode, command string) (Explained, error) {
	rules, err := s.Rules(root)
	if err != nil {
		return Explained{}, err
	}
	env, err := s.EnvOf(root, nil, rules, "", nil)
	if err != nil {
		return Explained{}, err
	}
	out := Explained{Root: env.Root, Mode: cmp.Or(mode, s.Config.Mode, tool.ModeAsk)}
	out.Plan = shell.Explain(command, shell.Place{Root: env.Root, Cwd: env.Root, Home: keep.Home(), Held: env.Walls.Read})
	p := policy.Policy{Map: s.Places(env.Root)}
	if looker, ok := env.Files.(tool.Looker); ok {
		p.Map.Look = looker.Look
	}
	if p.Rules, err = parsed(rules); err != nil {
		return Explained{}, err
	}
	args, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		return Explained{}, err
	}
	call := &tool.Call{ID: "explain", Name: "bash", Args: args, Env: env, Cwd: env.Root, Mode: out.Mode}
	core := tools.Core(&tools.Shell{Home: keep.Home()}, "")
	bash := core[slices.IndexFunc(core, func(t tool.Tool) bool { return t.Name == call.Name })]
	effects, err := bash.Effects(ctx, call)
	if err != nil {
		return Explained{}, err
	}
	out.Findings = p.Findings(call, effects)
	verdicts := []tool.Verdict{}
	for _, f := range out.Findings {
		verdicts = append(verdicts, f.Verdict)
	}
	out.Verdict, out.Rules = policy.Combine(verdicts), policy.Proposals(out.Findings)
	return out, nil
}
