// Package skill reads what people write for agents in markdown files: skills, slash
// commands, and roles, the kinds of subagents.
//
// A skill is a folder that holds a SKILL.md with instructions for a kind of task, and the
// files these refer to. The format is Agent Skills (agentskills.io), with the keys that
// Claude Code adds. A model learns of a skill in three levels, so that what is not needed
// costs nothing: a line in the prompt ([Index]), the instructions ([Library.Invoke]), and
// single files ([Library.File]).
//
// A command ([Command]) is what a person types as /NAME; a role ([Role]) says what a
// subagent is for, which tools and model it gets, and what it is told. Each is one file.
//
// All this is text that others wrote. Reading it runs nothing, follows no link out of its
// folder and waits for nobody. What is told of it has no characters that a person could
// not see.
package skill

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/inspan/inspan/internal/view/words"
)

// Bounds of what is read.
const (
	MaxSkills = 1000      // of one folder
	MaxSize   = 256 << 10 // bytes of a SKILL.md, and of any other file of a skill

	maxEntries = 10_000  // of one folder that are looked at
	maxHead    = 4 << 10 // bytes of a SKILL.md that hold its front matter, mostly
	file       = "SKILL.md"
)

// Skill is what is known of a skill before it is used. Its texts are one line
// each, without characters that can't be seen. It is only to be read.
type Skill struct {
	Name        string // of its folder; what the file says is a problem if it differs
	Description string // what it does and when to use it; else the first line of its text
	License     string
	// Compatibility says what the skill needs of its surroundings.
	Compatibility string
	Metadata      map[string]string
	Tools         []string // allowed-tools, as written: "Bash(git diff:*)", "Read"
	Hint          string   // what arguments it takes, for people
	Manual        bool     // only a person may invoke it
	Hidden        bool     // only a model may; no slash command
	Dir           string   // absolute; empty for one that is built in
	Source        string   // of its folder; "built in"
	Sum           string   // digest of its SKILL.md; empty for one that is built in
	// Problems is what [Validate] finds, apart from the length of the text where
	// that is long. A skill with problems can be used all the same.
	Problems []string
}

// Library finds skills. The zero value has none. What its files hold is read again
// when they change. Safe for concurrent use, but for changes of its fields.
type Library struct {
	Folders []Folder // of two skills with one name, that of the first folder counts
	Builtin bool     // also has the skills that are built in, which those in folders can replace
	// Heads is a file in which what was read of the person's own skills is kept for the next
	// library, so that it only reads those that changed. Empty: none.
	Heads string

	mu    sync.Mutex
	known map[string]*known // what was read, by path of the folder; nil: nothing was yet
	saved saved             // what is in Heads
	ahead atomic.Pointer[func() ([]*found, []string)]
}

// Ahead begins to look for the skills beside the caller. The next look takes what it finds, so it
// should come soon. Wait waits until nothing is looked at any more.
func (l *Library) Ahead() (wait func()) {
	look := sync.OnceValues(l.look)
	l.ahead.Store(&look)
	var beside sync.WaitGroup
	beside.Go(func() { look() })
	return beside.Wait
}

// List returns the skills by name. Upper and lower case are the same in names. The
// warnings say what is in the folders but can't be used: what can't be read, and
// skills behind others of the same name.
func (l *Library) List() (skills []Skill, warnings []string) {
	found, warnings := l.find()
	skills = slices.Grow(skills, len(found))
	for _, f := range found {
		skills = append(skills, f.Skill)
	}
	return skills, warnings
}

// found is a skill and where it was found.
type found struct {
	Skill
	*known
	from *place
}

// find returns what is found in all folders.
func (l *Library) find() (out []*found, warnings []string) {
	if begun := l.ahead.Swap(nil); begun != nil {
		return (*begun)()
	}
	return l.look()
}

// look looks through all folders.
func (l *Library) look() (out []*found, warnings []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil {
		l.saved = l.load()
	}
	var places []*place
	for _, f := range l.Folders {
		places = append(places, &place{Folder: f})
	}
	if l.Builtin {
		places = append(places, &place{Folder: Folder{Source: builtIn}, builtin: true})
	}
	s := scan{shelf: shelf{kind: "skill"}, library: l, places: places, seen: map[string]*known{}}
	for _, p := range places {
		for _, f := range s.look(p) {
			if s.put(f.Name, spot{f.Dir, f.info}) {
				out = append(out, f)
			}
		}
	}
	l.known = s.seen
	l.save()
	slices.SortFunc(out, func(a, b *found) int { return strings.Compare(a.Name, b.Name) })
	return out, s.warnings
}

// get finds one skill. The error names those that may be meant.
func (l *Library) get(name string) (*found, error) {
	all, _ := l.find()
	want := strings.TrimPrefix(strings.TrimSpace(name), "/")
	var names []string
	for _, f := range all {
		if strings.EqualFold(f.Name, want) {
			return f, nil
		}
		names = append(names, f.Name)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("there is no skill %q, as there are none", name)
	}
	if near := words.Near(want, names); near != nil {
		return nil, fmt.Errorf("there is no skill %q; did you mean %s?", name, strings.Join(near, ", "))
	}
	return nil, fmt.Errorf("there is no skill %q; there are %s", name, some(names))
}

// some names the first of a list.
func some(names []string) string {
	const most = 20
	text := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
