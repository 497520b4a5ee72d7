package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

const (
	maxQuestion = 48 << 10 // bytes of a call that a reviewer sees
	maxTask     = 8 << 10  // bytes of the task in it
	maxReason   = 300      // bytes of a stored reason
)

// question formats a call for the reviewing model: one JSON object between tags. The JSON contains no <, > or
// line ends, whatever the call contains, so nothing inside can imitate its end. Characters that people would
// not see are escaped.
func question(c *tool.Call, effects []tool.Effect, level Level) (string, error) {
	task := c.Task
	if head, tail, dropped := text.CutMiddle(task, maxTask); dropped > 0 {
		task = fmt.Sprintf("%s\n[... %d bytes left out ...]\n%s", head, dropped, tail)
	}
	by := "person"
	if c.FromLead {
		by = "agent"
	}
	raw, err := json.Marshal(struct {
		Task      string          `json:"task"`
		TaskBy    string          `json:"task_by"`
		Mode      tool.Mode       `json:"mode"`
		Workspace string          `json:"workspace"`
		Cwd       string          `json:"cwd"`
		Tool      string          `json:"tool"`
		Arguments json.RawMessage `json:"arguments"`
		Effects   []tool.Effect   `json:"effects"`
		Risk      string          `json:"risk"`
	}{task, by, c.Mode, c.Env.Root, c.Cwd, c.Name, c.Args, effects, level.String()})
	switch {
	case err != nil:
		return "", fmt.Errorf("put call into words: %w", err)
	case len(raw) > maxQuestion:
		// A part of it would not suffice: the harm could be in the rest.
		return "", fmt.Errorf("it is too long: %d bytes, of which a reviewer reads at most %d", len(raw), maxQuestion)
	}
	return "<call>\n" + EscapeHidden(string(raw)) + "\n</call>", nil
}

// EscapeHidden escapes the characters in JSON text that people don't see. They can only occur in its strings.
func EscapeHidden(raw string) string {
	if !hasHidden(raw) {
		return raw
	}
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(raw, "\ufffd") {
		switch {
		case !text.Covert.Has(r):
			b.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		}
	}
	return b.String()
}

var errAnswer = errors.New("its answer is not one JSON object with a verdict and a reason")

// parseAnswer parses the single object in a reply. There may be text around it, such as a fence, but no other
// brace: with several objects it is unclear which one is meant and which one is quoted.
func parseAnswer(text string) (tool.Action, string, error) {
	start, end := strings.IndexByte(text, '{'), strings.LastIndexByte(text, '}')
	if start < 0 || end < start || strings.ContainsRune(text[end:], '{') || strings.ContainsRune(text[:start], '}') {
		return "", "", errAnswer
	}
	fields, err := stringFields(text[start : end+1])
	if err != nil {
		return "", "", err
	}
	reason, ok := fields["reason"]
	if !ok || len(fields) != 2 {
		return "", "", errAnswer
	}
	if reason = plainLine(reason, maxReason); reason == "" {
		reason = "it gave no reason"
	}
	switch action := tool.Action(fields["verdict"]); action {
	case tool.Allow, tool.Ask, tool.Deny:
		return action, reason, nil
	}
	return "", "", errAnswer
}

// stringFields parses an object whose values are all strings. Names are case-sensitive, and each may occur
// once; [json.Unmarshal] would accept VERDICT for verdict, and the last of two.
func stringFields(raw string) (map[string]string, error) {
	dec := json.NewDecoder(strings.NewReader(raw))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return nil, errAnswer
	}
	fields := map[string]string{}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, errAnswer
		}
		value, err := dec.Token()
		text, isText := value.(string)
		key, _ := name.(string)
		if _, twice := fields[key]; err != nil || !isText || twice {
			return nil, errAnswer
		}
		fields[key] = text
	}
	if _, err := dec.Token(); err != nil { // the closing brace
		return nil, errAnswer
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errAnswer
	}
	return fields, nil
}
