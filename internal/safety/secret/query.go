package secret

import (
	"slices"
	"strings"
)

// maySign is a fast check of whether the name before the sign at i could be one that signs knows.
func (s *scanner) maySign(i int, name string) bool {
	n := len(name)
	if s.text[i] != '=' || n < 3 || !isAlnum(s.text[i-1]) {
		return false
	}
	switch uint32(name[n-3]|0x20)<<16 | uint32(name[n-2]|0x20)<<8 | uint32(name[n-1]|0x20) {
	case 's'<<16 | 'i'<<8 | 'g', 'u'<<16 | 'r'<<8 | 'e', 'o'<<16 | 'd'<<8 | 'e', 'i'<<16 | 'g'<<8 | 'n', 'm'<<16 | 'a'<<8 | 'c',
		'k'<<16 | 'e'<<8 | 't',
		'i'<<16 | 'e'<<8 | 'r', 'n'<<16 | 's'<<8 | 'e', 'e'<<16 | 's'<<8 | 't', 'j'<<16 | 'w'<<8 | 't', 'o'<<16 | 't'<<8 | 'p', 'g'<<16 | 'i'<<8 | 'c':
		return true
	}
	return false
}

// signs reports whether the = at i sets a part of an address that authorizes access: a signature, a one-time
// code, an assertion.
func (s *scanner) signs(i int, name string) bool {
	if s.text[i] != '=' {
		return false
	}
	name = strings.TrimPrefix(name, "u0026") // & in JSON
	before := strings.TrimSuffix(s.before(i, 96), name)
	if !slices.ContainsFunc([]string{"?", "&", "&amp;", `\u0026`, "#"}, func(sign string) bool { return strings.HasSuffix(before, sign) }) {
		return false
	}
	name = strings.ToLower(name)
	return strings.HasSuffix(name, "-signature") || slices.Contains([]string{
		"sig", "signature", "sign", "oauth_signature", "hmac", "code", "code_verifier", "oauth_verifier", "auth_code", "key", "ticket",
		"assertion", "client_assertion",
		"samlresponse", "samlrequest", "jwt", "otp", "magic", "verification_code", "x-amz-security-token",
	}, name)
}

// isID reports whether s is a UUID, which identifies and doesn't authorize.
func isID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range 36 {
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash != (s[i] == '-') || !dash && !isHex(s[i]) {
			return false
		}
	}
	return true
}
