// Package custom makes tools from programs: the model can call every executable in a tools folder that answers
// --describe with a declaration.
//
// Each version of a program is described once:
//
//	program --describe
//
// prints one JSON object on its standard output:
//
//	{
//	  "name": "slack_message",                  [a-zA-Z0-9_-]{1,64}
//	  "description": "Sends a message ...",     for the model, at most 2,000 bytes
//	  "schema": {"type": "object", ...},        JSON Schema of the arguments
//	  "effects": {
//	    "read": true,                           it reads the workspace
//	    "write": true,                          it changes the workspace
//	    "network": ["slack.com"],               hosts it connects to
//	    "external": "send a message to Slack"   its other effects
//	  },
//	  "secrets": ["SLACK_TOKEN"],               variables that it gets if they are granted
//	  "timeout_seconds": 60                     1 to 900; the default is 60
//	}
//
// Unknown fields are errors. A call starts the program without arguments, and passes the arguments of the call
// as one JSON object on its standard input. Its output is the result: text, or one object of {"text", "error",
// "images": [{"media_type", "data"}]} with images in base64. Lines on standard error are progress. An exit code
// other than 0 is a failure. Its environment has, in addition to that of every command, INSPAN_SESSION,
// INSPAN_ROOT, INSPAN_MODE, INSPAN_KEY (an idempotency key, the same for every attempt of the same call) and
// the secrets.
//
// A program runs in the box that its declaration asks for, so a false declaration gains nothing: a program that
// only reads gets [tool.BoxRead], any other [tool.BoxWorkspace] with the hosts it names. No box opens a host
// and not the workspace, so a program with hosts can also write there. If a box can't be built, the program
// runs without one, and an effect of the call tells the judges.
package custom

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/inspan/inspan/tool"
)

const (
	describeTimeout = 5 * time.Second
	atOnce          = 4 // programs that are asked at a time
)

// Folder is a folder of programs.
type Folder struct {
	// Dir is its path. A missing folder has no programs.
	Dir string
	// Source is its owner, in [Want] and for people: "user" or "project".
	Source string
	// Trusted reports whether the entry at an absolute path in the folder may run with this content. Digest is
	// that of internal/safety/consent for the entry. If nil, all may.
	Trusted func(path, digest string) bool
	// Remedy says what to do about an entry that may not; empty means to trust it with 'inspan trust'.
	Remedy string
}

// Want is a secret that a tool has declared.
type Want struct {
	Source string // of the tool's folder
	Tool   string // name of the tool
	Name   string // name of the variable
}

// Set holds the tools in some folders. It must not be copied or changed after first use; it is safe for
// concurrent use.
//
// Windows has no executable bit, so nothing is a program there.
type Set struct {
	// Env starts programs to describe themselves, in its root. Calls use the environment of the call.
	Env tool.Env
	// Folders are searched in this order: of two tools with the same name, the first counts.
	Folders []Folder
	// Reserved are names that no program may have: those of the built-in tools. Names are case-insensitive.
	Reserved []string
	// Secret returns the value of a secret, and whether the person has granted it to the tool. It must be safe
	// for concurrent use. If nil, none is granted.
	Secret func(Want) (value string, granted bool)
	// Warn is called about programs that can't be tools, with a text for people that says what to do. A problem
	// is reported once while it stays the same. Calls don't overlap. It may be nil.
	Warn func(text string)
	// Patience is how long a program may take to describe itself; zero means five seconds.
	Patience time.Duration

	once  sync.Once
	turn  chan struct{}     // holds one token: its holder may use the fields below
	known map[string]answer // descriptions of programs, by path and digest
	told  map[string]bool   // reported problems
}

// answer is the result of asking a program.
type answer struct {
	declaration declaration
	err         error
}

// Tools searches the folders and returns the present tools, sorted by name. Only new or changed programs are
// run. When ctx ends, programs that are not known yet are missing.
func (s *Set) Tools(ctx context.Context) []tool.Tool {
	s.once.Do(func() { s.turn = make(chan struct{}, 1) })
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil
	}
	p := pass{set: s, now: map[string]answer{}, told: map[string]bool{}}
	for _, f := range s.Folders {
		p.programs = append(p.programs, p.look(f)...)
	}
	p.ask(ctx)
	tools := p.tools()
	if ctx.Err() != nil { // folders that were not searched are unchanged
		maps.Copy(p.now, s.known)
		maps.Copy(p.told, s.told)
	}
	s.known, s.told = p.now, p.told
	return tools
}

// Digests returns the programs of folders that may run, by their names and contents. It starts none.
func Digests(folders []Folder) (out []string) {
	p := &pass{set: &Set{}, told: map[string]bool{}}
	for _, f := range folders {
		for _, prog := range p.look(f) {
			out = append(out, prog.entry+" "+prog.digest)
		}
	}
	return out
}

// pass is one search of all folders.
type pass struct {
	set      *Set
	programs []program
	now      map[string]answer
	told     map[string]bool
}

// warn reports a problem, unless it was reported already. Key must change for it to be reported again.
func (p *pass) warn(key, text string) {
	key += "\x00" + text
	known := p.told[key] || p.set.told[key]
	p.told[key] = true
	if !known && p.set.Warn != nil {
		p.set.Warn(text)
	}
}

// ask lets all programs describe themselves.
func (p *pass) ask(ctx context.Context) {
	var mu sync.Mutex
	var all sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for _, prog := range p.programs {
		if a, known := p.set.known[prog.key()]; known {
			p.put(&mu, prog, a)
			continue
		}
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if ctx.Err() != nil {
				return
			}
			d, err := p.set.describe(ctx, prog)
			if ctx.Err() == nil {
				p.put(&mu, prog, answer{d, err})
			}
		})
	}
	all.Wait()
}

func (p *pass) put(mu *sync.Mutex, prog program, a answer) {
	mu.Lock()
	defer mu.Unlock()
	p.now[prog.key()] = a
}

// tools makes tools from the answers, and warns about those that can't be tools.
func (p *pass) tools() []tool.Tool {
	var out []tool.Tool
	taken := map[string]string{} // path of the program, by its name in lower case
	for _, name := range p.set.Reserved {
		taken[strings.ToLower(name)] = ""
	}
	for _, prog := range p.programs {
		a, known := p.now[prog.key()]
		if !known {
			continue
		}
		if a.err != nil {
			p.warn(prog.key(), "tool "+prog.path+" "+a.err.Error())
			if passing(a.err) {
				delete(p.now, prog.key())
			}
			continue
		}
		name := a.declaration.name
		other, is := taken[strings.ToLower(name)]
		switch {
		case is && other == "":
			p.warn(prog.key(), "tool "+prog.path+" calls itself "+name+", which is the name of a built-in tool: give it another name")
		case is:
			p.warn(prog.key(), "tool "+prog.path+" calls itself "+name+", like "+other+", which counts: rename or remove one of them")
		default:
			taken[strings.ToLower(name)] = prog.path
			out = append(out, caller{set: p.set, program: prog, declaration: a.declaration}.tool())
		}
	}
	slices.SortStableFunc(out, func(a, b tool.Tool) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// hasPrograms reports whether programs can be recognised on this system.
func hasPrograms() bool { return runtime.GOOS != "windows" }
