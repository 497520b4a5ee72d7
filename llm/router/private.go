package router

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// pattern is a shape of secrets.
type pattern struct {
	what    string // for people
	re      *regexp.Regexp
	anchors []string // a line that matches holds one of them; nil: matches may span lines
	signs   string   // and one of these characters; empty: any
	loose   bool     // the shape alone proves little: the value in the last group must look like a secret
}

// names ends the names of settings that hold secrets, as in DB_PASSWORD.
const names = `(?:SECRET|TOKEN|PASSWORD|PASSWD|PASS|PWD|CREDENTIALS?|API_?KEY|(?:ACCESS|PRIVATE|SECRET|SIGNING|ENCRYPTION|MASTER|AUTH)_KEY|SECRET_KEY_BASE)`

// builtIn returns the shapes that are known. What is looked for is what opens
// doors: keys, tokens, passwords. Names, addresses and numbers of people are
// not; whoever needs them adds them.
//
// The shapes are the vendors' own, such as
// github.blog/changelog/2021-03-31-authentication-token-format-updates-are-generally-available,
// docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html, RFC 7468
// for private keys and RFC 7519 for web tokens.
func builtIn() []pattern {
	var out []pattern
	const settings = "KEY|SECRET|TOKEN|PASS|PWD|CREDENTIAL"
	for _, p := range []struct {
		what, anchors, signs string
		expr                 string
		loose                bool
	}{
		{"a private key", "PRIVATE KEY", "", `-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----`, false},
		{"a private key", "AGE-SECRET-KEY-", "", `AGE-SECRET-KEY-1[0-9A-Z]{50,}`, false},
		{"an AWS key", "AKIA|ASIA", "", `\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`, false},
		{"a GitHub token", "ghp_|gho_|ghu_|ghs_|ghr_|github_pat_", "", `\b(?:gh[pousr]_[0-9A-Za-z]{36}|github_pat_[0-9A-Za-z_]{22})`, false},
		{"a GitLab token", "glpat-", "", `\bglpat-[0-9A-Za-z_-]{20}`, false},
		{"a Slack token", "xox", "", `\bxox[abeoprs]-[0-9A-Za-z-]{10}`, false},
		{"a Slack hook", "hooks.slack.com", "", `hooks\.slack\.com/(?:services|workflows)/[0-9A-Za-z/]{20}`, false},
		{"a Google key", "AIza", "", `\bAIza[0-9A-Za-z_-]{35}`, false},
		{"a Google token", "ya29.", "", `\bya29\.[0-9A-Za-z_-]{20}`, false},
		{"a Hugging Face token", "hf_", "", `\bhf_[0-9A-Za-z]{30}`, false},
		{"a Stripe key", "k_live_", "", `\b[sr]k_live_[0-9A-Za-z]{20}`, false},
		{"an npm token", "npm_", "", `\bnpm_[0-9A-Za-z]{36}`, false},
		{"a PyPI token", "pypi-", "", `\bpypi-[0-9A-Za-z_-]{50}`, false},
		{"a SendGrid key", "SG.", "", `\bSG\.[0-9A-Za-z_-]{16,}\.[0-9A-Za-z_-]{16}`, false},
		{"a web token", "eyJ", "", `\beyJ[0-9A-Za-z_-]{8,}\.eyJ[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]{8}`, false},
		{"an API key", "sk-", "", `\bsk-([0-9A-Za-z_-]{20,})`, true},
		{"a password in an address", "://", "@", `\b[a-z][a-z0-9+.-]*://[^\s/:@"'<>]*:([^\s/@"'<>{}$]{3,})@`, true},
		{"a secret setting", settings, "=:", `(?:^|[^0-9A-Za-z$])(?:[A-Z0-9]+_)*` + names + `["']?\s*[=:]\s*["']?([^\s"'<>(){},;$\\` + "`" + `]{8,})`, true},
		{"a secret setting", settings, "=:", `(?:^|\s)(?:[A-Z0-9]+_)*` + names + `=[A-Za-z]{8,}\s*$`, false},
	} {
		out = append(out, pattern{p.what, regexp.MustCompile(p.expr), strings.Split(p.anchors, "|"), p.signs, p.loose})
	}
	return out
}

// custom returns the patterns of a person.
func custom(private []string) ([]pattern, error) {
	var out []pattern
	for i, expr := range private {
		re, err := regexp.Compile(expr)
		if err != nil {
			return nil, fmt.Errorf("private pattern %d: %w", i+1, err)
		}
		// Not the pattern itself: it may be what nobody should read.
		out = append(out, pattern{what: fmt.Sprintf("text that private pattern %d matches", i+1), re: re})
	}
	return out, nil
}

// in reports whether text holds such a secret. Regular expressions are slow, so
// they see only the lines that have an anchor.
func (p pattern) in(text string) bool {
	if p.anchors == nil {
		return p.re.MatchString(text)
	}
	for _, anchor := range p.anchors {
		for rest := text; ; {
			i := strings.Index(rest, anchor)
			if i < 0 {
				break
			}
			line := rest[strings.LastIndexByte(rest[:i], '\n')+1:]
			line, rest, _ = strings.Cut(line, "\n")
			if (p.signs == "" || strings.ContainsAny(line, p.signs)) && p.inLine(line) {
				return true
			}
		}
	}
	return false
}

func (p pattern) inLine(line string) bool {
	for {
		at := p.re.FindStringSubmatchIndex(line)
		if at == nil {
			return false
		}
		value := line[at[len(at)-2]:at[len(at)-1]]
		if !placeholder(line[at[0]:at[1]]) && (!p.loose || secretive(value)) {
			return true
		}
		line = line[at[1]:]
	}
}

// placeholder reports whether a secret stands there only to show where one goes.
func placeholder(s string) bool {
	s = strings.ToLower(s)
	return slices.ContainsFunc([]string{"example", "changeme", "change-me", "change_me", "placeholder", "redacted", "xxxxxx", "your-", "your_", ":password@", ":pass@", "******", "......"},
		func(mark string) bool { return strings.Contains(s, mark) })
}

// secretive reports whether a value is a secret rather than a name in code or a
// number: it has a digit or a sign, and not digits alone.
func secretive(s string) bool {
	return strings.ContainsAny(s, "0123456789!@#%^&*+/=~?|") && strings.Trim(s, "0123456789.,_-") != ""
}
