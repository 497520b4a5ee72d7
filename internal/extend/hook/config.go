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

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

// Reactions to the failure of a hook.
const (
	Ignore = "ignore" // people see a warning, and the session continues
	Deny   = "deny"   // the guarded action is denied
)

const (
	defaultTimeout = time.Minute
	maxTimeout     = time.Hour
)

// Config is one hook in the form of the settings: a command line or an address, for one moment. The package
// documentation describes its input and output.
type Config struct {
	On tool.Moment `toml:"on"`
	// Match selects the tools that it runs for, before and after a call: names separated by |, in which *
	// stands for any characters, or a /regular expression/ (RE2, which may match anywhere). Whole names may
	// also be Claude Code's names of tools. At other moments it is matched against [tool.Point.Why], and for
	// the start or stop of an agent against its kind; a prompt has nothing to match. Empty or * matches
	// everything.
	Match string `toml:"match"`
	// Command is run in the workspace, by sh, or by bash if Claude is set. Set either Command or URL.
	Command string `toml:"command"`
	// Args, if not nil, makes Command a program that is run with these arguments, without a shell.
	Args []string `toml:"args"`
	// The sandbox opens Hosts, Read and Write to Command: hosts, and absolute paths outside of the workspace. Read
	// and Write only count in the person's own settings.
	Hosts []string `toml:"hosts"`
	Read  []string `toml:"read"`
	Write []string `toml:"write"`
	// URL gets a POST request: https, or http on this machine.
	URL     string            `toml:"url"`
	Headers map[string]string `toml:"headers"` // of the request
	// HeaderEnv names the variables that $NAME or ${NAME} in Headers may refer to. Any other is empty.
	HeaderEnv []string      `toml:"header_env"`
	Timeout   time.Duration `toml:"timeout"` // 0 means a minute; at most an hour
	// OnFailure is [Ignore], which is the default, or before a call and for a prompt also [Deny]: then a failed
	// hook denies the call or the prompt.
	OnFailure string `toml:"on_failure"`
	// Background lets the session continue without waiting. The hook's decisions are ignored; its messages for
	// people are shown.
	Background bool `toml:"background"`
	// Claude means that it speaks the protocol of Claude Code: other JSON in and out, other names of tools, and
	// another form of Match.
	Claude bool `toml:"claude"`

	Source string `toml:"-"` // where it is from, for people: ".claude/settings.json"
	// Event is the Claude Code event of a hook from [ReadClaude]. Empty means the one that fits the moment.
	Event string `toml:"-"`
	If    string `toml:"-"` // a rule of Claude Code, such as "Bash(git *)", that a call must match
	// Kind is the kind of agent whose file has the hook: it runs in sessions of such agents, whose end is
	// SubagentStop for it. Empty means that it is from the settings.
	Kind string `toml:"-"`
	// Broken is the reason why a guard in a file can't run as written: instead, it denies what it might guard.
	// Empty means that it can run.
	Broken string `toml:"-"`
	// PluginRoot is the value of CLAUDE_PLUGIN_ROOT for a hook of Claude Code. Empty means unset.
	PluginRoot string `toml:"-"`
}

// Check returns an error if the hook can't be run as written. Call it when reading settings: in a [Set] such a
// hook only fails when its moment comes, and one without a moment never runs.
func (c Config) Check() error {
	_, err := c.compile()
	return err
}

// compile returns the matcher, even with an error if the matcher can be read, and otherwise the zero one.
func (c Config) compile() (matcher, error) {
	if c.Broken != "" {
		m, _ := newMatcher(c.Match, c.Claude)
		return m, errors.New(c.Broken)
	}
	if !slices.Contains(tool.Moments(), c.On) {
		return matcher{}, fmt.Errorf("on is %q, not a moment%s", c.On, nearest(string(c.On), momentNames()))
	}
	if (c.Command == "") == (c.URL == "") {
		return matcher{}, errors.New("it needs either command or url")
	}
	if strings.ContainsRune(c.Command+strings.Join(c.Args, ""), 0) {
		return matcher{}, errors.New("its command contains a NUL byte")
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
		return matcher{}, errors.New("match has no meaning at a prompt")
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

// checkURL returns an error for addresses that would send the content of a session unencrypted.
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
	return fmt.Errorf("url %q is not https, or http on this machine", text)
}

func (c Config) timeout() time.Duration {
	if c.Timeout == 0 {
		return defaultTimeout
	}
	return c.Timeout
}

// by describes the hook in a line, for people.
func (c Config) by() string {
	what := c.URL
	if what == "" && c.Command != "" {
		what = strings.Join(append([]string{c.Command}, c.Args...), " ")
	}
	out := strings.TrimSpace("hook " + brief(what))
	if c.Source != "" {
		out += " of " + brief(c.Source)
	}
	return out
}

// same reports whether two hooks of Claude Code would do the same, so that one is enough.
func (c Config) same(o Config) bool {
	return c.Claude && o.Claude && c.Command == o.Command && c.URL == o.URL && c.PluginRoot == o.PluginRoot && c.If == o.If && c.Broken == o.Broken &&
		(c.Args == nil) == (o.Args == nil) && slices.Equal(c.Args, o.Args)
}

func momentNames() []string {
	var out []string
	for _, m := range tool.Moments() {
		out = append(out, string(m))
	}
	return out
}

// nearest ends a sentence about an unknown name.
func nearest(name string, known []string) string {
	if near := text.Nearest(name, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return " (there are " + strings.Join(known, ", ") + ")"
}
