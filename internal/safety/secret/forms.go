package secret

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// form is a spelling of a known value.
type form struct {
	text  string
	value int // index of the known value
	how   string
}

// formsOf lists the spellings of a value, itself first. Texts are searched without gaps, so forms with gaps of
// their own are listed without them.
func formsOf(value string) []form {
	out := written(value)
	for _, f := range out {
		if text := bare(f.text); text != f.text && isSecret(text) {
			out = append(out, form{text: text, how: strings.TrimSpace(f.how + " without quotes or unseen characters")})
		}
	}
	return out
}

// written lists the spellings of a value by programs, itself first.
func written(value string) []form {
	out := []form{{text: value}}
	add := func(how string, texts ...string) {
		for _, text := range texts {
			out = append(out, form{text: text, how: how})
		}
	}
	quoted := quote(value)
	add("as JSON", quoted, strings.ReplaceAll(quoted, "/", `\/`), escapeMarkup(quoted),
		quote(quoted), escapeMarkup(quote(quoted)), quote(escapeMarkup(quoted)))
	for _, plain := range []string{"-_.~", "-_.~/", "-_.~!'()*", "-_.~$&+:=@", "-_.~/$&+:=@,;", "-_.~/$&+:=@,;!'()*"} {
		u := percent(value, plain, "%%%02X")
		add("in an address", u, percent(value, plain, "%%%02x"), strings.ReplaceAll(u, "%20", "+"))
	}
	add("in full width", strings.Map(wide, value))
	add("in hex", hex.EncodeToString([]byte(value)), strings.ToUpper(hex.EncodeToString([]byte(value))))
	for before := range 3 {
		add("in base64", base64s3(base64.StdEncoding, value, before)...)
		add("in base64", base64s3(base64.URLEncoding, value, before)...)
	}
	for _, format := range []string{`\u%04x`, `\u%04X`} {
		if a := ascii(quoted, format); a != quoted {
			escaped := strings.ReplaceAll(a, "/", `\/`)
			add("as JSON", a, escaped, escapeMarkup(a), quote(a), quote(escaped), quote(escapeMarkup(a)))
		}
	}
	return out
}

// wide returns the fullwidth variant of an ASCII character, as East Asian input methods write it.
func wide(r rune) rune {
	if r > ' ' && r < 0x7f {
		return r + 0xfee0
	}
	return r
}

// base64s3 returns the spellings of a value after a number of bytes (modulo 3): at the end of the data with and
// without padding, and with more data after it. Characters that contain bits of neighbours are left out.
func base64s3(enc *base64.Encoding, value string, before int) []string {
	all := enc.EncodeToString([]byte("\x00\x00\x00"[:before] + value))
	from := (before*8 + 5) / 6
	return []string{all[from:], strings.TrimRight(all[from:], "="), all[from : (before+len(value))*8/6]}
}

// quote returns s as between the quotes of a JSON string.
func quote(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(s) != nil {
		return s
	}
	out := strings.TrimSuffix(b.String(), "\n")
	return out[1 : len(out)-1]
}

// escapeMarkup escapes the characters that many JSON encoders escape for browsers.
func escapeMarkup(s string) string {
	return strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`).Replace(s)
}

// ascii escapes non-ASCII characters in a JSON string, as the encoders of Python and PHP do by default.
func ascii(s, format string) string {
	var b strings.Builder
	for _, unit := range utf16.Encode([]rune(s)) {
		if unit < utf8.RuneSelf {
			b.WriteByte(byte(unit))
		} else {
			fmt.Fprintf(&b, format, unit)
		}
	}
	return b.String()
}

// percent escapes all characters except letters, digits and those in plain, RFC 3986.
func percent(s, plain, format string) string {
	var b strings.Builder
	for i := range len(s) {
		if alnum.has(s[i]) || strings.IndexByte(plain, s[i]) >= 0 {
			b.WriteByte(s[i])
		} else {
			fmt.Fprintf(&b, format, s[i])
		}
	}
	return b.String()
}
