package secret_test

import (
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/safety/secret"
)

// TestKnownLater checks that a text which passed a vault is looked at again once a secret is known that it holds.
func TestKnownLater(t *testing.T) {
	const value = "hT7zQ2mWx9KpLr4v"
	text := "The tool says " + value + " to the world."
	for name, know := range map[string]func(v *secret.Vault){
		"by its value": func(v *secret.Vault) { v.Add("TOKEN", value) },
		"withheld":     func(v *secret.Vault) { v.Withhold("TOKEN", value) },
		"by its shape": func(v *secret.Vault) { v.Redact("export API_TOKEN=" + value + "\n") },
	} {
		v := &secret.Vault{Key: []byte("k")}
		for range 2 {
			if got := v.Redact(text); got != text {
				t.Fatalf("%s: %q", name, got)
			}
		}
		know(v)
		if got := v.Redact(text); strings.Contains(got, value) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
