// Package tool defines what a model can call: tools with typed arguments, the
// effects of a call, the judges that decide whether it may happen, and the
// seams ([Env]) through which every effect on the world passes.
//
// Use [New] for a tool of your own, and give it Effects: a tool without them could do anything, so each of its
// calls asks. Let a tool act on the world through the [Env] of its call and through nothing else; only then
// do rules, the sandbox and checkpoints hold for it. A program in another language needs no Go (see
// docs/TOOLS.md), and tools of MCP servers come from package mcptool.
//
// # Compatibility
//
// Interfaces keep their methods; further abilities of an implementation become optional interfaces. New fields
// have a zero value with which a tool, a call or a verdict means what it meant before.
package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/inspan/inspan/llm"
)

// A Tool is something a model can call. Make one with [New], or fill in the struct for full control of
// arguments and schema.
type Tool struct {
	// Name is the name that the model uses: [a-zA-Z0-9_-]{1,64}, unique in a session.
	Name string
	// Doc describes the tool to the model.
	Doc string
	// Schema is the JSON Schema of the arguments, always of type object.
	Schema json.RawMessage

	// CodeDigest is the digest of the code that Run runs, if that code is not part of the program that embeds the agent.
	// The log has it for each call, so that statistics of one version are not counted for a later one of the same
	// name. Empty means there is none.
	CodeDigest string

	// Lenient leaves out fields of a call that Schema does not know, unless their names look like a slip of a
	// known one. Without it, unknown fields are errors where the schema allows none. Meant for tools that only
	// read.
	Lenient bool
	// HiddenFields are fields of Schema that requests don't describe to the model: they are rare, or can't work in
	// this environment. A call may still have them.
	HiddenFields []string

	// Vendor is the vendor's own type for the tool, see [llm.ToolSpec]; empty means there is none.
	Vendor string

	// ModelSchema is the schema that the model sees instead of Schema, if not nil: a form that is easier to write.
	// Arguments that fit it must fit Schema after Normalize.
	ModelSchema json.RawMessage

	// Normalize converts arguments written in the style of other tool sets to the form of Schema, if not nil. It
	// gets the fields as written, before they are checked, changes them in place, and leaves alone those it
	// does not understand. Numbers are [json.Number]. A second conversion must change nothing.
	Normalize func(args map[string]any)

	// Effects derives the effects of this call from its arguments, before it is judged. It may resolve paths but
	// must change nothing. Nil, like an error, means that the call could do anything: [External]. If the error
	// wraps [ErrInvalid], or if Effects, Normalize or Resolve panics, the call fails without asking anyone.
	Effects func(ctx context.Context, c *Call) ([]Effect, error)

	// Preview shows a person the change that the call would make, such as a diff. Nil or an error means that the
	// arguments are enough. The approval mentions a panic. If the error wraps [ErrInvalid], the call can't be made:
	// it fails with this error, and no one is asked, unless an earlier call of the same reply may change the
	// outcome, or the agent may not read the files that the call would change.
	Preview func(ctx context.Context, c *Call) (string, error)

	// Resolve, if not nil, may turn a call of this tool into one of another tool: it returns that tool's name
	// and arguments. Judges see the other call, and Effects, Preview and Run are not used. An empty name means
	// that the call stays as it is. The model sees the error.
	Resolve func(ctx context.Context, c *Call) (name string, args json.RawMessage, err error)

	// Ready, if not nil, is called whenever inspan sends a request to a model that has this tool, so that slow
	// preparations can begin early. It returns at once and changes nothing visible. Of the call it gets Env,
	// Cwd and Mode.
	Ready func(c *Call)

	// Delegates says that calls of this tool start other sessions, whose own calls are judged one by one. A
	// checkpoint of the workspace is taken before and after the call.
	Delegates bool

	// Calls says that Run may call other tools with [Call.Do], and has no effect on the world otherwise. Each
	// of those calls is judged; this one is not, and Effects is not used. It runs alone: no other call of the
	// reply runs at the same time.
	//
	// If the program ends while Run runs, or if all that it waits for is a person's decision, inspan calls Run
	// again later from its beginning, and Do returns the recorded results. So Run must make the same calls when
	// it gets the same results: it may decide only by its arguments and by results of its calls. A run that
	// leaves out a call of the first run fails, unless that call was one requested ahead.
	Calls bool

	// AsksAhead says that a tool with Calls can request several approvals at once: [Call.Do] returns [ErrHeld] for
	// a call that waits for a person, instead of waiting. Run may then continue with calls that do not depend on
	// its result, and the person is asked about all of them together. Of those calls only the read-only ones may
	// run meanwhile; for others, and for calls that must run after a waiting one, Do returns ErrHeld too. In the
	// end, within seconds and when none of its calls is running, Run returns an error that wraps ErrHeld. inspan
	// calls it again from its beginning after the decision. A call requested after a waiting one runs only if Run
	// reaches it again, which it need not: the waiting call may have failed.
	AsksAhead bool

	// Run performs the call. An error is data for the model: the call has failed, and the contents of Result
	// are shown before the error's text. Run must return soon after ctx is done; inspan abandons one that takes
	// longer than a few seconds and drops its result. Several calls may run at once if their effects do not
	// conflict. Panics are caught and reported as errors.
	Run func(ctx context.Context, c *Call) (Result, error)

	compiled *compiled // of Schema, kept by New so that Check need not parse it each time
}

// Spec returns the tool as the model sees it. Its schema has a form that all vendors accept; the description
// has what that form can't express. [Tool.Check] uses Schema itself.
func (t Tool) Spec() llm.ToolSpec {
	schema, words := t.offered()
	doc := t.Doc
	if words != "" {
		doc = strings.TrimSpace(doc + "\n" + words)
	}
	return llm.ToolSpec{Name: t.Name, Description: doc, Schema: schema, Vendor: t.Vendor}
}

// offered returns the schema in the form that vendors accept, and text for the parts that it can't express. For a
// tool made by [New] it is computed once.
func (t Tool) offered() (json.RawMessage, string) {
	shown := t.shown()
	if t.compiled != nil && bytes.Equal(shown, t.compiled.text) {
		return t.compiled.offered()
	}
	return offered(shown)
}

// Seen returns the digest of a file when the session last read or wrote it, by resolved path; ok is false if it
// did neither. Nil has seen no file. Safe for concurrent use.
type Seen func(path string) (digest string, ok bool)

// Digest calls s. It is safe to call on a nil Seen.
func (s Seen) Digest(path string) (digest string, ok bool) {
	if s == nil {
		return "", false
	}
	return s(path)
}

// A Call is one call of a tool, with access to everything it may touch.
type Call struct {
	ID       string
	Key      string // the same for every try of the call, and for no other call: an idempotency key
	Name     string
	CalledAs string          // the name the model wrote, where that tool stands for this one; else empty
	Args     json.RawMessage // one JSON object, repaired, coerced and valid for the schema
	// Parent is the id of the call that made this one with Do. Empty means the model made it.
	Parent string

	Session string // id of the session
	Who     Actor  // whose session it is
	// Traceparent is the span of the call in the form of W3C Trace Context, for services that the call uses.
	// Processes of Env have it in TRACEPARENT, and Session and Who in INSPAN_SESSION, INSPAN_AGENT (the kind),
	// INSPAN_PARENT and INSPAN_LEAD. Empty outside of Run.
	Traceparent string
	Env         Env
	Cwd         string // directory relative paths start from; absolute
	Mode        Mode   // of the session
	Task        string // what was asked for, the last words last; empty if nothing was
	// FromLead says that the task was given by the agent that the session works for, not by a person.
	FromLead bool
	// Answer is the person's answer to a call with the effect [Question].
	Answer string
	Seen   Seen   // files that the session has read or written, as it was when the call began
	Todo   []Todo // the session's list of things to do, the same
	// Untrusted says that the session has seen content from unverified sources, such as a web page.
	Untrusted bool

	// Progress shows text to people who watch; it is not stored. Never nil while Run is called. Safe for
	// concurrent use.
	Progress func(text string)
	// Ask asks the person a question while the call runs, optionally with answers to choose from. It returns the
	// person's answer, which need not be one of the options. Empty means they declined or did not answer in time.
	// An error says that no one can be asked. Ask is nil outside of Run, for a tool with Calls (which would ask
	// again), and where there is never a person to ask. Safe for concurrent use.
	Ask func(ctx context.Context, question string, options []string) (answer string, err error)
	// Do calls another tool and waits for its end. That call is judged, stored, limited and interrupted like
	// one of the model, and may wait for a person. Do returns the result as the model would have seen it. If
	// the call did not succeed, the error is a [*CallError], and the Result holds what there is. Do is nil
	// outside of Run and for a tool without Calls. Safe for concurrent use.
	Do func(ctx context.Context, name string, args json.RawMessage) (Result, error)
	// Start is Do in two parts: it requests the call and returns; wait waits for its end. Among parallel calls
	// that conflict, the one requested first runs first.
	Start func(ctx context.Context, name string, args json.RawMessage) (wait func() (Result, error))
	// Waiting says that the tool will request no other call until one of the calls it waits for has ended. A
	// repeated run that has left out a call then fails at once, instead of waiting for later
	// calls. Calling it is optional.
	Waiting func()
	// Time is when the call was made, the same for every try. Set only for a tool with Calls.
	Time time.Time
	// Store has the values that earlier calls left in Result.Store. It must not be changed.
	Store map[string]json.RawMessage
	// Finished reports the end of the background job that this call has started. Call it once, at any time,
	// also before Run returns. Nil outside of Run. Safe for concurrent use.
	Finished func(end JobEnd)
}

// Result is the result of a call.
type Result struct {
	Parts llm.Parts // Text and Image
	Files []File    // files read or written, for staleness checks and for readers of the log
	Cwd   string    // directory later calls start from; empty means unchanged
	Exit  *int      // exit code of the process the call was about; nil means none, or still running
	Todo  []Todo    // the session's list of things to do from now on; nil means unchanged
	// Show is markdown for the person, who sees it in full; the model does not get it. Images in it are PNGs as
	// data URLs.
	Show string
	// AllowFlags are command-line flags that would let later sessions do what the sandbox refused this call, such as
	// "--add-dir /data".
	AllowFlags []string
	// Fetched counts the requests of the call to package registries, by host.
	Fetched map[string]int
	// Cost is the amount that the call has spent, such as on a model that it asked, in US dollars. It counts toward
	// the session, even if Run returns an error.
	Cost float64
	// Untrusted says that Parts may hold text from unverified sources although no effect of the call says so.
	// The session then counts as having seen such content.
	Untrusted bool
	// Lasting names information in Parts that the model needs for longer, such as "skill review": compaction keeps
	// the text until a later result has the same name. Empty means no such information.
	Lasting string
	// Job is the background job that the call has started, or nil. LeftProcesses says that other processes are still
	// running.
	Job           *Job
	LeftProcesses bool
	// EndedJobs are the ids of jobs whose end Parts report.
	EndedJobs []string
	// Store adds values to those that later calls of the session find in Call.Store. A null deletes a value.
	Store map[string]json.RawMessage
	// Position is the position of a result of Call.Do in the log's order. Results of parallel calls arrive in any
	// order; a tool that decides by order must use this one.
	Position int
	// Proposal is a tool that the model has written and that the session has from now on. Nil means none.
	Proposal *Proposal
}

// Proposal is a tool that the model of a session has written.
type Proposal struct {
	Name string `json:"name"` // of the tool; a later one takes the place of an earlier one
	Blob string `json:"blob"` // of the session, that holds it
}

// Job is a background job: a command that continues after its call has ended.
type Job struct {
	ID       string `json:"id"` // unique among the jobs of a session that run
	Command  string `json:"command"`
	Keep     bool   `json:"keep,omitempty"` // it is to outlive the session
	TimedOut bool   `json:"late,omitempty"` // it continues in the background because its time was up
}

// JobEnd describes how a job ended.
type JobEnd struct {
	ID      string
	Exit    *int    // nil means not known
	Error   string  // why it is not known
	Seconds float64 // that it ran
	Line    string  // the last of its output
}

// Leftover is a process that a session had started and that was still running at its end.
type Leftover struct {
	Job     string `json:"id,omitempty"` // empty: it was no job, a command had left it behind
	Command string `json:"command"`
	PID     int    `json:"pid,omitempty"`    // of its keeper, if it continues
	Output  string `json:"output,omitempty"` // the file that it prints to from now on
	Ports   []Port `json:"ports,omitempty"`  // on which it listens behind its walls
	Error   string `json:"error,omitempty"`  // why it was ended although it was to go on
}

// Todo is one item of a todo list.
type Todo struct {
	Text  string    `json:"text"`
	State TodoState `json:"state"`
}

// TodoState is the state of a todo item.
type TodoState string

// States of todo items.
const (
	TodoOpen  TodoState = "open"
	TodoDoing TodoState = "doing"
	TodoDone  TodoState = "done"
)

// Text returns a result with one text.
func Text(s string) Result { return Result{Parts: llm.Say(s)} }

// File is a file as a call left it.
type File struct {
	Path    string `json:"path"`              // resolved
	Digest  string `json:"digest,omitempty"`  // of the content, see [Digest]; empty: the file is gone
	Written bool   `json:"written,omitempty"` // changed by the call, not only read
	Diff    string `json:"diff,omitempty"`    // unified diff of a change, for people; may be empty
	Partial bool   `json:"partly,omitempty"`  // the session has not seen all of it
}

// Effect is one thing a call would do to the world.
//
// A tool that runs command lines lists an Execute for each simple command, followed by the other effects of
// that command, up to the next Execute.
type Effect struct {
	Kind EffectKind `json:"kind"`
	Path string     `json:"path,omitempty"` // resolved path for Read and Write; a directory stands for all below it
	Text string     `json:"text,omitempty"` // command for Execute and Keep, host for Network ("" or "*": any), what it is for External
	// Class is the result of the proof about an Execute.
	Class Class `json:"class,omitempty"`
	// FromArgument says that the call requests the Network host in an argument of its own, so no rule for the words of
	// a command covers it.
	FromArgument bool `json:"asked,omitempty"`
	// Temporary says that a Write goes to the session's own folder for temporary files, not to the machine's. The
	// policy sets it.
	Temporary bool `json:"own,omitempty"`
	// SendsOnly says that an External only sends: nothing comes back, so it does not make the session untrusted.
	SendsOnly bool `json:"gives,omitempty"`
	// Dir is where an Execute starts if not in the workspace. Vars are the variables that earlier commands have
	// exported to it, one NAME=value or NAME per line. If a person was asked, or if it runs outside of the sandbox or
	// reaches hosts, it gets exactly these variables.
	Dir  string `json:"dir,omitempty"`
	Vars string `json:"vars,omitempty"`
	// Sensitive gives the reason why reading or writing Path needs care, as the rest of a sentence that begins with
	// "it", such as "holds keys". The policy sets it. Empty means no special care.
	Sensitive string `json:"sensitive,omitempty"`
	// Throwaway says that an Execute runs in [Box.Throwaway], or that a Write to the workspace is discarded
	// with that box.
	Throwaway bool `json:"throwaway,omitempty"`
	// Words are the words of an Execute, if known. Not stored.
	Words *Words `json:"-"`
}

// Class is the result of the proof about a command.
type Class string

// Classes of commands. A proof can be wrong, so it only holds inside a box of that level.
const (
	Unproven     Class = ""          // it may do anything
	ProvenRead   Class = "read"      // it only reads and prints
	ProvenInside Class = "workspace" // it also writes, only where its other effects say
)

// Words are the words of one simple command as its program would get them.
type Words struct {
	Argv []string // nil if a word can't be known before it runs
	// Prefix is the shortest beginning of Argv that a rule must have to allow this command and others that begin
	// like it. Nil means no beginning is safe.
	Prefix []string
	// Exact says that Argv is the whole command: no redirect and no variable adds to it.
	Exact bool
	// WithoutRedirects is the command without redirects that are proven to write in the workspace, if those are the only
	// reason why no rule may name it.
	WithoutRedirects *Words
}

// EffectKind is a class of effects.
type EffectKind string

// Effect kinds. A call without any effect is pure.
const (
	Read     EffectKind = "read"     // reads Path
	Write    EffectKind = "write"    // creates, changes or deletes Path
	Execute  EffectKind = "execute"  // runs Text, which may do anything the walls around it allow, unless Class says less
	Network  EffectKind = "network"  // talks to Text
	External EffectKind = "external" // anything else; the default for what is not understood
	Keep     EffectKind = "keep"     // lets Text, a command, go on when the session has ended
	Question EffectKind = "question" // asks the person Text: it waits for an answer in every mode, and nothing else happens
)

// NoEffects is the Effects of a tool that touches nothing outside of itself.
func NoEffects(context.Context, *Call) ([]Effect, error) { return nil, nil }

// ReadOnly reports whether all effects only read, so that the call may run in parallel with others and may be
// repeated after a crash.
func ReadOnly(effects []Effect) bool {
	for _, e := range effects {
		if e.Kind != Read && e.Kind != Question && (e.Kind != Execute || e.Class != ProvenRead) {
			return false
		}
	}
	return true
}
