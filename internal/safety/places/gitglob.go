package places

import "strings"

// kind is the class of characters that a token of a pattern matches. Patterns match bytes, as git's do, so "?"
// doesn't match a two-byte letter.
type kind uint8

const (
	one  kind = iota // a byte in a set
	star             // any bytes except slashes
	dirs             // nothing, or any bytes up to and including a slash
	rest             // any bytes
)

type token struct {
	kind kind
	set  *[4]uint64 // for one: the set of bytes
}

func (t token) has(b byte) bool { return t.set[b>>6]&(1<<(b&63)) != 0 }

// wildcards are the special bytes.
const wildcards = `*?[\`

// compile compiles a pattern into tokens. It returns false for a pattern that can't match anything, such as one
// with an unclosed bracket.
func compile(pattern string, byName bool) ([]token, bool) {
	var tokens []token
	for i := 0; i < len(pattern); {
		switch c := pattern[i]; c {
		case '*':
			run := len(pattern[i:]) - len(strings.TrimLeft(pattern[i:], "*"))
			t, used := stars(pattern, i, run, byName)
			tokens = append(tokens, t)
			i += used
		case '?':
			tokens = append(tokens, single(func(b byte) bool { return b != '/' }))
			i++
		case '[':
			t, used, ok := class(pattern[i:])
			if !ok {
				return nil, false
			}
			tokens = append(tokens, t)
			i += used
		case '\\':
			if i+1 == len(pattern) {
				return nil, false
			}
			next := pattern[i+1]
			tokens = append(tokens, single(func(b byte) bool { return b == next }))
			i += 2
		default:
			tokens = append(tokens, single(func(b byte) bool { return b == c }))
			i++
		}
	}
	return tokens, true
}

// stars reads a run of asterisks at i. Two or more match directories if they stand alone between slashes or the
// ends of the pattern. Git compares the text before the first wildcard separately, so a run directly after it
// counts as the start of the pattern: a**/b is a followed by **/b.
func stars(pattern string, i, run int, byName bool) (token, int) {
	after := pattern[i+run:]
	first := !strings.ContainsAny(pattern[:i], wildcards)
	alone := run > 1 && !byName && (first || pattern[i-1] == '/')
	switch {
	case alone && after == "":
		return token{kind: rest}, run
	case alone && after[0] == '/':
		return token{kind: dirs}, run + 1
	}
	return token{kind: star}, run
}

func single(in func(byte) bool) token {
	t := token{kind: one, set: new([4]uint64)}
	for b := range 256 {
		if in(byte(b)) {
			t.set[b>>6] |= 1 << (b & 63)
		}
	}
	return t
}

// class reads a bracket expression at the start of pattern. It never matches a slash.
func class(pattern string) (t token, used int, ok bool) {
	i := 1
	negated := i < len(pattern) && (pattern[i] == '!' || pattern[i] == '^')
	if negated {
		i++
	}
	var in [256]bool
	for first := true; ; first = false {
		if i >= len(pattern) {
			return t, 0, false
		}
		if pattern[i] == ']' && !first {
			break
		}
		n, ok := member(pattern[i:], &in)
		if !ok {
			return t, 0, false
		}
		i += n
	}
	return single(func(b byte) bool { return b != '/' && in[b] != negated }), i + 1, true
}

// member reads one member of a bracket expression (a byte, a range or a named class) and adds it to the set.
func member(s string, in *[256]bool) (used int, ok bool) {
	if named, found := strings.CutPrefix(s, "[:"); found {
		if name, _, closed := strings.Cut(named, ":]"); closed && !strings.Contains(name, "]") {
			return len(name) + 4, addNamed(name, in)
		}
	}
	lo, n := escaped(s)
	if n == 0 {
		return 0, false
	}
	hi, used := lo, n
	if r := s[n:]; len(r) > 1 && r[0] == '-' && r[1] != ']' {
		var m int
		if hi, m = escaped(r[1:]); m == 0 {
			return 0, false
		}
		used += 1 + m
	}
	in[lo] = true // even if the range is empty
	for b := int(lo); b <= int(hi); b++ {
		in[b] = true
	}
	return used, true
}

// escaped reads a byte, possibly after a backslash.
func escaped(s string) (b byte, used int) {
	if s[0] != '\\' {
		return s[0], 1
	}
	if len(s) < 2 {
		return 0, 0
	}
	return s[1], 2
}

// addNamed adds a POSIX class, as in the C locale.
func addNamed(name string, in *[256]bool) bool {
	is := posixClass(name)
	if is == nil {
		return false
	}
	for b := range 128 {
		if is(byte(b)) {
			in[b] = true
		}
	}
	return true
}

func posixClass(name string) func(byte) bool {
	digit := func(b byte) bool { return b >= '0' && b <= '9' }
	lower := func(b byte) bool { return b >= 'a' && b <= 'z' }
	upper := func(b byte) bool { return b >= 'A' && b <= 'Z' }
	graph := func(b byte) bool { return b > ' ' && b < 127 }
	alnum := func(b byte) bool { return digit(b) || lower(b) || upper(b) }
	switch name {
	case "alnum":
		return alnum
	case "alpha":
		return func(b byte) bool { return lower(b) || upper(b) }
	case "blank":
		return func(b byte) bool { return b == ' ' || b == '\t' }
	case "cntrl":
		return func(b byte) bool { return b < ' ' || b == 127 }
	case "digit":
		return digit
	case "graph":
		return graph
	case "lower":
		return lower
	case "print":
		return func(b byte) bool { return b == ' ' || graph(b) }
	case "punct":
		return func(b byte) bool { return graph(b) && !alnum(b) }
	case "space":
		return func(b byte) bool { return b == ' ' || b >= '\t' && b <= '\r' }
	case "upper":
		return upper
	case "xdigit":
		return func(b byte) bool { return digit(b) || b >= 'a' && b <= 'f' || b >= 'A' && b <= 'F' }
	}
	return nil
}

// match reports whether the tokens match all of name. It tracks the set of tokens that could come next while it
// reads name once, so its time is bounded by len(tokens)*len(name), whatever the pattern.
func match(tokens []token, name string) bool {
	now := make([]bool, len(tokens)+1)
	next := make([]bool, len(tokens)+1)
	enter(tokens, now, 0)
	for i := range len(name) {
		clear(next)
		alive := false
		for j, on := range now[:len(tokens)] {
			if on {
				alive = step(tokens, next, j, name[i]) || alive
			}
		}
		if !alive {
			return false
		}
		now, next = next, now
	}
	return now[len(tokens)]
}

// step marks the tokens that may come once token j has read b.
func step(tokens []token, next []bool, j int, b byte) bool {
	switch t := tokens[j]; {
	case t.kind == one && !t.has(b), t.kind == star && b == '/':
		return false
	case t.kind == dirs && b != '/':
		next[j] = true
		return true
	case t.kind != one:
		next[j] = true
	}
	enter(tokens, next, j+1)
	return true
}

// enter marks token j as possible, and those after it if it may match nothing.
func enter(tokens []token, on []bool, j int) {
	on[j] = true
	for j < len(tokens) && tokens[j].kind != one {
		j++
		on[j] = true
	}
}
