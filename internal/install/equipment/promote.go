package equipment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/extend/custom"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/safety/consent"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// projectTools is the folder of a workspace's tools, relative to it.
const projectTools = ".inspan/tools"

// Origin is the origin of a tool that a model wrote: a file next to the code of an approved tool.
type Origin struct {
	Session string    `json:"session"`
	Event   uint64    `json:"event"` // of the proposal
	Model   string    `json:"model,omitempty"`
	Written time.Time `json:"written"`
	// Untrusted says that the session had seen text from unverified sources, so the tool may serve someone
	// else's purpose.
	Untrusted bool      `json:"untrusted,omitempty"`
	Approved  time.Time `json:"approved,omitzero"`
}

// Proposed is a tool that the model of a session wrote.
type Proposed struct {
	Origin
	Name  string
	Draft custom.Draft
	Err   error // why the draft is missing; nil means it is there
	blob  string
}

// Proposed lists the tools that models wrote in sessions of a workspace, the newest first. Withdrawn proposals
// and those that were promoted are left out.
func (s *Set) Proposed(ctx context.Context, sessions store.Store, root string) ([]Proposed, error) {
	list, err := sessions.List(ctx)
	if err != nil {
		return nil, err
	}
	var out []Proposed
	for _, info := range list {
		if info.Root != root {
			continue
		}
		found, err := proposedIn(ctx, sessions, info.ID)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	slices.SortStableFunc(out, func(a, b Proposed) int { return b.Written.Compare(a.Written) })
	kept := s.Promoted(root)
	return slices.DeleteFunc(out, func(p Proposed) bool {
		return slices.ContainsFunc(kept, func(k Promoted) bool {
			return k.Name == p.Name && k.Origin.Session == p.Session && k.Origin.Event == p.Event
		})
	}), nil
}

// proposedIn returns the proposals of one session. If a log can't be read to its end, it returns those before.
func proposedIn(ctx context.Context, sessions store.Store, id string) (out []Proposed, err error) {
	model, st := "", loop.State{}
	for e, err := range store.Events(ctx, sessions, id) {
		if err != nil || st.Apply(e) != nil {
			break
		}
		switch b := e.Body.(type) {
		case event.Replied:
			model = b.Route
		case event.Withdrawn:
			out = slices.DeleteFunc(out, func(p Proposed) bool { return p.Event == b.Of })
		case event.Ended:
			if b.Proposal != nil && b.Outcome == event.OutcomeOK {
				out = slices.DeleteFunc(out, func(p Proposed) bool { return p.Name == b.Proposal.Name })
				out = append(out, Proposed{Name: b.Proposal.Name, blob: b.Proposal.Blob, Origin: Origin{
					Session: id, Event: e.Seq, Model: model, Written: e.Time, Untrusted: st.Untrusted,
				}})
			}
		}
	}
	if ctx.Err() != nil || len(out) == 0 {
		return nil, ctx.Err()
	}
	log, err := sessions.Open(ctx, id)
	if err != nil {
		return nil, err
	}
	for i := range out {
		p := &out[i]
		p.Draft, p.Err = Drafted(ctx, log.Blobs(), tool.Proposal{Name: p.Name, Blob: p.blob})
	}
	return out, log.Close()
}

// Drop withdraws a proposal: its session no longer has the tool.
func (p Proposed) Drop(ctx context.Context, sessions store.Store) error {
	log, err := sessions.Open(ctx, p.Session)
	if err != nil {
		return err
	}
	_, err = log.Append(ctx, event.Withdrawn{Of: p.Event})
	return errors.Join(err, log.Close())
}

// Shelf is a folder of tools that outlive a session.
type Shelf struct {
	Source string // "project" or "user"
	root   string // the root that consent is recorded for
	below  string // the folder, relative to root
	work   string // the workspace
}

// Shelf returns the tool folder of the workspace, or the person's own.
func (s *Set) Shelf(root string, user bool) Shelf {
	if user {
		return Shelf{Source: "user", root: filepath.Dir(s.ToolsDir()), below: filepath.Base(s.ToolsDir()), work: root}
	}
	return Shelf{Source: "project", root: root, below: projectTools, work: root}
}

// Dir returns the path of the folder.
func (f Shelf) Dir() string { return filepath.Join(f.root, filepath.FromSlash(f.below)) }

// item returns the consent item of an entry.
func (f Shelf) item(in custom.Installed) consent.Item {
	return consent.Item{Path: f.below + "/" + in.Name + "/", Digest: in.Digest(), Kind: consent.Tool}
}

// Promoted is a tool, written by a model and approved by a person, in a folder of tools.
type Promoted struct {
	custom.Installed
	Shelf
	Origin  Origin
	Changed bool // differs from the approved content, so it is not used as a tool
	Err     error
}

// Promoted lists the promoted tools of a workspace and of the person.
func (s *Set) Promoted(root string) (out []Promoted) {
	for _, shelf := range []Shelf{s.Shelf(root, false), s.Shelf(root, true)} {
		names, err := os.ReadDir(shelf.Dir())
		if err != nil {
			continue
		}
		for _, entry := range names {
			if p, is := s.promoted(shelf, entry.Name()); is {
				out = append(out, p)
			}
		}
	}
	return out
}

func (s *Set) promoted(shelf Shelf, name string) (p Promoted, is bool) {
	at := filepath.Join(shelf.Dir(), name)
	entry, err := os.Lstat(at)
	if err != nil {
		return p, false
	}
	if entry.Mode()&os.ModeSymlink != 0 { // replaced an approved tool; listed so that it can be removed
		pins, err := s.Consent.Pins(shelf.root)
		p = Promoted{Shelf: shelf, Installed: custom.Entry(name, nil), Changed: true, Err: errors.New("it was replaced by a link")}
		return p, err == nil && len(pins[shelf.below+"/"+name+"/"]) > 0
	}
	if info, err := os.Lstat(filepath.Join(at, custom.OriginFile)); err != nil || !info.Mode().IsRegular() {
		return p, false
	}
	p = Promoted{Shelf: shelf}
	p.Installed, p.Err = custom.Lying(shelf.Dir(), name)
	if p.Name = name; p.Err == nil {
		p.Err = json.Unmarshal(p.Installed.Origin(), &p.Origin)
	}
	review, err := s.Consent.Review(shelf.root, []consent.Item{shelf.item(p.Installed)})
	p.Changed = err != nil || p.Err != nil || len(review.Trusted) == 0
	return p, err != nil || len(review.New) == 0 // otherwise no person approved it here, whatever its file says
}

// Promotion is a tool for a person to approve: exactly these bytes will be written.
type Promotion struct {
	custom.Installed
	Draft  custom.Draft
	Origin Origin
	Shelf
	Trials []custom.Trial // in a fresh sandbox
}

// Promotion prepares the approval of a proposal. It writes nothing yet.
func (s *Set) Promotion(ctx context.Context, p Proposed, shelf Shelf, now time.Time) (out Promotion, err error) {
	if p.Err != nil {
		return out, fmt.Errorf("%s can't be read: %w", p.Name, p.Err)
	}
	if slices.ContainsFunc(Names(), func(name string) bool { return strings.EqualFold(name, p.Name) }) {
		return out, fmt.Errorf("%s is the name of a built-in tool", p.Name)
	}
	if other := s.alike(p.Name, shelf); other != "" {
		return out, fmt.Errorf("%s: %w; names of tools that differ only by case count as one", other, fs.ErrExist)
	}
	if p.Draft.Kind == custom.KindScript && !s.Scripts(s.Config.Levers.Stated(), false) {
		return out, errNoScripts
	}
	out = Promotion{Draft: p.Draft, Origin: p.Origin, Shelf: shelf}
	out.Origin.Approved = now.UTC().Truncate(time.Second)
	origin, err := json.MarshalIndent(out.Origin, "", "  ")
	if err != nil {
		return out, err
	}
	if out.Installed, err = p.Draft.Install(append(origin, '\n')); err != nil {
		return out, err
	}
	if _, err := os.Lstat(filepath.Join(shelf.Dir(), p.Name)); err == nil {
		return out, fmt.Errorf("%s: %w; if 'inspan tools report' lists it, remove it with 'inspan tools drop %s'",
			filepath.Join(shelf.Dir(), p.Name), fs.ErrExist, p.Name)
	}
	out.Trials, err = s.Try(ctx, p.Draft)
	return out, err
}

// alike returns an entry of a tool folder that would conflict with a tool of this name; empty means none. An entry
// with exactly this name in the same folder is not reported here.
func (s *Set) alike(name string, shelf Shelf) string {
	for _, other := range []Shelf{shelf, s.Shelf(shelf.work, shelf.Source != "user")} {
		entries, _ := os.ReadDir(other.Dir()) // a missing folder has no entries
		for _, e := range entries {
			if strings.EqualFold(e.Name(), name) && (e.Name() != name || other.Source != shelf.Source) {
				return filepath.Join(other.Dir(), e.Name())
			}
		}
	}
	return ""
}

// Again prepares the approval of a promoted tool that was changed.
func (s *Set) Again(ctx context.Context, p Promoted) (out Promotion, err error) {
	if p.Err != nil {
		return out, p.Err
	}
	out = Promotion{Installed: p.Installed, Origin: p.Origin, Shelf: p.Shelf}
	if out.Draft, err = p.Draft(); err == nil {
		out.Trials, err = s.Try(ctx, out.Draft)
	}
	return out, err
}

// Promote records that a person approved exactly this content, and writes it.
func (s *Set) Promote(ctx context.Context, p Promotion) error {
	if !custom.Passed(p.Trials) {
		return errors.New("its tests do not pass")
	}
	if err := os.MkdirAll(p.root, 0o700); err != nil {
		return err
	}
	if err := s.Consent.Trust(ctx, p.root, []consent.Item{p.item(p.Installed)}); err != nil {
		return err
	}
	return p.Write(p.root, p.below)
}

// Remove removes a promoted tool, and its approval.
func (s *Set) Remove(ctx context.Context, p Promoted) error {
	root, err := os.OpenRoot(p.root)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	if err := root.RemoveAll(p.below + "/" + p.Name); err != nil {
		return err
	}
	return s.Consent.Distrust(ctx, p.root, p.item(p.Installed).Path)
}

// pinned returns a function that reports which entries of the person's folder may run: all except promoted ones
// that changed since. If the approvals can't be read, none may.
func (s *Set) pinned() func(path, digest string) bool {
	shelf := s.Shelf("", true)
	pins, err := s.Consent.Pins(shelf.root)
	return func(path, digest string) bool {
		known := pins[shelf.below+"/"+filepath.Base(path)+"/"]
		return err == nil && (len(known) == 0 || slices.Contains(known, digest))
	}
}

// scripts returns the approved, unchanged script tools of a workspace and of the person.
func (s *Set) scripts(root string, taken []string) (out []tool.Tool) {
	for _, p := range s.Promoted(root) {
		d, err := p.Draft()
		if p.Changed || err != nil || d.Kind != custom.KindScript ||
			slices.ContainsFunc(taken, func(name string) bool { return strings.EqualFold(name, d.Name) }) {
			continue
		}
		taken = append(taken, d.Name)
		t := s.scripted(d)
		t.CodeDigest = p.Digest()
		out = append(out, t)
	}
	return out
}
