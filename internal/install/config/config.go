// Package config reads inspan's settings: one strict TOML file for the user. An unknown key is an error that
// names the nearest known one. It checks fields; the packages that use rules, servers and logins check those
// before the settings are used.
package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/extend/hook"
	"github.com/inspan/inspan/internal/extend/profile"
	"github.com/inspan/inspan/internal/safety/guard"
	"github.com/inspan/inspan/internal/world/web"
	"github.com/inspan/inspan/tool"
)

// Config is the settings of a person. The zero value works.
type Config struct {
	Model     string        `toml:"model"`            // "provider/model"; empty: the first configured one
	Mode      tool.Mode     `toml:"mode"`             // permission mode; empty: ask
	MaxTurns  *int          `toml:"max_turns"`        // of one run; 0: no limit; not set: 200
	MaxCost   float64       `toml:"max_cost"`         // US dollars of a session; 0: no limit
	MaxTokens int64         `toml:"max_tokens"`       // of a session, prompts and replies; 0: no limit
	MaxTime   time.Duration `toml:"max_time"`         // of one run, as "90s"; 0: no limit
	DayCost   float64       `toml:"max_cost_per_day"` // US dollars of all sessions of a day (UTC); 0: no limit
	// US dollars, and tokens, of a session and its agents in a minute; 0 means no limit; not set: ten times what is
	// usual
	MinuteCost   *float64 `toml:"max_cost_per_minute"`
	MinuteTokens *int64   `toml:"max_tokens_per_minute"`
	// how long to retry an unavailable model, as "90s"; 0 means as inspan.Agent has it
	RetryFor time.Duration `toml:"retry_for"`
	Effort   string        `toml:"effort"`       // reasoning: low, medium, high, xhigh, max; empty: the vendor's default
	Fallback []string      `toml:"fallback"`     // fallback models, in order
	Style    string        `toml:"output_style"` // name of the text that says how the model answers; empty: default
	Allow    []string      `toml:"allow"`        // rules, such as "bash(go test *)"
	Ask      []string      `toml:"ask"`
	Deny     []string      `toml:"deny"`
	Rules    []Rule        `toml:"rule"`        // rules with a reason and with examples
	Folders  []string      `toml:"folders"`     // further folders that sessions use as they use the workspace; absolute, or with ~/
	Public   []string      `toml:"public"`      // globs of paths that are not sensitive; relative to the workspace, or with ~/
	Timeout  time.Duration `toml:"ask_timeout"` // how long a question waits before the call is denied; 0: forever
	// what happens to processes that still run at a normal end: end or keep; empty means keep in mode yolo, else
	// end
	Leftovers   string        `toml:"leftovers"`
	Sandbox     Sandbox       `toml:"sandbox"`
	Checkpoints Checkpoints   `toml:"checkpoints"`
	Retention   Retention     `toml:"retention"`
	Reviewer    *Reviewer     `toml:"reviewer"`           // a second model that reviews risky calls; nil: none
	Checks      []guard.Check `toml:"check"`              // patterns that refuse messages, replies, calls and results
	Protected   []string      `toml:"protected_branches"` // globs of branches that the git tool does not push to; not set: main and master
	NoLSP       bool          `toml:"no_lsp"`             // language servers are not used
	Levers      event.Levers  `toml:"levers"`             // aids for models; docs/LEVERS.md
	Web         web.Settings  `toml:"web"`
	Agents      Agents        `toml:"agents"`
	Programs    Programs      `toml:"programs"`
	Skills      Skills        `toml:"skills"`
	Memory      Memory        `toml:"memory"`
	MCP         MCP           `toml:"mcp"`
	// ToolSecrets are the environment variables that a user's own tools get if they ask
	// for them: by the source of the tool, "user" or "project", and by its name.
	ToolSecrets map[string]map[string][]string `toml:"tool_secrets"`
	Keys        map[string][]string            `toml:"keys"`         // of the interactive front end, by action; /help lists the actions
	TUI         TUI                            `toml:"tui"`          // the interactive front end
	Notify      Notify                         `toml:"notify"`       // calls for a person who is away
	Hooks       []hook.Config                  `toml:"hook"`         // hooks; see docs/HOOKS.md
	ClaudeHooks bool                           `toml:"claude_hooks"` // also run those of ~/.claude/settings.json
	Providers   map[string]Provider            `toml:"providers"`    // by the name used before the slash
	Profiles    []profile.Profile              `toml:"profiles"`     // adjustments for single models; they come before built-in ones
	Router      *Router                        `toml:"router"`       // rules of the model "router/auto"; nil: there is none
}

// Sandbox grants processes more than the sandbox of the modes does.
type Sandbox struct {
	Off         bool     `toml:"off"`         // no sandbox; more commands will ask
	Container   string   `toml:"container"`   // run commands in a container of this image instead of the kernel sandbox; empty: none
	Engine      string   `toml:"engine"`      // podman or docker, name or path; empty: the first found
	Outside     []string `toml:"outside"`     // programs, by absolute path, that your own hooks and status line may run without the sandbox
	Environment []string `toml:"environment"` // variables to pass to commands although they look like secrets
	Local       []string `toml:"local"`       // private ranges that hosts may have addresses in, such as "10.0.0.0/8"
	Memory      int64    `toml:"memory_mb"`   // most megabytes of one process; 0: no limit
	Processes   int      `toml:"processes"`   // most processes of one command; 0: the default
	CPU         int      `toml:"cpu_seconds"` // most processor time of one process; 0: no limit
	FileSize    int64    `toml:"file_mb"`     // largest file a process may write; 0: no limit
}

// Ranges returns the local ranges.
func (s Sandbox) Ranges() ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, text := range s.Local {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("local: %q is not a range such as \"10.0.0.0/8\"", text)
		}
		out = append(out, p)
	}
	return out, nil
}

// Skills lists further folders of skills.
type Skills struct {
	Off       bool     `toml:"off"`        // no skills
	NoBuiltin bool     `toml:"no_builtin"` // no built-in skills
	Folders   []string `toml:"folders"`    // absolute paths
}

// Memory says whether sessions have a memory.
type Memory struct {
	Off bool `toml:"off"` // no memory
}

// Agents configures subagents.
type Agents struct {
	Off   bool   `toml:"off"`   // no subagents
	Small string `toml:"small"` // "provider/model" for small tasks; empty: the parent's model
	Depth int    `toml:"depth"` // how deep subagents may nest; 0: 2
	Open  int    `toml:"open"`  // most subagents of a session at the same time; 0: 64

	// Setup is a command line for sh that makes each copy of a workspace ready in which a subagent works apart. It
	// runs once there, in the sandbox, before the subagent begins.
	Setup      string   `toml:"setup"`
	SetupHosts []string `toml:"setup_hosts"` // hosts that it may reach; none for isolation sandbox

	Corpus bool `toml:"corpus"` // the tool ask_corpus, and the kind of agent behind it
}

// Programs limits the programs of 'inspan ask-corpus --program'.
type Programs struct {
	Depth  *int `toml:"depth"`  // 0: they ask no model; 1: they do; not set: 1
	Asks   int  `toml:"asks"`   // most requests of a session; 0: 2000
	Tokens int  `toml:"tokens"` // most tokens of these requests together; 0: no limit
	Plain  *int `toml:"plain"`  // tokens up to which one request has the whole text instead; not set: 16384; 0: never
}

// Limits returns the limits of a new session.
func (p Programs) Limits() event.Programs {
	out := event.Programs{Depth: 1, Asks: cmp.Or(p.Asks, usualAsks), Tokens: p.Tokens, Plain: usualPlain}
	if p.Depth != nil {
		out.Depth = *p.Depth
	}
	if p.Plain != nil {
		out.Plain = *p.Plain
	}
	return out
}

const (
	usualAsks  = 2_000
	usualPlain = 1 << 14 // tokens
)

// check returns errors for values out of range.
func (p Programs) check() error {
	l := p.Limits()
	return errors.Join(checkRange("programs.depth", int64(l.Depth), 1), checkRange("programs.asks", int64(l.Asks), mostAsks),
		notNegative("programs.tokens", l.Tokens), notNegative("programs.plain", l.Plain))
}

// mostAsks is the largest number of requests of a session: each is a call in its log.
const mostAsks = 20_000

// Checkpoints configures the checkpoints of workspaces.
type Checkpoints struct {
	Off   bool  `toml:"off"`      // no checkpoints
	Quota int64 `toml:"quota_mb"` // most megabytes for one workspace; the oldest checkpoints go first; 0: 2 GiB
}

// Retention says which sessions 'inspan sessions prune' removes. By default it removes none.
type Retention struct {
	Days int64 `toml:"days"`    // age in days of the last use of a session that is removed; 0: no limit
	Size int64 `toml:"size_mb"` // most megabytes of all sessions together, the oldest go first; 0: no limit
}

// mostDays is the largest number of days that fits into a duration.
const mostDays = 100_000

// Check returns errors for values out of range.
func (r Retention) Check() error {
	return errors.Join(checkRange("retention.days", r.Days, mostDays), checkRange("retention.size_mb", r.Size, mostMegabytes))
}

// Reviewer is a model that judges risky calls before they run.
type Reviewer struct {
	Model   string        `toml:"model"`    // "provider/model"
	MaxCost float64       `toml:"max_cost"` // US dollars of a session's reviews; 0: no limit
	Timeout time.Duration `toml:"timeout"`  // of one review; 0: 30 seconds
	Allow   bool          `toml:"allow"`    // in unattended mode auto it decides instead of a person
}

// Organisation is the settings of a machine's administrator for all its users. They apply in addition to the
// users' own.
type Organisation struct {
	Modes []tool.Mode `toml:"modes"` // the permission modes that may be used; none: all
	Allow []string    `toml:"allow"`
	Ask   []string    `toml:"ask"`
	Deny  []string    `toml:"deny"`
	Rules []Rule      `toml:"rule"`
}

// OrganisationFile is the path of the organisation's settings.
const OrganisationFile = "/etc/inspan/config.toml"

// Project is the settings of the workspace. They can only restrict.
type Project struct {
	Ask   []string `toml:"ask"`
	Deny  []string `toml:"deny"`
	Rules []Rule   `toml:"rule"` // none of them allows
	// Hooks run once the person trusts the content of the file.
	Hooks []hook.Config `toml:"hook"`
}

// ProjectFile is the path of a project's settings, below its root.
const ProjectFile = ".inspan/config.toml"

// Dir returns the folder of the user's settings. INSPAN_CONFIG_DIR overrides it. For a user without a home
// folder it is below the sessions folder, if that is set.
func Dir() (string, error) {
	if dir := os.Getenv("INSPAN_CONFIG_DIR"); dir != "" {
		return filepath.Abs(dir)
	}
	base, err := os.UserConfigDir()
	if err == nil {
		return filepath.Abs(filepath.Join(base, "inspan"))
	}
	if state := namedState(); state != "" {
		return filepath.Abs(filepath.Join(state, "config"))
	}
	return "", fmt.Errorf("find the settings folder: %w", err)
}

// StateDir returns the state folder. INSPAN_STATE_DIR overrides it, then XDG_STATE_HOME. For a user without a
// home folder it is below the settings folder, if that is set.
func StateDir() (string, error) {
	if dir := namedState(); dir != "" {
		return filepath.Abs(dir)
	}
	home, err := os.UserHomeDir()
	if err == nil {
		return filepath.Abs(filepath.Join(home, ".local", "state", "inspan"))
	}
	if dir := os.Getenv("INSPAN_CONFIG_DIR"); dir != "" {
		return filepath.Abs(filepath.Join(dir, "state"))
	}
	return "", fmt.Errorf("find the folder for sessions: %w", err)
}

// namedState returns the state folder that the environment sets; empty if it does not.
func namedState() string {
	if dir := os.Getenv("INSPAN_STATE_DIR"); dir != "" {
		return dir
	}
	if base := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "inspan")
	}
	return ""
}

// Load reads the file at path. A missing file gives the zero Config. The error contains every [Fault] of the
// file; valid settings are returned anyway.
func Load(path string) (Config, error) {
	c, err := decode[Config](path)
	return c, Faulty(path, err, c.check())
}

// LoadOrganisation reads the organisation's settings at path, as [Load] does.
func LoadOrganisation(path string) (Organisation, error) {
	o, err := decode[Organisation](path)
	errs := []error{err, checkActions(o.Rules)}
	for _, mode := range o.Modes {
		errs = append(errs, keyed("modes", mode.Check()))
	}
	return o, Faulty(path, errs...)
}

// LoadProject reads a project's settings at path, as [Load] does.
func LoadProject(path string) (Project, error) {
	p, err := decode[Project](path)
	return p, Faulty(path, err, p.check())
}

// Read reads another strict file at path into a struct with toml tags, as [Load] does.
func Read[T any](path string) (T, error) {
	c, err := decode[T](path)
	return c, Faulty(path, err)
}

// decode reads the valid part of a file; the error is about the rest. A missing file gives the zero value.
func decode[T any](path string) (T, error) {
	data, tree, err := parsed(path)
	if err != nil || tree == nil {
		var zero T
		return zero, err
	}
	return decoded[T](path, data, tree)
}

// decoded is decode for data and its tree.
func decoded[T any](path string, data []byte, tree map[string]any) (T, error) {
	var c T
	fits, errs := fitted[T](path, string(data), tree)
	if len(errs) > 0 { // otherwise the file is decoded as written
		var b bytes.Buffer
		if err := toml.NewEncoder(&b).Encode(fits); err != nil {
			return c, errors.Join(append(errs, err)...)
		}
		data = b.Bytes()
	}
	errs = append(errs, Decode(path, data, &c))
	return c, errors.Join(errs...)
}

// fitted returns the valid part of a tree, its keys spelled as the settings have them, and a [Fault] for each other
// part. The text is that of the file, for the numbers of lines.
func fitted[T any](path, text string, tree map[string]any) (fits map[string]any, errs []error) {
	f := fitting{mask: newMask(), project: reflect.TypeFor[T]() == reflect.TypeFor[Project]()}
	valid, _ := f.value(reflect.TypeFor[T](), "", tree)
	fits, _ = valid.(map[string]any)
	lines := keyLines(text)
	for _, wrong := range f.wrong {
		errs = append(errs, Fault{Path: path, Line: lineOf(lines, wrong.key), Key: wrong.key, Err: wrong.err})
	}
	return fits, errs
}

// parsed parses a file into a tree; nil means it is missing.
func parsed(path string) (data []byte, tree map[string]any, err error) {
	data, err = read(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, Fault{Path: path, Err: keep.Bare(err)}
	}
	tree = map[string]any{}
	if err := Decode(path, data, &tree); err != nil {
		return nil, nil, err
	}
	return data, tree, nil
}

// Decode decodes the TOML of the file at path. The error is a [Fault], in words for people.
func Decode(path string, data []byte, into any) error {
	if deep(string(data)) {
		return Fault{Path: path, Err: fmt.Errorf("it is nested too deeply: keys have at most %d parts, and tables are in at most %d others",
			mostParts, mostDeep)}
	}
	_, err := toml.Decode(string(data), into)
	if err == nil {
		return nil
	}
	if parse, ok := errors.AsType[toml.ParseError](err); ok {
		return Fault{Path: path, Line: parse.Position.Line, Err: fmt.Errorf("it is not TOML: %s", strings.TrimSuffix(parse.Message, "."))}
	}
	f := Fault{Path: path, Err: errors.New("a value has the wrong type")}
	if m := wrongType.FindStringSubmatch(err.Error()); m != nil {
		f.Line, _ = strconv.Atoi(m[1])
		f.Key, f.Err = m[2], fmt.Errorf("%s: its value has the wrong type", m[2])
	}
	return f
}

// wrongType matches the line and the key in an error of the decoder, which has no type for it.
var wrongType = regexp.MustCompile(`line (\d+) \(last key "(.+?)"\)`)

// Values of leftovers.
const (
	LeftoversEnd  = "end"  // nothing outlives a session
	LeftoversKeep = "keep" // running processes do
)

// Keeps reports whether processes that run at the normal end of a session continue. By default they do in mode
// yolo. In other modes only jobs that bash was asked to keep continue.
func (c Config) Keeps(mode tool.Mode) bool {
	return c.Leftovers == LeftoversKeep || c.Leftovers == "" && mode == tool.ModeYolo
}

// keysAt lists the keys of the table at a path below a type, in the order of its fields.
func keysAt(t reflect.Type, path []string) []string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() == reflect.Map && len(path) > 0 {
		return keysAt(t.Elem(), path[1:]) // any name is valid
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	var keys []string
	for _, f := range reflect.VisibleFields(t) {
		key := f.Tag.Get("toml")
		if f.Anonymous || key == "-" {
			continue // its fields follow, or it is not in the file
		}
		if len(path) > 0 && strings.EqualFold(key, path[0]) {
			return keysAt(f.Type, path[1:])
		}
		keys = append(keys, key)
	}
	if len(path) > 0 {
		return nil
	}
	return keys
}

// TUI configures the appearance and behaviour of the interactive front end.
type TUI struct {
	Theme string `toml:"theme"` // light, dark or auto: ask the terminal; empty: auto
	// command whose first line of output is the status line; it reads the state as JSON
	StatusLine   string `toml:"status_line"`
	Vim          bool   `toml:"vim"`           // the prompt has vim's normal and insert mode
	ScreenReader bool   `toml:"screen_reader"` // plain lines with words for marks, and nothing that moves
}

// Check returns errors for invalid values.
func (t TUI) Check() error {
	line := error(nil)
	if strings.ContainsAny(t.StatusLine, "\x00\n") {
		line = fmt.Errorf("tui.status_line: %q is not one line", t.StatusLine)
	}
	return errors.Join(oneOf("tui.theme", t.Theme, "light", "dark", "auto"), line)
}

// Lesser returns the lower of two limits; 0 means no limit. A negative first one explicitly means no limit.
func Lesser[N ~int | ~int64 | ~float64](a, b N) N {
	if b != 0 && (a <= 0 || b < a) {
		return b
	}
	return a
}
