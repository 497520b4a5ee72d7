package secret_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf16"

	"github.com/inspan/inspan/internal/safety/secret"
	"github.com/inspan/inspan/internal/testkit"
)

// values are known secrets: plain, with signs, over lines, with other letters.
func values() []string {
	return []string{
		"kT7vQ2mXw9", "p@ss/w0rd+<&>\"'\\=", "line one 77\nline two 88\n\tend", "gehëim-wachtwoord-è", "sleutel 🔑/漢字 123", "aaaaaaab",
		"zz_12345678", "x]y[z]w{v}u", "0123456789abcdef0123456789abcdef01234567", strings.Repeat("Long3r.", 40),
	}
}

// sweep skips a test that tries every place and every form where the race detector looks on.
func sweep(t testing.TB) {
	if testkit.Race {
		t.Skip("it computes in one goroutine: nothing meets, and it takes ten times as long")
	}
}

func vault(t testing.TB, values ...string) *secret.Vault {
	t.Helper()
	v := new(secret.Vault)
	for i, value := range values {
		if !v.Add(fmt.Sprint("NAME_", i), value) {
			t.Fatalf("%q was not taken", value)
		}
	}
	return v
}

// numbered writes the placeholders of a text as numbers, in the order of the secrets given
// and then as they come: a test says which secret is meant, and not how a key names it.
func numbered(v *secret.Vault, text string, values ...string) string {
	names := map[string]string{}
	for i, value := range values {
		tag, _ := strings.CutSuffix(v.Redact(value), "]")
		names[tag] = fmt.Sprint("[secret:", i+1)
	}
	return regexp.MustCompile(`\[secret:[a-z0-9]{8,}`).ReplaceAllStringFunc(text, func(tag string) string {
		if names[tag] == "" {
			names[tag] = fmt.Sprint("[secret:", len(names)+1)
		}
		return names[tag]
	})
}

// written lists the ways in which a value may be written in a text, and the parts that must go.
func written(value string) map[string]string {
	escaped, _ := json.Marshal(value)
	var plain bytes.Buffer
	e := json.NewEncoder(&plain)
	e.SetEscapeHTML(false)
	_ = e.Encode(value)
	quoted := strings.TrimSpace(plain.String())
	twice, _ := json.Marshal(quoted)
	ascii := inASCII(string(escaped), `\u%04x`)
	inASCIITwice, _ := json.Marshal(inASCII(quoted, `\u%04x`))
	out := map[string]string{
		"JSON in ASCII": ascii, "JSON in ASCII, large": inASCII(quoted, `\u%04X`), "JSON in ASCII in JSON": string(inASCIITwice),
		"JSON of PHP": strings.ReplaceAll(inASCII(quoted, `\u%04x`), "/", `\/`),
		"fullwidth":   fullwidth(value),
		"itself":      value, "in a word": "abc" + value + "def", "JSON": string(escaped), "JSON of others": quoted,
		"JSON in JSON": string(twice),
		"query":        url.QueryEscape(value), "form": strings.ReplaceAll(url.QueryEscape(value), "+", "%20"), "path": url.PathEscape(value),
		"whole path":   (&url.URL{Path: "/" + value}).EscapedPath()[1:],
		"with slashes": strings.ReplaceAll(strings.ReplaceAll(url.QueryEscape(value), "+", "%20"), "%2F", "/"),
		"hex":          hex.EncodeToString([]byte(value)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(value))),
		"login": "Basic " + base64.StdEncoding.EncodeToString([]byte("bob:"+value)),
	}
	for before := range 7 {
		for after := range 4 {
			data := []byte(strings.Repeat("~", before) + value + strings.Repeat("?", after))
			for name, enc := range map[string]*base64.Encoding{
				"std": base64.StdEncoding,
				"url": base64.URLEncoding, "raw": base64.RawStdEncoding, "raw url": base64.RawURLEncoding,
			} {
				out[fmt.Sprint(name, " base64 behind ", before, " before ", after)] = enc.EncodeToString(data)
			}
		}
	}
	return out
}

// fullwidth writes letters as wide as Chinese characters.
func fullwidth(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '!' && r <= '~' {
			return '！' + r - '!'
		}
		return r
	}, s)
}

// inASCII escapes all other characters, as the encoders of Python and PHP do.
func inASCII(s, format string) string {
	var b strings.Builder
	for _, unit := range utf16.Encode([]rune(s)) {
		if unit < 0x80 {
			b.WriteByte(byte(unit))
		} else {
			fmt.Fprintf(&b, format, unit)
		}
	}
	return b.String()
}

// TestForms checks that known values are found however they are written.
func TestForms(t *testing.T) {
	sweep(t)
	n := 0
	for i, value := range values() {
		for how, text := range written(value) {
			v := vault(t, values()...)
			text = "« " + text + " »"
			got := v.Redact(text)
			n++
			if !strings.Contains(got, "[secret:") || len(got) > len("« abcdef Basic \"\" [secret:12345678.1234] »")+16 {
				t.Errorf("%q as %s: %q became %q", value, how, text, got)
				continue
			}
			if back := v.Resolve(got); back != text {
				t.Errorf("%q as %s came back as %q", text, how, back)
			}
			p := got[strings.Index(got, "[") : strings.Index(got, "]")+1]
			if what := v.What(p); !strings.HasPrefix(what, fmt.Sprint("the value of NAME_", i)) {
				t.Errorf("%s is %q, want that of NAME_%d", p, what, i)
			}
			for _, piece := range [][]string{{text[:len(text)/2], text[len(text)/2:]}, strings.SplitAfter(text, "")} {
				if streamed := stream(t, v, piece...); streamed != got {
					t.Errorf("%q as %s in pieces: %q, want %q", value, how, streamed, got)
				}
			}
		}
	}
	t.Log(n, "ways of writing a known value")
}

// TestPlaceholders checks the nature of a placeholder: it is the same for the same secret, key and form, whatever else
// a vault has seen and in which order, and worthless to others.
func TestPlaceholders(t *testing.T) {
	key := []byte("a key of this test")
	v := &secret.Vault{Key: key}
	v.Add("NAME_0", "first-known-1")
	v.Add("NAME_1", "second-known-2")
	encoded := base64.StdEncoding.EncodeToString([]byte("first-known-1"))
	text := "a second-known-2 b first-known-1 c second-known-2 DB_PASSWORD=third3third3 DB_PASSWORD=third3third3 " + encoded
	got := v.Redact(text)
	want := "a [secret:u6lpynqx] b [secret:ucr5wfcp] c [secret:u6lpynqx] DB_PASSWORD=[secret:6r6fpruh] DB_PASSWORD=[secret:6r6fpruh] " +
		"[secret:ucr5wfcp.giov]"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if back := v.Resolve(got); back != text {
		t.Errorf("back: %q", back)
	}
	later := &secret.Vault{Key: key}
	later.Redact("PASSWORD=something8else9")
	later.Add("NAME_1", "second-known-2")
	later.Add("NAME_0", "first-known-1")
	if back := later.Resolve(want); back != strings.ReplaceAll(text, "third3third3", "[secret:6r6fpruh]") {
		t.Errorf("in a later run: %q", back)
	}
	other := &secret.Vault{Key: []byte("the key of somebody else")}
	other.Add("NAME_0", "first-known-1")
	if p := other.Redact("first-known-1"); p == "[secret:ucr5wfcp]" || other.Resolve(want) != want {
		t.Errorf("another key gives %s", p)
	}
	for p, want := range map[string]string{
		"[secret:u6lpynqx]": "the value of NAME_1", "[secret:ucr5wfcp.giov]": "the value of NAME_0 in base64",
		"[secret:6r6fpruh]": "a secret setting",
		"[secret:1]":        "", "[secret:0]": "", "[secret:2.2]": "", "[secret:u6lpynqx]x": "", "secret": "", "": "", "[secret:99999999999]": "",
		"[secret:u6lpynqx.1]": "",
	} {
		if got := v.What(p); got != want {
			t.Errorf("%s is %q, want %q", p, got, want)
		}
	}
	if got := v.Names(); !slices.Equal(got, []string{"NAME_0", "NAME_1"}) {
		t.Errorf("names: %q", got)
	}
	for _, open := range []string{
		"[secret:1]", "[secret:4]", "[secret:", "[secret:x]",
		"[secret:1", "[secret:1.9]", "[secret:0] [secret:", "[[secret:7]]", "[secret:aaaaaaaa]",
	} {
		if got := v.Resolve(open); got != open {
			t.Errorf("%q became %q", open, got)
		}
	}
}

// TestPosing checks that a secret in the place of a placeholder's name is found.
func TestPosing(t *testing.T) {
	v := vault(t, "hunterzq", "q7w8e9r1")
	for _, text := range []string{"[secret:hunterzq]", "[secret:aaaaaaaa.q7w8e9r1]", "[secret:12345678hunterzq]"} {
		got := v.Redact("« " + text + " »")
		if strings.Contains(got, "hunterzq") || strings.Contains(got, "q7w8e9r1") || v.Redact(got) != got {
			t.Errorf("%s became %s", text, got)
		}
		if streamed := stream(t, v, strings.SplitAfter("« "+text+" »", "")...); streamed != got {
			t.Errorf("%s streamed became %s, want %s", text, streamed, got)
		}
	}
}

func TestAdd(t *testing.T) {
	var v secret.Vault
	for _, value := range []string{
		"", "short77", "        ", "aaaaaaaaaaaa", "password", "CHANGEME", "development", "12345678901",
		"your-api-key-here", "xxxxxxxxxx1", "a [secret:1] b",
	} {
		if v.Add("N", value) || v.Redact("<"+value+">") != "<"+value+">" {
			t.Errorf("%q was taken", value)
		}
	}
	if !v.Add("N", " spaced-value-1\n") || !v.Add("M", "spaced-value-1") || v.What(v.Redact("spaced-value-1")) != "the value of N" {
		t.Error("a value with space around it, or one that is known, is not that value")
	}
	// A value that was known by its shape only, and by its name later.
	var w secret.Vault
	w.Redact("DB_PASSWORD=quite-s3cret-9")
	w.Add("DB", "quite-s3cret-9")
	if got := w.Redact("it is quite-s3cret-9!"); numbered(&w, got) != "it is [secret:1]!" || w.What(got[6:len(got)-1]) != "the value of DB" {
		t.Errorf("%q", got)
	}
}

// TestLongest checks that of two values at one place the longer one counts.
func TestLongest(t *testing.T) {
	v := vault(t, "abc-12345", "abc-12345-xyz", "345-xyz-77777")
	for text, want := range map[string]string{
		"abc-12345-xyz":         "[secret:1]",
		"abc-12345-xy":          "[secret:2]-xy",
		"abc-12345-xyz-77777":   "[secret:1]-77777",
		"ab345-xyz-77777":       "ab[secret:3]",
		"abc-1234[secret:1]5":   "abc-1234[secret:1]5",
		"[secret:1]abc-12345":   "[secret:1][secret:2]",
		"abc-12345abc-12345":    "[secret:2][secret:2]",
		"abc-123abc-12345-xyz.": "abc-123[secret:1].",
	} {
		if got := numbered(v, v.Redact(text), "abc-12345-xyz", "abc-12345", "345-xyz-77777"); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

// TestWriterWaitsForLittle checks that words pass at once, and that only possible secrets wait.
func TestWriterWaitsForLittle(t *testing.T) {
	v := vault(t, "kT7vQ2mXw9")
	var b strings.Builder
	w := v.Writer(&b)
	for _, tt := range []struct{ write, want string }{
		{"Hello", "Hello"},
		{" world, the token", "Hello world, the token"},
		{": ", "Hello world, the token"},
		{"no\n", "Hello world, the token: no\n"},
		{"kT7", "Hello world, the token: no\n"},
		{"vX ###", "Hello world, the token: no\nkT7vX ###"},
		{" gh", "Hello world, the token: no\nkT7vX ### "},
		{"osts", "Hello world, the token: no\nkT7vX ### ghosts"},
	} {
		if _, err := w.Write([]byte(tt.write)); err != nil {
			t.Fatal(err)
		}
		if b.String() != tt.want {
			t.Errorf("behind %q there is %q, want %q", tt.write, b.String(), tt.want)
		}
	}
}

// TestWriterIsBounded checks that no stream is held back for long.
func TestWriterIsBounded(t *testing.T) {
	for name, piece := range map[string]string{
		"one word": "a", "token": "ghp_aB3dE6gH9" + strings.Repeat("k9Zt", 100), "base64": "QUJD/+9a", "key": "-----BEGIN PRIVATE KEY-----\n" +
			strings.Repeat("MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n", 9),
		"lines of a key": "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n", "value": "PASSWORD=k3", "placeholders": "[secret:1][secret:",
		"addresses": "a://b:c", "gaps": "L\u200bo'n\\g3r\x00.", "colours": "\x1b[31m", "cut colours": "\x1b[1;", "unseen": "\u200b",
		"spaces": "password = ", "prefixes": "sk-eyJ-", "quoted": `token="a1b2c3`,
	} {
		var v secret.Vault
		v.Add("N", strings.Repeat("Long3r.", 300))
		passed, wrote := 0, 0
		w := v.Writer(count{&passed})
		head := map[string]string{"token": "ghp_", "lines of a key": "-----BEGIN PRIVATE KEY-----\n", "quoted": `token="a1`}[name]
		_, _ = w.Write([]byte(head))
		var whole strings.Builder
		whole.WriteString(head)
		most := 0
		for wrote < 300_000 {
			chunk := strings.Repeat(piece, 1000/len(piece)+1)
			n, _ := w.Write([]byte(chunk))
			whole.WriteString(chunk)
			wrote += n
			most = max(most, w.Held())
		}
		if most > 48<<10 {
			t.Errorf("%s: %d bytes were held back", name, most)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if want := len(v.Redact(whole.String())); passed != want {
			t.Errorf("%s: %d bytes came out, want %d", name, passed, want)
		}
	}
}

// TestLargeTokens checks that nothing of a token beyond the bound stays.
func TestLargeTokens(t *testing.T) {
	for _, text := range []string{"ghp_" + strings.Repeat("k9Zt", 9000) + " end", "API_TOKEN=" + strings.Repeat("k9Zt", 9000) + " end"} {
		var v secret.Vault
		got := v.Redact(text)
		if strings.Contains(got, "k9Zt") || !strings.HasSuffix(got, "] end") || v.Resolve(got) != text {
			t.Errorf("%d bytes became %.200q", len(text), got)
		}
	}
}

// TestManySecrets checks that a vault's memory is bounded, and that secrets beyond it are still removed.
func TestManySecrets(t *testing.T) {
	var v secret.Vault
	var text strings.Builder
	for i := range 1<<16 + 9 {
		fmt.Fprintf(&text, "ghp_%06dkQ7wZr2Xv9Lm4Tn8Bc3Hs6Jd1Fg5Py\n", i)
	}
	got := v.Redact(text.String())
	if strings.Contains(got, "ghp_") || !strings.HasSuffix(got, strings.Repeat("[secret:0]\n", 9)) || strings.Count(got, "[secret:0]") != 9 {
		t.Errorf("ends in %q", got[len(got)-200:])
	}
}

type count struct{ n *int }

func (c count) Write(p []byte) (int, error) { *c.n += len(p); return len(p), nil }

type broken struct{}

var errBroken = errors.New("broken")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestWriterErrors(t *testing.T) {
	var v secret.Vault
	w := v.Writer(broken{})
	if _, err := w.Write([]byte("hello, world")); !errors.Is(err, errBroken) {
		t.Error(err)
	}
	if _, err := w.Write([]byte("x")); !errors.Is(err, errBroken) {
		t.Error("the error is forgotten:", err)
	}
	if err := w.Close(); !errors.Is(err, errBroken) {
		t.Error(err)
	}
}

// TestTogether checks that a vault may be used from many places at once.
func TestTogether(t *testing.T) {
	v := new(secret.Vault)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			value := fmt.Sprint("known-value-", i, "-x")
			v.Add("N", value)
			for range 50 {
				got := v.Redact("so " + value + " and DB_PASSWORD=third3third3")
				if strings.Contains(got, value) || v.Resolve(got) != "so "+value+" and DB_PASSWORD=third3third3" {
					t.Errorf("got %q", got)
				}
				v.What("[secret:1]")
			}
		})
	}
	wg.Wait()
}

// TestShapeIsFoundAgain checks that a secret which was found by its shape is found where its shape is lost, too.
func TestShapeIsFoundAgain(t *testing.T) {
	var v secret.Vault
	token := "ghp_" + strings.Repeat("a1B2c3D4e5", 4)[:36]
	if got := v.Redact("token " + token + "."); numbered(&v, got) != "token [secret:1]." {
		t.Fatal(got)
	}
	for text, want := range map[string]string{
		"X" + token:       "X[secret:1]",
		token + token:     "[secret:1][secret:1]",
		"a" + token + "b": "a[secret:1]b",
		"ghp_a":           "ghp_a",
	} {
		if got := numbered(&v, v.Redact(text)); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	if names := v.Names(); len(names) != 0 {
		t.Errorf("names %q", names)
	}
}

// TestSettingIsFoundAgain checks that the value of a secret setting is found without its name, in the same text and in
// later ones, unless it could be a word.
func TestSettingIsFoundAgain(t *testing.T) {
	for value, want := range map[string]bool{
		"k7Qz2mXw9vT4": true, "8f3a9c1b2d4e5f60": true, "p-k7Qz2mXw9vT4.b": true, "Hk6VejyojlI24vXp!": true,
		"correct-horse-7": false, "us-east1-k8s-cluster2": false, "myServiceTokenV2": false, "release2026": false, "k7Qz2mXw": false,
	} {
		var v secret.Vault
		text := "curl -u app:x and " + value + "\nDB_PASSWORD=" + value + "\n"
		got := v.Redact(text)
		if strings.Contains(got, "="+value) || strings.Contains(got, "and "+value) == want || v.Resolve(got) != text || v.Redact(got) != got {
			t.Errorf("%q became %q", text, got)
		}
		if later := v.Redact("log in with <" + value + ">"); strings.Contains(later, value) == want {
			t.Errorf("later: %q", later)
		}
		if streamed := stream(t, &v, strings.SplitAfter(text, "")...); streamed != got {
			t.Errorf("%q streamed became %q, want %q", text, streamed, got)
		}
	}
}

// TestLearnedSecretsAreBounded checks that a text full of tokens doesn't make all others slow: no more than some are
// looked for without their shape.
func TestLearnedSecretsAreBounded(t *testing.T) {
	var v secret.Vault
	var text strings.Builder
	for i := range 1 << 11 {
		fmt.Fprintf(&text, "ghp_%06dkQ7wZr2Xv9Lm4Tn8Bc3Hs6Jd1Fg5Py\n", i)
	}
	if got := v.Redact(text.String()); strings.Contains(got, "ghp_") {
		t.Fatalf("%.200q", got)
	}
	for i, want := range map[int]bool{0: true, 1<<10 - 1: true, 1 << 10: false} {
		text := fmt.Sprintf("Xghp_%06dkQ7wZr2Xv9Lm4Tn8Bc3Hs6Jd1Fg5Py", i)
		if got := v.Redact(text); (got != text) != want {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// TestWithheld checks that a withheld value is hidden in every form, and that its placeholder stands for nothing, even
// if the value is known otherwise.
func TestWithheld(t *testing.T) {
	for _, value := range []string{
		"company-internal-token-7731", "StaticBearerTok-zzzzzzzzzz-98765", "sk-ant-api03-abcdefghijklmnopqrstuvwx",
		"first-line-of-it-4711-and-more\nsecond-line-of-it-0815-and-more",
	} {
		v := new(secret.Vault)
		if !v.Withhold("the token", value) {
			t.Errorf("%q was not taken", value)
		}
		v.Add("TOKEN", value)
		for _, text := range []string{
			value, "it is " + value + ".", base64.StdEncoding.EncodeToString([]byte(value)), hex.EncodeToString([]byte(value)),
			"export TOKEN=" + value, "Authorization: Bearer " + value, strings.Split(value, "\n")[0],
		} {
			clear := v.Redact(text)
			if clear == text || strings.Contains(clear, value) {
				t.Errorf("%q is shown as %q", text, clear)
			}
			if back := v.Resolve(clear); back != clear || v.What(clear) != "" {
				t.Errorf("%q gives %q", clear, back)
			}
			if again := v.Redact(clear); again != clear {
				t.Errorf("%q was redacted again, to %q", clear, again)
			}
		}
	}
	v, plain := new(secret.Vault), "production is short"
	if v.Withhold("a", "production") || v.Withhold("b", "short") || v.Redact(plain) != plain {
		t.Error("a word that stands everywhere is hidden")
	}
}

// TestNamedValues checks which placeholders are those of values that were made known by a name.
func TestNamedValues(t *testing.T) {
	v := &secret.Vault{}
	v.Add("DEPLOY_TOKEN", "correct-horse-battery-9174")
	found := v.Redact("token ghp_f7Kq2LmX9vRt4YsB6nWc3ZpD8hJg5EaU1oQi")
	named := v.Redact("a correct-horse-battery-9174")
	for text, want := range map[string]bool{
		"": false, "plain": false, found: false, named: true, found + " " + named: true, v.Redact("Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5LTkxNzQ="): true,
		"[secret:aaaaaaaa]": false, "[secret:": false, "[secret:x] " + named: true,
	} {
		if v.Named(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}
