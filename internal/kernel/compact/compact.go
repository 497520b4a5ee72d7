// Package compact shortens a long conversation. The end of the conversation and the person's words stay as they
// are. The rest is replaced by a record that a model writes and that is checked against what the log proves.
// See person.go for how much of each stays.
//
// The package is pure. The driver sends the requests:
//
//	p, ok := Split(src, 20_000)
//	req := p.Request(system, tools, "")
//	for range 2 {
//		answer := ... // the text of the reply; break if there is none
//		s, missing := p.Read(answer)
//		if len(missing) == 0 {
//			return p.Build(s)
//		}
//		req = p.Repair(req, answer, missing)
//	}
//	return p.Build(p.Extract())
//
// # How a conversation stays within the window
//
//  1. The size of the next prompt is the vendor's last count plus an estimate of the new part. Past errors
//     correct the estimate (loop.State.Tokens).
//  2. Old results of calls go first. Next says Prune if cutting a batch of them avoids a compaction, or if no
//     cache is left to lose (pruned). Each cut costs the prompt cache from there on. A result that the model
//     still sees from an identical call is not repeated (State.Again).
//  3. Results of background agents and messages of other agents may take half of the free room; the rest is
//     for work. A line lists the first of the rest, which come later, at the latest before the run ends
//     (arrivals.go).
//  4. Next says Compact in three cases: the prompt would use the reserve (event.Window), the vendor rejects it
//     as too long, or someone asked (compact). If only some models may see the conversation, the largest
//     window among them counts (routed names it).
//  5. compact.Split decides what stays: the end, and the person's messages by the rule at the top of
//     internal/kernel/compact/person.go, which looks at their form and order and not at words. Each keeps the
//     event it was said in (loop.State.Events). The model writes a record of the rest. That request begins
//     with the same bytes as the last one, so the cache serves it. inspan drops what the record says about
//     wishes.
//  6. The task, the to-do list, changed files and the commands that failed, with the checks and errors they
//     named, come from the fold (loop.Work). inspan checks the record against it and asks once more for
//     missing facts. If that fails too, it writes the record from the log without a model.
//  7. compacted holds the whole state, so a session opens from its last one. If someone sent an input
//     meanwhile, the log rejects it (event.ErrGrown), and the driver makes it again. If the model is
//     unavailable, the driver stores kept, and the conversation stays until the vendor rejects it. The next
//     try for the window alone waits 2 turns, then 4, 8 and 16. Meanwhile, and when the vendor rejects the
//     prompt, old results are cut even if that saves little.
//
// rewound works in the same way: it holds the state of an earlier event. internal/world/snapshot restores the
// files first, from the checkpoints around later calls, and restored records that. Both can be undone, because
// both are only events.
package compact

import (
	"slices"
	"strings"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

const (
	minFresh = 1000   // tokens that must not have been through a compaction
	minRoom  = 400    // tokens: with less, nothing would be gained
	maxRoom  = 12_000 // tokens of the longest accepted record
	maxAsked = 6000   // tokens of the requested record, and of an extract
)

// Source is a conversation and what its log proves. It is only read.
type Source struct {
	Messages []llm.Message
	Person   []int    // indexes of messages in a person's own words, ascending
	Events   []uint64 // events in which these were said, one for each; 0 or none if unknown
	Unshown  Unshown  // by earlier compactions
	Facts    Facts    // of the whole session, including the time before earlier compactions
	Carry    Carry
	History  bool // the model has the tool that searches the log
	// Room is how many tokens the new conversation may have. If 0, it is unknown, and keep alone decides.
	Room int
	// Count returns the approximate tokens of a message. It must grow with the text. If nil, it is
	// [llm.Message.Tokens].
	Count func(llm.Message) int

	said uint64 // event of the present message; 0 if unknown
}

// at returns the source with the event of the present message.
func (s Source) at(event uint64) Source {
	s.said = event
	return s
}

// Facts are proven by the log.
type Facts struct {
	Changed []string // changed files in the form for people, each once, the oldest first
	Test    *Test    // the last run of tests; nil if unknown
	Failed  []Run    // commands that failed when last run, the oldest first
}

// Run is a command that was run.
type Run struct {
	Command string
	Detail  string // the most telling lines; may be empty
}

// Test is a run of tests.
type Test struct {
	Run
	Passed bool
}

// Carry continues unchanged, without passing through a model.
type Carry struct {
	Goal    string
	Todo    []Item
	Pending []string  // what waits for someone
	Mode    tool.Mode // permission mode
	Granted []string  // rules that a person allowed for the session
	Answers []Answer  // the person's answers to calls, the oldest first
	// Lasting are texts that the model works by, the oldest first.
	Lasting []Lasting
}

// Lasting is a text that the model works by.
type Lasting struct {
	Name string
	Call string // call that brought it; if its result stays, the text is not repeated
	Text string
}

// Answer is a person's answer to a question of a call.
type Answer struct {
	Call  string // if its result stays, the answer is not repeated
	To    string // the question
	Text  string // the result of the call
	Event uint64 // of the log
}

// Item is an entry of the to-do list.
type Item struct{ Text, Status string }

// Plan says what of a conversation stays and what a record replaces. It is made by [Split], and safe for
// concurrent use if Source.Count is.
type Plan struct {
	From     int     // index of the first message that stays, with all that follow
	Replaced int     // tokens that the record replaces
	Room     int     // tokens that a record may have
	Unshown  Unshown // including those of earlier compactions

	src    Source
	keep   int // see Split
	words  *lexicon
	kept   []saying      // the person's messages before the end
	end    []llm.Message // the messages from From on, only cut if they exceed their part of the room
	loose  bool          // the end could not keep its form, and has no message of the person
	person []int         // indexes of the person's messages in end
	lean   int           // how often the lists in the replacement are halved
	before built         // what the previous compaction has built
	gone   harvest       // content of the replaced messages
	names  []string      // names and numbers in the last answers among these
}

// Split decides what stays: at least the last keep tokens, in whole messages and with each result next to its
// call, and the person's messages before them, as described in person.go. It returns false if there is too
// little to replace, unless the conversation has more tokens than there is room for.
func Split(src Source, keep int) (p Plan, ok bool) {
	if src.Count == nil {
		src.Count = llm.Message.Tokens
	}
	keep = max(keep, 1)
	p = Plan{src: src, keep: keep, Unshown: src.Unshown, words: newLexicon()}
	most := p.endRoom()
	p.From = tail(src, keep, most)
	p.keepEnd(most)
	p.keepPerson()
	p.Replaced = src.total(src.Messages) - src.total(p.end)
	for _, m := range p.kept {
		p.Replaced -= src.Count(m.Message)
	}
	fresh := p.Replaced - p.readOld()
	p.fit()
	p.gone = p.harvest()
	stands := p.stands()
	p.names = slices.DeleteFunc(p.words.distinctLiterals(strings.Join(p.gone.answers, "\n")), func(l string) bool { return strings.Contains(stands, l) })
	p.names = p.names[max(0, len(p.names)-maxLiterals):]
	if p.Room = p.room(); src.Room > 0 && src.total(src.Messages) > src.Room {
		return p, true
	}
	return p, p.Room >= minRoom && fresh >= max(minFresh, keep/8)
}

// readOld reads what earlier compactions have built, and returns its tokens.
func (p *Plan) readOld() int {
	size := 0
	for i, m := range p.src.Messages[:p.From] {
		text, is := p.record(i, m)
		if !is {
			continue
		}
		size += p.src.Count(m)
		p.before = readBuilt(text)
		p.Unshown.Messages += p.before.listed
	}
	return size
}

// total counts the tokens of messages.
func (s Source) total(messages []llm.Message) int {
	n := 0
	for _, m := range messages {
		n += s.Count(m)
	}
	return n
}

// tokens counts the tokens of a text.
func (s Source) tokens(text string) int {
	return s.Count(llm.Message{Role: llm.User, Parts: llm.Say(text)})
}

// tail returns where the last keep tokens begin; later if they would have more than most.
func tail(src Source, keep, most int) int {
	callOf := calls(src.Messages)
	start, size := len(src.Messages), 0
	for start > 0 && size < keep {
		from, more := start, 0
		for i := start - 1; i >= 0 && (i >= from || from == start); i-- {
			from = min(from, i, callOf[i])
			more += src.Count(src.Messages[i])
		}
		if size += more; size > most && start < len(src.Messages) {
			break
		}
		start = from
	}
	return start
}

// calls returns for each message the first one with a call that it answers; its own index if there is none.
func calls(messages []llm.Message) []int {
	first := make([]int, len(messages))
	open := map[string]int{}
	for i, m := range messages {
		first[i] = i
		for _, part := range m.Parts {
			switch v := part.(type) {
			case llm.Call:
				open[v.ID] = i
			case llm.Result:
				if at, ok := open[v.CallID]; ok {
					first[i] = min(first[i], at)
				}
			}
		}
	}
	return first
}

// person reports whether message i is in a person's own words.
func (s Source) person(i int) bool {
	_, found := slices.BinarySearch(s.Person, i)
	return found
}

// record returns the text of message i if an earlier compaction built it. Only a message with nothing else can
// be one: neither a result nor a person's message.
func (p *Plan) record(i int, m llm.Message) (string, bool) {
	if m.Role != llm.User || len(m.Parts) != 1 || p.src.person(i) {
		return "", false
	}
	t, ok := m.Parts[0].(llm.Text)
	return t.Text, ok && strings.HasPrefix(t.Text, headline)
}

// own returns the parts of a message that can be a person's and can be sent.
func own(parts llm.Parts) llm.Parts {
	var out llm.Parts
	sendable := false
	for _, part := range parts {
		switch v := part.(type) {
		case llm.Text:
			if strings.TrimSpace(v.Text) == "" {
				continue
			}
			sendable = true
		case llm.Image:
			sendable = true
		case llm.Call, llm.Result, llm.Reasoning:
			continue
		}
		out = append(out, part)
	}
	if !sendable {
		return nil
	}
	return out
}

// share divides total among sizes, so that small ones get what they need.
func share(sizes []int, total int) int {
	sorted := slices.Sorted(slices.Values(sizes))
	for i, size := range sorted {
		each := total / (len(sorted) - i)
		if size > each {
			return each
		}
		total -= size
	}
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)-1]
}
