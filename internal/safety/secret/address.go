package secret

import (
	"strings"
	"unicode/utf8"
)

// address examines the colon of a scheme for a password, as in postgres://app:password@host/db.
func (s *scanner) address(i int) (Found, bool) {
	before := s.before(i, 24)
	if n := trailing(before); n == 0 || !s.has(i, "://") {
		return Found{}, false
	}
	user := i + 3
	colon := s.until(user, &s.stops.user, 512)
	if s.at(colon) != ':' {
		return s.userOnly(user, colon)
	}
	from := colon + 1
	end := s.until(from, &s.stops.password, 512)
	if s.at(end) != '@' {
		return Found{}, false
	}
	if isFiller(s.text[from:end]) {
		return s.userOnly(user, colon)
	}
	return s.loginAt(i, user, from, end)
}

// dsn examines a colon for the password in a Go data source name, as in app:password@tcp(host:3306)/db.
func (s *scanner) dsn(i int) (Found, bool) {
	n := trailing(s.before(i, 32))
	if n == 0 {
		return Found{}, false
	}
	end := s.until(i+1, &s.stops.source, longestSource)
	if s.at(end) != '@' {
		return Found{}, false
	}
	if protocol := s.span(end+1, alnum, 12); protocol == end+1 || s.at(protocol) != '(' {
		return Found{}, false
	}
	return s.loginAt(i-n, i-n, i+1, end)
}

// loginAt judges the password between from and end, given the user's name, in an address that begins at i.
func (s *scanner) loginAt(i, user, from, end int) (Found, bool) {
	if found, ok := s.token(from); ok && found.Start == from {
		return found, true
	}
	password := s.text[from:end]
	found := Found{from, end, "a password in an address"}
	switch {
	case len(password) < 3, strings.Trim(password, "0123456789.,_-") == "", isDummy(password), standIn(s.text[i : end+1]),
		password == s.text[user:from-1]:
		return found, false
	case password[0] == '%' && (len(password) < 3 || !isHex(password[1]) || !isHex(password[2])), strings.Trim(password, "*.") == "":
		return found, false // a format, or already hidden
	case strings.ToUpper(password) == password && !strings.ContainsAny(password, "0123456789"):
		return found, false // a name of it, as in DB_PASS
	}
	return found, len(password) >= 6 || secretive(password)
}

// userOnly looks for a token in place of a user's name, as in https://token@host.
func (s *scanner) userOnly(user, end int) (Found, bool) {
	if s.at(end) != '@' && s.at(end) != ':' {
		return Found{}, false
	}
	if found, ok := s.token(user); ok && found.Start == user {
		return found, true
	}
	return Found{user, end, "a token in an address"}, isToken(s.text[user:end])
}

// isFiller reports whether the password of an address is only a filler because the user's name is a token.
func isFiller(password string) bool { return password == "" || password == "x-oauth-basic" }

// isToken reports whether a user's name is a token. The public key of a Sentry address is not.
func isToken(name string) bool {
	word := strings.TrimFunc(name, func(r rune) bool { return r < utf8.RuneSelf && wordDash.has(byte(r)) }) == ""
	public := len(name) == 32 && strings.Trim(name, "0123456789abcdefABCDEF") == ""
	return word && len(name) >= 20 && !public && mixed(name) && !standIn(name)
}

// until returns the position of the next stop, at most limit bytes away.
func (s *scanner) until(i int, stops *[256]bool, limit int) int {
	stop := min(len(s.text), i+limit)
	for i < stop && !stops[s.text[i]] {
		i++
	}
	if i == len(s.text) {
		s.short = true
	}
	return i
}

// longestSource bounds the password in a data source name, in bytes.
const longestSource = 96

// stops are the bytes that end parts of addresses.
type stops struct{ user, password, source, element [256]bool }

func newStops() (out stops) {
	for set, bytes := range map[*[256]bool]string{
		&out.user: ":/@\"'<>?#", &out.password: "/@\"'<>{}$[]^\\`", &out.source: "@\"'<>{}$[]^\\`(),;", &out.element: "<>[",
	} {
		for _, b := range []byte(" \t\n\r" + bytes) {
			set[b] = true
		}
	}
	return out
}

// telegram examines the colon of a bot's token, 123456789:AA... The number is public and stays visible.
func (s *scanner) telegram(i int) (Found, bool) {
	before := s.before(i, 16)
	n := trailing(before)
	if strings.HasPrefix(before[len(before)-n:], "bot") { // as in api.telegram.org/bot123456789:AA...
		n -= len("bot")
	}
	if n < 8 || n > 10 || strings.Trim(before[len(before)-n:], "0123456789") != "" || !s.has(i, ":AA") {
		return Found{}, false
	}
	least, end := s.tail(i+1, "W33")
	if end < 0 || standIn(s.text[i:least]) {
		return Found{}, false
	}
	return Found{i + 1, end, "a Telegram token"}, true
}
