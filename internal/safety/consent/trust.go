package consent

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
)

// Kinds of items.
const (
	Settings = "settings"   // changes inspan's behaviour
	Hook     = "hook"       // runs at moments of a session
	Tool     = "tool"       // offered to the model, or run by such a tool
	Skill    = "skill"      // contains more than text
	Agent    = "agent"      // configures an agent
	Workflow = "workflow"   // runs commands and agents, when a person starts it
	Plugin   = "plugin"     // any of these together
	Server   = "mcp server" // started, or connected to
	Memory   = "memory"     // shown to agents as the team's knowledge; runs nothing

	Instructions = "instructions" // written by an agent, see [Store.Wrote]; run nothing
)

// Item is a piece of content in a workspace that could start a program or change inspan's behaviour. Its texts
// can be shown as they are: each is one line, with invisible characters spelled out.
type Item struct {
	// Path is relative to the root, with slashes; that of a folder ends in one.
	Path string
	// Digest is the SHA-256 of the content in hexadecimal. For a folder it is over the sorted paths and digests of
	// all files below it; for a link over its target and the content there. Empty means the content is unknown, so
	// the item can't be trusted, and Runs gives the reason why.
	Digest string
	// Runs lists what the item would start or set, one line each, as far as its content tells: the exact
	// command line, its folder, and the names of environment variables. It is for people; a script can do
	// anything.
	Runs []string
	Kind string // one of the constants
	// Before is the digest that was trusted before, in Review.Changed.
	Before string
}

// Review splits the items of a workspace by consent.
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

// Remembered returns the item of a file of the team's memory with this content, as [Find] lists it: it is
// trusted if a person trusts exactly these bytes at this place.
func Remembered(path string, content []byte) Item {
	return Item{Path: path, Digest: keep.SHA256(content), Kind: Memory}
}

// Trust records consent to the items of the workspace root, all or none. It uses the digests of these items,
// not the current content of the folder, so pass the items that were shown. Content that was trusted earlier at
// the same place stays trusted, so that switching between two branches does not ask each time. An item without
// a digest is an error.
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

// check rejects an item that can't be trusted.
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

// last returns the digest that was trusted last at a place, or empty.
func last(list []pair, root, path string) (digest string) {
	for _, p := range list {
		if p.Root == root && p.Path == path {
			digest = p.Digest
		}
	}
	return digest
}

// Distrust removes all trust in a workspace root, or in the items with the given paths. The root may be gone.
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

// Review splits the items of a workspace root, as Find lists them, by consent for exactly this root; consent
// for a parent folder, a copy or another worktree of the same repository doesn't count. On an error nothing is
// trusted.
//
// Content may change after Find has read it. Before starting something from an item, call Review again, and
// protect the folder from changes by tools.
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

// ReviewRunning reviews the content in a workspace that would run programs or change inspan's behaviour. A sum
// that is not empty names exact content that is also trusted, see [Sum]. The team's memory is not included: it
// runs nothing, and changes during work. A workspace that is not on this machine has none.
func (s *Store) ReviewRunning(root, sum string) (Review, error) {
	if _, err := os.Lstat(root); root != "" && sum == "" && errors.Is(err, fs.ErrNotExist) {
		return Review{}, nil
	}
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

// differs returns the error about content that a sum does not name, or no longer.
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

// Runs reports whether the programs in a workspace file may run: the person trusts it, and all other content that
// could run there, because it could run them too.
func (r Review) Runs(path string) bool {
	return len(r.New)+len(r.Changed) == 0 && slices.ContainsFunc(r.Trusted, func(i Item) bool { return i.Path == path })
}

var errChanged = errors.New("review it with 'inspan trust'")

// Sum returns the sum of all reviewed content, see [Sum].
func (r Review) Sum() string { return Sum(slices.Concat(r.Trusted, r.New, r.Changed)) }

// ReviewAll reviews everything that needs trust in a workspace: the content for ReviewRunning, the team's
// memory, and instructions that agents wrote.
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

// Sum returns one digest, in hexadecimal, over the paths and digests of all items, in any order. An unattended
// run gets it to name the exact content that may run; see [Named]. It is empty if the content of an item is
// unknown: then no sum names it.
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

// Named reports whether sum names exactly the content of the items. An empty sum names nothing.
func Named(items []Item, sum string) bool {
	return sum != "" && sum == Sum(items)
}

func byPath(a, b Item) int {
	return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Digest, b.Digest))
}

// Pins returns the digests that a person trusted in a workspace root, by the path of the item.
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
