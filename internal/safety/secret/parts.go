package secret

import (
	"net/url"
	"strings"
	"unicode/utf8"
)

// leastLine is the minimum length of a line that is a secret by itself, in bytes.
const leastLine = 16

// partsOf lists the parts of a value that are secrets by themselves: its lines, so that the beginning of a key
// or an indented copy is hidden, and the password in an address.
func partsOf(value string) []string {
	out := linesOf(value)
	if password := PasswordOf(value); password != "" {
		out = append(out, password)
		if plain, err := url.PathUnescape(password); err == nil && plain != password {
			out = append(out, plain)
		}
	}
	return out
}

// linesOf lists the long lines of a multi-line value, except the lines that mark the beginning and end of a
// key.
func linesOf(value string) []string {
	if strings.Contains(value, "-----BEGIN ") {
		value = strings.ReplaceAll(value, `\n`, "\n") // as in single-line variables
	}
	if !strings.Contains(value, "\n") {
		return nil
	}
	var out []string
	for line := range strings.Lines(value) {
		line = strings.TrimSpace(line)
		if len(line) >= leastLine && !strings.HasPrefix(line, "-----BEGIN ") && !strings.HasPrefix(line, "-----END ") {
			out = append(out, line)
		}
	}
	return out
}

// PasswordOf returns the password in an address for a program, as written: in postgres://app:password@host/db,
// app:password@tcp(host:3306)/db, and host=db user=app password=... or separated by semicolons. A token in place of
// the user counts, as in https://token@host. Empty means none.
func PasswordOf(address string) string {
	_, rest, ok := strings.Cut(address, "://")
	if !ok {
		if password := sourcePassword(address); password != "" {
			return password
		}
		return keyedPassword(address)
	}
	authority := rest
	if end := strings.IndexAny(rest, "/?# \t\n"); end >= 0 {
		authority = rest[:end]
	}
	at := strings.LastIndexByte(authority, '@')
	user, password, _ := strings.Cut(authority[:max(0, at)], ":")
	switch {
	case isFiller(password) && isToken(user):
		return user
	case password == "":
		return keyedPassword(rest)
	}
	return password
}

// sourcePassword returns the password in app:password@protocol(place)/db or app:password@/db.
func sourcePassword(source string) string {
	if strings.ContainsAny(source, " \t\n\"") {
		return ""
	}
	at := strings.LastIndexByte(source[:max(0, strings.LastIndexByte(source, '/'))], '@')
	if at < 0 {
		return ""
	}
	place := strings.TrimLeftFunc(source[at+1:], isLetterOrDigit)
	if source[at+1] != '/' && !strings.HasPrefix(place, "(") {
		return ""
	}
	_, password, _ := strings.Cut(source[:at], ":")
	return password
}

func isLetterOrDigit(r rune) bool { return r < utf8.RuneSelf && isAlnum(byte(r)) }

// keyedPassword returns the password among several settings in one line: user=app password=...,
// Server=...;Pwd=..., host:6379,password=..., ?user=app&password=...
func keyedPassword(line string) string {
	if strings.Count(line, "=") < 2 && !strings.Contains(line, ",") || strings.Contains(line, "\n") {
		return ""
	}
	for i := range len(line) {
		if line[i] != '=' {
			continue
		}
		key := strings.TrimRight(line[:i], " ")
		word, before := lastWord(key)
		if kindOf(word, false) != password || before != "" && strings.IndexByte(" ;,&?", before[len(before)-1]) < 0 {
			continue
		}
		value := keyedValue(strings.TrimLeft(line[i+1:], " "))
		if next := strings.HasPrefix(line[i+1:], " ") && strings.Contains(value, "="); value != "" && !next {
			return value
		}
	}
	return ""
}

// keyedValue returns the value at the beginning of a line of settings: up to its quote, a semicolon, or the
// next setting.
func keyedValue(rest string) string {
	if rest != "" && (rest[0] == '\'' || rest[0] == '"') {
		end := strings.IndexByte(rest[1:], rest[0])
		return rest[1 : 1+max(0, end)]
	}
	for i := range len(rest) {
		switch c := rest[i]; {
		case c == ';':
			return rest[:i]
		case strings.IndexByte(" ,&", c) >= 0:
			next := strings.TrimLeftFunc(strings.TrimLeft(rest[i+1:], " "), func(r rune) bool { return r == '_' || isLetterOrDigit(r) })
			if next == "" || next[0] == '=' {
				return rest[:i]
			}
		}
	}
	return rest
}
