package secret

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// standIn reports whether a secret is only an example or a placeholder.
func standIn(s string) bool {
	if sameRun(s) >= 8 {
		return true
	}
	s = strings.ToLower(s)
	for _, mark := range []string{
		"example", "changeme", "change-me", "change_me", "placeholder", "redacted", "xxxxxx", "your-", "your_", "yourpass", "yourkey",
		"yourtoken", "yoursecret",
		":password@", ":pass@", "******", "....", "dummy", "replace-", "replace_", "replaceme", "insert-", "insert_", "fixme", "1234567890abc",
		"abcdefgh", "not-a-real", "not_a_real", "notreal",
		"${", "{{", "<your", "sflkxwrj", "sk_test_4ec39hqlyjwdarjtt1zd",
	} {
		if strings.Contains(s, mark) {
			return true
		}
	}
	return false
}

// sameRun returns the length of the longest run of one character.
func sameRun(s string) int {
	most, n := 0, 0
	for i := range len(s) {
		if i == 0 || s[i] != s[i-1] {
			n = 0
		}
		n++
		most = max(most, n)
	}
	return most
}

// isDummy reports whether a password is a common example from manuals.
func isDummy(s string) bool {
	s = strings.ToLower(s)
	return slices.Contains([]string{
		"password", "passwd", "pass", "pwd", "pw", "secret", "token", "user", "username", "test", "testing", "guest", "admin", "root", "postgres",
		"mysql", "mongo", "redis", "rabbitmq",
		"mypassword", "mysecret", "mypass", "password1", "password123", "passw0rd", "secret123", "changeit", "letmein", "foo", "bar", "baz",
		"foobar", "none", "null", "nil", "true", "false",
		"undefined", "string", "default", "required", "optional", "apikey", "api_key", "api-key", "open sesame", "opensesame", "port", "host",
		"value", "disabled", "enabled", "localhost", "development", "production", "test1234", "12345678", "123456789", "1234567890", "qwertyuiop",
	}, s)
}

// secretive reports whether a value looks like a secret rather than a name in code or a number: it has a digit
// or a sign, and not only digits.
func secretive(s string) bool {
	return strings.ContainsAny(s, "0123456789!@#%^&*+/=~?|") && strings.Trim(s, "0123456789.,_-") != ""
}

// mixed reports whether characters are mixed randomly, unlike words: letters and digits alternate more than
// once within a piece. If it holds for a text, it holds for every longer one that begins with it.
func mixed(s string) bool {
	changes, letters := 0, 0
	var last byte
	for i := range len(s) {
		now := group(s[i])
		if now == 'a' {
			letters++
		}
		if last != 0 && now != 0 && now != last {
			changes++
		}
		last = now
	}
	return changes >= 2 && letters >= 3
}

// byChance reports whether a part of s mixes letters and digits so randomly that it is unique.
func byChance(s string) bool {
	for part := range strings.FieldsFuncSeq(s, func(r rune) bool { return r >= utf8.RuneSelf || !isAlnum(byte(r)) }) {
		turns := 0
		for i := 1; i < len(part); i++ {
			if group(part[i]) != group(part[i-1]) || isUpper(part[i]) != isUpper(part[i-1]) {
				turns++
			}
		}
		if len(part) >= 12 && 5*turns >= 2*len(part) && strings.ContainsAny(part, "0123456789") && !isName(part) {
			return true
		}
	}
	return false
}

// group distinguishes letters, digits and separators.
func group(b byte) byte {
	switch {
	case '0' <= b && b <= '9':
		return '0'
	case alnum.has(b):
		return 'a'
	}
	return 0
}

// strong reports whether a password has a sign among its letters.
func strong(s string) bool {
	return strings.ContainsAny(s, "!@#%^&*+=~?") && strings.ContainsAny(s, "0123456789") && trailing(s) < len(s)
}

// isPlain reports whether a value consists of words and numbers, and one of them marks it as an example:
// test-key-1, my_secret_token.
func isPlain(s string) bool {
	told := false
	for piece := range strings.FieldsFuncSeq(strings.ToLower(s), func(r rune) bool { return strings.ContainsRune("-_. ", r) }) {
		for i := 1; i < len(piece); i++ {
			if group(piece[i]) != group(piece[0]) {
				return false
			}
		}
		told = told || slices.Contains([]string{
			"test", "key", "token", "secret", "password", "pass", "my", "the", "some", "fake", "api", "value",
			"here", "mock", "sample", "demo", "foo", "bar", "not",
		}, piece)
	}
	return told
}

// isPlace reports whether a value refers to a secret elsewhere: a path, an address, a name in a store or in
// code.
func isPlace(s string) bool {
	if strings.Contains(s, "://") {
		return true
	}
	for _, p := range []string{
		"./", "../", "~/", "arn:", "projects/", "secret/",
		"secrets/", "vault:", "ssm:", "file:", "env:", "env.", "process.env", "os.environ",
	} {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	drive := len(s) > 2 && s[1] == ':' && s[2] == '\\'
	return drive || strings.HasPrefix(s, "/") && wordy(s[1:], "/-_.") || strings.ContainsAny(s, ".") && isDotted(s)
}

// isDotted reports whether s is names separated by dots, as in config.db2.token.
func isDotted(s string) bool {
	for part := range strings.SplitSeq(s, ".") {
		if part == "" || group(part[0]) == '0' || !wordy(part, "_") {
			return false
		}
	}
	return true
}

// wordy reports whether the pieces of s between marks look like names: letters, optionally followed by digits.
func wordy(s, marks string) bool {
	for piece := range strings.FieldsFuncSeq(s, func(r rune) bool { return strings.ContainsRune(marks, r) }) {
		piece = strings.TrimRight(piece, "0123456789")
		for i := range len(piece) {
			if group(piece[i]) != 'a' {
				return false
			}
		}
	}
	return true
}

// isName reports whether s looks like a name in code, such as testP256Key: its parts have at least three or
// four letters, as words do.
func isName(s string) bool {
	letters, parts := 0, 1
	for i := range len(s) {
		if group(s[i]) != 'a' {
			if group(s[i]) == 0 && s[i] != '_' {
				return false
			}
			continue
		}
		letters++
		if i > 0 && (group(s[i-1]) == '0' || isUpper(s[i]) && group(s[i-1]) == 'a' && !isUpper(s[i-1])) {
			parts++
		}
	}
	return 2*letters >= 7*parts && group(s[0]) == 'a'
}

// jumbled reports whether s is a random mix of upper and lower case letters.
func jumbled(s string) bool {
	return len(s) >= 10 && bothCases(s) && strings.TrimFunc(s, isLetter) == "" && (len(s) < 4*humps(s) || unspeakable(s))
}

// humps returns the number of words of a name such as apiKey.
func humps(s string) int {
	n := 1
	for i := 1; i < len(s); i++ {
		if isUpper(s[i]) && !isUpper(s[i-1]) {
			n++
		}
	}
	return n
}

func bothCases(s string) bool { return strings.ToLower(s) != s && strings.ToUpper(s) != s }

// unspeakable reports whether more consonants follow each other than in names. Digits don't count. If it holds for a
// text, it holds for every longer one that begins with it.
func unspeakable(s string) bool {
	n := 0
	for i := range len(s) {
		switch {
		case strings.IndexByte("aeiouyAEIOUY", s[i]) >= 0 || !isAlnum(s[i]):
			n = 0
		case group(s[i]) == 'a':
			n++
		}
		if n == 6 {
			return true
		}
	}
	return false
}

// isNumber reports whether s is a number in code notation: -0x7f87.
func isNumber(s string) bool {
	digits, ok := strings.CutPrefix(strings.TrimPrefix(s, "-"), "0x")
	return ok && len(digits) <= 16 && strings.Trim(strings.ToLower(digits), "0123456789abcdef_") == ""
}
