package secret_test

import (
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/safety/secret"
)

// TestParts checks that a secret within a known value is found without the rest of the value.
func TestParts(t *testing.T) {
	const one, two = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49", "VcB2UcbPzPqVUWnWkT7vQ2mXw9zz1234"
	pem := "-----BEGIN SIGNING DATA-----\n" + one + "\n" + two + "\n-----END SIGNING DATA-----\n"
	for _, tc := range []struct{ value, text, want string }{
		{pem, "-----BEGIN SIGNING DATA-----\n" + one + "\n", "-----BEGIN SIGNING DATA-----\n[secret:1]\n"},
		{pem, "  " + one + "\n  " + two + "\n", "  [secret:1]\n  [secret:2]\n"},
		{strings.ReplaceAll(pem, "\n", `\n`), two, "[secret:2]"},
		{strings.ReplaceAll(pem, "\n", "\r\n"), two, "[secret:2]"},
		{"a short one\n" + one, "a short one " + one, "a short one [secret:1]"},
		{"postgres://app:pw-of-db-77@db.host/x", "PGPASS is pw-of-db-77 at db.host", "PGPASS is [secret:1] at db.host"},
		{"amqp://app:pw%2Fof-mq-77@mq", "pw/of-mq-77 pw%2Fof-mq-77", "[secret:1] [secret:2]"},
		{"postgres://app:short@db.host/x", "it is short", "it is short"},
		{"app:pw-of-db-77@tcp(db.host:3306)/x", "it is pw-of-db-77", "it is [secret:1]"},
		{"host=db.host user=app password=pw-of-db-77", "it is pw-of-db-77", "it is [secret:1]"},
		{"https://k7Qz2mXw9vT4bN8cR1yL@db.host/x", "it is k7Qz2mXw9vT4bN8cR1yL", "it is [secret:1]"},
		{"https://host.name/a:some-thing-1@b", "some-thing-1", "some-thing-1"},
	} {
		v := vault(t, tc.value)
		got := v.Redact(tc.text)
		known := []string{one, two}
		if !strings.Contains(tc.value, one) {
			known = nil
		}
		if numbered(v, got, known...) != tc.want {
			t.Errorf("%q in %q: %q, want %q", tc.value, tc.text, got, tc.want)
		}
		if back := v.Resolve(got); back != tc.text {
			t.Errorf("%q came back as %q", tc.text, back)
		}
	}
}

func TestPasswordOf(t *testing.T) {
	const token = "k7Qz2mXw9vT4bN8cR1yL"
	for address, want := range map[string]string{
		"postgres://app:pass-word@host/db": "pass-word", "redis://:only-this@host:6379": "only-this", "mysql://a:p@q@h/d": "p@q",
		"https://host/a": "", "https://host:80/a@b": "", "https://user@host": "", "a:b@c": "", "see http://a: it is @home": "",

		"https://" + token + "@host/a.git": token, "https://" + token + ":x-oauth-basic@host/a": token, "https://" + token + ":@host": token,
		"https://x-access-token:" + token + "@host/a": token, "ssh://deployer-of-things-1@host": "",
		"https://a48e5f3ec8cc13f262e4731570741c05@o12.ingest.sentry.io/34": "",

		"app:pass-word@tcp(db:3306)/shop?parseTime=true": "pass-word", "app:p@ss:w/rd@tcp([::1]:3306)/shop": "p@ss:w/rd", "app:pw@/shop": "pw",
		"app@tcp(db:3306)/shop": "", "app:pass-word@unix(/run/mysql.sock)/shop": "pass-word", "git@host:a/b": "", "a:b@c/d": "", "time 1:2@/x": "",

		"host=db user=app password=pass-word sslmode=disable": "pass-word", "password=pass-word host=db": "pass-word",
		"host=db password='pass word' user=app": "pass word", "host=db password=pass-word": "pass-word", "host = db password = pass-word": "pass-word",
		"Server=db;User ID=app;Password=pass, word;Encrypt=True": "pass, word", "Driver={x};UID=app;PWD=pass-word": "pass-word",
		"cache:6379,password=pass-word,ssl=True": "pass-word", "jdbc:postgresql://db/main?user=app&password=pass-word&ssl=true": "pass-word",
		"host=db user=app": "", "password=it is a word": "", "no_password=x a=b": "", "host=db password= user=app": "", "host=db password='": "",
		"a=b\npassword=c d=e": "", "=": "", "": "", "@/": "", ":@/": "", "/@": "",
	} {
		if got := secret.PasswordOf(address); got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}
