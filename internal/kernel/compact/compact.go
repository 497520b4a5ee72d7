// Package compact shortens a long conversation. The end of the conversation and the person's messages stay, see
// person.go for their bounds. A record replaces the rest. A model writes it, and inspan checks it against the log.
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
//  1. The size of the next prompt is the provider's last count plus an estimate of the new part. Past errors
//     correct the estimate (loop.State.Tokens).
//  2. Old results of calls go first. Next says Prune if shortening a batch of them avoids a compaction, or if the
//     prompt cache is lost anyway (pruned), because shortening a result costs the cache from there on. A result
//     that the model can still see from an identical call is not repeated (State.ReferToEarlier).
//  3. Results of background agents and messages of other agents may take half of the free room; the rest is
//     for work. A line names the first ones that must wait. They come later, at the latest before the run ends
//     (arrivals.go).
//  4. Next says Compact in three cases: the prompt would use the reserve (event.Window), the provider rejects it
//     as too long, or someone asked (compact). If only some models may see the conversation, the largest
//     window among them counts (routed names it).
//  5. compact.Split decides which messages stay: the end, and the person's messages by the rule at the top of
//     person.go, which looks at form and order, not at words. Each keeps the number of its event
//     (loop.State.Events). The model writes a record of the rest. That request begins with the same bytes as the
//     last one, so the cache serves it. inspan drops wishes from the record.
//  6. The task, the to-do list, changed files and failed commands, with the checks and errors they named, come
//     from the fold (loop.Work). inspan checks the record against these facts and asks once more if some are
//     missing. If that fails too, it writes the record from the log without a model.
//  7. compacted holds the whole state, so a session opens from its last one. If someone sent an input
//     meanwhile, the log rejects it (event.ErrGrown), and the driver makes it again. If the model is
//     unavailable, the driver stores kept, and the conversation stays until the provider rejects it. The next
//     attempt for the window alone waits 2 turns, then 4, 8 and 16. Meanwhile, and when the provider rejects the
//     prompt, old results are shortened even if that saves little.
//
// rewound works in the same way: it holds the state as of an earlier event. Before that, internal/world/snapshot
// restores the files from the checkpoints around later calls, and restored records it. Both can be undone, because
// both are events.
package compact

import (
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

const (
	minFresh = 1000   // tokens to replace that no earlier compaction has seen
	minRoom  = 400    // tokens for a record; with less, a compaction gains nothing
	maxRoom  = 12_000 // tokens of the longest accepted record
	maxAsked = 6000   // tokens of the requested record, and of an extract
)

// Source is a conversation with facts from its log. It is only read.
type Source struct {
	Messages []llm.Message
	Person   []int        // indexes of messages in a person's own words, ascending
	Events   []uint64     // the events of these messages; 0 or missing if unknown
	Unshown  loop.Unshown // messages left out by earlier compactions
	Facts    Facts        // of the whole session, including the time before earlier compactions
	Carry    Carry
	History  bool // the model has the history tool
	// Room is how many tokens the new conversation may have; 0 means unknown.
	Room int
	// Count returns the approximate tokens of a message. It must grow with the text. If nil, it is
	// [llm.Message.Tokens].
	Count func(llm.Message) int

	event uint64 // event of the current message; 0 if unknown
}

// withEvent returns the source with the event of the current message.
func (s Source) withEvent(event uint64) Source {
	s.event = event
	return s
}

// Facts holds facts that the log proves.
type Facts struct {
	Changed []string // changed files, in the form for people, each once, the oldest first
	Test    *Test    // the last run of tests; nil if unknown
	Failed  []Run    // commands that failed when last run, the oldest first
}

// Run is a command that was run.
type Run struct {
	Command string
	Detail  string // the most informative lines of its output; may be empty
}

// Test is a run of tests.
type Test struct {
	Run
	Passed bool
}

// Carry holds parts of the state that the new conversation repeats without asking a model.
type Carry struct {
	Goal    string
	Todo    []tool.Todo
	Mode    tool.Mode      // permission mode
	Granted []string       // rules that a person allowed for the session
	Answers []loop.Answer  // the person's answers to calls, the oldest first; without those whose result stays
	Lasting []loop.Lasting // results that must stay, the oldest first; their texts are not repeated
}

// Plan says which part of a conversation stays and which part a record replaces. [Split] makes it. It is safe for
// concurrent use if Source.Count is.
type Plan struct {
	From     int          // index of the first message that stays, with all that follow
	Replaced int          // tokens of the messages that the record replaces
	Room     int          // tokens that a record may have
	Unshown  loop.Unshown // including those of earlier compactions

	src         Source
	keep        int // see Split
	patterns    *patterns
	kept        []personMessage // the person's messages before the end
	end         []llm.Message   // the messages from From on, shortened if they exceed their part of the room
	flattened   bool            // the end could not keep its form, and has no message of the person
	personInEnd []int           // indexes of the person's messages in end
	halvings    int             // how often the lists in the replacement are halved
	previous    previousState   // the result of the previous compaction
	harvested   harvest         // content of the replaced messages
	literals    []string        // names and numbers in the last answers among these
}

// Split decides which messages stay: at least the last keep tokens, in whole messages and with each result next to its
// call, and the person's messages before them, as described in person.go. It returns false if there is too little to
// replace, unless the conversation exceeds its room.
func Split(src Source, keep int) (p Plan, ok bool) {
	if src.Count == nil {
		src.Count = llm.Message.Tokens
	}
	keep = max(keep, 1)
	p = Plan{src: src, keep: keep, Unshown: src.Unshown, patterns: compilePatterns()}
	most := p.endRoom()
	p.From = tailStart(src, keep, most)
	p.keepEnd(most)
	p.keepPersonMessages()
	p.Replaced = src.totalTokens(src.Messages) - src.totalTokens(p.end)
	for _, m := range p.kept {
		p.Replaced -= src.Count(m.Message)
	}
	fresh := p.Replaced - p.readPrevious()
	p.fitReplacement()
	p.harvested = p.harvest()
	stands := p.keptWords()
	p.literals = slices.DeleteFunc(p.patterns.distinctLiterals(strings.Join(p.harvested.answers, "\n")), func(l string) bool { return strings.Contains(stands, l) })
	p.literals = p.literals[max(0, len(p.literals)-maxLiterals):]
	if p.Room = p.maxRecord(); src.Room > 0 && src.totalTokens(src.Messages) > src.Room {
		return p, true
	}
	return p, p.Room >= minRoom && fresh >= max(minFresh, keep/8)
}

// readPrevious reads the results of earlier compactions, and returns how many tokens they have.
func (p *Plan) readPrevious() int {
	size := 0
	for i, m := range p.src.Messages[:p.From] {
		text, is := p.earlierRecord(i, m)
		if !is {
			continue
		}
		size += p.src.Count(m)
		p.previous = parseState(text)
		p.Unshown.Messages += p.previous.listedMessages
	}
	return size
}

// totalTokens counts the tokens of messages.
func (s Source) totalTokens(messages []llm.Message) int {
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

// tailStart returns the index of the message where the last keep tokens begin, or a later one if these messages have
// more than most tokens.
func tailStart(src Source, keep, most int) int {
	callOf := matchCalls(src.Messages)
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

// matchCalls returns, for each message, the index of the first message with a call that it answers; its own index if
// it answers none.
func matchCalls(messages []llm.Message) []int {
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

// isPerson reports whether message i is in a person's own words.
func (s Source) isPerson(i int) bool {
	_, found := slices.BinarySearch(s.Person, i)
	return found
}

// earlierRecord returns the text of message i if an earlier compaction built it. That message contains nothing else,
// and it is not the person's.
func (p *Plan) earlierRecord(i int, m llm.Message) (string, bool) {
	if m.Role != llm.User || len(m.Parts) != 1 || p.src.isPerson(i) {
		return "", false
	}
	t, ok := m.Parts[0].(llm.Text)
	return t.Text, ok && strings.HasPrefix(t.Text, headline)
}

// personParts returns the parts of a message that a person can have written, without empty texts; nil if nothing could
// be sent.
func personParts(parts llm.Parts) llm.Parts {
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

// fairShare returns the limit for each of some sizes so that together they need at most total: small ones stay below
// the limit, and the larger ones share the rest equally.
func fairShare(sizes []int, total int) int {
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
