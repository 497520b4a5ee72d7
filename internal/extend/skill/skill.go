// Package skill reads markdown files for agents: skills, slash commands, and roles, which are kinds of
// subagents.
//
// A skill is a folder with a SKILL.md, which has instructions for a kind of task, and the files that these
// refer to. The format is Agent Skills (agentskills.io), with the additional keys of Claude Code. A model
// learns of a skill in three levels, so that unused ones cost nothing: a line in the prompt ([Index]), the
// instructions ([Library.Invoke]), and single files ([Library.File]).
//
// A person types a command ([Command]) as /NAME. A role ([Role]) defines the purpose of a subagent, which tools and
// model it gets, and its instructions. Each is one file.
//
// All of this is text by others. Reading it runs nothing, follows no link out of its folder, and never blocks.
// Names and descriptions have no invisible characters.
package skill

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/inspan/inspan/internal/view/words"
)

// Bounds on reading.
const (
	MaxSkills = 1000      // of one folder
	MaxSize   = 256 << 10 // bytes of a SKILL.md, and of any other file of a skill

	maxEntries = 10_000  // entries of one folder that are looked at
	maxHead    = 4 << 10 // bytes at the beginning of a SKILL.md that usually hold its front matter
	file       = "SKILL.md"
)

// Skill holds the known facts about a skill before it is used. Its texts are one line each, without invisible
// characters. Don't modify it.
type Skill struct {
	Name        string // of its folder; a different name in the file is a problem
	Description string // what it does and when to use it; otherwise the first line of its text
	License     string
	// Compatibility describes the needs of the skill, such as programs and systems.
	Compatibility string
	Metadata      map[string]string
	Tools         []string // allowed-tools, as written: "Bash(git diff:*)", "Read"
	Hint          string   // its arguments, for people
	Manual        bool     // only a person may invoke it
	Hidden        bool     // only a model may invoke it; it is not a slash command
	Dir           string   // absolute; empty for a built-in skill
	Source        string   // of its folder; "built in"
	Sum           string   // digest of its SKILL.md; empty for a built-in skill
	// Problems are the findings of [Validate], except for the length of a long text. A skill with problems can be
	// used all the same.
	Problems []string
}

// Library finds skills. The zero value has none. Changed files are read again. It is safe for concurrent use,
// except for changes of its fields.
type Library struct {
	Folders []Folder // of two skills with the same name, the one in the first folder counts
	Builtin bool     // include the built-in skills, which folders can replace
	// Heads is a file that caches what was read of the person's own skills, so that the next library only reads
	// changed ones. Empty means none.
	Heads string

	mu    sync.Mutex
	known map[string]*known // what was read, by path of the folder; nil if nothing was read yet
	saved saved             // the content of Heads
	ahead atomic.Pointer[func() ([]*found, []string)]
}

// Prefetch begins to look for the skills in the background. The next look uses the result, so it should come soon.
// Wait waits for the end.
func (l *Library) Prefetch() (wait func()) {
	look := sync.OnceValues(l.look)
	l.ahead.Store(&look)
	var beside sync.WaitGroup
	beside.Go(func() { look() })
	return beside.Wait
}

// List returns the skills by name. Names are case-insensitive. The warnings name skills in the folders that can't
// be used: unreadable files, and skills hidden by others with the same name.
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

// find returns the skills of all folders.
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

// get finds one skill. The error suggests similar names.
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
