package cost

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/llm"
)

// prompt is the content of the next request, part by part, with causes. Sizes are the estimates of
// [llm.Request.Tokens].
type prompt struct {
	said     map[string]Cause // of words that are not a person's, by text
	calls    map[string]Cause // of results, by call id
	shown    map[string]bool  // calls whose result was sent
	times    map[Cause]int    // requests that carried it, for parts that are gone
	sent     []*node          // parts of the last request, unchanged
	fresh    []*leaf          // new or changed parts
	before   map[leafKey]int  // parts of the last request, while the next one is rebuilt
	messages int              // messages of the conversation that parts were made of
	requests int              // so far
	built    bool             // the parts include system prompt and tools
	changed  string           // why the next request begins differently; empty if it doesn't
	tokens   int              // of the last request, if the vendor counted them and the next one continues it
	guesses  *guesses
}

// guesses are the sizes of texts at the beginning of many sessions, for all sessions of a report.
type guesses struct {
	mu    sync.Mutex
	sizes map[string]int
}

// of returns the size of a text, which count computes if it is new.
func (g *guesses) of(text string, count func() int) int {
	if g == nil {
		return count()
	}
	g.mu.Lock()
	size, known := g.sizes[text]
	g.mu.Unlock()
	if known {
		return size
	}
	size = count()
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.sizes) < mostGuesses {
		g.sizes[text] = size
	}
	return size
}

const mostGuesses = 1000

// leafKey identifies a part by its content.
type leafKey struct {
	cause Cause
	guess int
}

// heard records what an event adds to the prompt, before the state does.
func (p *prompt) heard(body event.Body, children map[string]string) {
	switch b := body.(type) {
	case event.Said:
		p.told(b.Parts, origin(b.Origin, b.By))
	case event.Steered:
		p.told(b.Parts, origin(b.Origin, b.By))
	case event.Added:
		if b.Where == event.PlaceTail {
			p.told(llm.Say(b.Text), source(b.Source, true))
		}
	case event.Hooked:
		p.told(llm.Say(b.Text), Cause{Kind: Hook, Name: b.By})
	case event.Judged:
		p.told(llm.Say(b.Text), Cause{Kind: Hook, Name: b.By})
	case event.Returned:
		p.told(b.Parts, Cause{Kind: Child, Name: children[b.Child]})
	case event.Ended:
		if name, is := strings.CutPrefix(b.Lasting, "skill "); is && !b.Again {
			p.calls[b.Call] = Cause{Kind: Skill, Name: name}
		}
	}
}

// told records the source of texts.
func (p *prompt) told(parts llm.Parts, by Cause) {
	for _, part := range parts {
		if t, is := part.(llm.Text); is && t.Text != "" {
			p.said[t.Text] = by
		}
	}
}

// origin returns the cause for words, by their source.
func origin(of event.Origin, who string) Cause {
	switch of {
	case event.OriginHook:
		return Cause{Kind: Hook, Name: who}
	case event.OriginAgent:
		return Cause{Kind: Child, Name: who}
	case event.OriginHarness:
		return Cause{Kind: Harness}
	}
	return Cause{Kind: Person} // including the output of a command that the person ran
}

// look updates the parts for the state's next request.
func (p *prompt) look(st *loop.State) {
	if !p.built {
		p.retire()
		for i, block := range st.System {
			from := ""
			if i < len(st.Sources) {
				from = st.Sources[i]
			}
			p.part(leaf{cause: source(from, false), guess: p.guesses.of(block, llm.Request{System: []string{block}}.Tokens)})
		}
		for i, t := range st.Tools {
			size := p.guesses.of(t.Name+"\x00"+t.Description+"\x00"+string(t.Schema), llm.Request{Tools: st.Tools[i : i+1]}.Tokens)
			p.part(leaf{cause: Cause{Kind: Spec, Name: t.Name}, guess: size})
		}
		p.built, p.messages = true, 0
	}
	for i, m := range st.Messages[min(p.messages, len(st.Messages)):] {
		_, person := slices.BinarySearch(st.Person, p.messages+i)
		p.message(m, person)
	}
	p.messages = len(st.Messages)
	if len(p.sent)+len(p.fresh) == 0 {
		p.part(leaf{cause: Cause{Kind: Unread}})
	}
}

// message makes the parts of a message.
func (p *prompt) message(m llm.Message, person bool) {
	if m.Role == llm.Assistant {
		p.part(leaf{cause: Cause{Kind: Earlier}, guess: m.Tokens()})
		return
	}
	for i, part := range m.Parts {
		l := leaf{cause: Cause{Kind: Harness}, guess: llm.Message{Parts: m.Parts[i : i+1]}.Tokens()}
		switch v := part.(type) {
		case llm.Text:
			if by, known := p.said[v.Text]; known {
				l.cause = by
			}
			if person {
				l.cause = Cause{Kind: Person}
			}
		case llm.Image:
			l.cause = Cause{Kind: Attached}
		case llm.Result:
			by, known := p.calls[v.CallID]
			if !known {
				by = Cause{Kind: Result, Name: v.Name}
			}
			l.cause, l.again = by, p.shown[v.CallID]
			p.shown[v.CallID] = true
		}
		p.part(l)
	}
}

// part appends a part.
func (p *prompt) part(l leaf) {
	l.size = max(l.guess, 1)
	if k := (leafKey{l.cause, l.guess}); p.before[k] > 0 {
		p.before[k]--
		l.sent = true
	}
	p.fresh = append(p.fresh, &l)
}

// border returns how many of a prompt's tokens belong to the parts that the previous request had: as many as it
// had, or else by size. sent and fresh are the sizes of those parts and of the others.
func (p *prompt) border(tokens int) (border, sent, fresh int) {
	for _, n := range p.sent {
		sent += n.size
	}
	for _, l := range p.fresh {
		fresh += l.size
	}
	if p.tokens > 0 && p.tokens <= tokens && sent > 0 && fresh > 0 {
		return p.tokens, sent, fresh
	}
	return portion(tokens, sent, sent+fresh), sent, fresh
}

// went records that the parts were sent.
func (p *prompt) went() {
	p.requests++
	for _, l := range p.fresh {
		l.first, l.sent = p.requests, true
		p.sent = joined(p.sent, l)
	}
	p.fresh, p.before, p.changed = nil, nil, ""
}

// retire removes all parts, so that they can be rebuilt.
func (p *prompt) retire() {
	p.times, p.before = p.settled(), map[leafKey]int{}
	for _, n := range p.sent {
		n.each(func(l *leaf) { p.before[leafKey{l.cause, l.guess}]++ })
	}
	p.sent, p.fresh = nil, nil
}

// settled charges all parts with their share, and returns how many requests have carried each.
func (p *prompt) settled() map[Cause]int {
	times := maps.Clone(p.times)
	for _, n := range p.sent {
		n.settle()
		n.each(func(l *leaf) { times[l.cause] += p.requests - l.first + 1 })
	}
	return times
}

// change records why the next request does not continue the last one. The first reason counts.
func (p *prompt) change(why string) {
	if p.changed == "" {
		p.changed = why
	}
	p.built, p.tokens = false, 0
}

// changes records the effect of an event on parts that were sent, before the state does.
func (p *prompt) changes(st *loop.State, body event.Body) {
	switch b := body.(type) {
	case event.Compacted:
		p.change("compaction")
	case event.Rewound:
		p.change("rewind")
	case event.Pruned:
		p.change("old results were cut short")
	case event.Healed:
		p.change("the conversation was simplified")
	case event.Added:
		if b.Where == event.PlaceSystem {
			p.change("the system prompt was changed")
		}
	case event.Switched:
		if b.Tools != nil && !reflect.DeepEqual(b.Tools, st.Tools) {
			p.change(toolsChanged(st.Tools, b.Tools))
		}
	}
}

// toolsChanged says how lists of tools differ.
func toolsChanged(before, now []llm.ToolSpec) string {
	lacks := func(list, of []llm.ToolSpec) (names []string) {
		for _, t := range of {
			if !slices.ContainsFunc(list, func(o llm.ToolSpec) bool { return o.Name == t.Name }) {
				names = append(names, t.Name)
			}
		}
		return names
	}
	came, gone := lacks(before, now), lacks(now, before)
	switch {
	case len(came) > 0:
		return fmt.Sprintf("the tools were changed: %s added", few(came))
	case len(gone) > 0:
		return fmt.Sprintf("the tools were changed: %s removed", few(gone))
	}
	return "the tools were changed"
}

func few(names []string) string {
	if len(names) > 3 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), len(names)-3)
	}
	return strings.Join(names, ", ")
}

// each yields the leaves of the node.
func (n *node) each(yield func(*leaf)) {
	if n.leaf != nil {
		yield(n.leaf)
		return
	}
	n.kids[0].each(yield)
	n.kids[1].each(yield)
}
