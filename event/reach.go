package event

import "slices"

// Reach is what an approval for the session covers, beside what the question's Rules do.
type Reach string

// Reaches.
const (
	ReachRules Reach = ""      // what the Rules of the question say
	ReachEdits Reach = "edits" // changes to files of the workspace, but for guarded places
	ReachHost  Reach = "host"  // the hosts that the call wants to reach, whatever reaches them
)

// Offer is another approval that a question offers, for the session and never for longer.
type Offer struct {
	Reach Reach    `json:"reach"`
	Rules []string `json:"rules"` // all that it covers
}

// Grants are the rules that an Allow brings beyond the one call, of those that its question
// names. A decision that takes what was not offered brings none.
func (d Decided) Grants(rules []string, offers []Offer) []string {
	switch {
	case !d.Allow || d.Scope == ScopeOnce:
		return nil
	case d.Reach == ReachRules:
		return rules
	case d.Scope != ScopeSession:
		return nil
	}
	if i := slices.IndexFunc(offers, func(o Offer) bool { return o.Reach == d.Reach }); i >= 0 {
		return offers[i].Rules
	}
	return nil
}
