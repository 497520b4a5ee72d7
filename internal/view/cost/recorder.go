package cost

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/llm"
)

// Recorder finds the cause of every token on a session's bills. It folds the session's events from their start.
// Everything that was paid has a cause: the sum of all [Tally.Parts] equals that of all bills, to the token and
// to the last digit of [Money].
//
// The tokens of a prompt belong to its parts in order. Tokens read from a cache are the first ones, since
// vendors cache beginnings. The vendor's count tells how many tokens the parts of the previous request have
// together. Within these, and within the new ones, tokens are divided by size: what a part took when it was
// first sent, or an estimate from its bytes before that.
//
// Events that a fork copied are bills of the other session.
type Recorder struct {
	session, parent string
	sums            bool // only what was paid, without causes; the state is not folded
	state           loop.State
	prompt          prompt
	names           map[string]string  // of called tools, by call
	children        map[string]string  // kinds of child sessions, by id
	returned        map[string][]Tally // what children have reported, by id
	groups          map[groupKey]*group
	last            exchange
	asked           time.Time // when the request in progress was sent
}

// exchange is the part of an answered request that a cache can hold.
type exchange struct {
	route, effort string
	at            time.Time
	had           int // tokens that it read from the cache or left there
}

type groupKey struct{ day, route string }

// group holds the bills of one day and route.
type group struct {
	row   Row
	parts map[Cause]*Part
}

// Part is the share of one cause.
type Part struct {
	Cause   Cause
	Usage   llm.Usage
	Dollars Money
	Bills   int // bills in it; a reply counts for its output
	Sent    int // requests of the session that carried it, if it is part of prompts
}

// NewRecorder returns the recorder of a session, before its first event.
func NewRecorder(session string) *Recorder {
	return &Recorder{
		session: session, names: map[string]string{}, children: map[string]string{},
		returned: map[string][]Tally{}, groups: map[groupKey]*group{},
		prompt: prompt{said: map[string]Cause{}, calls: map[string]Cause{}, shown: map[string]bool{}, times: map[Cause]int{}},
	}
}

// Apply folds the next event.
func (r *Recorder) Apply(e event.Event) {
	if e.Transient() {
		return
	}
	mine := e.Session == r.session
	switch b := e.Body.(type) {
	case event.Opened:
		r.parent = b.Parent
	case event.Asked:
		r.asked = e.Time
	case event.Spawned:
		r.children[b.Child] = cmp.Or(b.Agent, b.Child)
	case event.Replied:
		r.replied(e, b, mine)
	default:
		if mine {
			r.aside(e)
		}
	}
	if r.sums {
		return
	}
	r.prompt.heard(e.Body, r.children)
	r.prompt.changes(&r.state, e.Body)
	// An event that can't be folded does not change what was paid, only what is known about the prompt.
	_ = r.state.Apply(e)
	if _, is := e.Body.(event.Compacted); is {
		r.summed()
	}
}

// aside records costs other than those of replies.
func (r *Recorder) aside(e event.Event) {
	switch b := e.Body.(type) {
	case event.Routed:
		r.whole(e, bill{Cause{Kind: Router}, b.Judge, b.Usage, b.Cost})
	case event.Failed:
		r.whole(e, bill{Cause{Kind: Retry, Name: string(b.Cause)}, b.Route, b.Usage, b.Cost})
	case event.Ended:
		r.whole(e, bill{Cause{Kind: Bought, Name: r.names[b.Call]}, byCalls, llm.Usage{}, b.Cost})
	case event.Judged:
		if b.Parent != "" {
			r.names[b.Call] = b.Tool
		}
		by := cmp.Or(b.Route, strings.TrimPrefix(b.By, "reviewer ")) // in the form of version 0.1
		r.whole(e, bill{Cause{Kind: Reviewer}, by, consulted(b.Consulted), b.Cost})
	case event.Compacted:
		r.whole(e, bill{Cause{Kind: Compaction, Name: string(b.Why)}, b.Route, b.Usage, b.Cost})
	case event.Returned:
		r.back(e, b)
	case event.Kept:
		r.whole(e, bill{Cause{Kind: Compaction, Name: "not done"}, bySummary, b.Usage, b.Cost})
	}
}

func consulted(list []llm.Consulted) (sum llm.Usage) {
	for _, c := range list {
		sum = sum.Add(c.Usage)
	}
	return sum
}

// bill is a cost with one cause.
type bill struct {
	cause   Cause
	route   string
	used    llm.Usage
	dollars float64
}

// whole records a bill, if anything was spent.
func (r *Recorder) whole(e event.Event, b bill) {
	if !(b.dollars > 0) && b.used == (llm.Usage{}) {
		return
	}
	g := r.group(e.Time, b.route)
	g.row.add(b.used, Of(b.dollars), false)
	if r.sums {
		return
	}
	p := g.part(b.cause)
	p.Bills++
	p.Usage, p.Dollars = p.Usage.Add(b.used), p.Dollars+Of(b.dollars)
}

// Names for costs without a route.
const (
	byCalls   = "(calls)"
	bySummary = "(summary)"
	byChild   = "(subagent)"
)

func (r *Recorder) group(at time.Time, route string) *group {
	k := groupKey{at.UTC().Format(time.DateOnly), route}
	if r.groups[k] == nil {
		r.groups[k] = &group{parts: map[Cause]*Part{}}
	}
	return r.groups[k]
}

func (g *group) part(c Cause) *Part {
	if g.parts[c] == nil {
		g.parts[c] = &Part{Cause: c}
	}
	return g.parts[c]
}

// add charges a cause with tokens of one class.
func (g *group) add(c Cause, class int, paid paid) {
	if paid.tokens == 0 && paid.money == 0 {
		return
	}
	p := g.part(c)
	p.Usage, p.Dollars = p.Usage.Add(usage(class, paid.tokens)), p.Dollars+paid.money
}

// replied records a reply and its request, before the state sees the reply.
func (r *Recorder) replied(e event.Event, b event.Replied, mine bool) {
	if r.sums {
		if mine {
			r.reply(e, b)
		}
		return
	}
	r.prompt.look(&r.state)
	if r.last.route != b.Route {
		r.prompt.tokens = 0 // another model counts differently
	}
	if mine {
		r.reply(e, b)
	}
	r.prompt.went()
	r.prompt.tokens = 0
	if !b.Usage.Estimated && sound(b.Usage) {
		r.prompt.tokens = b.Usage.Prompt()
	}
	r.last = exchange{b.Route, r.state.Effort, e.Time, b.Usage.CacheRead + b.Usage.CacheWrite}
	for _, c := range b.Parts.Calls() {
		r.names[c.ID], r.prompt.calls[c.ID] = c.Name, resultOf(c)
	}
}

// reply records the bill of a reply, if it has one.
func (r *Recorder) reply(e event.Event, b event.Replied) {
	switch {
	case !(b.Cost > 0) && b.Usage == llm.Usage{}:
		return
	case !sound(b.Usage):
		r.whole(e, bill{Cause{Kind: Unread}, b.Route, b.Usage, b.Cost})
		return
	case b.Stop == llm.StopRefusal:
		r.whole(e, bill{Cause{Kind: Retry, Name: "refused"}, b.Route, b.Usage, b.Cost})
		return
	case b.Stop == llm.StopCut:
		r.whole(e, bill{Cause{Kind: Retry, Name: "broke off"}, b.Route, b.Usage, b.Cost})
		return
	}
	g := r.group(e.Time, b.Route)
	g.row.add(b.Usage, Of(b.Cost), b.Unpriced)
	if r.sums {
		return
	}
	money := divide(Of(b.Cost), b.Usage, priceOf(b.Route, e.Time, b.Usage, b.Cost))
	r.spread(spreading{to: g, used: tokens(b.Usage), money: money, lost: max(0, r.last.had-b.Usage.CacheRead), why: r.missed(b)})

	thought := min(b.Usage.Reasoning, b.Usage.Output)
	cost := paid{thought, Money(portion(int(money[output]), thought, b.Usage.Output))}
	g.add(Cause{Kind: Reasoning}, output, cost)
	if b.Usage.Reasoning > 0 {
		g.part(Cause{Kind: Reasoning}).Usage.Reasoning += b.Usage.Reasoning
	}
	g.part(Cause{Kind: Output}).Bills++
	g.add(Cause{Kind: Output}, output, paid{b.Usage.Output - thought, money[output] - cost.money})
}

// spread distributes the tokens of a prompt over its parts.
func (r *Recorder) spread(s spreading) {
	p := &r.prompt
	all := s.used[cached] + s.used[written] + s.used[fresh]
	border, sent, added := p.border(all)
	at, seen := 0, 0
	for _, n := range p.sent {
		seen += n.size
		end := portion(border, seen, sent)
		s.over(n, at, end)
		at = end
	}
	seen = 0
	for _, l := range p.fresh {
		seen += l.size
		end := border + portion(all-border, seen, added)
		n := node{size: l.size, leaf: l}
		s.over(&n, at, end)
		n.settle()
		if all > 0 {
			l.size = max(end-at, 1)
		}
		at = end
	}
}

// missed returns the reason why the cache lacks what it held for the previous request.
func (r *Recorder) missed(b event.Replied) Cause {
	why := "not known"
	switch {
	case r.last.route != b.Route:
		why = "another model"
	case r.prompt.changed != "":
		why = r.prompt.changed
	case r.last.effort != r.state.Effort:
		why = "another effort"
	case r.asked.Sub(r.last.at) > cacheLife:
		why = "a pause"
	}
	return Cause{Kind: Miss, Name: why}
}

// summed records the text that a compaction has put in place of the conversation.
func (r *Recorder) summed() {
	for i, m := range r.state.Messages {
		if _, person := slices.BinarySearch(r.state.Person, i); m.Role != llm.User || person {
			continue
		}
		for _, part := range m.Parts {
			if t, is := part.(llm.Text); is && r.prompt.said[t.Text] == (Cause{}) {
				r.prompt.said[t.Text] = Cause{Kind: Summary}
			}
		}
	}
}

// Tallies returns the costs so far, by day and route, in no order.
func (r *Recorder) Tallies() []Tally {
	sent := r.prompt.settled()
	var out []Tally
	for k, g := range r.groups {
		t := Tally{Session: r.session, Parent: r.parent, Day: k.day, Route: k.route, All: g.row}
		tools := map[string]*Row{}
		for _, p := range g.parts {
			of := *p
			if of.Sent = sent[of.Cause]; of.Cause.Kind == Again {
				of.Sent = sent[of.Cause.first()]
			}
			t.Parts = append(t.Parts, of)
			name := p.Cause.tool()
			if tools[name] == nil {
				tools[name] = &Row{Key: name}
			}
			tools[name].merge(p.row())
		}
		for _, name := range slices.Sorted(maps.Keys(tools)) {
			t.Tools = append(t.Tools, *tools[name])
		}
		out = append(out, t)
	}
	return out
}

// back records the consumption that a child reports. The child's own log has its bills, so this only counts if
// that log is gone.
func (r *Recorder) back(e event.Event, b event.Returned) {
	row := Row{}
	row.add(b.Usage, Of(b.Cost), b.Unpriced)
	c := Cause{Kind: Child, Name: r.children[b.Child]}
	r.returned[b.Child] = append(r.returned[b.Child], Tally{
		Session: b.Child, Parent: r.session, Day: e.Time.UTC().Format(time.DateOnly), Route: byChild, All: row,
		Parts: []Part{{Cause: c, Usage: b.Usage, Dollars: Of(b.Cost), Bills: 1}},
	})
}
