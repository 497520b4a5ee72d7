package hook

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/tool"
)

// What becomes of a hook that fails.
const (
	Ignore = "ignore" // people are told, and the session goes on
	Deny   = "deny"   // what was to happen is denied
)

const (
	defaultTimeout = time.Minute
	maxTimeout     = time.Hour
)

// Config is one hook as settings have it: a command line or an address, for one
// moment. The package comment says what they are told and may answer.
type Config struct {
	On tool.Moment `toml:"on"`
	// Match says for which tools it runs, before and after a call: names split by
	// |, in which * stands for any characters, or /a regular expression/ (RE2,
	// which may match anywhere). The names that Claude Code has for tools are
	// understood where a whole name is given. At other moments it is matched
	// against [tool.Point.Why], and where an agent begins or stops against its kind; a
	// prompt has nothing to match. Empty or * is all.
	Match string `toml:"match"`
	// Command is run in the workspace, by sh, or by bash if Claude is set. Either it or URL is set.
	Command string `toml:"command"`
	// Args, if not nil, makes Command a program that is run with them as they
	// are, without a shell between.
	Args []string `toml:"args"`
	// Hosts, Read and Write are what the sandbox opens to Command: hosts, and absolute paths beside the
	// workspace. Read and Write count in the person's own settings only.
	Hosts []string `toml:"hosts"`
	Read  []string `toml:"read"`
	Write []string `toml:"write"`
	// URL gets a POST request: https, or http on this machine.
	URL     string            `toml:"url"`
	Headers map[string]string `toml:"headers"` // of the request
	// HeaderEnv names the variables whose values $NAME or ${NAME} in Headers
	// stands for. Any other stands for nothing.
	HeaderEnv []string      `toml:"header_env"`
	Timeout   time.Duration `toml:"timeout"` // 0: a minute; at most an hour
	// OnFailure is [Ignore], which is what empty means too, or before a call and
	// for a prompt also [Deny]: what the hook should have seen and did not is
	// denied.
	OnFailure string `toml:"on_failure"`
	// Background lets the session go on without waiting. What the hook wants
	// then counts for nothing; what it has to say to people is told.
	Background bool `toml:"background"`
	// Claude says that it speaks the protocol of Claude Code: other JSON in and
	// out, its names of tools, and its kind of Match.
	Claude bool `toml:"claude"`

	Source string `toml:"-"` // where it is from, for people: ".claude/settings.json"
	// Event is the event of Claude Code that a hook of [ReadClaude] is for. Empty:
	// the one that fits the moment.
	Event string `toml:"-"`
	If    string `toml:"-"` // a rule of Claude Code, such as "Bash(git *)", that a call must fit
	// Kind is the kind of agent that brings it: it runs for the session of such an agent, whose end is then
	// SubagentStop. Empty: the settings do.
	Kind string `toml:"-"`
	// PluginRoot is the folder that a hook of Claude Code finds in
	// CLAUDE_PLUGIN_ROOT. Empty: the variable is not set.
	PluginRoot string `toml:"-"`
}

// Check returns an error if the hook can't be run as it is written. Whoever reads
// settings calls it: in a [Set] such a hook only counts as failed when its moment
// comes, and one without a moment never runs.
func (c Config) Check() error {
	_, err := c.compile()
	return err
}

func (c Config) compile() (matcher, error) {
	if !slices.Contains(tool.Moments(), c.On) {
		return matcher{}, fmt.Errorf("on is %q, not a moment%s", c.On, nearest(string(c.On), momentNames()))
	}
	if (c.Command == "") == (c.URL == "") {
		return matcher{}, errors.New("it has neither or both of command and url; one of them is what runs")
	}
	if strings.ContainsRune(c.Command+strings.Join(c.Args, ""), 0) {
		return matcher{}, errors.New("its command has a NUL in it")
	}
	for _, path := range slices.Concat(c.Read, c.Write) {
		if !filepath.IsAbs(path) {
			return matcher{}, fmt.Errorf("read and write: %q is not an absolute path", path)
		}
	}
	if c.Timeout < 0 || c.Timeout > maxTimeout {
		return matcher{}, fmt.Errorf("timeout is %v, not between 0 and %v", c.Timeout, maxTimeout)
	}
	if err := c.checkFailure(); err != nil {
		return matcher{}, err
	}
	if c.URL != "" {
		if err := checkURL(c.URL); err != nil {
			return matcher{}, err
		}
	}
	if c.On == tool.PromptSaid && c.Match != "" && c.Match != "*" {
		return matcher{}, errors.New("a prompt has nothing that match could look at")
	}
	m, err := newMatcher(c.Match, c.Claude)
	if err == nil && !c.Claude && (c.On == tool.BeforeCall || c.On == tool.AfterCall) {
		err = checkTools(c.Match, m.names)
	}
	m.event = c.Event
	return m, err
}

func (c Config) checkFailure() error {
	switch {
	case c.OnFailure == "" || c.OnFailure == Ignore:
		return nil
	case c.OnFailure != Deny:
		return fmt.Errorf("on_failure is %q, not %s or %s", c.OnFailure, Ignore, Deny)
	case !deniable(c.On):
		return fmt.Errorf("on_failure can only deny at %s and %s, not at %s", tool.BeforeCall, tool.PromptSaid, c.On)
	case c.Background:
		return errors.New("a hook in the background can't deny")
	}
	return nil
}

func deniable(m tool.Moment) bool { return m == tool.BeforeCall || m == tool.PromptSaid }

// checkURL refuses addresses to which what a session says would go in the open.
func checkURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return fmt.Errorf("url %q is not an address", text)
	}
	if u.User != nil {
		return errors.New("url has a user name or password in it; send it as a header")
	}
	ip := net.ParseIP(u.Hostname())
	here := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	if u.Scheme == "https" || u.Scheme == "http" && here {
		return nil
	}
	return fmt.Errorf("url %q is neither https nor http on this machine", text)
}

func (c Config) timeout() time.Duration {
	if c.Timeout == 0 {
		return defaultTimeout
	}
	return c.Timeout
}

// by names the hook in a line, for people.
func (c Config) by() string {
	what := c.URL
	if what == "" {
		what = strings.Join(append([]string{c.Command}, c.Args...), " ")
	}
	out := "hook " + brief(what)
	if c.Source != "" {
		out += " of " + brief(c.Source)
	}
	return out
}

// same reports whether two hooks of Claude Code would do the same, so that one
// is enough.
func (c Config) same(o Config) bool {
	return c.Claude && o.Claude && c.Command == o.Command && c.URL == o.URL && c.PluginRoot == o.PluginRoot && c.If == o.If &&
		(c.Args == nil) == (o.Args == nil) && slices.Equal(c.Args, o.Args)
}

func momentNames() []string {
	var out []string
	for _, m := range tool.Moments() {
		out = append(out, string(m))
	}
	return out
}

// nearest ends a sentence about a name that is not known.
func nearest(name string, known []string) string {
	if near := tool.Nearest(name, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return " (there are " + strings.Join(known, ", ") + ")"
}
