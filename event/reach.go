package event

import "slices"

// Reach names the calls that an approval for the session covers. The empty one stands for the Rules of the question.
type Reach string

// Other reaches.
const (
	ReachEdits Reach = "edits" // changes to files of the workspace, except for guarded places
	ReachHost  Reach = "host"  // the hosts that the call wants to reach, by any call
)

// Offer is another approval that a question offers. It holds for the session at most.
type Offer struct {
	Reach Reach    `json:"reach"`
	Rules []string `json:"rules"` // everything that it covers
}

// Grants returns the rules that an Allow grants beyond the one call, out of those that its question names. A
// decision for something that was not offered grants none.
func (d Decided) Grants(rules []string, offers []Offer) []string {
	switch {
	case !d.Allow || d.Scope == ScopeOnce:
		return nil
	case d.Reach == "":
		return rules
	case d.Scope != ScopeSession:
		return nil
	}
	if i := slices.IndexFunc(offers, func(o Offer) bool { return o.Reach == d.Reach }); i >= 0 {
		return offers[i].Rules
	}
	return nil
}
