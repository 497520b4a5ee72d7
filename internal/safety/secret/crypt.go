package secret

import (
	"slices"
	"strings"
)

// crypt examines a $ for the hash of a password in the notation of crypt(5): $, the name of a method, its settings, a
// salt and the hash, separated by $. A file of Compose doubles each $, and a shell escapes it.
func (s *scanner) crypt(i int) (Found, bool) {
	const most = 320 // bytes
	at := i + 1
	if s.at(at) == '$' {
		at++
	}
	name := at
	for at-name < 16 && (isAlnum(s.at(at)) || s.at(at) == '-' || s.at(at) == '_') {
		at++
	}
	if !slices.Contains([]string{
		"1", "2a", "2b", "2x", "2y", "5", "6", "7", "8", "9", "y", "gy", "apr1", "sha1", "md5", "argon2i", "argon2d", "argon2id", "scrypt",
		"pbkdf2", "pbkdf2-sha1", "pbkdf2-sha256", "pbkdf2-sha512", "bcrypt-sha256", "sm3", "P",
	}, s.text[name:at]) {
		return Found{}, false
	}
	from, fields := at, 0
	for {
		next := s.dollars(at)
		if next == at {
			break
		}
		from, at, fields = next, next, fields+1
		for at-i < most && at-next < most && (isAlnum(s.at(at)) || s.at(at) != 0 && strings.IndexByte("./+=,_-", s.text[at]) >= 0) {
			at++
		}
	}
	hash := s.text[from:at]
	return Found{i, at, "the hash of a password"}, fields >= 2 && fields < 7 && at-i < most && len(hash) >= 22 &&
		(mixed(hash) || bothCases(hash) && unspeakable(hash)) && !standIn(hash)
}

// dollars returns the end of a $ at i, which may be doubled or escaped; i: there is none.
func (s *scanner) dollars(i int) int {
	switch {
	case s.at(i) == '$' && s.at(i+1) == '$', s.at(i) == '\\' && s.at(i+1) == '$':
		return i + 2
	case s.at(i) == '$':
		return i + 1
	}
	return i
}

// mayCrypt is a fast check of the byte after a $, see crypt.
func mayCrypt(next byte) bool { return next != 0 && strings.IndexByte("1256789ygasmpbP$", next) >= 0 }

// hashes are the hashes of passwords in other notations: of Django, Werkzeug, LDAP, PostgreSQL and MySQL.
func hashes() []shape {
	const what = "the hash of a password"
	return []shape{
		{prefix: "pbkdf2_sha", tail: "D1$D4$A8$B28", what: what},
		{prefix: "pbkdf2:sha", tail: "D1:D4$A8$H40", what: what},
		{prefix: "scrypt:", tail: "D4:D1:D1$A8$H64", what: what},
		{prefix: "SCRAM-SHA-256$", tail: "D4:B16$B40:B40", what: what},
		{prefix: "SHA}", tail: "B27", what: what, check: bearing},
		{prefix: "SSHA}", tail: "B28", what: what, check: bearing},
		{prefix: "SSHA256}", tail: "B28", what: what, check: bearing},
		{prefix: "SSHA512}", tail: "B28", what: what, check: bearing},
		{prefix: "SMD5}", tail: "B24", what: what, check: bearing},
		{prefix: "md5", tail: "H=32", what: what, check: enclosed},
	}
}

// sealed are texts that are encrypted with a key of the same machine or user, and logins in base64.
func sealed() []shape {
	return []shape{
		{prefix: "AQAAANCMnd8BFdERjHoAwE", tail: "B20", what: "a secret that Windows encrypted"},
		{prefix: "01000000d08c9ddf0115d1118c7a00c04fc297eb", tail: "H32", what: "a secret that Windows encrypted"},
		{prefix: "AQAAABAAAAA", tail: "B20", what: "a secret that Jenkins encrypted"},
		{prefix: "eyJhdXRocyI6", tail: "B20", what: "the logins of Docker"}, // base64 of {"auths":
		{prefix: "ewoJImF1dGhzIjog", tail: "B20", what: "the logins of Docker"},
		{prefix: "ewogICJhdXRocyI6", tail: "B20", what: "the logins of Docker"},
		{prefix: "s.", tail: "A=24", what: "a Vault token", check: chance},
		{prefix: "b.AAAAAQ", tail: "W80", what: "a Vault token"},
		{prefix: "Unseal Key ", tail: "D1: B40", what: "a key of Vault", check: bearing},
		{prefix: "Recovery Key ", tail: "D1: B40", what: "a key of Vault", check: bearing},
	}
}
