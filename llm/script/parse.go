package script

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/inspan/inspan/llm"
)

const help = `This is the offline model, not an AI. It follows commands in the prompt, one a line:

    bash: COMMAND        run a command
    read: FILE           read a file
    call: TOOL {JSON}    call any tool
    + ...                the same, beside the line before it
    say: TEXT            say something before the next step
    reason: TEXT         think before the next step
    stop: length|refusal|pause|empty    end the next reply that way
    fail: STATUS [xN]    fail before the next step, N times
    delay: 2s            wait before the next step`

// Parse reads a script: a txtar archive in which every file named "reply" is one reply. Its lines are those of
// [ParseCommands], all in one reply; lines that are not commands are text. "usage: INPUT OUTPUT [CACHED]" sets the
// tokens.
func Parse(archive []byte) (*Model, error) {
	m := &Model{}
	for _, f := range txtar.Parse(archive).Files {
		if !strings.HasPrefix(f.Name, "reply") {
			return nil, fmt.Errorf("script: unexpected file %q, want \"reply\"", f.Name)
		}
		step, err := parseReply(string(f.Data))
		if err != nil {
			return nil, fmt.Errorf("script: reply %d: %w", len(m.Steps)+1, err)
		}
		m.Steps = append(m.Steps, step)
	}
	if len(m.Steps) == 0 {
		return nil, fmt.Errorf("script: no replies; write them below lines like \"-- reply --\"")
	}
	return m, nil
}

func parseReply(data string) (Step, error) {
	var step Step
	var text []string
	flush := func() {
		if t := strings.TrimSpace(strings.Join(text, "\n")); t != "" {
			step.Parts = append(step.Parts, llm.Text{Text: t})
		}
		text = nil
	}
	for line := range strings.Lines(data) {
		line = strings.TrimRight(line, "\r\n")
		word, rest := command(line)
		if word == "" {
			text = append(text, line)
			continue
		}
		flush()
		if err := step.add(word, rest); err != nil {
			return Step{}, err
		}
	}
	flush()
	return step, nil
}

// ParseCommands reads the commands of a prompt, each a step of its own. A prompt without commands has no steps.
func ParseCommands(prompt string) ([]Step, error) {
	var steps []Step
	var next Step
	for line := range strings.Lines(prompt) {
		line = strings.TrimSpace(line)
		beside := strings.HasPrefix(line, "+ ")
		word, rest := command(strings.TrimPrefix(line, "+ "))
		if word == "" {
			continue
		}
		to := &next
		if beside && len(steps) > 0 {
			to = &steps[len(steps)-1]
		}
		if err := to.add(word, rest); err != nil {
			return nil, err
		}
		switch word {
		case "bash", "read", "call", "stop":
			if !beside {
				steps = append(steps, next)
				next = Step{}
			}
		}
	}
	if len(next.Parts) == 0 && (next.Fail != 0 || next.Delay != 0) {
		next.Parts = llm.Say("Done.")
	}
	if len(next.Parts) > 0 {
		steps = append(steps, next)
	}
	return steps, nil
}

// command splits a line into its command and the rest; the command is empty if the line has none.
func command(line string) (word, rest string) {
	word, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
	if !ok {
		return "", ""
	}
	switch word {
	case "bash", "read", "call", "say", "reason", "stop", "fail", "delay", "usage":
		return word, strings.TrimSpace(rest)
	}
	return "", ""
}

// add applies a command to the step.
func (s *Step) add(word, rest string) (err error) {
	switch word {
	case "bash":
		s.call("bash", map[string]string{"command": rest})
	case "read":
		s.call("read_file", map[string]string{"path": rest})
	case "call":
		name, args, _ := strings.Cut(rest, " ")
		if args == "" {
			args = "{}"
		}
		if !json.Valid([]byte(args)) {
			return fmt.Errorf("call: %s: arguments are not JSON: %s", name, args)
		}
		s.Parts = append(s.Parts, llm.Call{Name: name, Args: json.RawMessage(args)})
	case "say":
		s.Parts = append(s.Parts, llm.Text{Text: rest})
	case "reason":
		s.Parts = append(s.Parts, llm.Reasoning{Text: rest})
	case "stop":
		s.stop(rest)
	case "fail":
		_, err = fmt.Sscanf(strings.Replace(rest+" x1", " x", " ", 1), "%d %d", &s.Fail, &s.Times)
	case "delay":
		s.Delay, err = time.ParseDuration(rest)
	case "usage":
		err = s.usage(strings.Fields(rest))
	}
	if err != nil {
		return fmt.Errorf("%s: %q: %w", word, rest, err)
	}
	return nil
}

func (s *Step) call(name string, args map[string]string) {
	raw, _ := json.Marshal(args) // a map of strings always marshals
	s.Parts = append(s.Parts, llm.Call{Name: name, Args: raw})
}

func (s *Step) stop(reason string) {
	s.Stop = llm.Stop(reason)
	if reason == "empty" {
		s.Stop = llm.StopEnd
	} else if len(s.Parts) == 0 {
		s.Parts = llm.Say("(" + reason + ")")
	}
}

func (s *Step) usage(fields []string) error {
	into := []*int{&s.Usage.Input, &s.Usage.Output, &s.Usage.CacheRead}
	if len(fields) > len(into) {
		return fmt.Errorf("want INPUT OUTPUT [CACHED]")
	}
	for i, f := range fields {
		n, err := strconv.Atoi(f)
		if err != nil {
			return err
		}
		*into[i] = n
	}
	return nil
}
