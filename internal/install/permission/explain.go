package permission

import (
	"cmp"
	"context"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/safety/policy"
	"github.com/inspan/inspan/internal/safety/shell"
	"github.com/inspan/inspan/tool"
)

// Explained predicts the decision on a command line.
type Explained struct {
	Root     string
	Mode     tool.Mode
	Plan     shell.Plan
	Verdict  tool.Verdict
	Findings []policy.Finding
	Tried    []policy.Tried // rules that were checked against it
	Rules    []string       // the narrowest rules that would allow it; empty means nothing asks, or it can only be allowed once
}

// Explain predicts the decision on a command line in a workspace and a mode, with further permissions; an empty mode
// means the one that new sessions start with. It runs nothing.
func (s *Set) Explain(ctx context.Context, root string, mode tool.Mode, l Line, command string) (Explained, error) {
	b, err := s.bench(root, l)
	if err != nil {
		return Explained{}, err
	}
	defer func() { _ = b.env.Close() }()
	out := Explained{Root: b.env.Root, Mode: cmp.Or(mode, s.Config.Mode, tool.ModeAsk)}
	out.Plan = shell.Explain(command, shell.Place{Root: b.env.Root, Cwd: b.env.Root, Home: keep.Home(), Held: b.env.Walls.Read})
	_, call, findings, err := b.call(ctx, "bash", map[string]string{"command": command}, out.Mode)
	if err != nil {
		return Explained{}, err
	}
	out.Findings, out.Tried = findings, b.policy.Try(call, policy.Judged(findings))
	out.Verdict, out.Rules = verdict(out.Findings), policy.Proposals(out.Findings)
	return out, nil
}
