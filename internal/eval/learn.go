package eval

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/stats"
)

// Step is what an entry of the ledger says of a proposal.
type Step string

// The steps of a proposal. None is left out: a proposal that is kept was proposed, tried on other
// tasks, looked at once on held-out ones and found better, and went to a share of the sessions.
const (
	Proposed   Step = "proposed"    // the change and where it is from
	TriedOnDev Step = "tried"       // on tasks that anybody may look at
	Looked     Step = "looked"      // held-out tasks are about to be looked at, which counts whatever comes of it
	Promoted   Step = "promoted"    // they have shown it to be better
	Refused    Step = "refused"     // they have not
	Canaried   Step = "canaried"    // a share of new sessions has it
	Watched    Step = "watched"     // how the sessions with it and without it fare
	Kept       Step = "kept"        // all have it
	RolledBack Step = "rolled_back" // nobody has it any more, as more sessions failed with it
	Withdrawn  Step = "withdrawn"   // a person has taken it back
)

// Entry is a line of the ledger.
type Entry struct {
	Seq      int       `json:"seq"` // from 1
	Time     time.Time `json:"time"`
	Step     Step      `json:"step"`
	Proposal string    `json:"proposal"`
	Change   *Change   `json:"change,omitempty"` // of Proposed

	Suite     string  `json:"suite,omitempty"` // digest, of TriedOnDev, Looked and what follows
	Base      string  `json:"base,omitempty"`  // run
	Candidate string  `json:"candidate,omitempty"`
	Gain      float64 `json:"gain,omitempty"` // of TriedOnDev only: held-out figures stay where they are
	P         float64 `json:"p,omitempty"`    // the same
	Allowed   float64 `json:"allowed,omitempty"`

	Share    float64 `json:"share,omitempty"` // of Canaried
	Arms     Arms    `json:"arms,omitzero"`   // of Watched and RolledBack
	Evidence float64 `json:"evidence,omitempty"`

	By   string `json:"by,omitempty"`
	Why  string `json:"why,omitempty"`
	Prev string `json:"prev,omitempty"` // digest of the line before
}

// Arms are how many sessions ended and failed, with a change and without it.
type Arms struct {
	With          int `json:"with"`
	WithFailed    int `json:"with_failed"`
	Without       int `json:"without"`
	WithoutFailed int `json:"without_failed"`
}

// Proposal is a change and how far it has come.
type Proposal struct {
	ID     string
	Change Change
	Step   Step // the last one, but for TriedOnDev and Watched, which change nothing of it
	Gain   float64
	P      float64 // of the last try on dev that was better; 1: none was
	Share  float64
	Arms   Arms
}

// Book is what a ledger says, folded. The zero value is an empty one.
type Book struct {
	Entries   []Entry
	proposals map[string]*Proposal
	order     []string
	looks     map[string]int // at each suite's held-out tasks
	open      map[string]Entry
}

// The rates at which a proposal moves on.
const (
	Screen  = 0.10 // p on dev, one-sided, above which held-out tasks are not looked at
	Promote = 0.05 // chance that any number of useless proposals have one promoted, for each suite
	Roll    = 0.05 // chance that a harmless change is rolled back
)

// ErrStep says that a proposal is not where a step could follow.
var ErrStep = errors.New("that step does not follow")

// Proposals are all, in their order.
func (b *Book) Proposals() []*Proposal {
	out := make([]*Proposal, len(b.order))
	for i, id := range b.order {
		out[i] = b.proposals[id]
	}
	return out
}

// Proposal finds one by its id.
func (b *Book) Proposal(id string) (*Proposal, error) {
	if p := b.proposals[id]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("there is no proposal %q", id)
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

// Looks is how often the held-out tasks of a suite were looked at.
func (b *Book) Looks(suite string) int { return b.looks[suite] }

// Apply folds an entry. One that does not follow is an error, and changes nothing.
func (b *Book) Apply(e Entry) error {
	if e.Seq != len(b.Entries)+1 {
		return fmt.Errorf("entry %d of the ledger follows %d", e.Seq, len(b.Entries))
	}
	if b.proposals == nil {
		b.proposals, b.looks, b.open = map[string]*Proposal{}, map[string]int{}, map[string]Entry{}
	}
	if e.Step == Looked && e.Proposal == "" { // somebody compared held-out runs
		b.look(e)
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
		return fmt.Errorf("proposal %s is %s, not to be %s: %w", p.ID, p.Step, e.Step, err)
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

// follows is the order of the steps.
func (b *Book) follows(p *Proposal, e Entry) error {
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
		if want := b.allowed(e.Suite); e.Allowed != want {
			return fmt.Errorf("look %d may spend %g, not %g: %w", b.looks[e.Suite]+1, want, e.Allowed, ErrStep)
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
	case Watched, Kept, RolledBack:
		return from(Canaried)
	case Withdrawn:
		return from(Proposed, Looked, Promoted, Refused, Canaried, Kept)
	}
	return ErrStep
}

func (b *Book) take(p *Proposal, e Entry) {
	switch e.Step {
	case TriedOnDev:
		p.Gain, p.P = e.Gain, e.P
		return
	case Watched:
		p.Arms = e.Arms
		return
	case Looked:
		b.look(e)
		b.open[p.ID] = e
	case Canaried:
		p.Share = e.Share
	}
	p.Step = e.Step
}

func (b *Book) look(e Entry) { b.looks[e.Suite]++ }

// allowed is the error rate of the next look at a suite. All looks that there will ever be share one
// rate, so that it holds however many proposals are tried: the first gets half, later ones less and
// less. A new suite begins anew.
func (b *Book) allowed(suite string) float64 { return Promote * stats.Share(b.looks[suite]+1) }

// Propose is the entry of a new change.
func (b *Book) Propose(c Change) Entry {
	return b.next(Entry{Step: Proposed, Proposal: c.ID(), Change: &c, By: c.By, Why: c.Why})
}

// Try is the entry of a comparison on dev tasks. Held-out ones are refused.
func (b *Book) Try(id string, base, candidate Run) (Entry, error) {
	if base.Split == HeldOut || candidate.Split == HeldOut {
		return Entry{}, errors.New("held-out tasks are not for trying; use dev tasks")
	}
	gain, p, err := gained(base, candidate)
	return b.next(Entry{
		Step: TriedOnDev, Proposal: id, Suite: base.Digest, Base: base.ID, Candidate: candidate.ID, Gain: gain, P: p,
	}), err
}

// Look is the entry that is to be in the ledger before held-out runs are compared. Without a proposal
// it counts a look that somebody takes for another reason.
func (b *Book) Look(id string, base, candidate Run) (Entry, error) {
	if base.Split != HeldOut || candidate.Split != HeldOut {
		return Entry{}, errors.New("only held-out tasks can promote a proposal; run the suite's held-out split")
	}
	return b.next(Entry{
		Step: Looked, Proposal: id, Suite: base.Digest, Base: base.ID, Candidate: candidate.ID, Allowed: b.allowed(base.Digest),
	}), nil
}

// Judge compares the runs of a look: better at the rate that it was allowed promotes the proposal, all
// else refuses it.
func (b *Book) Judge(id string, base, candidate Run) (Entry, error) {
	look := b.open[id]
	gain, p, err := gained(base, candidate)
	e := Entry{Step: Refused, Proposal: id, Suite: base.Digest, Base: base.ID, Candidate: candidate.ID, Allowed: look.Allowed}
	if gain > 0 && p <= look.Allowed {
		e.Step = Promoted
	}
	return b.next(e), err
}

// gained is by how much a candidate is better, and how often chance alone would make it look so.
func gained(base, candidate Run) (gain, p float64, err error) {
	pairs, err := paired(base, candidate)
	if err != nil {
		return 0, 1, err
	}
	gains := pairs.gains()
	return stats.Mean(gains), stats.NewFlips(gains).Above(), nil
}

func (b *Book) next(e Entry) Entry {
	e.Seq = len(b.Entries) + 1
	return e
}

// Best is the proposal to look at next: of those that are better on dev and were not looked at yet, the
// one that gains most. Nil: there is none.
func (b *Book) Best() *Proposal {
	var best *Proposal
	for _, p := range b.Proposals() {
		if p.Step == Proposed && p.P <= Screen && p.Gain > 0 && (best == nil || p.Gain > best.Gain) {
			best = p
		}
	}
	return best
}

// With reports whether a new session, known by a key that says nothing of it, gets a change: those of a
// canary's share, and all once it is kept.
func (p *Proposal) With(key string) bool {
	if p.Step == Kept {
		return true
	}
	h := fnv.New64a()
	h.Write([]byte(p.ID + "\n" + key))
	return p.Step == Canaried && float64(mixed(h.Sum64())>>11)/(1<<53) < p.Share
}
