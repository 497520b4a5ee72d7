package secret

import (
	"slices"
	"strings"
)

// clients lists the options of well-known programs that take a password, as
//
//	PROGRAM... | OPTION...
//
// An option is its name, after + if the password is always attached, after = if it may be. It ends with the
// position of the password: . the whole word, : after a colon, % after a percent sign, a comma after a comma.
// With "login" it applies only to that command of the programs.
const clients = `
mysql mariadb mysqldump mariadb-dump mysqladmin mariadb-admin mysqlimport mysqlshow mysqlcheck mysqlpump 7z 7za 7zz rar unrar | +p.
sshpass mongo mongosh mongodump mongorestore mongoexport mongoimport cqlsh cypher-shell rabbitmqadmin twine couchbase-cli cbq rdesktop ncftp ncftpget ncftpput evil-winrm psexec security | =p.
docker podman nerdctl buildah helm oras crane skopeo az cf oc heroku registry | login =p.
redis-cli valkey-cli keydb-cli | =a.
ldapsearch ldapmodify ldapadd ldapdelete ldapwhoami ldapcompare ldapmodrdn ldapexop ldappasswd security | =w.
ldappasswd | =s. =a.
sqlcmd bcp isql tsql fisql mosquitto_pub mosquitto_sub mosquitto_rr ipmitool zip unzip zipcloak | =P.
curl | =u: =U: user: proxy-user:
http https xh xhs | =a: auth:
ab | =A: =P:
smbclient rpcclient smbget smbtree smbcacls winexe net nmblookup | =U% user%
lftp | =u,
snmpwalk snmpget snmpset snmpbulkwalk snmpbulkget snmptrap | =A. =X.
plink pscp psftp putty | pw.
keytool jarsigner apksigner | storepass. keypass. srcstorepass. deststorepass. destkeypass. srckeypass.
influx | password.
openssl | =k. =K.
skopeo buildah podman crane | creds: src-creds: dest-creds:
sshpass mysql mariadb redis-server | requirepass. masterauth.
gpg gpg2 | passphrase.
bw lpass restic | password.
`

// flag examines the dash of an option for a program's password.
func (s *scanner) flag(i int) (Found, bool) {
	if i == s.start || !isSpace(s.text[i-1]) {
		return Found{}, false
	}
	from := i + 1
	if s.at(from) == '-' {
		from++
	}
	end := from
	for end-from < 24 && (isAlnum(s.at(end)) || s.at(end) == '-' || s.at(end) == '_') {
		end++
	}
	if end == from || s.wait() {
		return Found{}, false
	}
	name, next := s.text[from:end], s.at(end)
	if from == i+2 && (next == ' ' || next == '\t') {
		if k := kindOf(name, false); k == password || k == secretly {
			return s.optional(end, name, k)
		}
	}
	for _, form := range s.taken(i, name) {
		if found, ok := s.given(from, end, name, form); ok || s.wait() {
			return found, ok
		}
	}
	if name == "b" || from == i+1 && strings.Contains(name, "b") && len(name) <= 4 {
		return s.htpasswd(i, end, strings.Contains(name, "n"))
	}
	return Found{}, false
}

// optional examines the text after --password.
func (s *scanner) optional(end int, name string, k kind) (Found, bool) {
	v := value{name: name, lead: "--", sign: '=', kind: k, tight: true}
	j := s.pastBlanks(end, end+32)
	if c := s.at(j); c == '"' || c == '\'' {
		v.quote = s.text[j : j+1]
	} else if c == '-' || c == '|' || c == '[' || c == '=' {
		return Found{}, false
	}
	v.from = j + len(v.quote)
	if !s.read(&v) {
		return Found{}, false
	}
	return s.judge(&v)
}

// taken lists the password forms, for an option that begins like name, of the programs named before i.
func (s *scanner) taken(i int, name string) (forms []string) {
	words := s.command(i)
	if len(words) == 0 {
		return nil
	}
	for line := range strings.SplitSeq(clients, "\n") {
		programs, options, ok := strings.Cut(line, " | ")
		if !ok || !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(" "+programs+" ", " "+w+" ") }) {
			continue
		}
		if rest, login := strings.CutPrefix(options, "login "); login {
			if options = rest; !slices.Contains(words, "login") {
				continue
			}
		}
		for form := range strings.FieldsSeq(options) {
			option := strings.Trim(form, "+=.:%,")
			if name == option || clustered(name, option, form) || (form[0] == '+' || form[0] == '=') && strings.HasPrefix(name, option) {
				forms = append(forms, form)
			}
		}
	}
	return forms
}

// clustered reports whether a one-letter option with a login in the next word follows other letters without
// values, as in curl -su ann:...
func clustered(name, option, form string) bool {
	return form[0] == '=' && !strings.HasSuffix(form, ".") && len(option) == 1 && len(name) <= 5 && strings.HasSuffix(name, option)
}

// command lists the words, before i, of the command that contains i, without folders and quotes.
func (s *scanner) command(i int) []string {
	text := s.before(i, context)
	for at := strings.LastIndexByte(text, '\n'); at >= 0; at = strings.LastIndexByte(text[:at], '\n') {
		if at == 0 || text[at-1] != '\\' {
			text = text[at+1:]
			break
		}
	}
	for _, sign := range []string{"| ", "; ", "&& ", "$(", "`"} {
		text = text[strings.LastIndex(text, sign)+1:]
	}
	words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\n\"'`$(),[]{}", r) })
	for n, w := range words {
		words[n] = w[strings.LastIndexByte(w, '/')+1:]
	}
	return words
}

// given examines the password of a known program's option: attached, or the next word.
func (s *scanner) given(from, end int, name, form string) (Found, bool) {
	option := strings.Trim(form, "+=.:%,")
	attached := (form[0] == '+' || form[0] == '=') && strings.HasPrefix(name, option)
	if clustered(name, option, form) && isSpace(s.at(end)) {
		from, name = end-1, option
	}
	at := from + len(option)
	c := s.at(at)
	switch {
	case len(name) > len(option), attached && !isSpace(c) && c != 0:
	case form[0] == '+':
		return Found{}, false
	case c == '=' && len(option) > 1:
		at++
	default:
		if at = s.pastBlanks(end, end+8); at == end {
			return Found{}, false
		}
	}
	begin, stop, ok := s.argumentWord(at)
	if !ok {
		return Found{}, false
	}
	if sign := form[len(form)-1]; sign != '.' {
		cut := strings.IndexByte(s.text[begin:stop], sign)
		if cut < 0 {
			return Found{}, false
		}
		user := s.text[begin : begin+cut]
		if begin+cut+1 == stop && len(user) >= 20 && mixed(user) {
			return s.password(begin, begin+cut)
		}
		begin += cut + 1
	}
	return s.password(begin, stop)
}

// argumentWord returns a word of a command line without its quotes.
func (s *scanner) argumentWord(i int) (from, end int, ok bool) {
	quote := s.at(i)
	if quote == '"' || quote == '\'' {
		for end = i + 1; end-i < 256 && s.at(end) != quote && s.at(end) != '\n' && s.at(end) != 0; end++ {
			if s.placeholder(end) > 0 {
				return 0, 0, false
			}
		}
		return i + 1, end, s.at(end) == quote
	}
	for end = i; end-i < 256 && s.at(end) != 0 && !isSpace(s.text[end]) && strings.IndexByte(";|&()<>`\"'", s.text[end]) < 0; end++ {
		if s.placeholder(end) > 0 {
			return 0, 0, false
		}
	}
	if s.atEnd(end) && !s.final {
		return 0, 0, false
	}
	return i, end, end > i
}

// password judges the text in the place of a password: it is one, unless it is a usual stand-in of manuals and
// scripts.
func (s *scanner) password(from, end int) (Found, bool) {
	if from >= end {
		return Found{}, false
	}
	if found, ok := s.token(from); ok && found.Start == from {
		return found, true
	}
	text := s.text[from:end]
	low := strings.ToLower(text)
	switch {
	case len(text) == 41 && text[0] == '*' && strings.Trim(text[1:], "0123456789ABCDEF") == "":
		return Found{from, end, "the hash of a password"}, true // of MySQL
	case isDummy(text), standIn(text), isPlain(text), isPlace(text), strings.IndexByte("$<{%-*@[/\\", text[0]) >= 0, strings.Contains(text, "$"), strings.Trim(text, "*.x#") == "",
		strings.Contains(low, "password"), strings.Contains(low, "passwd"), strings.Trim(text, "0123456789.:,-/") == "", strings.ToUpper(text) == text && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_-") == "":
		return Found{}, false
	case len(text) >= 6 && secretive(text), len(text) >= 10 && strings.TrimFunc(text, isLetter) == "":
		return Found{from, end, "a password of a command"}, true
	}
	return Found{}, false
}

// htpasswd examines the last words of htpasswd -b FILE USER PASSWORD; without a file if it only prints.
func (s *scanner) htpasswd(i, at int, prints bool) (Found, bool) {
	words := s.command(i)
	n := slices.Index(words, "htpasswd")
	if n < 0 {
		return Found{}, false
	}
	left := 3
	for _, w := range words[n+1:] {
		prints = prints || strings.HasPrefix(w, "-") && strings.Contains(w, "n")
	}
	if prints {
		left = 2
	}
	for range 8 {
		at = s.pastBlanks(at, at+8)
		begin, end, ok := s.argumentWord(at)
		if !ok {
			return Found{}, false
		}
		if s.text[begin] != '-' || left < 2 {
			if left--; left == 0 {
				return s.password(begin, end)
			}
		} else if strings.Contains(s.text[begin:end], "n") && left == 3 {
			left = 2
		}
		at = end + (begin - at)
	}
	return Found{}, false
}

// source examines the colon of a password in the notations of openssl, apksigner and remote desktop clients:
// -passin pass:..., /p:...
func (s *scanner) source(i int) (Found, bool) {
	before := s.before(i, context)
	rest, openssl := strings.CutSuffix(before, "pass")
	if openssl {
		name := rest[strings.LastIndexAny(strings.TrimRight(rest, " \t\"'"), " \t")+1:]
		openssl = strings.HasPrefix(name, "-") && strings.Contains(name, "pass")
	}
	remote := strings.HasSuffix(before, " /p") && slices.ContainsFunc(s.command(i), func(w string) bool {
		return slices.Contains([]string{"xfreerdp", "xfreerdp3", "wlfreerdp", "sdl-freerdp", "mstsc"}, w)
	})
	if !openssl && !remote {
		return Found{}, false
	}
	from, end, ok := s.argumentWord(i + 1)
	if !ok {
		return Found{}, false
	}
	return s.password(from, end)
}

// saying examines a password after words that announce it.
func (s *scanner) saying(from int, c check) (Found, bool) {
	if c == quoted { // the quote is the last byte of the prefix
		begin, end, ok := s.argumentWord(from - 1)
		if !ok || strings.ContainsAny(s.text[begin:end], " \t") {
			return Found{}, false
		}
		return s.password(begin, end)
	}
	begin, end, ok := s.argumentWord(from)
	for n := 0; ok && c == account && n < 3 && s.text[begin] == '-'; n++ {
		begin, end, ok = s.argumentWord(end + 1)
	}
	if ok && c == account {
		slash := strings.IndexByte(s.text[begin:end], '/')
		host := strings.LastIndexByte(s.text[begin:end], '@')
		if ok = slash > 0 && (host < 0 || host > slash); host > 0 {
			end = begin + host
		}
		begin += slash + 1
	}
	if !ok {
		return Found{}, false
	}
	return s.password(begin, end)
}

// directive looks for the value of a variable with a secret name, as in ENV DB_PASSWORD x.
func (s *scanner) directive(from int) (Found, bool) {
	end := from
	for end-from < longestName && (isAlnum(s.at(end)) || s.at(end) == '_') {
		end++
	}
	name := s.text[from:end]
	if k := kindOf(name, false); !isSpace(s.at(end)) || k != password && k != secretly {
		return Found{}, false
	}
	begin, end, ok := s.argumentWord(end + 1)
	if !ok {
		return Found{}, false
	}
	return s.judge(&value{name: name, sign: '=', kind: kindOf(name, false), tight: true, quote: "\"", from: begin, end: end})
}
