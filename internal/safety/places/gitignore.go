package places

import (
	"bytes"
	"strings"
)

// Ignores decides which files git would ignore, by the rules of gitignore(5); a test compares it with git.
// Matching is case-sensitive. A value contains the patterns that apply in one directory: those of its own
// ignore file and those from above. It is immutable, so it is safe for concurrent use. A nil *Ignores ignores
// nothing.
type Ignores struct {
	above    *Ignores
	dir      string // slash-separated, relative to the top, with a final slash; "" at the top
	patterns []pattern
}

// Add returns r with the lines of one more ignore file, which override earlier ones. Dir is the file's
// directory, slash-separated and relative to the top, "" or "." for the top itself. A file without patterns
// returns r.
func (r *Ignores) Add(dir string, file []byte) *Ignores {
	var patterns []pattern
	file = bytes.TrimPrefix(file, []byte("\xef\xbb\xbf"))
	for line := range bytes.SplitSeq(file, []byte("\n")) {
		if p, ok := parse(string(bytes.TrimSuffix(line, []byte("\r")))); ok {
			patterns = append(patterns, p)
		}
	}
	if len(patterns) == 0 {
		return r
	}
	dir = strings.Trim(dir, "/")
	if dir == "." {
		dir = ""
	}
	if dir != "" {
		dir += "/"
	}
	return &Ignores{above: r, dir: dir, patterns: patterns}
}

// Ignored reports whether the rules ignore a file or directory, named slash-separated and relative to the top.
// It considers only the path: everything below an ignored directory is also ignored, which the caller must
// handle when walking.
func (r *Ignores) Ignored(path string, isDir bool) bool {
	base := path[strings.LastIndexByte(path, '/')+1:]
	for ; r != nil; r = r.above {
		rel, ok := strings.CutPrefix(path, r.dir)
		if !ok || rel == "" {
			continue
		}
		for i := len(r.patterns) - 1; i >= 0; i-- {
			if p := &r.patterns[i]; p.matches(rel, base, isDir) {
				return !p.negated
			}
		}
	}
	return false
}

// pattern is one line of an ignore file.
type pattern struct {
	negated bool // a match includes the path again
	dirOnly bool // matches directories only
	byName  bool // has no slash: matches the last name at any depth
	literal string
	tokens  []token // nil means literal is all of it
}

// parse parses a line. It returns false for blank lines and comments.
func parse(line string) (pattern, bool) {
	var p pattern
	line = trimSpaces(line)
	if line == "" || line[0] == '#' {
		return p, false
	}
	if line[0] == '!' {
		p.negated = true
		line = line[1:]
	}
	if rest, ok := strings.CutSuffix(line, "/"); ok {
		p.dirOnly = true
		line = rest
	}
	p.byName = !strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return p, false
	}
	if !strings.ContainsAny(line, wildcards) {
		p.literal = line
		return p, true
	}
	tokens, ok := compile(line, p.byName)
	p.tokens = tokens
	return p, ok
}

// trimSpaces removes trailing spaces that no backslash protects.
func trimSpaces(line string) string {
	end := 0
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '\\' && i+1 < len(line):
			i++
			end = i + 1
		case line[i] != ' ':
			end = i + 1
		}
	}
	return line[:end]
}

func (p *pattern) matches(rel, base string, isDir bool) bool {
	if p.dirOnly && !isDir {
		return false
	}
	name := rel
	if p.byName {
		name = base
	}
	if p.tokens == nil {
		return name == p.literal
	}
	return match(p.tokens, name)
}
