package permission

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/safety/consent"
	"github.com/inspan/inspan/internal/safety/policy"
	"github.com/inspan/inspan/tool"
)

// Remember saves rules that a person allowed in the workspace root, or always.
func (s *Set) Remember(ctx context.Context, root string, scope event.Scope, rules []string) error {
	var list []consent.Approval
	for _, text := range rules {
		if _, err := policy.ParseRule(tool.Allow, text, ""); err != nil {
			return err
		}
		entry := consent.Approval{Rule: text, Scope: scope, By: "the user"}
		if scope == event.ScopeProject {
			entry.Root = root
		}
		list = append(list, entry)
	}
	return s.Consent.Approve(ctx, list...)
}

// approved lists the rules that a person allowed earlier and that apply in a workspace.
func (s *Set) approved(root string) ([]inspan.Rule, error) {
	list, err := s.Consent.Approvals(root)
	if err != nil {
		return nil, config.Error{Err: fmt.Errorf("approvals: %w", err)}
	}
	var out []inspan.Rule
	for _, ap := range list {
		scope := "allowed always"
		if ap.Scope == event.ScopeProject {
			scope = "allowed for this project"
		}
		out = append(out, inspan.Rule{Action: tool.Allow, Text: ap.Rule, Scope: scope})
	}
	return out, nil
}

// Inert warns a person about workspace content that waits for trust. Agent roles are not listed: they are read
// without trust.
func (s *Set) Inert(root, sum string, warn func(string)) error {
	r, err := s.Consent.ReviewRunning(root, sum)
	if err != nil && sum != "" {
		return config.Error{Err: err}
	}
	if err != nil {
		warn("trust: " + err.Error() + "; nothing of the workspace is trusted")
	}
	news, changes := slices.DeleteFunc(r.New, kindOfAgent), slices.DeleteFunc(r.Changed, kindOfAgent)
	ofSkill := func(i consent.Item) bool { return i.Kind == consent.Skill }
	skills := len(news) + len(changes)
	news, changes = slices.DeleteFunc(news, ofSkill), slices.DeleteFunc(changes, ofSkill)
	n := len(news) + len(changes)
	skills -= n
	if n > 0 {
		what := text.Count(n, "item") + " in this folder could run programs or change settings"
		if len(changes) > 0 {
			what += fmt.Sprintf(" (%d changed since you trusted them)", len(changes))
		}
		warn(what + "; without your trust they have no effect, see 'inspan trust'")
	}
	if skills > 0 {
		warn(text.Count(skills, "skill") + " of this folder with scripts; commands that the model runs from them are judged like any other; see 'inspan trust'")
	}
	return nil
}

// kindOfAgent reports whether an item is the file of an agent role.
func kindOfAgent(i consent.Item) bool {
	return i.Kind == consent.Agent && strings.HasSuffix(i.Path, ".md")
}
