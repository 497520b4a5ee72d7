package a2a

import (
	"encoding/json"
	"fmt"
	"mime"
	"slices"
	"strings"
	"unicode/utf8"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
)

// questionFor returns a question for the client: in words, and as data that names the possible answers.
func questionFor(p inspan.Pending) []*sdk.Part {
	if p.IsQuestion {
		s, options := words.Question(p.Call)
		list := make([]any, len(options))
		for i, o := range options {
			s += fmt.Sprintf("\n%d. %s", i+1, text.Visible(o))
			list[i] = o
		}
		return []*sdk.Part{sdk.NewTextPart(bounded(s)), sdk.NewDataPart(map[string]any{"call": p.ID(), "options": list})}
	}
	choices := []any{"allow once", "deny"}
	if len(p.Rules) > 0 {
		choices = []any{"allow once", "allow for this session", "deny"}
	}
	return []*sdk.Part{sdk.NewTextPart(bounded(effectsText(p))), sdk.NewDataPart(map[string]any{"call": p.ID(), "decision": choices})}
}

// effectsText returns everything that a call would do.
func effectsText(p inspan.Pending) string {
	p.Reason, p.Preview = words.Asking(p.Root, p.Reason, p.Preview, p.Calls())
	var b strings.Builder
	fmt.Fprintf(&b, "May %s run (%s)?\n", text.Visible(p.Name()), text.Line(p.Reason))
	if p.Preview != "" {
		b.WriteString(text.VisibleLines(p.Preview) + "\n")
	} else if command, others := words.Asked(p.Call); command+others != "" {
		b.WriteString(strings.TrimSpace("$ "+command+"\n"+others) + "\n")
	}
	for _, line := range words.Effects(p.Effects, p.Preview != "") {
		b.WriteString("It " + line + "\n")
	}
	if len(p.Rules) > 0 {
		fmt.Fprintf(&b, "For this session it would allow: %s\n", text.Visible(strings.Join(p.Rules, ", ")))
	}
	if len(p.Rules) == 0 {
		return b.String() + "Answer yes, or no, or say what to do instead."
	}
	return b.String() + `Answer yes, or "session" for all that is like it, or no, or say what to do instead.`
}

// firstQuestion returns the first of the open questions, which is the one that the client is asked.
func firstQuestion(st inspan.Status) inspan.Pending { return inspan.Sets(st.Questions())[0] }

// answeredQuestion returns the question that a message answers, which is the one it names or else the first, and the
// answer.
func answeredQuestion(st inspan.Status, m *sdk.Message) (p inspan.Pending, choice string, err error) {
	p = firstQuestion(st)
	for _, part := range m.Parts {
		data, ok := part.Data().(map[string]any)
		if !ok {
			continue
		}
		if call, named := data["call"].(string); named {
			if p, named = st.Question(call); !named {
				return p, "", fmt.Errorf("%w: call %q does not wait for an answer", sdk.ErrInvalidParams, words.OneLine(call, 80))
			}
		}
		for _, key := range []string{"decision", "answer"} {
			if text, given := data[key].(string); given {
				choice = text
			}
		}
	}
	if choice == "" {
		choice = strings.TrimSpace(textOf(m))
	}
	return p, choice, nil
}

// parseDecision parses an answer. A client can't decide for longer than the session: that is up to the person whose
// settings these are.
func parseDecision(p inspan.Pending, choice string) (event.Decided, string) {
	if p.IsQuestion {
		return words.Answer(p.Call, choice)
	}
	switch strings.ToLower(choice) {
	case "allow once", "allow":
		choice = "yes"
	case "allow for this session":
		choice = "session"
	case "deny":
		choice = "no"
	}
	d, problem := words.Decision(p.Call.ID, words.Options(p.Rules, nil), choice)
	if problem == "" && d.Allow && d.Scope != event.ScopeOnce && d.Scope != event.ScopeSession {
		return event.Decided{}, "it can be allowed once or for this session, not for longer"
	}
	return d, problem
}

func textOf(m *sdk.Message) string {
	var texts []string
	for _, part := range m.Parts {
		text := part.Text()
		if raw, is := part.Content.(sdk.Raw); is && isTextType(part.MediaType) {
			text = string(raw)
		}
		if text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}

// content returns the bytes of a part as text or as an image.
func content(part *sdk.Part, raw []byte) (llm.Part, error) {
	switch {
	case slices.Contains(llm.ImageTypes(), part.MediaType):
		return llm.Image{MediaType: part.MediaType, Data: raw}, nil
	case !isTextType(part.MediaType):
		return nil, fmt.Errorf("%w: %q", sdk.ErrUnsupportedContentType, words.OneLine(part.MediaType, 80))
	case !utf8.Valid(raw):
		return nil, fmt.Errorf("%w: a part of the type %q is not UTF-8", sdk.ErrInvalidParams, words.OneLine(part.MediaType, 80))
	case part.Filename != "":
		return llm.Text{Text: words.OneLine(part.Filename, 200) + ":\n" + string(raw)}, nil
	}
	return llm.Text{Text: string(raw)}, nil
}

// isTextType reports whether bytes of this type are text.
func isTextType(mediaType string) bool {
	kind, params, err := mime.ParseMediaType(mediaType)
	charset := strings.ToLower(params["charset"])
	return err == nil && (strings.HasPrefix(kind, "text/") || kind == "application/json") &&
		(charset == "" || charset == "utf-8" || charset == "us-ascii")
}

// messageFor returns a message for the model: text, data as JSON, and images.
func messageFor(m *sdk.Message) (llm.Parts, error) {
	var out llm.Parts
	for _, part := range m.Parts {
		switch c := part.Content.(type) {
		case sdk.Text:
			out = append(out, llm.Text{Text: string(c)})
		case sdk.Data:
			raw, err := json.Marshal(c.Value)
			if err != nil {
				return nil, sdk.ErrInvalidParams
			}
			out = append(out, llm.Text{Text: string(raw)})
		case sdk.Raw:
			raw, err := content(part, c)
			if err != nil {
				return nil, err
			}
			out = append(out, raw)
		default:
			return nil, fmt.Errorf("%w: a part that is neither text nor data nor an image", sdk.ErrUnsupportedContentType)
		}
	}
	if strings.TrimSpace(out.Text()) == "" {
		return nil, fmt.Errorf("%w: the message is empty", sdk.ErrInvalidParams)
	}
	return out, nil
}
