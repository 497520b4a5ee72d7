package permission

import (
	"bytes"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/safety/netguard"
)

// TestJavaTrust has Java itself read the certificates that its programs trust.
func TestJavaTrust(t *testing.T) {
	keytool, err := exec.LookPath("keytool")
	if err != nil {
		t.Skip("SKIPPED: there is no keytool of Java here")
	}
	swap, err := netguard.NewSwap(nil)
	if err != nil {
		t.Fatal(err)
	}
	trusted := append(system(), swap.PEM()...)
	count := 0
	for block, rest := pem.Decode(trusted); block != nil; block, rest = pem.Decode(rest) {
		count++
	}
	store := filepath.Join(t.TempDir(), "java")
	if err := os.WriteFile(store, javaTrust(trusted), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(keytool, "-list", "-rfc", "-keystore", store)
	cmd.Stdin = strings.NewReader("\n") // no password
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := bytes.Count(out, []byte("BEGIN CERTIFICATE")); got != count || count == 0 {
		t.Errorf("Java reads %d certificates of %d:\n%.500s", got, count, out)
	}
	last := bytes.TrimSpace(swap.PEM())
	if !bytes.Contains(bytes.ReplaceAll(out, []byte("\r"), nil), bytes.Split(last, []byte("\n"))[1]) {
		t.Error("Java does not read the session's own certificate")
	}
}
