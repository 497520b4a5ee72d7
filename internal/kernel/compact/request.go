package compact

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/inspan/inspan/llm"
)

var (
	//go:embed form.md
	formText string
	//go:embed ask.md
	askText string
	//go:embed part.md
	partText string
	//go:embed repair.md
	repairText string
)

// Purpose marks the requests for a record.
const Purpose = "summary"

// Request asks for the record of the whole conversation. It begins with the same bytes as the conversation's next
// request, so that the prompt cache serves it; the sender must set Effort, Session and Pin to the same values.
// Tools are included for the same reason, and none should be called. Focus is the subject that the person wants
// emphasised; may be empty.
func (p Plan) Request(system []string, tools []llm.ToolSpec, focus string) llm.Request {
	messages := slices.Clone(p.src.Messages[:beforeOpenCalls(p.src.Messages)])
	text := strings.TrimSpace(askText) + "\n\n" + p.instructions(focus)
	return llm.Request{
		System: system, Tools: tools, Purpose: Purpose,
		Messages: append(messages, llm.Message{Role: llm.User, Parts: llm.Say(text)}),
	}
}

// instructions describes the form of the record, and lists the facts that it must agree with.
func (p Plan) instructions(focus string) string {
	text := strings.TrimSpace(formText) + fmt.Sprintf("\n- Write at most %d words.", min(p.Room, maxAsked)/2)
	if focus = strings.TrimSpace(focus); focus != "" {
		text += "\n\nThe person asks you to pay special attention to this:\n  " + strings.ReplaceAll(focus, "\n", "\n  ")
	}
	return strings.TrimSpace(text + "\n\nThe log proves the following, and the record must agree with it:\n" + p.factsText())
}

// beforeOpenCalls returns the number of messages before the first call without a result.
func beforeOpenCalls(messages []llm.Message) int {
	open := map[string]int{}
	for i, m := range messages {
		for _, part := range m.Parts {
			switch v := part.(type) {
			case llm.Call:
				open[v.ID] = i
			case llm.Result:
				delete(open, v.CallID)
			}
		}
	}
	n := len(messages)
	for _, i := range open {
		n = min(n, i)
	}
	return n
}

// Repair asks again after an unusable answer. Asked is the request, previous the answer.
func (p Plan) Repair(asked llm.Request, previous string, missing []Missing) llm.Request {
	asked.Messages = slices.Clone(asked.Messages)
	if strings.TrimSpace(previous) != "" {
		answer := llm.Message{Role: llm.Assistant, Parts: llm.Say(p.src.clip(previous, 2*max(p.Room, minRoom)))}
		asked.Messages = append(asked.Messages, answer)
	}
	var b strings.Builder
	b.WriteString(strings.TrimSpace(repairText) + "\n")
	for _, m := range missing {
		b.WriteString("\n- " + m.instruction())
	}
	asked.Messages = append(asked.Messages, llm.Message{Role: llm.User, Parts: llm.Say(b.String())})
	return asked
}

// instruction tells a model how to correct the fault.
func (m Missing) instruction() string {
	what := oneLine(m.What, 2000)
	switch m.Kind {
	case File:
		return "Files does not name this changed file: " + what
	case Invented:
		return "Files names a file that occurs nowhere in the conversation. Correct its path or leave it out: " + what
	case Tests:
		return "State of work does not give the outcome of the last tests. Add this line: " + what
	case Contradicted:
		return "State of work gives the wrong outcome of the last tests. It must be: " + what
	case Empty:
		return "This section is empty although there is something to say: " + what
	case Thin:
		return "The record keeps almost nothing of the answers and findings. Say what these are about: " + what
	case Long:
		return "The record is too long: " + what
	}
	return "The record must have all headings, each on its own line: Decisions, Files, State of work, Open questions, Next."
}

// Chunk is a part of a conversation that does not fit into one request.
type Chunk struct {
	text string
	plan Plan
	most int // tokens of the record so far that fit
}

// Chunks splits the part to be replaced, for models that can't read the whole conversation again. Request each
// with the answer to the previous one. Limit is how many tokens a request may have, at least about 4,000: the
// form of the record needs some 800. Longer messages are cut in the middle.
func (p Plan) Chunks(limit int) []Chunk {
	room := max(limit-p.src.tokens(partText+p.instructions("")), 200)
	each := room * 2 / 3
	var out []Chunk
	text := ""
	for i, m := range p.src.Messages[:p.From] {
		next := p.transcript(m, p.src.isPerson(i), each)
		if text != "" && p.src.tokens(text+next) > each {
			out = append(out, Chunk{text, p, room - each})
			text = ""
		}
		text += next
	}
	if text == "" {
		return out
	}
	return append(out, Chunk{text, p, room - each})
}

// Request asks for the record of everything up to this chunk. SoFar is the answer to the previous one, empty
// for the first.
func (c Chunk) Request(soFar, focus string) llm.Request {
	if strings.TrimSpace(soFar) == "" {
		soFar = "none"
	}
	soFar = indent(c.plan.src.clip(soFar, c.most*3/4))
	text := "The record so far:\n<part>\n" + soFar + "</part>\n\nThe next part:\n<part>\n" + c.text + "</part>"
	return llm.Request{
		System:   []string{strings.TrimSpace(partText) + "\n\n" + c.plan.instructions(focus)},
		Messages: []llm.Message{{Role: llm.User, Parts: llm.Say(text)}},
		Purpose:  Purpose,
	}
}

// transcript writes a message as text of at most about limit tokens. The words are indented, so they can't look like
// another speaker or the end of the part.
func (p Plan) transcript(m llm.Message, person bool, limit int) string {
	for each := limit; ; each = each * 3 / 4 {
		var b strings.Builder
		for _, part := range m.Parts {
			head, text := speaker(part, m.Role, person)
			if head != "" {
				b.WriteString(head + "\n" + indent(p.src.clip(text, each)))
			}
		}
		if each < 32 || p.src.tokens(b.String()) <= limit {
			return b.String()
		}
	}
}

// speaker returns the heading and the text of a part; empty if transcripts leave it out.
func speaker(part llm.Part, role llm.Role, person bool) (head, text string) {
	who := "[agent]"
	switch {
	case person:
		who = "[person]"
	case role == llm.User:
		who = "[harness]"
	}
	switch v := part.(type) {
	case llm.Text:
		return who, v.Text
	case llm.Image:
		return who, "(an image)"
	case llm.Call:
		return "[call]", v.Name + " " + string(v.Args)
	case llm.Result:
		return "[result]", v.Parts.Text()
	}
	return "", ""
}

func indent(text string) string {
	text = strings.ReplaceAll(strings.TrimRight(text, "\r\n"), "\r", "\n")
	return "  " + strings.ReplaceAll(text, "\n", "\n  ") + "\n"
}
