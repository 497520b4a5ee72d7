// Package consent stores decisions that outlive a session: approvals, which are
// rules for a project or for always, and trust, which lets content of a folder
// run.
//
// Trust is bound to content. [Find] lists everything in a workspace that could run
// or change inspan's behaviour, with a digest each. A [Store] remembers the digests
// that a person approved. After any change, the person is asked again. A parent
// folder or another checkout of the same repository confers no trust.
package consent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/inspan/inspan/event"
)

// Store keeps consent in files. Several processes may use one folder at once,
// and several goroutines one Store. Every file is replaced as a whole or not at
// all, also when the process is killed or the power fails.
//
// A file that can't be taken at its word (damaged, of a later version, or
// writable by others) is an error that names it and says what to do. Callers
// treat that as "nothing is agreed to".
type Store struct {
	// Dir is a folder that no tool can reach. It is made when first needed,
	// for this user alone. Empty: every method returns an error.
	Dir string

	mu    sync.Mutex
	named map[string][]Item // content that a sum has named, by sum
}

// Names of the files in the folder.
const (
	approvalsFile = "approvals.json"
	trustFile     = "trust.json"
	writtenFile   = "written.json"
	lockFile      = "lock" // never renamed, never removed
)

// maxText is the longest rule or path that is kept, in bytes.
const maxText = 16 << 10

// Approval is a rule that a person allowed. The store does not read rules; who
// offers them checks them.
type Approval struct {
	Rule  string      `json:"rule"`
	Scope event.Scope `json:"scope"`          // event.ScopeProject or event.ScopeAlways
	Root  string      `json:"root,omitempty"` // for a project its root, and only then
	At    time.Time   `json:"at"`             // a label; zero: now
	By    string      `json:"by,omitempty"`   // who allowed it
}

// same reports whether two approvals allow the same.
func (a Approval) same(b Approval) bool {
	return a.Rule == b.Rule && a.Scope == b.Scope && a.Root == b.Root
}

// Approve remembers approvals, all or none. What is known already stays as it
// is, with its time and name. After an error of the disk they may be remembered
// all the same.
func (s *Store) Approve(ctx context.Context, approvals ...Approval) error {
	checked := slices.Clone(approvals)
	for i := range checked {
		if err := checked[i].check(); err != nil {
			return fmt.Errorf("approve %q: %w", checked[i].Rule, err)
		}
	}
	return change(ctx, s, approvalsFile, func(list []Approval) ([]Approval, bool) {
		before := len(list)
		for _, a := range checked {
			if !slices.ContainsFunc(list, a.same) {
				list = append(list, a)
			}
		}
		return list, len(list) > before
	})
}

// check makes an approval ready to be kept.
func (a *Approval) check() error {
	a.Rule = strings.TrimSpace(a.Rule)
	if a.Rule == "" {
		return errors.New("there is no rule")
	}
	if err := errors.Join(checkText(a.Rule), checkText(a.By)); err != nil {
		return err
	}
	switch {
	case a.Scope != event.ScopeProject && a.Scope != event.ScopeAlways:
		return fmt.Errorf("the scope %q does not outlive a session", a.Scope)
	case a.Scope == event.ScopeAlways && a.Root != "":
		return errors.New("what holds always has no root")
	case a.Scope == event.ScopeProject:
		root, err := canonical(a.Root)
		if err != nil {
			return err
		}
		a.Root = root
	}
	if a.At.IsZero() {
		a.At = time.Now()
	}
	a.At = a.At.UTC().Truncate(time.Second)
	return nil
}

// Approvals returns those that hold in the workspace root, oldest first: its
// own and those for always. Root "" stands for all there are. A root that does
// not exist any more has those that were given while it did.
func (s *Store) Approvals(root string) ([]Approval, error) {
	list, err := load[Approval](s, approvalsFile)
	if err != nil || root == "" {
		return list, err
	}
	if root, err = former(root); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(a Approval) bool { return !a.holds(root) }), nil
}

// holds reports whether the approval holds in a root. A scope that is neither
// holds nowhere.
func (a Approval) holds(root string) bool {
	return a.Scope == event.ScopeAlways || a.Scope == event.ScopeProject && a.Root == root
}

// Revoke forgets a rule as far as it holds in the workspace root, and returns
// how many approvals that were: afterwards Approvals(root) has none of this
// rule. So a rule that was allowed always is gone everywhere. Root "" stands
// for all roots.
func (s *Store) Revoke(ctx context.Context, rule, root string) (n int, err error) {
	if root != "" {
		if root, err = former(root); err != nil {
			return 0, err
		}
	}
	rule = strings.TrimSpace(rule)
	err = change(ctx, s, approvalsFile, func(list []Approval) ([]Approval, bool) {
		left := slices.DeleteFunc(slices.Clone(list), func(a Approval) bool { return a.Rule == rule && (root == "" || a.holds(root)) })
		n = len(list) - len(left)
		return left, n > 0
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// checkText refuses what would not come back from the file as it was, or could
// not be shown on one line.
func checkText(text string) error {
	switch {
	case !utf8.ValidString(text):
		return fmt.Errorf("%q is not UTF-8, so inspan can't store it", text)
	case strings.ContainsFunc(text, unicode.IsControl):
		return fmt.Errorf("%q has control characters, so inspan can't store it", text)
	case len(text) > maxText:
		return fmt.Errorf("a text of %d bytes is too long to store; at most %d", len(text), maxText)
	}
	return nil
}

// canonical is the one name of a root that exists.
func canonical(root string) (string, error) {
	if root == "" {
		return "", errors.New("no root is named")
	}
	abs, err := filepath.Abs(root)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", root, err)
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", fmt.Errorf("find the root: %w", err)
	}
	return real, checkText(real)
}

// former is canonical also for a root that is gone: as much of its path as
// exists is resolved.
func former(root string) (string, error) {
	abs, err := filepath.Abs(root)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", root, err)
	}
	rest := ""
	for dir := abs; ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest), nil
		}
		if dir == filepath.Dir(dir) {
			return abs, nil
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}
