package compact

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/llm"
)

// The person's words stay as they are, each text at its last position. No model rewrites them, and inspan looks at
// their form and order only, never at the words. The room for the new conversation (Source.Room, three quarters of
// what a prompt may have) is divided like this:
//
//   - The end gets five twelfths, counted back from the newest message. It gets as few as two if the person's own
//     words need more, and eight if it is a single message of the person. If the newest message, or the last calls
//     with their results, are longer, they are cut in the middle, pasted text first.
//   - The replacement for the removed part gets at least a quarter.
//   - The person's messages before the end get the remaining room, at least two twelfths. If all but the newest of
//     them exceed these two twelfths, or keep, pasted text in the oldest becomes a note first; in the newest only if
//     the words of all don't fit. Then the longest are cut, images first, but none below a quarter of this room.
//     Messages that still don't fit are left out entirely and counted, the oldest first. The very first message
//     always stays, because it is the task.
//
// The lists in the replacement are halved until it fits, so the new conversation fits whatever the person says.
const (
	endPart    = 5
	leastEnd   = 2
	newestPart = 8 // together with the end
	personPart = 2
	listPart   = 1   // for lists of earlier versions
	leastRest  = 450 // tokens of the replacement, if there is room for so many
	minPerson  = 150 // no message of the person is cut below this many tokens, if one has room
	maxLean    = 9   // how often the lists can be halved
	minCut     = 64  // tokens of the shortest useful text that is cut in the middle
)

// twelfths returns a part of the room; unlimited if the room is unknown.
func (s Source) twelfths(n int) int {
	if s.Room == 0 {
		return math.MaxInt
	}
	return s.Room * n / 12
}

// personMessage is a message of the person with its event.
type personMessage struct {
	llm.Message
	event uint64
}

// tokensWithoutImages returns the tokens of a message without its images.
func (s Source) tokensWithoutImages(m llm.Message) int { return s.Count(m) - s.Count(onlyImages(m)) }

// personEvent returns the event of the person's n-th message; 0 if unknown.
func (s Source) personEvent(n int) uint64 {
	if n < len(s.Events) {
		return s.Events[n]
	}
	return 0
}

// keepPersonMessages keeps the person's messages before the end.
func (p *Plan) keepPersonMessages() {
	said := p.personBeforeEnd()
	room := p.personRoom()
	last, all := len(said)-1, 0 // all words, without images
	for _, m := range said {
		all += p.src.tokensWithoutImages(m.Message)
	}
	for i, m := range said {
		size := p.src.tokensWithoutImages(m.Message)
		enough := i < last && all-p.src.tokensWithoutImages(said[last].Message) <= min(p.keep, p.src.twelfths(personPart))
		if enough || i == last && all <= room && size <= newestShare(room) {
			continue
		}
		said[i].Message = p.src.withEvent(m.event).withoutPastes(m.Message, 0)
		all += p.src.tokensWithoutImages(said[i].Message) - size
	}
	sizes := make([]int, len(said))
	for i, m := range said {
		sizes[i] = p.src.Count(m.Message)
	}
	for i, limit := range divideRoom(sizes, room) {
		switch {
		case limit < 0:
			p.leaveOut(said[i].event)
			continue
		case sizes[i] > limit:
			said[i].Message = p.src.withEvent(said[i].event).cutMessage(said[i].Message, limit)
		}
		p.kept = append(p.kept, said[i])
	}
}

// personBeforeEnd returns the person's messages before the end, except those that the person repeats word for word
// later.
func (p Plan) personBeforeEnd() []personMessage {
	var out []personMessage
	again := map[string]bool{}
	for n, i := range slices.Backward(p.src.Person) {
		m := p.src.Messages[i]
		if i < p.From || p.flattened {
			m = llm.Message{Role: llm.User, Parts: personParts(m.Parts)}
			if words := text.Flat(m.Parts.Text()); len(m.Parts) > 0 && (m.Parts.Images() > 0 || !again[words]) {
				out = append(out, personMessage{m, p.src.personEvent(n)})
			}
		}
		again[text.Flat(m.Parts.Text())] = true
	}
	slices.Reverse(out)
	return out
}

// personRoom returns how many tokens the person's messages before the end may have.
func (p Plan) personRoom() int {
	if p.src.Room == 0 {
		return max(p.keep*3/2, 2*minPerson)
	}
	return max(p.src.twelfths(personPart), p.src.Room-p.src.totalTokens(p.end)-p.restRoom())
}

// restRoom returns how many tokens the replacement may have at least.
func (p Plan) restRoom() int { return max(p.src.Room/4, leastRest) }

// endRoom returns how many tokens the end may have.
func (p Plan) endRoom() int {
	most := p.src.twelfths(endPart)
	if p.src.Room == 0 {
		return most
	}
	need := 0
	for _, i := range p.src.Person {
		if i < len(p.src.Messages)-1 {
			need += p.src.tokensWithoutImages(p.src.withoutPastes(p.src.Messages[i], 0))
		}
	}
	return max(p.src.twelfths(leastEnd), min(most, p.src.Room-p.restRoom()-need))
}

// leaveOut counts a message of the person that does not fit.
func (p *Plan) leaveOut(event uint64) {
	u := &p.Unshown
	if u.Messages++; u.First == 0 || event < u.First {
		u.First = event
	}
	u.Last = max(u.Last, event)
}

// newestShare returns how many tokens the person's newest message may always have.
func newestShare(room int) int { return room * 3 / 4 }

// divideRoom divides room among the person's messages and returns the limit of each in tokens; -1 for messages that
// are left out.
func divideRoom(sizes []int, room int) []int {
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
		limit := fairShare(standing, rest)
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

// keepEnd keeps the end, and cuts it if it has more than most tokens.
func (p *Plan) keepEnd(most int) {
	whole := p.src.Messages[p.From:]
	if p.src.isPerson(len(p.src.Messages) - 1) {
		most = p.src.twelfths(newestPart)
	}
	p.end = whole
	for each := most; p.src.totalTokens(p.end) > most && each >= minPaste; each = each * 3 / 4 {
		p.end = p.endWithoutPastes(each)
	}
	whole = p.end
	for limit := most; p.src.totalTokens(p.end) > most && limit >= minCut; limit = limit * 3 / 4 {
		p.end = p.cutEnd(whole, limit)
	}
	if p.flattened = p.src.totalTokens(p.end) > most; p.flattened {
		p.end = p.flattenEnd(most)
		return
	}
	for i := range whole {
		if p.src.isPerson(p.From + i) {
			p.personInEnd = append(p.personInEnd, i)
		}
	}
}

// endWithoutPastes returns the end with each paste cut to about each tokens.
func (p Plan) endWithoutPastes(each int) []llm.Message {
	out := slices.Clone(p.src.Messages[p.From:])
	for n, i := range p.src.Person {
		if i >= p.From {
			out[i-p.From] = p.src.withEvent(p.src.personEvent(n)).withoutPastes(out[i-p.From], each)
		}
	}
	return out
}

// cutEnd cuts the largest messages so that all of them together have about limit tokens.
func (p Plan) cutEnd(messages []llm.Message, limit int) []llm.Message {
	sizes := make([]int, len(messages))
	for i, m := range messages {
		sizes[i] = p.src.Count(m)
	}
	most := fairShare(sizes, limit)
	out := slices.Clone(messages)
	for i, m := range out {
		if sizes[i] > most {
			n, _ := slices.BinarySearch(p.src.Person, p.From+i)
			src := p.src
			if p.src.isPerson(p.From + i) {
				src = src.withEvent(src.personEvent(n))
			}
			out[i] = src.cutMessage(m, most)
		}
	}
	return out
}

// flattenedTop precedes calls that are written out as text.
const flattenedTop = "[The last calls and their results were too long to keep in their own form. Here they are as text, cut in the middle.]\n"

// flattenEnd writes the end as text, without the person's messages. It is for messages that can't be cut in their own
// form, such as calls with endless arguments.
func (p Plan) flattenEnd(most int) []llm.Message {
	var b strings.Builder
	for i, m := range p.src.Messages[p.From:] {
		if !p.src.isPerson(p.From + i) {
			b.WriteString(p.transcript(m, false, most))
		}
	}
	text := flattenedTop + p.src.clip(b.String(), most-p.src.tokens(flattenedTop))
	return []llm.Message{{Role: llm.User, Parts: llm.Say(text)}}
}

// fitReplacement halves the lists in the replacement until it leaves some room for a record.
func (p *Plan) fitReplacement() {
	for p.halvings = 0; p.halvings < maxLean && p.src.Room > 0 && p.recordRoom() < min(minRoom, p.src.twelfths(1)); {
		p.halvings++
	}
}

// recordRoom returns how many tokens are left for a record, if the room is known.
func (p Plan) recordRoom() int {
	left := p.src.Room - p.src.totalTokens(p.end) - p.src.Count(p.stateMessage(Summary{}))
	for _, m := range p.kept {
		left -= p.src.Count(m.Message)
	}
	return left
}

// maxRecord returns how many tokens a record may have.
func (p Plan) maxRecord() int {
	room := min((p.Replaced-p.src.Count(p.stateMessage(Summary{})))/2, maxRoom)
	if p.src.Room == 0 {
		return room
	}
	return min(max(room, minRecord), max(p.recordRoom(), 0)+p.src.tokens(Summary{}.Text()))
}

// minRecord is the number of tokens that a record needs to say anything.
const minRecord = 120

// clipSummary returns a summary whose sections are cut to fit into p.Room.
func (p Plan) clipSummary(s Summary) Summary {
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
	most := fairShare(sizes, max(all-over, 0))
	for _, sec := range s.sections() {
		if size := p.src.tokens(*sec.text); size > most && most < minCut { // the note about the gap would be too long
			*sec.text = oneLine(*sec.text, len(*sec.text)*most/size)
		}
		*sec.text = p.src.clip(*sec.text, most)
	}
	return s
}

// answersText lists the person's answers to calls whose results were removed.
func (p Plan) answersText() string {
	var list []string
	for _, a := range p.src.Carry.Answers {
		if !p.keepsResult(a.Call) {
			said := strings.ReplaceAll(cleanOrNone(p.src.withEvent(a.Seq).clip(a.Text, minPerson)), "\n", "\n  ")
			list = append(list, fmt.Sprintf("- event %d, to %q: %s\n", a.Seq, oneLine(a.To, 200), said))
		}
	}
	shown := lastFitting(list, p.src.twelfths(listPart)>>(p.halvings/3), p.src.tokens)
	if len(list) == 0 {
		return ""
	}
	if n := len(list) - len(shown); n > 0 {
		shown = append([]string{fmt.Sprintf("- and %d before these, which are in the log\n", n)}, shown...)
	}
	return answersTop + "\n" + strings.Join(shown, "")
}

// personText says which events the person's messages are, and how many messages are left out.
func (p Plan) personText() string {
	var b strings.Builder
	var events []string
	for _, m := range p.kept {
		if m.event > 0 {
			events = append(events, fmt.Sprint(m.event))
		}
	}
	maxEvents := maxNamed >> p.halvings
	if n := len(events) - maxEvents; n > 0 {
		events = append([]string{fmt.Sprintf("%d before these", n)}, events[n:]...)
	}
	if len(events) > 0 {
		fmt.Fprintf(&b, "Their messages above are these events of the log, in order: %s.\n", strings.Join(events, ", "))
	}
	if u := p.Unshown; u.Messages > 0 {
		fmt.Fprintf(&b, "Messages left out for lack of room: %d.", u.Messages)
		if u.Last > 0 {
			fmt.Fprintf(&b, " The first is event %d, the last is event %d.", u.First, u.Last)
		}
		if p.src.History {
			b.WriteString(" To see them, call history with who \"person\", at one of these events, and around.")
		}
		b.WriteString("\n")
	}
	b.WriteString(p.answersText())
	if list := lastFitting(p.previous.olderWords, p.src.twelfths(listPart)>>p.halvings, p.src.tokens); len(list) > 0 {
		b.WriteString(olderTop + "\n")
		for _, l := range list {
			b.WriteString("- " + cleanOrNone(oneLine(l, 1000)) + "\n")
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}
