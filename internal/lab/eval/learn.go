package eval

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/inspan/inspan/internal/lab/stats"
)

// Step is the kind of a ledger entry about a proposal.
type Step string

// The steps of a proposal. None can be skipped: a kept proposal was proposed, tried on other tasks, looked at
// once on held-out ones and found better, and given to a share of the sessions.
const (
	Proposed   Step = "proposed"    // the change and its origin
	TriedOnDev Step = "tried"       // on tasks that are not held out
	Looked     Step = "looked"      // held-out tasks are about to be looked at, which counts whatever the result is
	Promoted   Step = "promoted"    // they have shown it to be better
	Refused    Step = "refused"     // they have not
	Canaried   Step = "canaried"    // a share of new sessions has it
	Watched    Step = "watched"     // counts of the sessions with it and without it
	Kept       Step = "kept"        // all sessions have it
	RolledBack Step = "rolled_back" // removed everywhere, as more sessions failed with it
	Withdrawn  Step = "withdrawn"   // a person has withdrawn it
)

// Entry is a line of the ledger.
type Entry struct {
	Seq      int       `json:"seq"` // from 1
	Time     time.Time `json:"time"`
	Step     Step      `json:"step"`
	Proposal string    `json:"proposal"`
	Change   *Change   `json:"change,omitempty"` // of Proposed

	Suite     string   `json:"suite,omitempty"` // digest, of TriedOnDev, Looked and later steps
	Named     string   `json:"suite_name,omitempty"`
	Tasks     []string `json:"tasks,omitempty"` // of Looked: ids
	Base      string   `json:"base,omitempty"`  // run
	Candidate string   `json:"candidate,omitempty"`
	Gain      float64  `json:"gain,omitempty"` // of TriedOnDev only: held-out figures are not stored
	P         float64  `json:"p,omitempty"`    // the same
	Allowed   float64  `json:"allowed,omitempty"`

	Settings  []string `json:"settings,omitempty"`  // of TriedOnDev: the identities of the base's and the candidate's
	Unchecked string   `json:"unchecked,omitempty"` // why it is unchecked that the runs differ only in the change, which a person allowed

	Share    float64 `json:"share,omitempty"` // of Canaried
	Arms     Arms    `json:"arms,omitzero"`   // of Watched and RolledBack
	Evidence float64 `json:"evidence,omitempty"`

	By   string `json:"by,omitempty"`
	Why  string `json:"why,omitempty"`
	Prev string `json:"prev,omitempty"` // digest of the line before
}

// Arms are the numbers of sessions that ended and failed, with a change and without it.
type Arms struct {
	With          int `json:"with"`
	WithFailed    int `json:"with_failed"`
	Without       int `json:"without"`
	WithoutFailed int `json:"without_failed"`
	WithDear      int `json:"with_dear,omitempty"` // those that cost far more than usual
	WithoutDear   int `json:"without_dear,omitempty"`
}

// Proposal is a change and its progress.
type Proposal struct {
	ID     string
	Change Change
	Step   Step // the last one, except TriedOnDev and Watched, which do not change its state
	Gain   float64
	P      float64 // of the last try on dev that was better; 1: there was none
	Share  float64
	Arms   Arms
	tried  Entry // the last of TriedOnDev
}

// Book is the folded content of a ledger. The zero value is an empty one.
type Book struct {
	Entries   []Entry
	proposals map[string]*Proposal
	order     []string
	open      map[string]Entry
}

// The error rates of the steps of a proposal.
const (
	Screen  = 0.10 // one-sided p on dev above which held-out tasks are not looked at
	Promote = 0.05 // chance that any of the useless proposals is promoted, for each suite
	Roll    = 0.05 // chance that a harmless change is rolled back
)

// ErrStep says that a step does not follow the proposal's last one.
var ErrStep = errors.New("that step does not follow")

// Proposals returns all proposals, in order.
func (b *Book) Proposals() []*Proposal {
	out := make([]*Proposal, len(b.order))
	for i, id := range b.order {
		out[i] = b.proposals[id]
	}
	return out
}

// Proposal finds a proposal by its id.
func (b *Book) Proposal(id string) (*Proposal, error) {
	if p := b.proposals[id]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("there is no proposal %q", id)
}

// Since returns when a proposal took a step; zero means it has not.
func (b *Book) Since(id string, step Step) time.Time {
	for _, e := range b.Entries {
		if e.Proposal == id && e.Step == step {
			return e.Time
		}
	}
	return time.Time{}
}

// Resolve finds the id of a proposal by its beginning; "last" is the last one.
func (b *Book) Resolve(name string) (string, error) {
	var found []string
	for _, id := range b.order {
		if name != "" && strings.HasPrefix(id, name) {
			found = append(found, id)
		}
	}
	switch {
	case name == "last" && len(b.order) > 0:
		return b.order[len(b.order)-1], nil
	case len(found) != 1:
		return "", fmt.Errorf("%d proposals are called %q; see 'inspan eval learn list'", len(found), name)
	}
	return found[0], nil
}

// looked returns how often any one of the tasks of a look was looked at before. A task is the same as long as
// its id and either the name or the digest of its suite are: a suite that changes elsewhere, or gets more
// tasks, keeps its count.
func (b *Book) looked(e Entry) int {
	most, counts := 0, map[string]int{}
	for _, was := range b.Entries {
		if was.Step != Looked || was.Suite != e.Suite && was.Named != e.Named {
			continue
		}
		for _, task := range was.Tasks {
			counts[task]++
		}
	}
	for _, task := range e.Tasks {
		most = max(most, counts[task])
	}
	return most
}

// Apply folds an entry. One that does not follow is an error, and changes nothing.
func (b *Book) Apply(e Entry) error {
	if e.Seq != len(b.Entries)+1 {
		return fmt.Errorf("entry %d of the ledger follows %d", e.Seq, len(b.Entries))
	}
	if b.proposals == nil {
		b.proposals, b.open = map[string]*Proposal{}, map[string]Entry{}
	}
	if e.Step == Looked && e.Proposal == "" { // held-out runs were compared
		b.Entries = append(b.Entries, e)
		return nil
	}
	if e.Step == Proposed {
		if err := b.propose(e); err != nil {
			return err
		}
	}
	p, err := b.Proposal(e.Proposal)
	if err != nil {
		return err
	}
	if err := b.follows(p, e); err != nil {
		return err
	}
	b.take(p, e)
	b.Entries = append(b.Entries, e)
	return nil
}

func (b *Book) propose(e Entry) error {
	if e.Change == nil || e.Change.ID() != e.Proposal {
		return fmt.Errorf("proposal %s has no change of that name: %w", e.Proposal, ErrStep)
	}
	if b.proposals[e.Proposal] != nil {
		return fmt.Errorf("proposal %s is there already: %w", e.Proposal, ErrStep)
	}
	b.proposals[e.Proposal] = &Proposal{ID: e.Proposal, Change: *e.Change, P: 1}
	b.order = append(b.order, e.Proposal)
	return nil
}

// Made returns the entry of a step that changes the workspace. If the step follows, it makes the change first:
// the ledger records only completed changes.
func (b *Book) Made(id string, step Step, why string) (Entry, error) {
	p, err := b.Proposal(id)
	if err != nil {
		return Entry{}, err
	}
	if !utf8.ValidString(why) { // the ledger could not store it
		return Entry{}, errors.New("the reason is not UTF-8; write it anew")
	}
	e := Entry{Step: step, Proposal: id, Why: why}
	if err = b.follows(p, e); err != nil {
		return Entry{}, err
	}
	switch {
	case step == Kept:
		err = p.Change.Make(p.Change.Root)
	case p.Step == Kept:
		err = p.Change.Back().Make(p.Change.Root)
	}
	return b.next(e), err
}

func (b *Book) follows(p *Proposal, e Entry) error {
	if err := b.steps(p, e); err != nil {
		return fmt.Errorf("proposal %s is %s, not to be %s: %w", p.ID, p.Step, e.Step, err)
	}
	return nil
}

// steps checks the order of the steps.
func (b *Book) steps(p *Proposal, e Entry) error {
	from := func(steps ...Step) error {
		for _, s := range steps {
			if p.Step == s {
				return nil
			}
		}
		return ErrStep
	}
	switch e.Step {
	case Proposed:
		return from("")
	case TriedOnDev:
		return from(Proposed, Refused)
	case Looked:
		if p.P > Screen {
			return fmt.Errorf("it is not better on dev, at p %.2g of at most %g: %w", p.P, Screen, ErrStep)
		}
		if n := b.looked(e); e.Allowed > allowed(n) {
			return fmt.Errorf("look %d may spend %g, not %g: %w", n+1, allowed(n), e.Allowed, ErrStep)
		}
		return from(Proposed, Refused)
	case Promoted, Refused:
		if look := b.open[p.ID]; look.Base != e.Base || look.Candidate != e.Candidate {
			return ErrStep
		}
		return from(Looked)
	case Canaried:
		if e.Share <= 0 || e.Share >= 1 {
			return fmt.Errorf("a share of %g is not between 0 and 1: %w", e.Share, ErrStep)
		}
		return from(Promoted)
	case Kept:
		if p.Step == Canaried && min(p.Arms.With, p.Arms.Without) == 0 {
			return fmt.Errorf("%d sessions with it and %d without it have ended, which shows nothing: %w",
				p.Arms.With, p.Arms.Without, ErrStep)
		}
		return from(Canaried)
	case Watched, RolledBack:
		return from(Canaried)
	case Withdrawn:
		return from(Proposed, Looked, Promoted, Refused, Canaried, Kept)
	}
	return ErrStep
}

func (b *Book) take(p *Proposal, e Entry) {
	switch e.Step {
	case TriedOnDev:
		p.Gain, p.P, p.tried = e.Gain, e.P, e
		return
	case Watched:
		p.Arms = e.Arms
		return
	case Looked:
		b.open[p.ID] = e
	case Canaried:
		p.Share = e.Share
	}
	p.Step = e.Step
}

// allowed returns the error rate of a look at tasks that were looked at before. All looks ever share one rate,
// so that it holds however many proposals are tried: the first gets half, later ones less and less. Fresh tasks
// start again.
func allowed(before int) float64 { return Promote * stats.Share(before+1) }

// Propose returns the entry of a new change.
func (b *Book) Propose(c Change) Entry {
	return b.next(Entry{Step: Proposed, Proposal: c.ID(), Change: &c, By: c.By, Why: c.Why})
}

// Try returns the entry of a comparison on dev tasks. Held-out ones are refused.
func (b *Book) Try(id string, base, candidate Run) (Entry, error) {
	if base.Split == HeldOut || candidate.Split == HeldOut {
		return Entry{}, errors.New("held-out tasks are not for trying; use dev tasks")
	}
	gain, p, err := gained(base, candidate)
	return b.next(Entry{
		Step: TriedOnDev, Proposal: id, Suite: base.Digest, Named: base.Suite, Base: base.ID, Candidate: candidate.ID, Gain: gain, P: p,
		Settings: []string{settings(base), settings(candidate)},
	}), err
}

// ErrUnchecked says that runs are not known to differ only in a proposal's change.
var ErrUnchecked = errors.New("so nothing shows that they differ in this change alone")

// Tied checks that the trials of a candidate had a proposal's change, that those of a base differ from them in
// nothing else, and that held-out ones have the settings that were tried on dev tasks.
func (b *Book) Tied(id string, base, candidate Run) error {
	p, err := b.Proposal(id)
	if err != nil {
		return err
	}
	tried := p.tried.Settings
	had := candidate.Proposal == id && !candidate.Without
	lacked := base.Proposal == id && base.Without || base.Proposal == "" && (p.Change.Old == "" || p.Change.Settings())
	why := ""
	switch {
	case !had:
		why = fmt.Sprintf("the trials of %s did not have the change (run them with --proposal %s)", candidate.ID, id)
	case !lacked:
		why = fmt.Sprintf("the trials of %s did not have %s as it is without the change (run them with --without %s)", base.ID, p.Change.File, id)
	case base.Version != candidate.Version:
		why = "the runs are of different versions of inspan"
	case base.Model != candidate.Model && !p.Change.Settings():
		why = "the runs have different models, and the change is not one of settings"
	case cmp.Or(base.Settings, base.Pinned) != cmp.Or(candidate.Settings, candidate.Pinned):
		why = "the runs have different settings beside the change"
	case base.Pinned == candidate.Pinned:
		why = "the runs have the same configuration"
	case base.Split == HeldOut && tried != nil && p.tried.Named != base.Suite:
		why = "the suite is not the one that the proposal was tried on"
	case base.Split == HeldOut && tried != nil && !slices.Equal(tried, []string{settings(base), settings(candidate)}):
		why = "their settings, models or version are not those that the proposal was tried with on dev tasks"
	default:
		return nil
	}
	return fmt.Errorf("%s with %s: %s, %w", base.ID, candidate.ID, why, ErrUnchecked)
}

// settings returns the identity of a run's settings.
func settings(r Run) string { return strings.Join([]string{r.Pinned, r.Model, r.Version}, " ") }

// Look returns the entry that must be in the ledger before held-out runs are compared. Without a proposal it
// counts a look for another reason. Tried is how many configurations held-out tasks of the suite were tried
// with: all except two of them must have been looked at, even if the ledger has lost that.
func (b *Book) Look(id string, base, candidate Run, tried int) (Entry, error) {
	if base.Split != HeldOut || candidate.Split != HeldOut {
		return Entry{}, errors.New("only held-out tasks can promote a proposal; run the suite's held-out split")
	}
	e := Entry{Step: Looked, Proposal: id, Suite: base.Digest, Named: base.Suite, Base: base.ID, Candidate: candidate.ID}
	for _, trial := range slices.Concat(base.Trials, candidate.Trials) {
		e.Tasks = append(e.Tasks, trial.Task)
	}
	slices.Sort(e.Tasks)
	e.Tasks = slices.Compact(e.Tasks)
	e.Allowed = allowed(max(b.looked(e), tried-2))
	return b.next(e), nil
}

// Judge compares the runs of a look: better at the allowed rate promotes the proposal, anything else refuses
// it.
func (b *Book) Judge(id string, base, candidate Run) (Entry, error) {
	look := b.open[id]
	gain, p, err := gained(base, candidate)
	e := Entry{Step: Refused, Proposal: id, Suite: base.Digest, Base: base.ID, Candidate: candidate.ID, Allowed: look.Allowed}
	if gain > 0 && p <= look.Allowed {
		e.Step = Promoted
	}
	return b.next(e), err
}

// gained returns by how much a candidate is better, and the probability that chance alone looks so.
func gained(base, candidate Run) (gain, p float64, err error) {
	pairs, err := paired(base, candidate)
	if err != nil {
		return 0, 1, err
	}
	gains := pairs.gains()
	if pairs.uneven() { // broken trials may be failures
		return stats.Mean(gains), 1, nil
	}
	return stats.Mean(gains), stats.NewFlips(gains).Above(), nil
}

func (b *Book) next(e Entry) Entry {
	e.Seq = len(b.Entries) + 1
	return e
}

// Best returns the proposal to look at next: of those that are better on dev and were not looked at yet, the one
// that gains most. Nil means there is none.
func (b *Book) Best() *Proposal {
	var best *Proposal
	for _, p := range b.Proposals() {
		if p.Step == Proposed && p.P <= Screen && p.Gain > 0 && (best == nil || p.Gain > best.Gain) {
			best = p
		}
	}
	return best
}

// With reports whether a new session, known by a key that says nothing about it, gets a change: the share of a
// canary does, and all once it is kept.
func (p *Proposal) With(key string) bool {
	if p.Step == Kept {
		return true
	}
	h := fnv.New64a()
	h.Write([]byte(p.ID + "\n" + key))
	return p.Step == Canaried && float64(mixed(h.Sum64())>>11)/(1<<53) < p.Share
}
