// Package custom makes tools of programs: the model can call every executable in a
// tools folder that answers --describe with a declaration.
//
// Each content of a program is described once:
//
//	program --describe
//
// and prints one JSON object on its standard output:
//
//	{
//	  "name": "slack_message",                  [a-zA-Z0-9_-]{1,64}
//	  "description": "Sends a message ...",     for the model, at most 2,000 bytes
//	  "schema": {"type": "object", ...},        JSON Schema of the arguments
//	  "effects": {
//	    "read": true,                           it reads the workspace
//	    "write": true,                          it changes the workspace
//	    "network": ["slack.com"],               hosts it talks to
//	    "external": "send a message to Slack"   its other effects
//	  },
//	  "secrets": ["SLACK_TOKEN"],               variables it gets if they are granted
//	  "timeout_seconds": 60                     1 to 900; 60 if it is not given
//	}
//
// Unknown fields are errors. A call starts it without arguments; the arguments
// of the call are one JSON object on its standard input. What it prints is the
// result: text, or one object of {"text", "error", "images": [{"media_type",
// "data"}]} with images in base64. Lines on standard error are progress. An
// exit code other than 0 is a failure. In its environment it finds, beside
// what every command finds there, INSPAN_SESSION, INSPAN_ROOT, INSPAN_MODE,
// INSPAN_KEY (an idempotency key, the same for every try of the same call) and
// the secrets.
//
// A program runs in the box that its declaration asks for, so that a false
// declaration gains nothing: one that only reads gets [tool.BoxRead], any other
// [tool.BoxWorkspace] with the hosts it names. There is no box that opens a host
// and not the workspace, so a program with hosts could write there too. Where a
// box can't be built, the program runs without one, and the call has an effect
// that says so, for judges to see.
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
	// Dir is its path. One that does not exist has no programs.
	Dir string
	// Source says whose it is, in [Want] and for people: "user" or "project".
	Source string
	// Trusted reports whether the entry of the folder at an absolute path may
	// run with this content. Digest is the one that internal/safety/consent has of the
	// same entry. Nil: all are.
	Trusted func(path, digest string) bool
	// Remedy is what to do about one that may not; empty: to trust it with 'inspan trust'.
	Remedy string
}

// Want is a secret that a tool has declared.
type Want struct {
	Source string // of the folder of the tool
	Tool   string // its name
	Name   string // of the variable
}

// Set is the tools in some folders. It must not be copied or changed once it is
// used; it is safe for concurrent use.
//
// Windows has no executable bit, so nothing is a program there.
type Set struct {
	// Env starts programs to ask what they are, in its root. Calls use the one
	// of the call.
	Env tool.Env
	// Folders are looked at in this order: of two tools with one name the first
	// counts.
	Folders []Folder
	// Reserved are names that no program may have: those of the built-in tools.
	// Upper and lower case count as the same.
	Reserved []string
	// Secret gives the value of a secret, and whether the person has granted it
	// to the tool. It must be safe for concurrent use. Nil: none is granted.
	Secret func(Want) (value string, granted bool)
	// Warn is told of programs that can't be tools, in words for people that say
	// what to do. A problem is told once for as long as it stays the same. It is
	// never called by two goroutines at once. Nil: nobody is told.
	Warn func(text string)
	// Patience is how long a program may take to describe itself; zero means
	// five seconds.
	Patience time.Duration

	once  sync.Once
	turn  chan struct{}     // holds one token: who has put it in may use the rest
	known map[string]answer // what programs said, by path and digest
	told  map[string]bool   // problems
}

// answer is what came of asking a program.
type answer struct {
	declaration declaration
	err         error
}

// Tools looks at the folders and returns the tools that are there now, ordered
// by name. Only programs that are new or have changed are run. When ctx is done,
// those that are not known yet are missing.
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
	if ctx.Err() != nil { // what was not looked at is as it was
		maps.Copy(p.now, s.known)
		maps.Copy(p.told, s.told)
	}
	s.known, s.told = p.now, p.told
	return tools
}

// pass is one look at all folders.
type pass struct {
	set      *Set
	programs []program
	now      map[string]answer
	told     map[string]bool
}

// warn tells people of a problem, unless they know it. Key is what must change
// for it to be told again.
func (p *pass) warn(key, text string) {
	key += "\x00" + text
	known := p.told[key] || p.set.told[key]
	p.told[key] = true
	if !known && p.set.Warn != nil {
		p.set.Warn(text)
	}
}

// ask learns what all programs are.
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

// tools makes tools of the answers, and warns of those that can't be.
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

// hasPrograms reports whether files here can be told to be programs.
func hasPrograms() bool { return runtime.GOOS != "windows" }
