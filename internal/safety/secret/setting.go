package secret

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// kind classifies a value by the name of its setting.
type kind uint8

const (
	ordinary kind = iota
	secretly      // a key, a token
	password
	auth    // base64 of name:password
	header  // Authorization
	cookies // cookies follow on the line
	session // the cookie of a session
	signing // a signature or a one-time code of an address
)

// setting examines = or : after a name.
func (s *scanner) setting(i int) (Found, bool) {
	if next := s.peek(i + 1); s.text[i] == ':' && (next == '/' || next == 'A' || next == 0) {
		if found, ok := s.address(i); ok || s.wait() {
			return found, ok
		}
		if found, ok := s.telegram(i); ok || s.wait() {
			return found, ok
		}
	}
	if s.text[i] == ':' {
		for _, look := range []func(int) (Found, bool){s.dsn, s.passfile, s.manifest} {
			if found, ok := look(i); ok || s.wait() {
				return found, ok
			}
		}
	}
	if s.text[i] == ':' && i-s.start > 4 && s.namesSource(i) {
		if found, ok := s.source(i); ok || s.wait() {
			return found, ok
		}
	}
	key, lead := s.keyBefore(i)
	if key == "" {
		return Found{}, false
	}
	if s.text[i] == '=' && (strings.EqualFold(key, "string") || key == "str") {
		if m := declared.FindStringSubmatch(s.before(i, longestName)); m != nil {
			key, lead = m[1], ""
		}
	}
	switch {
	case strings.EqualFold(key, "value"):
		if key = s.namedBefore(i, named); key == "" {
			key = s.namedAfter(i)
		}
	case key == "default":
		key = s.namedBefore(i, defaulted)
	}
	if key == "" {
		return Found{}, false
	}
	if s.text[i] == ':' && strings.HasSuffix(trimBlanks(s.before(i, longestName)), "}") {
		return Found{}, false // a part of a text is filled in
	}
	if strings.HasSuffix(lead, "$") && strings.HasSuffix(trimBlanks(s.before(i, longestName)), `"`) {
		return Found{}, false // a comparison in a shell
	}
	v := value{name: key, lead: lead, sign: s.text[i]}
	v.kind = kindOf(key, s.cookie)
	if v.kind == ordinary && s.signs(i, key) {
		v.kind, v.lead = signing, "?"
	}
	if v.kind == cookies {
		s.cookie = s.text[i] == ':'
		return Found{}, false
	}
	if v.kind == ordinary || !s.operator(i, &v) {
		return Found{}, false
	}
	if !s.read(&v) {
		return Found{}, false
	}
	return s.judge(&v)
}

// named matches a pair of attributes or lines: the first names the value in the second: key="ClearTextPassword"
// value=, "name": "DB_PASSWORD", "value":, - name: DB_PASSWORD.
var named = regexp.MustCompile(`(?i)\b(?:name|key|parameterkey|id)["']?\s*[=:]\s*["']?([\w.:-]+)["']?[\s,]+["']?(?:parameter)?value$`)

// defaulted matches a variable of Terraform up to its value: variable "db_password" { default.
var defaulted = regexp.MustCompile(`\bvariable\s+"([\w-]+)"\s*\{[^{}]*\bdefault$`)

// namedBefore returns the name before the word value or default, which ends at i; empty means none.
func (s *scanner) namedBefore(i int, form *regexp.Regexp) string {
	m := form.FindStringSubmatch(strings.TrimRight(s.before(i, longestPair), "\"' \t"))
	if m == nil {
		return ""
	}
	return m[1][strings.LastIndexByte(m[1], ':')+1:]
}

// namedAfter returns the name in the attribute after that of a value, whose sign is at i; empty means none.
func (s *scanner) namedAfter(i int) string {
	quote := s.at(i + 1)
	if s.text[i] != '=' || quote != '"' && quote != '\'' {
		return ""
	}
	end := i + 2
	for end-i < longestPair && s.at(end) != quote && s.at(end) != '\n' && s.at(end) != 0 && s.text[end] != '[' {
		end++
	}
	for _, attribute := range []string{" key=", " name=", " Key=", " Name="} {
		if from := end + 1 + len(attribute) + 1; s.has(end+1, attribute) {
			to := from
			for to-from < longestName && s.at(to) != 0 && s.text[to] != '"' && s.text[to] != '\'' {
				to++
			}
			return s.text[min(from, to):to]
		}
	}
	return ""
}

// declared matches the declaration of a name with a type, up to its value: const apiKey: string =, let key: &str =,
// Const Key As String =.
var declared = regexp.MustCompile(`\b(\w+)(?:\s*:\s*&?(?:'static\s+)?|\s+As\s+)(?i:str|string)\s*$`)

// argued examines the comma after a name that begins the arguments of a call, a tuple or a list. The value is the
// next literal: define('DB_PASSWORD', '...'), {password, "..."}.
func (s *scanner) argued(i int) (Found, bool) {
	key, _ := s.keyBefore(i)
	before := strings.TrimSuffix(s.before(i, longestName), "\\")
	quote := before[max(0, len(before)-1):]
	bare := quote != `"` && quote != "'"
	if bare {
		quote = ""
	}
	call, named := strings.CutSuffix(before, quote+key+quote)
	call = strings.TrimRight(call, " \t\r\n\\")
	if key == "" || !named || call == "" || strings.IndexByte("({[", call[len(call)-1]) < 0 ||
		bare && call[len(call)-1] != '{' && !strings.HasSuffix(call, "-define(") {
		return Found{}, false
	}
	v := value{name: key, sign: ':', kind: kindOf(key, false), code: true, from: s.pastSpace(i+1, i+32)}
	if v.kind == ordinary {
		return Found{}, false
	}
	if v.from, v.quote = s.literal(v.from, v.sign); v.quote == "" || v.kind == cookies && v.quote == "`" {
		return Found{}, false
	}
	v.end = s.valueEnd(v.from, "\r\n"+v.quote, v.quote)
	after := v.end + len(v.quote)
	if s.atEnd(v.end) || !s.has(v.end, v.quote) {
		return Found{}, false
	}
	if open := call[len(call)-1]; open != '(' { // a pair and no list
		for ; after-v.end < 16 && (isSpace(s.at(after)) || s.at(after) == '>'); after++ {
		}
		if c := s.at(after); c != '}' && c != ']' {
			return Found{}, false
		}
	}
	return s.judge(&v)
}

// stated examines the quote of a literal after a name, possibly with an arrow or a dot between them:
// #define DB_PASSWORD "...", :api-key "...", db_password <- "...", ("password" . "...").
func (s *scanner) stated(i int) (Found, bool) {
	at := i - len(s.before(i, longestName)) + len(withoutArrow(s.before(i, longestName)))
	key, lead := s.keyBefore(at)
	v := value{name: key, lead: lead, sign: ':', kind: kindOf(key, false), code: true}
	if v.kind != password && v.kind != secretly {
		return Found{}, false
	}
	if v.from, v.quote = s.literal(i, v.sign); !s.read(&v) {
		return Found{}, false
	}
	return s.judge(&v)
}

// withoutArrow removes the sign between a name and a literal at the end of a text; empty means there is no blank
// between them, or another sign.
func withoutArrow(text string) string {
	name := trimBlanks(text)
	if len(name) == len(text) {
		return ""
	}
	for _, sign := range []string{" ->", " <-", "\" ."} {
		if before, ok := strings.CutSuffix(name, sign[1:]); ok && strings.HasSuffix(before, sign[:1]) {
			return before
		}
	}
	if n := len(name); n == 0 || !isAlnum(name[n-1]) {
		return ""
	}
	return name
}

// The name of an XML element's text: its tag, an attribute of it or of its parent, or the preceding element.
var (
	tagged = regexp.MustCompile(`<([\w.:-]+)(?:\s[^<>]*)?$`)
	given  = regexp.MustCompile(`(?i)<[\w.:-]+\s(?:[^<>]*\s)?(?:name|key)\s*=\s*["']([\w.:-]+)["'][^<>]*(?:>\s*<value)?$`)
	paired = regexp.MustCompile(`(?i)<(?:name|key)>([\w.:-]+)</(?:name|key)>\s*<(?:value|string)$`)
)

// cdata begins a literal text in XML.
const cdata = "<![CDATA["

// mayHold is a fast check of the end of a tag, see element.
func (s *scanner) mayHold(i int) bool {
	name := s.text[max(0, i-longestName):i]
	return mayName(nameIn(name)) || strings.HasSuffix(name, "<string") || strings.HasSuffix(name, `"`) || strings.HasSuffix(name, "'")
}

// element examines the text of an XML element whose tag ends at i.
func (s *scanner) element(i int) (Found, bool) {
	if s.at(i+1) == '{' {
		if end := s.until(i+1, &s.stops.element, longest); isSealed(s.text[i+1:end]) && s.has(end, "</") {
			return Found{i + 1, end, aSetting}, true
		}
	}
	if i == s.start || !s.mayHold(i) {
		return Found{}, false
	}
	before := s.before(i, longestPair)
	for _, names := range []*regexp.Regexp{tagged, given, paired} {
		m := names.FindStringSubmatch(before)
		if m == nil || kindOf(m[1], false) == ordinary {
			continue
		}
		from, closing := s.pastSpace(i+1, i+64), "</"
		if s.has(from, cdata) {
			from, closing = from+len(cdata), "]]>"
		}
		end := s.until(from, &s.stops.element, longest)
		if closing == "]]>" {
			end -= len(s.text[from:end]) - len(strings.TrimSuffix(s.text[from:end], "]]"))
		}
		after := s.pastSpace(end, end+64)
		if !s.has(after, closing) {
			return Found{}, false
		}
		return s.judge(&value{name: m[1], sign: ':', kind: kindOf(m[1], false), quote: ">", from: from, end: end})
	}
	return Found{}, false
}

// longestPair bounds the bytes in which a pair is searched.
const longestPair = 160

// namesSource reports whether the colon at i follows the name of a password source.
func (s *scanner) namesSource(i int) bool {
	return s.text[i-4:i] == "pass" || s.text[i-3:i] == " /p"
}

// peek returns the byte at i, or 0 after the end, without recording that.
func (s *scanner) peek(i int) byte {
	if i < len(s.text) {
		return s.text[i]
	}
	return 0
}

// longestName bounds the bytes in which the name of a setting is searched.
const longestName = 96

// nameIn removes the characters between a name at the end of a text and its sign.
func nameIn(text string) string {
	text = trimBlanks(text)
	if n := len(text); n > 1 && (text[n-1] == '?' || (text[n-1] == '|' || text[n-1] == '/') && text[n-2] == text[n-1]) {
		text = trimBlanks(strings.TrimRight(text, text[n-1:])) // as in ?=, ??=, ||=, //=
	}
	n := len(text)
	if n > 0 && (text[n-1] == ']' || text[n-1] == '}') {
		n--
	}
	for n > 0 && (text[n-1] == '"' || text[n-1] == '\'') {
		n--
	}
	if n > 0 && text[n-1] == '\\' {
		n--
	}
	return text[:n]
}

// trimBlanks removes blanks at the end. Unlike [strings.TrimRight] it is inlined.
func trimBlanks(text string) string {
	for text != "" && (text[len(text)-1] == ' ' || text[len(text)-1] == '\t') {
		text = text[:len(text)-1]
	}
	return text
}

// keyBefore returns the name that ends before i, and the two bytes before it.
func (s *scanner) keyBefore(i int) (key, lead string) {
	text := nameIn(s.before(i, longestName))
	if !mayName(text) && !s.cookie && !s.maySign(i, text) {
		return "", ""
	}
	n := len(text)
	for n > 0 && (isAlnum(text[n-1]) || text[n-1] == '_' || text[n-1] == '-' || text[n-1] == '.') {
		n--
	}
	// In a string a line break may be written as \n, and the name begins after it.
	if n > 0 && n+1 < len(text) && text[n-1] == '\\' && strings.IndexByte("nrt", text[n]) >= 0 {
		n++
	}
	return text[n:], text[max(0, n-2):n]
}

// kindOf examines the last words of a name: db_password, clientSecret, API-KEY.
func kindOf(key string, cookie bool) kind {
	last, rest := lastWord(key)
	before, _ := lastWord(rest)
	if (last == "base" || last == "data") && before == "key" {
		return secretly
	}
	switch {
	case cookie && (slices.Contains([]string{"sid", "jwt", "auth"}, last) || strings.Contains(strings.ToLower(key), "sess") ||
		strings.Contains(strings.ToLower(key), "remember") || strings.HasSuffix(last, "token")):
		return session
	case last == "cookie":
		return cookies
	case last == "authorization":
		return header
	case last == "auth", last == "ident" && before == "auth":
		return auth
	case slices.Contains([]string{"password", "passwd", "pass", "pwd", "passphrase", "psk"}, last),
		strings.HasSuffix(last, "password"), strings.HasSuffix(last, "passwd"):
		return password
	case slices.Contains([]string{"credential", "credentials", "apikey"}, last), strings.HasSuffix(last, "secret"),
		strings.HasSuffix(last, "apikey"), strings.HasSuffix(last, "accesskey"), strings.HasSuffix(last,
			"privatekey"), strings.HasSuffix(last, "secretkey"):
		return secretly
	case last == "key" && slices.Contains([]string{
		"api", "access", "private", "secret", "signing", "encryption", "master", "auth", "account",
		"app", "service", "shared", "preshared", "storage", "session", "hmac", "webhook", "license", "nonce", "validation", "decryption",
	}, before):
		return secretly
	case strings.HasSuffix(key, "_IN_KEY"), last == "salt" && slices.Contains([]string{"auth", "in", "nonce", "hash"}, before): // of WordPress and Drupal
		return secretly
	case strings.HasSuffix(last, "token") && !slices.Contains([]string{
		"next", "page", "continuation", "continue", "sync", "cursor", "eos", "bos", "pad", "unk", "sep", "cls", "mask", "stop", "start", "end",
		"cancel", "cancellation", "special", "max", "min", "num", "per", "image",
	}, before):
		return secretly
	}
	return ordinary
}

// mayName is a fast check of the end of a name.
func mayName(key string) bool {
	n := len(key)
	if n < 3 {
		return false
	}
	switch uint32(key[n-3]|0x20)<<16 | uint32(key[n-2]|0x20)<<8 | uint32(key[n-1]|0x20) {
	case 'p'<<16 | 's'<<8 | 'k', 'e'<<16 | 'n'<<8 | 't', 'l'<<16 | 'u'<<8 | 'e', 'u'<<16 | 'l'<<8 | 't', 's'<<16 | 't'<<8 | 'r', 'i'<<16 | 'n'<<8 | 'g', 'a'<<16 | 'l'<<8 | 't', 'a'<<16 | 't'<<8 | 'a', 'r'<<16 | 'e'<<8 | 't', 'k'<<16 | 'e'<<8 | 'n', 'o'<<16 | 'r'<<8 | 'd', 's'<<16 | 'w'<<8 | 'd', 'a'<<16 | 's'<<8 | 's',
		'p'<<16 | 'w'<<8 | 'd',
		'a'<<16 | 's'<<8 | 'e', 'a'<<16 | 'l'<<8 | 's', 'i'<<16 | 'a'<<8 | 'l', 'k'<<16 | 'e'<<8 | 'y', 'u'<<16 | 't'<<8 | 'h', 'i'<<16 | 'o'<<8 | 'n', 'k'<<16 | 'i'<<8 | 'e':
		return true
	}
	return false
}

// lastWord returns the last word of a name in lower case, and the rest.
func lastWord(key string) (word, rest string) {
	key = strings.TrimRight(key, "_-.")
	n := len(key)
	for n > 0 && alnum.has(key[n-1]) {
		n--
		if n > 0 && isUpper(key[n]) && !isUpper(key[n-1]) {
			break // as in apiKey
		}
	}
	return strings.ToLower(key[n:]), key[:n]
}

func isUpper(b byte) bool { return 'A' <= b && b <= 'Z' }

// values is the last run of valueEnd.
type values struct {
	stops string
	run
}

// value is the value of a setting.
type value struct {
	name, lead string
	sign       byte // = or :
	kind       kind
	code       bool // the operator is one of code: the value must be quoted
	tight      bool // no space after the operator
	from, end  int
	quote      string // the end of the literal; empty means none
}

// operator reads the operator at i, spaces and the opening quote.
func (s *scanner) operator(i int, v *value) bool {
	if before := s.before(i, 2); v.sign == '=' && before != "" && before != "||" && before != "//" &&
		strings.IndexByte("=!<>+*/%&|^~:", before[len(before)-1]) >= 0 {
		return false
	}
	i++
	switch c := s.at(i); {
	case v.sign == '=' && c == '=':
		return false
	case v.sign == '=' && c == '>', v.sign == ':' && c == '=':
		v.code = true
		i++
	}
	j := s.pastBlanks(i, i+32)
	v.tight = i == j
	if v.environment() {
		v.from, v.quote = s.quoted(j)
	} else {
		v.from, v.quote = s.literal(j, v.sign)
	}
	return !v.code || v.quote != ""
}

// read finds the end of the value, and reports whether there is one.
func (s *scanner) read(v *value) bool {
	if v.kind == header {
		for _, scheme := range []string{"token ", "Token ", "ApiKey ", "apikey ", "Bot ", "Key "} {
			if s.has(v.from, scheme) {
				v.from += len(scheme)
				break
			}
		}
	}
	stops := " \t\r\n\"'<>(){},;\\`[$"
	switch {
	case v.quote != "":
		stops = " \t\r\n" + v.quote
	case v.environment():
		stops = " \t\r\n\"'\\`;" // a line of an environment
	}
	v.end = s.valueEnd(v.from, stops, v.quote)
	if s.atEnd(v.end) {
		return s.final
	}
	if s.placeholder(v.end) > 0 {
		return false
	}
	switch c := s.text[v.end]; {
	case v.end-v.from == longest:
		return true
	case v.quote != "":
		return s.has(v.end, v.quote)
	case v.environment():
		return true
	default:
		return c != '(' && c != '<' && c != '{' && c != '[' && (c != '`' || v.shouting())
	}
}

// valueEnd returns the end of a value: a stop, a placeholder, or the next argument of a query. Like span it
// reads an unquoted run once.
func (s *scanner) valueEnd(from int, stops, quote string) int {
	m := &s.values
	if quote != "" || m.stops != stops || from < m.from || from >= m.end {
		*m = values{stops, run{from, from}}
	}
	for limit := from + longest; m.end < limit && m.end < len(s.text); m.end++ {
		c := s.text[m.end]
		if c == '\\' && len(quote) == 1 && m.end+1 < min(limit, len(s.text)) {
			m.end++
			continue
		}
		if strings.IndexByte(stops, c) >= 0 || c == '&' && quote == "" && s.argument(m.end+1) || c == '[' && s.placeholder(m.end) > 0 {
			break
		}
	}
	return min(m.end, from+longest)
}

// argument reports whether name= begins at i, as in the next part of a query.
func (s *scanner) argument(i int) bool {
	j := i
	for j-i < 40 && (isAlnum(s.at(j)) || s.at(j) == '_' || s.at(j) == '-' || s.at(j) == '.') {
		j++
	}
	return j > i && s.at(j) == '='
}

// shouting reports whether the name is that of an environment variable, as in DB_PASSWORD.
func (v *value) shouting() bool { return strings.ToUpper(v.name) == v.name && isUpper(v.name[0]) }

// environment reports whether it is the line of an environment, or of a shell.
func (v *value) environment() bool { return v.sign == '=' && v.tight && v.shouting() }

// argument reports whether it is an argument of an address, as in ?token=...; those of badges and pages are
// short.
func (v *value) argument() bool {
	return v.sign == '=' && v.kind != password && (strings.HasSuffix(v.lead, "?") || strings.HasSuffix(v.lead, "&"))
}

// judge reports whether a value is a secret.
func (s *scanner) judge(v *value) (Found, bool) {
	text := s.text[v.from:v.end]
	if text == "" {
		return Found{}, false
	}
	if found, ok := s.token(v.from); ok && found.Start == v.from {
		return found, true
	}
	found := Found{v.from, v.end, aSetting}
	look := text[:min(len(text), 256)]
	switch {
	case v.kind == auth:
		if colon := strings.IndexByte(text, ':'); colon > 0 && strings.HasSuffix(v.name, "dent") {
			return s.password(v.from+colon+1, v.end)
		}
		found.What = "a login"
		return found, len(text) <= 256 && isLogin(text)
	case isSealed(text):
		return found, true
	case len(text) < 8, !s.secretValue(v, look), strings.HasSuffix(v.lead, "$") && (v.quote == "" || v.sign != '='),
		v.lead == "${", standIn(look), isDummy(look), isPlain(look), isPlace(look):
		return found, false
	case strings.ContainsAny(text[:1], `$<{%(*\`), isNumber(look), v.argument() && len(text) < 16,
		strings.Contains(look, "$("), strings.Contains(look, "#{"), strings.Contains(look, "%("):
		return found, false
	}
	return found, true
}

// isSealed reports whether a value is base64 in braces, as Maven and Jenkins write values that they encrypted with
// a key that lies next to it.
func isSealed(text string) bool {
	data := strings.TrimSuffix(strings.TrimPrefix(text, "{"), "}")
	return len(data) == len(text)-2 && len(data) >= 24 && mixed(data) &&
		strings.TrimFunc(data, func(r rune) bool { return r < utf8.RuneSelf && base64s.has(byte(r)) }) == ""
}

// secretValue judges the value, given the name.
func (s *scanner) secretValue(v *value, look string) bool {
	bare := v.quote == ""
	switch {
	case v.kind == signing:
		return len(look) >= 16 && (mixed(look) || strong(look)) && (v.name != "key" || !isID(look) && !strings.ContainsAny(look, "/.:"))
	case v.kind == session, v.kind == header:
		return len(look) >= 16 && (mixed(look) || strong(look))
	case bare && v.sign == ':' && (v.name == "PASS" || v.name == "pass" || v.name == "Pass"):
		return false // the result of a test
	case v.shouting() && !v.code:
		return secretive(look) || jumbled(look) || bare && v.tight && v.sign == '=' && s.wordAlone(v)
	case bare && !v.tight && isName(look) && !(bothCases(look) && unspeakable(look)) && (v.kind != password || !isUpper(look[0])):
		return false // a name in code
	case v.kind == password && (v.quote != "" || v.sign == ':' || v.tight):
		return mixed(look) || strong(look) || digitsAside(look) || jumbled(look)
	}
	return mixed(look) && (len(look) >= 10 || !bare) || len(look) >= 16 && (strong(look) || jumbled(look))
}

// wordAlone reports whether the value is all of an environment line's value.
func (s *scanner) wordAlone(v *value) bool {
	if strings.TrimFunc(s.text[v.from:v.end], isLetter) != "" || v.lead != "" && strings.IndexByte(" \t\r\n\"'", v.lead[len(v.lead)-1]) < 0 && v.lead != `\` {
		return false
	}
	i := v.end
	if v.lead != "" && strings.IndexByte(`"'`, v.lead[len(v.lead)-1]) >= 0 && s.at(i) == v.lead[len(v.lead)-1] {
		i++ // all of an entry in quotes
	}
	i = s.pastBlanks(i, v.end+32)
	return s.atEnd(i) || s.text[i] == '\n' || s.text[i] == '\r'
}

func isLetter(r rune) bool { return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' }

// digitsAside reports whether s has upper and lower case letters and digits, as passwords chosen by people do.
func digitsAside(s string) bool {
	return strings.ContainsAny(s, "0123456789") && strings.ToLower(s) != s && strings.ToUpper(s) != s && (isUpper(s[0]) || !isName(s))
}
