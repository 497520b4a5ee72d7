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

// Store stores consent in files. Several processes may use one folder concurrently, and several goroutines one
// Store. Every file is replaced atomically, even if the process is killed or the power fails.
//
// A file that can't be trusted (damaged, of a later version, or writable by others) is an error that names the
// file and the remedy. Callers treat that as no consent.
type Store struct {
	// Dir is a folder that no tool can reach. It is created when first needed, for this user only. Empty means
	// every method returns an error.
	Dir string

	mu    sync.Mutex
	named map[string][]Item // the content that a sum named, by sum
}

// Names of the files in the folder.
const (
	approvalsFile = "approvals.json"
	trustFile     = "trust.json"
	writtenFile   = "written.json"
	lockFile      = "lock" // never renamed or removed
)

// maxText bounds a stored rule or path, in bytes.
const maxText = 16 << 10

// Approval is a rule that a person allowed. The store does not parse rules; the caller checks them.
type Approval struct {
	Rule  string      `json:"rule"`
	Scope event.Scope `json:"scope"`          // event.ScopeProject or event.ScopeAlways
	Root  string      `json:"root,omitempty"` // set only for ScopeProject
	At    time.Time   `json:"at"`             // for display; zero: now
	By    string      `json:"by,omitempty"`   // who allowed it
}

// same reports whether two approvals allow the same.
func (a Approval) same(b Approval) bool {
	return a.Rule == b.Rule && a.Scope == b.Scope && a.Root == b.Root
}

// Approve stores approvals, all or none. A known approval is unchanged, with its time and name. After a disk
// error they may be stored anyway.
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

// check validates and completes an approval.
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

// Approvals returns the approvals that apply in the workspace root, oldest first: its own and those for always.
// Root "" means all. A root that no longer exists has those given while it did.
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

// holds reports whether the approval applies in a root. One with an unknown scope applies nowhere.
func (a Approval) holds(root string) bool {
	return a.Scope == event.ScopeAlways || a.Scope == event.ScopeProject && a.Root == root
}

// Revoke removes a rule as far as it applies in the workspace root, and returns the number of removed approvals:
// afterwards Approvals(root) doesn't contain it, so a rule that was always allowed is removed everywhere. Root ""
// means all roots.
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

// checkText rejects text that could not be restored unchanged from the file, or not be shown on one line.
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

// canonical returns the unique name of an existing root.
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

// former is canonical also for a missing root: it resolves the existing part of its path.
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
