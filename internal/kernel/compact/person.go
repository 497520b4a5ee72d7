package compact

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/llm"
)

// The person's words stay as they are, each text at its last position. No model rewrites them and no word of
// them is examined: they are recognised by form and order alone. How much of a conversation stays depends on
// the room for the new one (Source.Room, three quarters of what a prompt may have):
//
//   - The end gets five twelfths, from the newest message back; as few as two if the person's own words need
//     more, and eight for a single message of the person. If the newest message, or the last calls with their
//     results, have more, they are cut in the middle, pasted text first.
//   - The person's messages before the end get what the end and the rest leave. The rest is a quarter, and the
//     person's messages have at least two twelfths. If those before the newest have more than these two, or
//     than keep, pasted text in the oldest becomes a note first; in the newest, only if not all words fit. Then
//     the longest are cut, their images first, though none below a quarter of this. What then has no room is
//     left out entirely and counted, the oldest first, except for the very first message, which is the task.
//
// The replacement for the rest has what is left: its lists are halved until it fits. So the new conversation
// has room, whatever a person says.
const (
	endPart    = 5
	leastEnd   = 2
	newestPart = 8 // together with the end
	personPart = 2
	listPart   = 1   // for lists by an earlier version
	leastRest  = 450 // tokens of the replacement, if there is room for so many
	minPerson  = 150 // tokens below which no message of the person is cut, if there is room for one
	maxLean    = 9   // how often the lists can be halved
	minCut     = 64  // tokens in which a text cut in the middle still says something
)

// twelfths returns a part of the room; unlimited if the room is unknown.
func (s Source) twelfths(n int) int {
	if s.Room == 0 {
		return math.MaxInt
	}
	return s.Room * n / 12
}

// Unshown counts messages of the person that are left out entirely, and names the events of the first and the
// last; 0 if unknown.
type Unshown struct {
	Messages    int
	First, Last uint64
}

// saying is a message of the person, with its event.
type saying struct {
	llm.Message
	event uint64
}

// words returns the tokens of a message without its images.
func (s Source) words(m llm.Message) int { return s.Count(m) - s.Count(pictures(m)) }

// event returns the event of the person's n-th message; 0 if unknown.
func (s Source) event(n int) uint64 {
	if n < len(s.Events) {
		return s.Events[n]
	}
	return 0
}

// keepPerson keeps the person's messages before the end.
func (p *Plan) keepPerson() {
	said := p.saidBefore()
	room := p.personRoom()
	last, all := len(said)-1, 0 // all words, without images
	for _, m := range said {
		all += p.src.words(m.Message)
	}
	for i, m := range said {
		size := p.src.words(m.Message)
		enough := i < last && all-p.src.words(said[last].Message) <= min(p.keep, p.src.twelfths(personPart))
		if enough || i == last && all <= room && size <= newestShare(room) {
			continue
		}
		said[i].Message = p.src.at(m.event).withoutPastes(m.Message, 0)
		all += p.src.words(said[i].Message) - size
	}
	sizes := make([]int, len(said))
	for i, m := range said {
		sizes[i] = p.src.Count(m.Message)
	}
	for i, limit := range limits(sizes, room) {
		switch {
		case limit < 0:
			p.leaveOut(said[i].event)
			continue
		case sizes[i] > limit:
			said[i].Message = p.src.at(said[i].event).cut(said[i].Message, limit)
		}
		p.kept = append(p.kept, said[i])
	}
}

// saidBefore returns the person's messages before the end, except for those whose exact words are repeated
// later.
func (p Plan) saidBefore() []saying {
	var out []saying
	again := map[string]bool{}
	for n, i := range slices.Backward(p.src.Person) {
		m := p.src.Messages[i]
		if i < p.From || p.loose {
			m = llm.Message{Role: llm.User, Parts: own(m.Parts)}
			if words := text.Flat(m.Parts.Text()); len(m.Parts) > 0 && (m.Parts.Images() > 0 || !again[words]) {
				out = append(out, saying{m, p.src.event(n)})
			}
		}
		again[text.Flat(m.Parts.Text())] = true
	}
	slices.Reverse(out)
	return out
}

// personRoom is how many tokens they may have.
func (p Plan) personRoom() int {
	if p.src.Room == 0 {
		return max(p.keep*3/2, 2*minPerson)
	}
	return max(p.src.twelfths(personPart), p.src.Room-p.src.total(p.end)-p.restRoom())
}

// restRoom is how many tokens the replacement may have at least.
func (p Plan) restRoom() int { return max(p.src.Room/4, leastRest) }

// endRoom is how many tokens the end may have.
func (p Plan) endRoom() int {
	most := p.src.twelfths(endPart)
	if p.src.Room == 0 {
		return most
	}
	need := 0
	for _, i := range p.src.Person {
		if i < len(p.src.Messages)-1 {
			need += p.src.words(p.src.withoutPastes(p.src.Messages[i], 0))
		}
	}
	return max(p.src.twelfths(leastEnd), min(most, p.src.Room-p.restRoom()-need))
}

// leaveOut counts a message of the person that has no room.
func (p *Plan) leaveOut(event uint64) {
	u := &p.Unshown
	if u.Messages++; u.First == 0 || event < u.First {
		u.First = event
	}
	u.Last = max(u.Last, event)
}

// newestShare is what the person's newest message may have in any case.
func newestShare(room int) int { return room * 3 / 4 }

// limits returns how many tokens each of the person's messages may have, of so many together; -1 for those that
// are left out.
func limits(sizes []int, room int) []int {
	if len(sizes) == 0 {
		return nil
	}
	last, others := len(sizes)-1, 0
	for _, size := range sizes[:last] {
		others += size
	}
	newest := max(newestShare(room), room-others)
	rest := room - min(sizes[last], newest)
	least := min(max(minPerson, room/4), rest)
	for from := min(1, last); ; from++ {
		standing := slices.Concat(sizes[:min(1, last)], sizes[from:last])
		limit := share(standing, rest)
		if from < last && limit < least && limit < slices.Max(standing) {
			continue
		}
		limits := slices.Repeat([]int{limit}, len(sizes))
		for i := 1; i < from; i++ {
			limits[i] = -1
		}
		limits[last] = newest
		return limits
	}
}

// keepEnd keeps the end, cut if it exceeds its part.
func (p *Plan) keepEnd(most int) {
	whole := p.src.Messages[p.From:]
	if p.src.person(len(p.src.Messages) - 1) {
		most = p.src.twelfths(newestPart)
	}
	p.end = whole
	for each := most; p.src.total(p.end) > most && each >= minPaste; each = each * 3 / 4 {
		p.end = p.endWithoutPastes(each)
	}
	whole = p.end
	for limit := most; p.src.total(p.end) > most && limit >= minCut; limit = limit * 3 / 4 {
		p.end = p.cutEnd(whole, limit)
	}
	if p.loose = p.src.total(p.end) > most; p.loose {
		p.end = p.told(most)
		return
	}
	for i := range whole {
		if p.src.person(p.From + i) {
			p.person = append(p.person, i)
		}
	}
}

// endWithoutPastes returns the end with only the ends of pasted text.
func (p Plan) endWithoutPastes(each int) []llm.Message {
	out := slices.Clone(p.src.Messages[p.From:])
	for n, i := range p.src.Person {
		if i >= p.From {
			out[i-p.From] = p.src.at(p.src.event(n)).withoutPastes(out[i-p.From], each)
		}
	}
	return out
}

// cutEnd cuts the largest messages so that all have about limit tokens.
func (p Plan) cutEnd(messages []llm.Message, limit int) []llm.Message {
	sizes := make([]int, len(messages))
	for i, m := range messages {
		sizes[i] = p.src.Count(m)
	}
	most := share(sizes, limit)
	out := slices.Clone(messages)
	for i, m := range out {
		if sizes[i] > most {
			n, _ := slices.BinarySearch(p.src.Person, p.From+i)
			src := p.src
			if p.src.person(p.From + i) {
				src = src.at(src.event(n))
			}
			out[i] = src.cut(m, most)
		}
	}
	return out
}

// toldTop is above calls that are written out as text.
const toldTop = "[The last calls and their results were too long to be kept in their form. This is what they were, cut in the middle.]\n"

// told writes out messages that can't be cut in their form, such as calls with endless arguments. The person's
// messages are not among them.
func (p Plan) told(most int) []llm.Message {
	var b strings.Builder
	for i, m := range p.src.Messages[p.From:] {
		if !p.src.person(p.From + i) {
			b.WriteString(p.transcript(m, false, most))
		}
	}
	text := toldTop + p.src.clip(b.String(), most-p.src.tokens(toldTop))
	return []llm.Message{{Role: llm.User, Parts: llm.Say(text)}}
}

// fit makes the replacement as short as necessary, with some room for a record.
func (p *Plan) fit() {
	for p.lean = 0; p.lean < maxLean && p.src.Room > 0 && p.left() < min(minRoom, p.src.twelfths(1)); {
		p.lean++
	}
}

// left is how many tokens there are for a record, if the room is known.
func (p Plan) left() int {
	left := p.src.Room - p.src.total(p.end) - p.src.Count(p.state(Summary{}))
	for _, m := range p.kept {
		left -= p.src.Count(m.Message)
	}
	return left
}

// room returns how many tokens a record may have.
func (p Plan) room() int {
	room := min((p.Replaced-p.src.Count(p.state(Summary{})))/2, maxRoom)
	if p.src.Room == 0 {
		return room
	}
	return min(max(room, minRecord), max(p.left(), 0)+p.src.tokens(Summary{}.Text()))
}

// minRecord is how many tokens a record needs to say anything.
const minRecord = 120

// clipped returns a summary cut to its room.
func (p Plan) clipped(s Summary) Summary {
	over := p.src.tokens(s.Text()) - p.Room
	if p.src.Room == 0 || over <= 0 {
		return s
	}
	var sizes []int
	all := 0
	for _, sec := range s.sections() {
		sizes = append(sizes, p.src.tokens(*sec.text))
		all += sizes[len(sizes)-1]
	}
	most := share(sizes, max(all-over, 0))
	for _, sec := range s.sections() {
		if size := p.src.tokens(*sec.text); size > most && most < minCut { // the note about the gap would be too long
			*sec.text = line(*sec.text, len(*sec.text)*most/size)
		}
		*sec.text = p.src.clip(*sec.text, most)
	}
	return s
}

// answers lists the person's answers to calls whose results are gone.
func (p Plan) answers() string {
	var list []string
	for _, a := range p.src.Carry.Answers {
		if !p.stays(a.Call) {
			said := strings.ReplaceAll(plain(p.src.at(a.Event).clip(a.Text, minPerson)), "\n", "\n  ")
			list = append(list, fmt.Sprintf("- event %d, to %q: %s\n", a.Event, line(a.To, 200), said))
		}
	}
	shown := newest(list, p.src.twelfths(listPart)>>(p.lean/3), p.src.tokens)
	if len(list) == 0 {
		return ""
	}
	if n := len(list) - len(shown); n > 0 {
		shown = append([]string{fmt.Sprintf("- and %d before these, which the log has\n", n)}, shown...)
	}
	return answersTop + "\n" + strings.Join(shown, "")
}

// says describes where the person's words are, and how many are left out.
func (p Plan) says() string {
	var b strings.Builder
	var events []string
	for _, m := range p.kept {
		if m.event > 0 {
			events = append(events, fmt.Sprint(m.event))
		}
	}
	if n := len(events) - maxNamed>>p.lean; n > 0 {
		events = append([]string{fmt.Sprintf("%d before these", n)}, events[n:]...)
	}
	if len(events) > 0 {
		fmt.Fprintf(&b, "Those above are, in their order, these events of the log: %s.\n", strings.Join(events, ", "))
	}
	if u := p.Unshown; u.Messages > 0 {
		fmt.Fprintf(&b, "Left out whole for want of room: %d.", u.Messages)
		if u.Last > 0 {
			fmt.Fprintf(&b, " The first is event %d, the last event %d.", u.First, u.Last)
		}
		if p.src.History {
			b.WriteString(" Give history who \"person\", at one of these and around to see them.")
		}
		b.WriteString("\n")
	}
	b.WriteString(p.answers())
	if list := newest(p.before.older, p.src.twelfths(listPart)>>p.lean, p.src.tokens); len(list) > 0 {
		b.WriteString(olderTop + "\n")
		for _, l := range list {
			b.WriteString("- " + plain(line(l, 1000)) + "\n")
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}
