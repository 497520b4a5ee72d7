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
// Interfaces keep their methods. What an implementation may be able to do besides is an interface of its own,
// such as [Opener] or [Leaver]. New fields have a zero value with which a tool, a call or a verdict means what
// it meant before.
package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/inspan/inspan/llm"
)

// A Tool is something a model can call. Make one with [New], or fill the
// struct for full control over arguments and schema.
type Tool struct {
	// Name is what the model calls: [a-zA-Z0-9_-]{1,64}, unique in a session.
	Name string
	// Doc describes the tool to the model.
	Doc string
	// Schema is the JSON Schema of the arguments, always of type object.
	Schema json.RawMessage

	// Sum is the digest of what Run runs, where that is not part of the program that embeds the agent.
	// The log has it of each call, so that what is counted of the tool is not counted of a later one
	// of its name. Empty: there is none.
	Sum string

	// Lenient says that the tool can do without what a call has in fields that Schema does not know: such a
	// field is left out, unless its name looks like a slip of one that Schema knows. For tools that only read.
	Lenient bool
	// Unshown are fields of Schema that the model is not told of in each request: they are
	// rare, or can't work as things are. A call that has them is as good as any.
	Unshown []string

	// Vendor is a type by which a vendor's models know the tool, see [llm.ToolSpec]; empty: there is none.
	Vendor string

	// Form, if not nil, is the schema that the model is told of in the place of Schema: a form that is easier to
	// write. What fits it must fit Schema once Check has mended it.
	Form json.RawMessage

	// Mend, if not nil, brings arguments into the form of Schema which are written as
	// other tool sets have them. It gets the fields as they were written, before they are
	// checked, and changes them in place; what it does not understand it leaves alone.
	// Numbers are [json.Number]. Mending twice must change nothing.
	Mend func(args map[string]any)

	// Effects tells what this very call would do, from its arguments, before
	// it is judged. It may resolve paths but must change nothing. Nil, like an
	// error, means the call could do anything: [External]. With an error that wraps
	// [ErrInvalid] the call fails, and nobody is asked. So it does where Effects, Mend or
	// Stands panics.
	Effects func(ctx context.Context, c *Call) ([]Effect, error)

	// Preview shows a person what the call would change, such as a diff. Nil
	// or an error means that the arguments say it all. Whoever is asked is told of a panic.
	Preview func(ctx context.Context, c *Call) (string, error)

	// Stands, if not nil, says that a call of this tool is one of another: of
	// which, and with which arguments. Judges see the other, and Effects, Preview
	// and Run are not used. An empty name: the call is one of this tool. The error is
	// shown to the model.
	Stands func(ctx context.Context, c *Call) (name string, args json.RawMessage, err error)

	// Ready, if not nil, is told whenever a model is asked that knows the tool: what a call
	// would wait for can be made ready meanwhile. It returns at once, and changes nothing that
	// anybody sees. Of the call it gets Env, Cwd and Mode.
	Ready func(c *Call)

	// Delegates says that other sessions work for a call, each of whose own calls is
	// judged. The workspace is kept before and after it.
	Delegates bool

	// Calls says that Run may make calls of its own with [Call.Do]. All that such a tool does to
	// the world it does by them: each is judged like any call, and the call itself is not judged
	// by effects, so Effects is not used. It runs beside no other call of the reply.
	//
	// When the program ends while it runs, or when all that it waits for is a person's decision,
	// Run is called again later from its beginning, and Do brings what it brought before. So Run
	// must make the same calls, given the same results: what it decides by must come from its
	// arguments and from what its calls brought. A run that leaves out a call of the first one fails
	// with [ErrDiverged], unless that was one asked for ahead.
	Calls bool

	// Ahead says of a tool with Calls that it can be asked about many calls at once: [Call.Do] returns
	// [ErrHeld] for a call that waits for a person, and does not wait. Run may then go on with calls
	// that do not depend on what that one brings, and they are asked about together with it. Of those
	// only what reads may run meanwhile; for the others, and for what would have to run after one that
	// waits, Do returns ErrHeld too. In the end, within seconds and when no other call of its
	// goes on, Run returns an error that wraps ErrHeld, and is called again from its beginning once
	// somebody has decided. What was asked for
	// behind a call that waited runs only if Run comes to it again, which it need not: the call before
	// it may have failed.
	Ahead bool

	// Run performs the call. An error is data for the model: the call failed,
	// and whatever Result holds is shown before the error's text. Run must
	// return soon after ctx is done; one that does not within seconds is left to itself,
	// and what it returns is dropped. Several calls may run at once where their
	// effects do not conflict. Panics are caught and reported as errors.
	Run func(ctx context.Context, c *Call) (Result, error)

	compiled *compiled // of Schema, kept by New so that Check need not parse it each time
}

// Spec is the model's view of the tool. Its schema has a form that every vendor takes; what can't
// be said in that form is in the description. [Tool.Check] goes by Schema itself.
func (t Tool) Spec() llm.ToolSpec {
	schema, words := t.offered()
	doc := t.Doc
	if words != "" {
		doc = strings.TrimSpace(doc + "\n" + words)
	}
	return llm.ToolSpec{Name: t.Name, Description: doc, Schema: schema, Vendor: t.Vendor}
}

// offered is the schema as vendors take it, and what has to be said in words. That of a tool made by [New] is
// made once.
func (t Tool) offered() (json.RawMessage, string) {
	shown := t.shown()
	if t.compiled != nil && bytes.Equal(shown, t.compiled.text) {
		return t.compiled.offered()
	}
	return offered(shown)
}

// Seen tells the digest of a file when the session last read or wrote it, by its resolved path;
// ok is false if it did neither. Nil: it has seen none. Safe for concurrent use.
type Seen func(path string) (digest string, ok bool)

// SeenIn makes a Seen of digests by path. The map is not to be changed any more.
func SeenIn(digests map[string]string) Seen {
	return func(path string) (string, bool) {
		digest, ok := digests[path]
		return digest, ok
	}
}

// Digest is what Seen tells, also if it is nil.
func (s Seen) Digest(path string) (digest string, ok bool) {
	if s == nil {
		return "", false
	}
	return s(path)
}

// A Call is one call of a tool, with all that it may touch.
type Call struct {
	ID   string
	Key  string // the same for every try of the call, and for no other call: an idempotency key
	Name string
	As   string          // the name the model wrote, where that tool stands for this one; else empty
	Args json.RawMessage // one JSON object, repaired, coerced and valid for the schema
	// Parent is the id of the call that has made this one with Do; empty: the model has.
	Parent string

	Session string // id of the session
	Who     Actor  // whose session it is
	// Traceparent is the span of the call, as W3C Trace Context has it, for whom the call has work
	// for it. Processes of Env have it in TRACEPARENT, and Session and Who in INSPAN_SESSION,
	// INSPAN_AGENT (the kind), INSPAN_PARENT and INSPAN_LEAD. Empty outside of Run.
	Traceparent string
	Env         Env
	Cwd         string // directory relative paths start from; absolute
	Mode        Mode   // of the session
	Task        string // what was asked for, the last words last; empty if nothing was
	// Led says that the task is not a person's: the agent that the session works for gave it.
	Led bool
	// Answer is what the person said to a call with the effect [Question].
	Answer string
	Seen   Seen   // files that the session has read or written, as it was when the call began
	Todo   []Todo // the session's list of things to do, the same
	// Untrusted says that the session has seen content that nobody vouches for,
	// such as a web page.
	Untrusted bool

	// Progress shows text to whoever watches; it is not stored. Never nil
	// while Run is called. Safe for concurrent use.
	Progress func(text string)
	// Ask puts a question before the person while the call runs, with answers to
	// choose from if there are any, and returns what they say, which may be in other
	// words; empty: they do not want to answer, or did not in time. An error says
	// that nobody can be asked. It is nil outside of Run, for a tool with Calls, which would ask
	// again, and where nobody could ever be asked. Safe for concurrent use.
	Ask func(ctx context.Context, question string, options []string) (answer string, err error)
	// Do makes a call of another tool and waits for its end. It is judged, stored, limited and
	// interrupted like a call of the model, and may wait for a person. What it brings is what the
	// model would have seen of it. The error is a [*CallError] if the call did not succeed; the
	// Result holds what there is all the same. It is nil outside of Run, and for a tool without
	// Calls. Safe for concurrent use.
	Do func(ctx context.Context, name string, args json.RawMessage) (Result, error)
	// Begin is Do in two parts: it asks for the call and returns, and wait waits for its end. Of
	// calls side by side that conflict, the one asked for first runs first.
	Begin func(ctx context.Context, name string, args json.RawMessage) (wait func() (Result, error))
	// Idle says that the tool asks for no other call until one of those that it waits for has ended. So
	// one that was run again and has left out a call ends at once, with [ErrDiverged], and doesn't wait
	// for what comes behind that. Telling it is optional.
	Idle func()
	// Time is when the call was made, the same for every try. Only for a tool with Calls.
	Time time.Time
	// Store is what earlier calls have left for later ones in Result.Store. It must not be changed.
	Store map[string]json.RawMessage
	// Finished tells the session that a job, which the result of this call began, has
	// ended. It may be called once, at any time, also before Run returns. It is nil
	// outside of Run. Safe for concurrent use.
	Finished func(end JobEnd)
}

// Result is what a call brings back.
type Result struct {
	Parts llm.Parts // Text and Image
	Files []File    // files read or written, for staleness checks and for readers of the log
	Cwd   string    // directory later calls start from; empty: unchanged
	Exit  *int      // exit code of the process the call was about; nil: there is none, or it goes on
	Todo  []Todo    // the session's list of things to do from now on; nil: unchanged
	// Show is markdown for the person, who sees it in full; the model does not get
	// it. Images in it are PNGs as data addresses.
	Show string
	// Ways are flags of the command line that open to later sessions what the sandbox closed to the call, such as
	// "--add-dir /data".
	Ways []string
	// Fetched counts the requests of the call to package registries, by host.
	Fetched map[string]int
	// Cost is what the call has spent, such as on a model that it asked, in US dollars.
	// It counts as the session's, also where Run returns an error.
	Cost float64
	// Untrusted says that Parts may hold text that nobody here has written, although
	// no effect of the call tells so. The session counts as having seen it.
	Untrusted bool
	// Lasting, if not empty, names what Parts tell the model for longer, such as
	// "skill review": compaction keeps their text until a later result has the same
	// name.
	Lasting string
	// Job is what goes on in the background after the call. Nil: nothing does. Left says
	// that processes do that are not a job.
	Job  *Job
	Left bool
	// Told are the ids of jobs whose end Parts tell.
	Told []string
	// Store is what later calls of the session find in Call.Store, beside what is there. A null takes
	// away what has the name.
	Store map[string]json.RawMessage
	// Nth says of what Call.Do brings that it is the nth. Calls side by side get their results
	// in any order; whoever decides by that order goes by this one, which is that of the log.
	Nth int
	// Proposal is a tool that the model has written and that the session has from now on. Nil: none.
	Proposal *Proposal
}

// Proposal is a tool that the model of a session has written.
type Proposal struct {
	Name string `json:"name"` // of the tool; a later one takes the place of an earlier one
	Blob string `json:"blob"` // of the session, that holds it
}

// Job is a command that goes on after its call has ended.
type Job struct {
	ID      string `json:"id"` // unique among the jobs of a session that run
	Command string `json:"command"`
	Keep    bool   `json:"keep,omitempty"` // it is to outlive the session
	Late    bool   `json:"late,omitempty"` // its time was over: it was not started to go on in the background
}

// JobEnd is how a job has ended.
type JobEnd struct {
	ID      string
	Exit    *int    // nil: not known
	Error   string  // why it is not known
	Seconds float64 // that it ran
	Line    string  // the last of its output
}

// Leftover is what a session had started and still ran at its end.
type Leftover struct {
	Job     string `json:"id,omitempty"` // empty: it was no job, a command had left it behind
	Command string `json:"command"`
	PID     int    `json:"pid,omitempty"`    // that keeps it, where it goes on
	Output  string `json:"output,omitempty"` // the file that it prints to from now on
	Ports   []Port `json:"ports,omitempty"`  // on which it listens behind its walls
	Error   string `json:"error,omitempty"`  // why it was ended although it was to go on
}

// Todo is a thing to do.
type Todo struct {
	Text  string    `json:"text"`
	State TodoState `json:"state"`
}

// TodoState is how far a thing to do is.
type TodoState string

// States of things to do.
const (
	TodoOpen  TodoState = "open"
	TodoDoing TodoState = "doing"
	TodoDone  TodoState = "done"
)

// Text makes a result of one text.
func Text(s string) Result { return Result{Parts: llm.Say(s)} }

// File is a file as a call left it.
type File struct {
	Path    string `json:"path"`              // resolved
	Digest  string `json:"digest,omitempty"`  // of the content, see [Digest]; empty: the file is gone
	Written bool   `json:"written,omitempty"` // changed by the call, not only read
	Diff    string `json:"diff,omitempty"`    // unified diff of a change, for people; may be empty
	Partly  bool   `json:"partly,omitempty"`  // the session has not seen all of it
}

// Effect is one thing a call would do to the world.
//
// A tool that runs command lines lists an Execute for each simple command,
// followed by what else that command does, up to the next Execute.
type Effect struct {
	Kind EffectKind `json:"kind"`
	Path string     `json:"path,omitempty"` // resolved path for Read and Write; a directory stands for all below it
	Text string     `json:"text,omitempty"` // command for Execute and Keep, host for Network ("" or "*": any), what it is for External
	// Class is what has been proven of an Execute.
	Class Class `json:"class,omitempty"`
	// Asked says of a Network that the call asks for the host in an argument of its own:
	// no rule for the words of a command covers it.
	Asked bool `json:"asked,omitempty"`
	// Own says of a Write that it goes to the session's own folder for temporary files; else a
	// path there is the machine's. The policy fills it in.
	Own bool `json:"own,omitempty"`
	// Gives says of an External that nothing comes back from it: it makes nothing of the
	// session unverified.
	Gives bool `json:"gives,omitempty"`
	// Dir is where an Execute starts if that is not the workspace, and Vars is what earlier
	// commands have exported to it, as [Exported] writes it. Where somebody was asked, or it runs
	// outside of the sandbox or reaches hosts, it gets these and no others.
	Dir  string `json:"dir,omitempty"`
	Vars string `json:"vars,omitempty"`
	// Sensitive is why reading or writing Path needs care, after "it ", such as
	// "holds keys". The policy fills it in; empty: it needs none.
	Sensitive string `json:"sensitive,omitempty"`
	// Throwaway says that an Execute runs in [Box.Throwaway], or that what a Write
	// does in the workspace is thrown away with that box.
	Throwaway bool `json:"throwaway,omitempty"`
	// Words are those of an Execute, where they are known. Not stored.
	Words *Words `json:"-"`
}

// Class is what has been proven of a command.
type Class string

// Classes of commands. Whatever is proven holds only inside the box of that
// level, as a proof can be wrong.
const (
	Unproven     Class = ""          // it may do anything
	ProvenRead   Class = "read"      // it only reads and prints
	ProvenInside Class = "workspace" // it also writes, only where its other effects say
)

// Words are the words of one simple command as the program would get them.
type Words struct {
	Argv []string // nil if a word can't be known before it runs
	// Prefix is the shortest beginning of Argv that a rule may name to allow
	// this command and those that begin alike. Nil: no beginning is safe.
	Prefix []string
	// Exact says that Argv is all there is to the command: no redirect or
	// variable makes it more.
	Exact bool
	// Apart, where redirects that are proven to write in the workspace are the only
	// reason why no rule may name the command, is what could be named without them.
	Apart *Words
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

// Inside reports whether path is dir or below it. Both are resolved; nothing
// is inside an empty dir.
func Inside(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return dir != "" && err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// NoEffects is the Effects of a tool that touches nothing outside of itself.
func NoEffects(context.Context, *Call) ([]Effect, error) { return nil, nil }

// ReadOnly reports whether all effects only read, so that the call may run
// beside others and may be run again after a crash.
func ReadOnly(effects []Effect) bool {
	for _, e := range effects {
		if e.Kind != Read && e.Kind != Question && (e.Kind != Execute || e.Class != ProvenRead) {
			return false
		}
	}
	return true
}

// Key is an idempotency key: the same for every try of a call, and for no other call of any
// session. The call is named by the number of the event that made it, which no other event
// of the session has, and its id among those that were made together. The key gives
// away none of them.
func Key(session string, event uint64, id string) string {
	return Digest(fmt.Appendf(nil, "%s\x00%d\x00%s", session, event, id))
}
