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
	maxQuestion = 48 << 10 // bytes of a call that is shown to a reviewer
	maxTask     = 8 << 10  // bytes of the task in it
	maxReason   = 300      // bytes of a reason that is kept
)

// question puts a call into words for the reviewing model: one JSON object
// between tags. The JSON has neither < nor > nor line ends in it, whatever the
// call says, so nothing inside can look like the end of it; and what people
// would not see is written as an escape.
func question(c *tool.Call, effects []tool.Effect, level Level) (string, error) {
	task := c.Task
	if head, tail, dropped := tool.Cut(task, maxTask); dropped > 0 {
		task = fmt.Sprintf("%s\n[... %d bytes left out ...]\n%s", head, dropped, tail)
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
	}{task, asker(c), c.Mode, c.Env.Root, c.Cwd, c.Name, c.Args, effects, level.String()})
	switch {
	case err != nil:
		return "", fmt.Errorf("put call into words: %w", err)
	case len(raw) > maxQuestion:
		// Part of it would not do: the harm could be in the rest.
		return "", fmt.Errorf("it is too long: %d bytes, of which a reviewer reads at most %d", len(raw), maxQuestion)
	}
	return "<call>\n" + EscapeHidden(string(raw)) + "\n</call>", nil
}

// asker says whose the task is.
func asker(c *tool.Call) string {
	if c.Led {
		return "agent"
	}
	return "person"
}

// EscapeHidden writes the characters of a JSON text that people don't see as
// JSON escapes. They can only stand in its strings.
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

// parseAnswer reads the one object of an answer. Around it there may be text,
// such as a fence, but no other brace: which of several objects is meant, or
// whether one is only quoted, can't be told.
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

// stringFields reads an object whose values are all strings. Names count as
// they are written, and each may stand once; [json.Unmarshal] would take
// VERDICT for verdict and the last of two.
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
