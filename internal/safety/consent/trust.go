package consent

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
)

// Kinds of items.
const (
	Settings = "settings"   // changes what inspan does
	Hook     = "hook"       // is run at moments of a session
	Tool     = "tool"       // is offered to the model, or run by one that is
	Skill    = "skill"      // has more than text
	Agent    = "agent"      // sets up an agent of its own
	Workflow = "workflow"   // runs commands and agents, when a person runs it
	Plugin   = "plugin"     // any of these together
	Server   = "mcp server" // is started, or connected to
	Memory   = "memory"     // is told to agents as what the team knows; it runs nothing

	Instructions = "instructions" // were written by an agent, see [Store.Wrote]; they run nothing
)

// Item is one piece of content in a workspace that could start a program or
// change what inspan does. Its texts can be shown as they are: each is one
// line, and what would be invisible in it is spelled out.
type Item struct {
	// Path is relative to the root, with slashes; that of a folder ends in one.
	Path string
	// Digest is the SHA-256 of the content in hexadecimal. For a folder it is
	// over the paths and digests of all files below it, in order; for a link
	// over its target and the content there. Empty: the content is not known,
	// so that the item can't be trusted, and Runs says why.
	Digest string
	// Runs says what the item would start or set, one line each, as far as its
	// content tells: the exact command line, in which folder, and the names of
	// environment variables. It is for people; a script can do anything.
	Runs []string
	Kind string // one of the constants
	// Before is the digest that was trusted before, in Review.Changed.
	Before string
}

// Review tells what of the items of a workspace a person agreed to.
type Review struct {
	Trusted []Item // exactly this content, at this place in this root
	New     []Item // nothing was ever trusted at this place
	Changed []Item // other content was; see Item.Before
}

// pair is one trusted content.
type pair struct {
	Root   string    `json:"root"`
	Path   string    `json:"path"`
	Digest string    `json:"digest"`
	At     time.Time `json:"at"`
}

// Remembered is the item of a file of the team's memory, as [Find] lists it, with this
// content: it is trusted if a person trusts just these bytes at this place.
func Remembered(path string, content []byte) Item {
	return Item{Path: path, Digest: sum(content), Kind: Memory}
}

// Trust remembers that a person agreed to the items of the workspace root, all
// or none. What counts is the digests of these items, not what lies in the
// folder now, so pass what was shown. Content that was trusted earlier at the
// same place stays trusted, so that changing between two branches does not
// ask each time. An item without a digest is an error.
func (s *Store) Trust(ctx context.Context, root string, items []Item) error {
	root, err := canonical(root)
	if err != nil {
		return fmt.Errorf("trust: %w", err)
	}
	for _, it := range items {
		if err := it.check(); err != nil {
			return fmt.Errorf("trust: %w", err)
		}
	}
	now := time.Now().UTC().Truncate(time.Second)
	return change(ctx, s, trustFile, func(list []pair) ([]pair, bool) {
		changed := false
		for _, it := range items {
			if last(list, root, it.Path) == it.Digest {
				continue
			}
			list = slices.DeleteFunc(list, func(p pair) bool { return p.is(root, it) })
			list = append(list, pair{root, it.Path, it.Digest, now})
			changed = true
		}
		return list, changed
	})
}

// check refuses what can't be trusted.
func (it Item) check() error {
	switch {
	case it.Digest == "":
		return fmt.Errorf("%s can't be trusted: %s", it.Path, strings.Join(it.Runs, "; "))
	case !keep.IsDigest(it.Digest):
		return fmt.Errorf("%s: %q is not a digest", it.Path, it.Digest)
	case !fs.ValidPath(strings.TrimSuffix(it.Path, "/")):
		return fmt.Errorf("%q is not a path below a root", it.Path)
	}
	return checkText(it.Path)
}

// is reports whether the pair trusts the item in a root.
func (p pair) is(root string, it Item) bool {
	return p.Root == root && p.Path == it.Path && p.Digest == it.Digest
}

// last is the digest that was trusted last at a place, or empty.
func last(list []pair, root, path string) (digest string) {
	for _, p := range list {
		if p.Root == root && p.Path == path {
			digest = p.Digest
		}
	}
	return digest
}

// Distrust forgets all trust in a workspace root, or that in the items with some paths. It may be gone.
func (s *Store) Distrust(ctx context.Context, root string, paths ...string) error {
	if root == "" {
		return errors.New("distrust: no root is named")
	}
	root, err := former(root)
	if err != nil {
		return fmt.Errorf("distrust: %w", err)
	}
	return change(ctx, s, trustFile, func(list []pair) ([]pair, bool) {
		left := slices.DeleteFunc(slices.Clone(list), func(p pair) bool {
			return p.Root == root && (len(paths) == 0 || slices.Contains(paths, p.Path))
		})
		return left, len(left) < len(list)
	})
}

// Review splits the items of a workspace root, as Find lists them, by what a
// person agreed to for exactly this root; a folder above, a copy and another
// worktree of the same repository count for nothing. On an error nothing is
// trusted.
//
// Content may change after Find has read it. Whoever starts something from an
// item asks right before, and keeps the folder from being written to by tools.
func (s *Store) Review(root string, items []Item) (Review, error) {
	root, err := canonical(root)
	if err != nil {
		return Review{}, fmt.Errorf("review: %w", err)
	}
	list, err := load[pair](s, trustFile)
	if err != nil {
		return Review{}, err
	}
	var r Review
	for _, it := range items {
		it.Before = ""
		before := last(list, root, it.Path)
		switch {
		case it.Digest != "" && slices.ContainsFunc(list, func(p pair) bool { return p.is(root, it) }):
			r.Trusted = append(r.Trusted, it)
		case before == "":
			r.New = append(r.New, it)
		default:
			it.Before = before
			r.Changed = append(r.Changed, it)
		}
	}
	return r, nil
}

// ReviewRunning tells what in a workspace would run programs or change what inspan does, and
// what of it the person trusts. A sum that is not empty names exact content that is trusted
// beside, see [Sum]. What agents are told of the team's memory is no part of it: it runs
// nothing, and changes as they work.
func (s *Store) ReviewRunning(root, sum string) (Review, error) {
	items, err := Find(root)
	if err != nil {
		return Review{}, err
	}
	items = slices.DeleteFunc(items, func(i Item) bool { return i.Kind == Memory })
	if Named(items, sum) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.named == nil {
			s.named = map[string][]Item{}
		}
		s.named[sum] = items
		return Review{Trusted: items}, nil
	}
	r, err := s.Review(root, items)
	if err != nil {
		return Review{New: items}, err
	}
	if sum != "" {
		return r, s.differs(items, sum)
	}
	return r, nil
}

// differs is the error for content that a sum does not name, or no longer.
func (s *Store) differs(items []Item, sum string) error {
	s.mu.Lock()
	was := s.named[sum]
	s.mu.Unlock()
	if was == nil {
		return fmt.Errorf("the content doesn't match the checksum in --trust: %w", errChanged)
	}
	var paths []string
	for _, lists := range [][2][]Item{{items, was}, {was, items}} {
		for _, it := range lists[0] {
			same := func(other Item) bool { return other.Path == it.Path && other.Digest == it.Digest }
			if !slices.ContainsFunc(lists[1], same) && !slices.Contains(paths, it.Path) {
				paths = append(paths, it.Path)
			}
		}
	}
	return fmt.Errorf("%s changed since --trust was compared, so nothing of this folder may run any more: %w",
		strings.Join(paths, ", "), errChanged)
}

// Runs reports whether what a file of the workspace names may run: the person trusts it, and all else that
// could run there, as that may run whatever it names.
func (r Review) Runs(path string) bool {
	return len(r.New)+len(r.Changed) == 0 && slices.ContainsFunc(r.Trusted, func(i Item) bool { return i.Path == path })
}

var errChanged = errors.New("review it with 'inspan trust'")

// Sum names all content that was looked at, see [Sum].
func (r Review) Sum() string { return Sum(slices.Concat(r.Trusted, r.New, r.Changed)) }

// ReviewAll is what there is for a person to trust in a workspace: what ReviewRunning tells, the team's
// memory, and instructions that agents have written.
func (s *Store) ReviewAll(root string) (Review, error) {
	items, err := Find(root)
	if err != nil {
		return Review{}, err
	}
	written, err := s.unconfirmedItems(root)
	if err != nil {
		return Review{}, err
	}
	return s.Review(root, append(items, written...))
}

// Sum is one digest, in hexadecimal, over the paths and digests of all items,
// in whatever order they come. An unattended run is told it to name the exact
// content that may run; see [Named]. It is empty if the content of one item is
// not known: then nothing names it.
func Sum(items []Item) string {
	if slices.ContainsFunc(items, func(it Item) bool { return it.Digest == "" }) {
		return ""
	}
	sorted := slices.Clone(items)
	slices.SortStableFunc(sorted, byPath)
	h := sha256.New()
	for _, it := range slices.CompactFunc(sorted, func(a, b Item) bool { return byPath(a, b) == 0 }) {
		fmt.Fprintf(h, "%s %s\n", strconv.Quote(it.Path), it.Digest)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Named reports whether sum names exactly the content of the items. An empty
// sum names nothing.
func Named(items []Item, sum string) bool {
	return sum != "" && sum == Sum(items)
}

func byPath(a, b Item) int {
	return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Digest, b.Digest))
}

// Pins are the digests that a person agreed to in a workspace root, by the path of the item.
func (s *Store) Pins(root string) (map[string][]string, error) {
	root, err := former(root)
	if err != nil {
		return nil, err
	}
	list, err := load[pair](s, trustFile)
	if err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for _, p := range list {
		if p.Root == root {
			out[p.Path] = append(out[p.Path], p.Digest)
		}
	}
	return out, nil
}
