package server

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Spec is a client's description of a task.
type Spec struct {
	Prompt      string            `json:"prompt" jsonschema:"what to do, with all the context that the agent needs"`
	Workflow    string            `json:"workflow,omitempty" jsonschema:"workflow to perform, in the place of a prompt: one that is built in, or of the server's user"`
	Inputs      map[string]any    `json:"inputs,omitempty" jsonschema:"inputs of the workflow, by name"`
	Title       string            `json:"title,omitempty" jsonschema:"a title for people"`
	Repository  *Repository       `json:"repository,omitempty" jsonschema:"a git repository to clone into the workspace"`
	Folder      string            `json:"folder,omitempty" jsonschema:"an existing folder on the server to work in, below one of its --folder"`
	Beside      string            `json:"beside,omitempty" jsonschema:"id of a task of yours in whose workspace this one works, which must stay open"`
	GitHub      string            `json:"github,omitempty" jsonschema:"issue or pull request to read first, as OWNER/REPO#NUMBER or its address"`
	Fork        *Fork             `json:"fork,omitempty" jsonschema:"go on with a copy of another task's session, in its workspace"`
	Session     string            `json:"session,omitempty" jsonschema:"go on with a session of this machine that belongs to no task"`
	Model       string            `json:"model,omitempty" jsonschema:"provider/model (default: as the server was started)"`
	Effort      string            `json:"effort,omitempty" jsonschema:"how hard the model reasons (default: as the server was started)"`
	Mode        tool.Mode         `json:"mode,omitempty" jsonschema:"plan, ask, edit, auto or yolo, at most that of the server"`
	MaxCost     float64           `json:"max_cost,omitempty" jsonschema:"maximum cost in US dollars"`
	MaxTurns    int               `json:"max_turns,omitempty" jsonschema:"maximum number of requests to the model"`
	Timeout     int               `json:"timeout_seconds,omitempty" jsonschema:"wall-clock limit with all waits (default: 6 hours, for open tasks none)"`
	Unattended  bool              `json:"unattended,omitempty" jsonschema:"deny calls that would ask"`
	Keep        Keep              `json:"keep,omitempty" jsonschema:"when to keep the workspace: never, failed or always"`
	Labels      map[string]string `json:"labels,omitempty" jsonschema:"labels of your own"`
	Open        bool              `json:"open,omitempty" jsonschema:"stay open for messages after each run, until the task is closed; a prompt is optional"`
	IdleTimeout int               `json:"idle_timeout_seconds,omitempty" jsonschema:"an open task that is idle for so long is closed (default: never)"`
	System      string            `json:"system,omitempty" jsonschema:"text to add to the system prompt"`
	Ask         []string          `json:"ask,omitempty" jsonschema:"rules for calls that ask, such as bash or write(docs/**)"`
	Deny        []string          `json:"deny,omitempty" jsonschema:"rules for calls that are denied"`
	Servers     []MCPServer       `json:"servers,omitempty" jsonschema:"MCP servers whose tools the agent gets"`
	Tools       []ClientTool      `json:"tools,omitempty" jsonschema:"tools that you run: each call is a question, and your answer its result"`
	Elsewhere   bool              `json:"elsewhere,omitempty" jsonschema:"the agent has no tools of the server but for the web"`
}

// Repository is the source of a workspace.
type Repository struct {
	URL    string `json:"url" jsonschema:"https, ssh or file address to clone"`
	Ref    string `json:"ref,omitempty" jsonschema:"branch or tag to start from (default: the default branch)"`
	Branch string `json:"branch,omitempty" jsonschema:"branch to create and work on (default: inspan/TASK)"`
}

// Keep says whether the workspace of a task stays when that has ended.
type Keep string

// Values of Keep. The operator removes workspaces that stay.
const (
	KeepFailed Keep = "failed" // if the task has not completed; the default
	KeepNever  Keep = "never"
	KeepAlways Keep = "always"
)

// Known reports whether k is one of these values, or empty.
func (k Keep) Known() bool { return slices.Contains([]Keep{"", KeepNever, KeepFailed, KeepAlways}, k) }

const (
	mostPrompt     = 1 << 20 // characters
	mostTitle      = 500     // characters
	mostRef        = 200     // bytes of the name of a branch
	labelTask      = "task"  // labels of sessions: this and the next
	labelTenant    = "tenant"
	mostTimeout    = 14 * 24 * time.Hour
	defaultTimeout = 6 * time.Hour
)

// Task is a task and its state.
type Task struct {
	ID        string      `json:"id"`
	Tenant    string      `json:"tenant,omitempty"`
	By        string      `json:"by" jsonschema:"who submitted it"`
	Spec      Spec        `json:"spec"`
	Stage     event.Stage `json:"stage"`
	Why       string      `json:"why,omitempty" jsonschema:"reason of the stage"`
	Created   time.Time   `json:"created"`
	Deadline  time.Time   `json:"deadline,omitzero" jsonschema:"when it times out; an open task may have none"`
	Workspace string      `json:"workspace,omitempty"`
	Session   string      `json:"session,omitempty" jsonschema:"id of its session"`
	Result    *Result     `json:"result,omitempty"`
	History   []Move      `json:"history"`

	cancelled string    // the identity that wants it cancelled; empty means none
	closed    string    // the same for an open task that is to end
	moved     time.Time // when it reached its stage
	place     Place     // place of the object with its id
}

// Move is a stage that a task reached.
type Move struct {
	Stage event.Stage `json:"stage"`
	At    time.Time   `json:"at"`
	Why   string      `json:"why,omitempty"`
}

// Result is the result of a task: its agent's own words, and in addition the evidence.
type Result struct {
	Says     string   `json:"says,omitempty" jsonschema:"the agent's last message"`
	Stopped  string   `json:"stopped,omitempty" jsonschema:"why the run stopped"`
	Evidence Evidence `json:"evidence"`
	Seq      uint64   `json:"seq,omitempty" jsonschema:"number of the last event of the session that it is about"`
	Turns    int      `json:"turns"`
	Cost     float64  `json:"cost" jsonschema:"US dollars"`
	Unpriced bool     `json:"unpriced,omitempty" jsonschema:"the cost excludes replies with unknown prices"`
	Seconds  float64  `json:"seconds" jsonschema:"since it was submitted"`
}

// Evidence was found in the workspace, independently of the agent's words.
type Evidence struct {
	Branch      string   `json:"branch,omitempty"`
	Base        string   `json:"base,omitempty" jsonschema:"commit that the work started from"`
	Commits     []string `json:"commits,omitempty" jsonschema:"new commits, the newest first: abbreviated id and subject"`
	Uncommitted []string `json:"uncommitted,omitempty" jsonschema:"uncommitted changes, as git status --porcelain prints them"`
	Pushed      bool     `json:"pushed,omitempty" jsonschema:"the remote has the branch with all commits"`
	Problem     string   `json:"problem,omitempty" jsonschema:"why git could not tell"`
}

// rests reports whether a task has no work until a message comes, and for how long at most.
func (t *Task) rests(now time.Time) (left time.Duration, ok bool) {
	left = time.Hour // then it is checked again
	if !t.Deadline.IsZero() {
		left = min(left, t.Deadline.Sub(now))
	}
	if t.Spec.IdleTimeout > 0 {
		left = min(left, t.moved.Add(time.Duration(t.Spec.IdleTimeout)*time.Second).Sub(now))
	}
	return left, t.Stage == StageIdle && t.cancelled == "" && t.closed == "" && left > 0
}

// light reports whether work on the task takes no slot, or only briefly.
func (t *Task) light() bool {
	return t.cancelled != "" || t.Stage == StageWaiting && t.Why == ""
}

// copied returns a copy of the task that the caller may keep.
func (t *Task) copied() Task {
	c := *t
	c.History = slices.Clone(t.History)
	return c
}

// check reports what is wrong with a spec of a tenant.
func (s *Server) check(ctx context.Context, tenant string, p Spec) error {
	if err := clean("", reflect.ValueOf(p)); err != nil {
		return err // doors of other protocols use this too
	}
	switch {
	case p.Workflow != "":
		if err := s.checkWorkflow(p); err != nil {
			return err
		}
	case len(p.Inputs) > 0:
		return Wrong("inputs", "no workflow is set", "a workflow that has them")
	case strings.TrimSpace(p.Prompt) == "" && !p.Open && p.GitHub == "":
		return Wrong("prompt", "it is missing", "a text that says what to do")
	case strings.ContainsAny(p.Title, "\r\n\t"):
		return Wrong("title", "it has more than one line", "a title on one line")
	case p.Timeout < 0 || p.Timeout > int(mostTimeout/time.Second):
		return Wrong("timeout_seconds", fmt.Sprintf("it is %d", p.Timeout), fmt.Sprintf("0 to %d", int(mostTimeout.Seconds())))
	case p.IdleTimeout < 0 || p.IdleTimeout > int(mostTimeout/time.Second):
		return Wrong("idle_timeout_seconds", fmt.Sprintf("it is %d", p.IdleTimeout), fmt.Sprintf("0 to %d", int(mostTimeout.Seconds())))
	case p.MaxCost < 0:
		return Wrong("max_cost", "it is below 0", "0 or more")
	case p.MaxTurns < 0:
		return Wrong("max_turns", "it is below 0", "0 or more")
	case p.Effort != "" && !slices.Contains(llm.Efforts(), p.Effort):
		return Wrong("effort", fmt.Sprintf("it is %q", p.Effort), fmt.Sprint("one of ", llm.Efforts()))
	case !p.Keep.Known():
		return Wrong("keep", fmt.Sprintf("it is %q", p.Keep), "never, failed or always")
	case p.Repository != nil && p.Folder != "":
		return Wrong("folder", "repository is set too", "one of the two")
	case p.Beside != "" && (p.Repository != nil || p.Folder != ""):
		return Wrong("beside", "repository or folder is set too", "one of the three")
	}
	if err := p.Mode.Check(); err != nil {
		return Wrong("mode", err.Error(), "plan, ask, edit or auto")
	}
	if modes, most := tool.Modes(), s.mode(tenant); slices.Index(modes, p.Mode) > slices.Index(modes, most) {
		return Wrong("mode", fmt.Sprintf("this server does not allow mode %s", p.Mode), fmt.Sprintf("%s or a stricter mode", most))
	}
	for _, name := range []string{labelTask, labelTenant} {
		if _, there := p.Labels[name]; there {
			return Wrong("labels", fmt.Sprintf("the server sets label %q itself", name), "another name")
		}
	}
	if err := (event.Opened{Labels: p.Labels}).Check(); err != nil {
		return Wrong("labels", err.Error(), "")
	}
	if p.Model != "" && s.HasModel != nil {
		if err := s.HasModel(p.Model); err != nil {
			what := err.Error()
			if tenant != "" { // what it lacks is the operator's business
				what = "this server can't use it"
			}
			return Wrong("model", what, "a model of this server")
		}
	}
	if p.GitHub != "" {
		if _, err := checkIssue(p.GitHub); err != nil {
			return err
		}
	}
	if err := p.checkAgent(tenant, s.installed(ctx, p)); err != nil {
		return err
	}
	if p.Session != "" { // it names its folder
		return nil
	}
	if s.Carry != nil && p.Folder != "" {
		return Wrong("folder", "sessions of this server move between machines, but folders don't", "a repository to clone")
	}
	if p.Repository == nil {
		return s.checkFolder("folder", p.Folder)
	}
	_, err := s.checkRepository(ctx, p.Repository)
	return Within("repository", err)
}

// checkRepository reports what is wrong with a repository, as far as that can be told before it is
// cloned.
func (s *Server) checkRepository(ctx context.Context, r *Repository) (origin, error) {
	from, err := r.origin()
	if err != nil {
		return from, err
	}
	if from.url.Scheme == "file" {
		err = s.checkFolder("url", from.url.Path)
	} else {
		err = s.checkOrigin(ctx, from)
	}
	if err != nil {
		return from, err
	}
	return from, r.check()
}

// check reports what is wrong with the branches of a repository.
func (r *Repository) check() error {
	for field, name := range map[string]string{"ref": r.Ref, "branch": r.Branch} {
		if name != "" && !isRef(name) {
			return Wrong(field, fmt.Sprintf("%q is not a name that git takes for a branch", words.OneLine(name, 80)), "a name such as fix/login")
		}
	}
	return nil
}

// isRef reports whether git takes a name for a branch, by the rules of git-check-ref-format(1).
func isRef(name string) bool {
	odd := func(c rune) bool { return c < ' ' || c == 0x7f || strings.ContainsRune(" ~^:?*[\\", c) }
	if name == "HEAD" || name == "@" || len(name) > mostRef || strings.HasPrefix(name, "-") || strings.HasSuffix(name, ".") ||
		strings.Contains(name, "..") || strings.Contains(name, "@{") || strings.ContainsFunc(name, odd) {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return true
}

// checkFolder reports why a task can't use a folder of this machine, which a field names.
func (s *Server) checkFolder(field, folder string) error {
	if folder == "" {
		return nil
	}
	real, err := filepath.EvalSymlinks(folder)
	if err != nil || !filepath.IsAbs(folder) || text.Inside(s.Dir, real) ||
		!slices.ContainsFunc(s.Folders, func(f string) bool { return text.Inside(f, real) }) {
		if len(s.Folders) == 0 {
			return Wrong(field, "this server allows no folders of its machine", "a repository to clone")
		}
		return Wrong(field, "the folder does not exist, or this server does not allow it", "a folder in "+strings.Join(s.Folders, ", "))
	}
	return nil
}
