package secret_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/safety/secret"
)

func TestNamed(t *testing.T) {
	for want, names := range map[bool][]string{
		true: {
			"API_KEY", "OPENAI_API_KEY", "DB_PASSWORD", "PGPASSWORD", "GITHUB_TOKEN", "GH_TOKEN", "AWS_SECRET_ACCESS_KEY", "api_key", "ApiKey",
			"SECRET", "MY_SECRET_2",
			"PRIVATE_KEY", "NPM_TOKEN", "DATABASE_PASSWD", "AUTH_TOKEN", "CLIENT_SECRET",
			"MY_PASS", "DB_PASS", "PASS", "SMTP_PASS_2", "DB_PASS2", "db_pass", "BEARER", "BEARER_OF_CI", "GITHUB_BEARER", "JWT", "MY_JWT",
			"JWT_SIGNING", "OTEL_EXPORTER_OTLP_HEADERS", "SENTRY_DSN", "OTP_SEED", "WALLET_SEED", "STRIPE_SK", "TELEGRAM_BOT_TOKEN", "DB_PWD", "pwd",
		},
		false: {
			"PWD", "OLDPWD", "PASSWORD_STORE_DIR", "SECRET_DIR", "AUTH_BYPASS", "PROXY_BYPASS", "BYPASS", "COMPASS", "PASS_THROUGH",
			"FORBEARER", "SESSION_ID", "XDG_SESSION_ID", "PYTHONHASHSEED", "SEEDS_FILE", "SKIP", "DISK", "TASK", "DSNS", "PATTERN",
			"", "PATH", "HOME", "LANG", "EDITOR", "TERM", "GOFLAGS", "NODE_ENV", "SHELL", "DEBUG",
		},
	} {
		for _, name := range names {
			if got := secret.Named(name); got != want {
				t.Errorf("%q is called like a secret: %v", name, got)
			}
		}
	}
}

func TestHolds(t *testing.T) {
	v := vault(t, "kT7vQ2mXw9")
	for text, want := range map[string]bool{
		"":                                   false,
		"[secret:":                           false,
		"[secret:]":                          false,
		"[secrets:abcdefgh]":                 false,
		"[secret:abcdefgh":                   false,
		v.Redact("x kT7vQ2mXw9 y"):           true,
		"[[secret:" + v.Redact("kT7vQ2mXw9"): true,
	} {
		if got := secret.Holds(text); got != want {
			t.Errorf("%q holds a placeholder: %v", text, got)
		}
	}
}

// TestNames checks that a value keeps its first name, and that names give nothing away.
func TestNames(t *testing.T) {
	v := new(secret.Vault)
	if v.Names() != nil && len(v.Names()) != 0 || v.What("[secret:abcdefgh]") != "" || v.What("") != "" {
		t.Errorf("a vault that knows nothing: %q", v.Names())
	}
	for _, add := range [][2]string{{"B", "kT7vQ2mXw9"}, {"A", "  kT7vQ2mXw9\n"}, {"C", "Zz9-other-value"}} {
		if !v.Add(add[0], add[1]) {
			t.Errorf("%q was not taken", add)
		}
	}
	if got := v.Names(); !slices.Contains(got, "B") || !slices.Contains(got, "C") || !slices.IsSorted(got) {
		t.Errorf("%q", got)
	}
	p := v.Redact("kT7vQ2mXw9")
	if what := v.What(p); !strings.Contains(what, "B") || strings.Contains(what, "kT7") || strings.Contains(p, "kT7") {
		t.Errorf("%s is %q", p, what)
	}
	if got := v.Resolve("a [secret:abcdefgh] b " + p); got != "a [secret:abcdefgh] b kT7vQ2mXw9" {
		t.Errorf("%q", got)
	}
}
