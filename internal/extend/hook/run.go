package hook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

// answer is the answer of a command or a server.
type answer struct {
	text    string // of its standard output, or of the body
	cut     bool   // text is only the beginning
	blocked bool   // by its exit code or status
	why     string // it was blocked; may be empty
}

// ask runs a hook of the settings.
func (s *Set) ask(ctx context.Context, c Config, p tool.Point) (tool.Outcome, error) {
	wire := protocol(ours{})
	if c.Claude {
		wire = claude{event: c.event(p), log: s.Log}
	}
	in, err := wire.say(p)
	if err != nil {
		return tool.Outcome{}, fmt.Errorf("say what happened: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, c.timeout())
	defer cancel()
	via := s.command
	if c.URL != "" {
		via = s.post
	}
	a, err := via(limited, c, in, p)
	if limited.Err() != nil && ctx.Err() == nil {
		return tool.Outcome{}, fmt.Errorf("it did not end within %v", c.timeout())
	}
	if err != nil {
		return tool.Outcome{}, err
	}
	out, note, err := understand(wire, a, p)
	if note != "" {
		s.warn(p, c.by()+": "+note)
	}
	return out, err
}

// traceparent returns the span of the call; empty if there is none.
func traceparent(p tool.Point) string {
	if p.Call == nil {
		return ""
	}
	return p.Call.Traceparent
}

// protocol is a way to talk to hooks.
type protocol interface {
	say(p tool.Point) ([]byte, error)
	// plain reports whether output that is not JSON is text for the model.
	plain(m tool.Moment) bool
	// hear makes an outcome of JSON. Note is for people.
	hear(data []byte, p tool.Point) (out tool.Outcome, note string, err error)
}

// understand makes an outcome of an answer.
func understand(wire protocol, a answer, p tool.Point) (out tool.Outcome, note string, err error) {
	s := strings.TrimSpace(a.text)
	switch {
	case a.blocked:
		out, note = block(p.Moment, text.Printed(a.why))
		return out, note, nil
	case strings.HasPrefix(s, "{") && a.cut:
		return out, "", errors.New("its answer has more than 64 KiB")
	case strings.HasPrefix(s, "{"):
		return wire.hear([]byte(s), p)
	case s != "" && wire.plain(p.Moment):
		out.Text = text.Printed(s)
		if a.cut {
			out.Text += "\n[the rest is cut: it is more than 64 KiB]"
		}
	}
	return out, "", nil
}

// block returns the outcome of a hook that objects. If there is nothing to stop, it is a message to people.
func block(m tool.Moment, why string) (out tool.Outcome, note string) {
	if why == "" {
		why = "the hook gave no reason"
	}
	switch m {
	case tool.PromptSaid, tool.BeforeCall, tool.BeforeCompact, tool.TaskCompleted:
		return tool.Outcome{Action: tool.Deny, Reason: why}, ""
	case tool.AfterCall, tool.RunStop, tool.AgentStop, tool.TeammateIdle:
		return tool.Outcome{Text: why}, ""
	}
	return out, why
}

// command runs a command line. Its standard output comes through descriptor 3, which keeps it apart from standard
// error.
func (s *Set) command(ctx context.Context, c Config, in []byte, point tool.Point) (answer, error) {
	if s.Env.Procs == nil {
		return answer{}, errors.New("this host can't start processes")
	}
	out, errs := keep.Head{Limit: maxOutput}, keep.Head{Limit: maxOutput}
	var vars []string
	if span := traceparent(point); span != "" {
		vars = []string{"TRACEPARENT=" + span}
	}
	p, err := s.Env.Procs.Start(ctx, tool.Command{
		Args: c.argv(s.Env.Root), Dir: s.Env.Root, Vars: vars, Stdin: bytes.NewReader(in), Output: &errs, Report: &out,
		Box: s.Walls.Box(ctx, s.Env, point.Mode, c),
	})
	if err != nil {
		return answer{}, err
	}
	code, err := p.Wait()
	if err != nil {
		return answer{}, err
	}
	said := saidBy(&errs)
	switch code {
	case 0:
		data, more := out.Bytes()
		// A guard with a line that its shell could not run has checked nothing, whatever its last command returned.
		if stumble := stumbled(said); stumble != "" && c.OnFailure == Deny && !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
			return answer{}, errors.New(brief(stumble))
		}
		return answer{text: strings.ToValidUTF8(string(data), "\ufffd"), cut: more}, nil
	case 2:
		return answer{blocked: true, why: said}, nil
	}
	if c.Claude && code == 1 && said == "" {
		return answer{}, nil // [[ it is bad ]] && exit 2, and it is not
	}
	if said == "" {
		return answer{}, fmt.Errorf("exit code %d", code)
	}
	return answer{}, fmt.Errorf("exit code %d: %s", code, first(said))
}

// stumbled returns the first line in which a shell reports that it could not run a line of the script. It does not see
// messages that the author has silenced (2>/dev/null).
func stumbled(said string) string {
	return regexp.MustCompile(`(?m)^.*:(?: line)? ?\d+: (?:.*not found.*|.*[Ss]yntax error.*|.*unexpected (?:EOF|token|argument).*|.*ambiguous redirect|.*cannot execute.*|.*bad interpreter.*|.*[Bb]ad substitution.*|` +
		`.*unbound variable|.*parameter not set|.*expected|.*too many arguments|.*[Nn]o such file(?: or directory)?|.*[Pp]ermission denied)$`).FindString(said)
}

// argv returns the arguments that start a command. Hooks of Claude Code are written for bash.
func (c Config) argv(root string) []string {
	var script strings.Builder
	interpreter := "sh"
	if c.Claude {
		interpreter = "bash"
		fmt.Fprintf(&script, "export CLAUDE_PROJECT_DIR=%s; ", text.ShellQuote(root))
		if c.PluginRoot != "" {
			fmt.Fprintf(&script, "export CLAUDE_PLUGIN_ROOT=%s; ", text.ShellQuote(c.PluginRoot))
		}
	}
	script.WriteString("exec 1>&3 3>&-; ")
	if c.Args == nil {
		return []string{interpreter, "-c", script.String() + c.Command, interpreter}
	}
	words := append([]string{c.Command}, c.Args...)
	if c.Claude {
		fill := strings.NewReplacer("${CLAUDE_PROJECT_DIR}", root, "${CLAUDE_PLUGIN_ROOT}", c.PluginRoot)
		for i, w := range words {
			words[i] = fill.Replace(w)
		}
	}
	return append([]string{"sh", "-c", script.String() + `exec "$@"`, "sh"}, words...)
}

// post asks a server.
func (s *Set) post(ctx context.Context, c Config, in []byte, point tool.Point) (answer, error) {
	if s.Env.HTTP == nil {
		return answer{}, errors.New("this host can't reach servers")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, bytes.NewReader(in))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	if span := traceparent(point); span != "" {
		req.Header.Set("Traceparent", span)
	}
	for name, value := range c.Headers {
		req.Header.Set(name, os.Expand(value, func(name string) string { return s.variable(c, name) }))
	}
	resp, err := s.Env.HTTP.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxOutput+1))
	if err != nil {
		return answer{}, fmt.Errorf("read the answer: %w", err)
	}
	text := strings.ToValidUTF8(string(data[:min(len(data), maxOutput)]), "\ufffd")
	switch {
	case resp.StatusCode/100 == 2:
		return answer{text: text, cut: len(data) > maxOutput}, nil
	case resp.StatusCode == http.StatusForbidden && !c.Claude:
		return answer{blocked: true, why: text}, nil
	}
	return answer{}, fmt.Errorf("status %d: %s", resp.StatusCode, brief(text))
}

func (s *Set) variable(c Config, name string) string {
	if s.Getenv == nil || !slices.Contains(c.HeaderEnv, name) {
		return ""
	}
	return s.Getenv(name)
}
