package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/consent"
	"github.com/inspan/inspan/internal/policy"
	"github.com/inspan/inspan/internal/text"
	"github.com/inspan/inspan/tool"
)

// Consent is what the person agreed to for longer than a session.
func (a *App) Consent() *consent.Store {
	return &consent.Store{Dir: filepath.Join(a.StateDir, "consent")}
}

// Remember keeps rules that a person allowed in the workspace root, or always.
func (a *App) Remember(ctx context.Context, root string, scope event.Scope, rules []string) error {
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
	return a.Consent().Approve(ctx, list...)
}

// approved lists the rules a person allowed earlier that hold in a workspace.
func (a *App) approved(root string) ([]inspan.Rule, error) {
	list, err := a.Consent().Approvals(root)
	if err != nil {
		return nil, configError{fmt.Errorf("approvals: %w", err)}
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

// Rules lists all rules that hold in a workspace, by scope.
func (a *App) Rules(root string) ([]inspan.Rule, error) { return a.rules(root, Options{}) }

// Review tells what in a workspace would run programs or change what inspan does,
// and what of it the person trusts. Sum, if not empty, names exact content that
// is trusted beside: see consent.Sum. What agents are told of the team's memory is no part
// of it: it runs nothing, and changes as they work.
func (a *App) Review(root, sum string) (consent.Review, error) {
	items, err := consent.Find(root)
	if err != nil {
		return consent.Review{}, err
	}
	items = slices.DeleteFunc(items, func(i consent.Item) bool { return i.Kind == consent.Memory })
	if consent.Named(items, sum) {
		return consent.Review{Trusted: items}, nil
	}
	r, err := a.Consent().Review(root, items)
	if err != nil {
		return consent.Review{New: items}, err
	}
	if sum != "" {
		return r, fmt.Errorf("--trust names other content than there is now: %w", errChanged)
	}
	return r, nil
}

// ReviewAll is what there is for a person to trust in a workspace: what Review tells, and
// the team's memory.
func (a *App) ReviewAll(root string) (consent.Review, error) {
	items, err := consent.Find(root)
	if err != nil {
		return consent.Review{}, err
	}
	return a.Consent().Review(root, items)
}

var errChanged = errors.New("look at it with 'inspan trust' first")

// inert tells a person what in the workspace waits for trust.
func (a *App) inert(root, sum string, warn func(string)) error {
	r, err := a.Review(root, sum)
	if err != nil && sum != "" {
		return configError{err}
	}
	if err != nil {
		warn("trust: " + err.Error() + "; nothing of the workspace is trusted")
	}
	if n := len(r.New) + len(r.Changed); n > 0 {
		warn(fmt.Sprintf("%s in this folder would run programs or change settings (%d changed since you trusted them); such things stay inert, see 'inspan trust'", text.Count(n, "thing"), len(r.Changed)))
	}
	return nil
}
