package eval

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/config"
)

// The parts of the folder of a task.
const (
	taskFile    = "task.toml"
	askFile     = "instruction.md"
	filesFolder = "files" // copied into the workspace before the agent begins
	checkFolder = "check" // copied next to the workspace after it has ended
	checkScript = "run.sh"
)

// Defaults of tasks.
const (
	usualTime  = 30 * time.Minute
	usualCheck = 5 * time.Minute
	mostText   = 1 << 20 // bytes of an instruction
)

// Task is one task, with its checker.
type Task struct {
	ID     string   // within its suite
	Title  string   //
	Tags   []string //
	Split  Split    // empty means it counts as Dev
	Prompt string   // the agent's prompt
	Digest string   // of its content, sha256 in hex

	Files string      // folder copied into the workspace; empty means none
	Texts [][2]string // paths and contents of files written there
	Clone Clone       // repository cloned there; zero means none
	Image string      // image in which commands run; empty means this machine
	Needs []string    // programs of this machine, without which the task can't be tried
	Flags []string    // of 'inspan run', in addition to those of the run
	Port  bool        // PORT in Prompt, Texts and Check stands for a free port
	Moved bool        // so do /app, /tests and /logs/verifier, and files of Check, for the folders of the trial

	MaxTime  time.Duration
	MaxCost  float64 // US dollars; 0 means no limit
	MaxTurns int     // 0 means that of the settings

	Check   Checker
	Graders []Grader
}

// Clone is a repository at a commit.
type Clone struct{ From, Commit string }

// Checker decides whether a task was done. It runs after the agent has exited, with the workspace as its
// folder; the variable CHECK names the folder that was copied for it.
type Checker struct {
	Folder   string         // folder to copy; empty means none
	Commands [][]string     // each must end with 0, in this order
	Patch    string         // applied to the workspace first
	Answer   string         // instead of commands: the required last message of the agent
	Match    *regexp.Regexp // instead of Answer: a pattern for it
	Asserts  []*Assert      // instead of Answer: conditions that must all hold
	Reward   string         // file below the copied folder in which the commands leave a score; empty means none
	MaxTime  time.Duration
	Open     bool // it reaches processes that the agent left running, so it runs without a sandbox
}

// taskSpec is the content of task.toml.
type taskSpec struct {
	Title    string        `toml:"title"`
	Tags     []string      `toml:"tags"`
	Split    Split         `toml:"split"`
	Image    string        `toml:"image"`
	Needs    []string      `toml:"needs"`
	Flags    []string      `toml:"flags"`
	MaxTime  time.Duration `toml:"max_time"`
	MaxCost  float64       `toml:"max_cost"`
	MaxTurns int           `toml:"max_turns"`
	Check    checkSpec     `toml:"check"`
	Graders  []Grader      `toml:"grader"`
}

type checkSpec struct {
	Command []string      `toml:"command"`
	Answer  string        `toml:"answer"`
	Match   string        `toml:"match"`
	MaxTime time.Duration `toml:"max_time"`
	Open    bool          `toml:"open"`
}

// openTask reads the folder of a task in our own format. The error names everything that is wrong.
func openTask(dir string) (*Task, error) {
	at := filepath.Join(dir, taskFile)
	if _, err := os.Stat(at); err != nil {
		return nil, err
	}
	spec, err := readSpec[taskSpec](at)
	if err != nil {
		return nil, err
	}
	prompt, err := config.ReadAtMost(filepath.Join(dir, askFile), mostText)
	if err != nil {
		return nil, err
	}
	t := &Task{
		ID: filepath.Base(dir), Title: spec.Title, Tags: spec.Tags, Split: spec.Split, Prompt: strings.TrimSpace(string(prompt)),
		Image: spec.Image, Needs: spec.Needs, Flags: spec.Flags, MaxTime: spec.MaxTime, MaxCost: spec.MaxCost, MaxTurns: spec.MaxTurns,
		Graders: spec.Graders,
	}
	if info, err := os.Stat(filepath.Join(dir, filesFolder)); err == nil && info.IsDir() {
		t.Files = filepath.Join(dir, filesFolder)
	}
	if t.Check, err = spec.Check.checker(dir); err == nil {
		err = t.validate()
	}
	if err != nil {
		return nil, config.Faulty(at, err)
	}
	t.Digest, err = folderDigest(dir, nil)
	return t, err
}

// checker returns the checker for the check of a task in a folder.
func (c checkSpec) checker(dir string) (out Checker, err error) {
	out = Checker{Answer: c.Answer, MaxTime: c.MaxTime, Open: c.Open}
	if c.Match != "" {
		if out.Match, err = regexp.Compile(c.Match); err != nil {
			return out, fmt.Errorf("check.match: %w", err)
		}
	}
	folder := filepath.Join(dir, checkFolder)
	if info, err := os.Stat(folder); err == nil && info.IsDir() {
		out.Folder = folder
	}
	_, err = os.Stat(filepath.Join(folder, checkScript))
	switch {
	case len(c.Command) > 0:
		out.Commands = [][]string{c.Command}
	case err == nil:
		out.Commands = [][]string{{"sh", "$CHECK/" + checkScript}}
	case !errors.Is(err, fs.ErrNotExist):
		return out, err
	}
	return out, nil
}

// validate reports what is wrong with a task. Each error begins with the key that it is about.
func (t *Task) validate() error {
	var errs []error
	wrong := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	wrong(!identifier(t.ID), "id: %q is not a name of a task; use up to 100 letters, digits, dots, dashes and underscores",
		text.Cut(t.ID, 120))
	wrong(t.Prompt == "", "%s: it is empty", askFile)
	wrong(!slices.Contains([]Split{"", Train, Dev, HeldOut}, t.Split), "split: unknown value %q; use train, dev or held-out", t.Split)
	for key, negative := range map[string]bool{
		"max_time": t.MaxTime < 0, "max_cost": t.MaxCost < 0, "max_turns": t.MaxTurns < 0, "check.max_time": t.Check.MaxTime < 0,
	} {
		wrong(negative, "%s: it can't be negative", key)
	}
	ways := 0
	for _, way := range []bool{len(t.Check.Commands) > 0, t.Check.Answer != "", t.Check.Match != nil} {
		if way {
			ways++
		}
	}
	wrong(ways > 1, "check: it has more than one of a command, an answer and a match")
	wrong(ways == 0 && !slices.ContainsFunc(t.Graders, func(g Grader) bool { return g.Required }),
		"check: there is none; add %s/%s, check.command, check.answer, check.match, or a [[grader]] that is required", checkFolder, checkScript)
	for i, g := range t.Graders {
		if err := g.validate(); err != nil {
			errs = append(errs, fmt.Errorf("grader[%d]: %w", i, err))
		}
	}
	return errors.Join(errs...)
}

// identifier reports whether a text can be the id of a task: it becomes a part of paths and a label.
func identifier(id string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	return id != "" && len(id) <= 100 && id[0] != '.' && id[0] != '-' && strings.Trim(id, letters) == ""
}

// named makes an id from words.
func named(text string) string {
	id := strings.Map(func(r rune) rune {
		if r < 128 && identifier("x"+string(r)) {
			return r
		}
		return '_'
	}, text)
	return strings.TrimLeft(id, ".-")
}

// limits returns the limits of a task, with defaults for missing ones.
func (t *Task) limits() (agent, check time.Duration) {
	agent, check = t.MaxTime, t.Check.MaxTime
	if agent == 0 {
		agent = usualTime
	}
	if check == 0 {
		check = usualCheck
	}
	return agent, check
}
