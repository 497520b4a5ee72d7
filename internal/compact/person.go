package compact

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/inspan/inspan/llm"
)

// How much of a conversation stays as it is, in twelfths of the room for the
// new one (Source.Room, three quarters of what a prompt may have):
//
//   - Five for the end, from the newest message back; eight for one message of the
//     person alone. Where the newest message, or the last calls with their results,
//     have more, they are cut in the middle.
//   - Two, an eighth of the prompt, for the person's messages before it, and never
//     more than keep. The newest of them may have what the end and it together
//     leave of eight. The longest are cut, their images first, though none below a
//     quarter of this. What then has no room is listed by what it demands, the
//     oldest first, but for the very first message, which is the task.
//   - One for that list. What demands least goes first, the oldest before others;
//     a line says how many are gone and where they are.
//
// What stands for the rest has what is left: its lists are halved until it fits.
// So whatever a person says, the new conversation has room.
const (
	endPart    = 5
	newestPart = 8 // with the end
	personPart = 2
	listPart   = 1
	minPerson  = 150 // tokens below which no message of the person is cut, if there is room for one
	maxLean    = 9   // times that the lists can be halved
	minCut     = 64  // tokens in which something can be told and cut in its middle
)

// twelfths are a part of the room; no end where nobody knows that.
func (s Source) twelfths(n int) int {
	if s.Room == 0 {
		return math.MaxInt
	}
	return s.Room * n / 12
}

// keepPerson takes over the person's messages from before the end.
func (p *Plan) keepPerson() {
	var said []llm.Message
	var sizes []int
	for i, m := range p.src.Messages[:p.From] {
		if parts := own(m.Parts); p.src.person(i) && len(parts) > 0 {
			said = append(said, llm.Message{Role: llm.User, Parts: parts})
			sizes = append(sizes, p.src.Count(said[len(said)-1]))
		}
	}
	later := p.said
	p.said = nil
	for i, limit := range p.limits(sizes) {
		short := said[i]
		switch {
		case limit < 0:
			short.Parts = nil
			p.listed++
		case sizes[i] > limit:
			short = p.src.cut(said[i], limit)
		}
		if limit >= 0 {
			p.kept = append(p.kept, short)
		}
		if limit < sizes[i] {
			p.said = append(p.said, p.words.lost(said[i].Parts.Text(), short.Parts.Text())...)
		}
	}
	p.said = append(p.said, later...)
}

// limits returns how many tokens each of the person's messages may have; -1 for
// those that are listed.
func (p Plan) limits(sizes []int) []int {
	if len(sizes) == 0 {
		return nil
	}
	newest := max(p.keep, 2*minPerson)
	most := min(newest, p.src.twelfths(personPart))
	if p.src.Room > 0 {
		newest = max(p.src.twelfths(newestPart)-p.src.total(p.end), most/4)
	}
	last := len(sizes) - 1
	rest := max(most-min(sizes[last], newest), most/2)
	least := min(max(minPerson, most/4), rest)
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

// keepEnd takes over the end, cut if it is larger than its part.
func (p *Plan) keepEnd() {
	whole, most := p.src.Messages[p.From:], p.src.twelfths(endPart)
	if p.src.person(len(p.src.Messages) - 1) {
		most = p.src.twelfths(newestPart)
	}
	p.end = whole
	limit := most
	for ; p.src.total(p.end) > most && limit >= minCut; limit = limit * 3 / 4 {
		p.end = p.src.cutAll(whole, limit)
	}
	formed := p.src.total(p.end) <= most
	if !formed {
		p.end = p.told(whole, most)
	}
	for i, m := range whole {
		switch {
		case !p.src.person(p.From + i):
		case !formed:
			p.listed++
			p.said = append(p.said, p.words.constraints(m.Parts.Text())...)
		default:
			p.person = append(p.person, i)
			if limit < most {
				p.said = append(p.said, p.words.lost(m.Parts.Text(), p.end[i].Parts.Text())...)
			}
		}
	}
}

// cutAll cuts the largest messages so that all have about limit tokens.
func (s Source) cutAll(messages []llm.Message, limit int) []llm.Message {
	sizes := make([]int, len(messages))
	for i, m := range messages {
		sizes[i] = s.Count(m)
	}
	most := share(sizes, limit)
	out := slices.Clone(messages)
	for i, m := range out {
		if sizes[i] > most {
			out[i] = s.cut(m, most)
		}
	}
	return out
}

// toldTop stands above calls that are written down.
const toldTop = "[The last calls and their results were too long to be kept in their form. This is what they were, cut in the middle.]\n"

// told writes down messages that can't be cut in their form, such as calls with
// endless arguments.
func (p Plan) told(messages []llm.Message, most int) []llm.Message {
	var b strings.Builder
	for i, m := range messages {
		b.WriteString(p.transcript(m, p.src.person(p.From+i), most))
	}
	text := toldTop + p.src.clip(b.String(), most-p.src.tokens(toldTop))
	return []llm.Message{{Role: llm.User, Parts: llm.Say(text)}}
}

// fit makes what stands for the rest as short as it must be, with some room for
// a record.
func (p *Plan) fit() {
	demands := distinctBy(p.said, func(t string) string { return strings.ToLower(strings.TrimRight(t, ".!;。！； ")) })
	before := p.unsaid
	for p.lean = 0; ; p.lean++ {
		p.said = p.weightiest(demands, min(p.keep, p.src.twelfths(listPart))>>(p.lean/3))
		p.unsaid = before + len(demands) - len(p.said)
		if p.lean == maxLean || p.src.Room == 0 || p.left() >= min(minRoom, p.src.twelfths(1)) {
			return
		}
	}
}

// left is how many tokens there are for a record, where the room is known.
func (p Plan) left() int {
	return p.src.Room - p.src.total(p.kept) - p.src.total(p.end) - p.src.Count(p.state(Summary{}))
}

// weightiest returns the demands that tell most, at most so many tokens of them,
// in their order.
func (p Plan) weightiest(demands []string, most int) []string {
	size := 0
	at := make([]int, len(demands)) // those that tell least first
	for i, d := range demands {
		at[i] = i
		size += p.src.tokens("- " + d + "\n")
	}
	slices.SortStableFunc(at, func(a, b int) int { return cmp.Compare(p.words.weight(demands[a]), p.words.weight(demands[b])) })
	for len(at) > 0 && size > most {
		size -= p.src.tokens("- " + demands[at[0]] + "\n")
		at = at[1:]
	}
	slices.Sort(at)
	out := make([]string, len(at))
	for i, n := range at {
		out[i] = demands[n]
	}
	return out
}

// room returns how many tokens a record may have.
func (p Plan) room() int {
	room := min((p.Replaced-p.src.Count(p.state(Summary{})))/2, maxRoom)
	if p.src.Room == 0 {
		return room
	}
	return min(max(room, minRecord), max(p.left(), 0)+p.src.tokens(Summary{}.Text()))
}

// minRecord are tokens in which a record can say anything.
const minRecord = 120

// clipped is a summary that has no more than its room, where there is no more.
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
		if size := p.src.tokens(*sec.text); size > most && most < minCut { // the note on what is gone would be too long
			*sec.text = line(*sec.text, len(*sec.text)*most/size)
		}
		*sec.text = p.src.clip(*sec.text, most)
	}
	return s
}
