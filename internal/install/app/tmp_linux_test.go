package app_test

import (
	"crypto/rand"
	"os"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/install/app"
)

// TestTmpIsOne checks that the folder for temporary files has one name and one content in every call of a session: for
// commands that are proven to read, for all others, and for the tools of files.
func TestTmpIsOne(t *testing.T) {
	s, err := boxing(t, "").Host(app.Options{Model: "script", Mode: "auto", Unattended: true}, func(string) {}).New(t.Context(), t.TempDir())
	wants := []struct{ call, says string }{
		{`bash {"command":"echo $TMPDIR >$TMPDIR/one; true >&2; ./none || true"}`, "exit code 0"},
		{`bash {"command":"cat $TMPDIR/one"}`, "/tmp\n"},
		{`bash {"command":"cat \"${TMPDIR:-/none}\"/one"}`, "/tmp\n"},
		{`bash {"command":"echo at $TMPDIR"}`, "at /tmp\n"},
		{`bash {"command":"printenv TMPDIR"}`, "/tmp\n"},
		{`bash {"command":"env"}`, "TMPDIR=/tmp\n"},
		{`bash {"command":"ls $TMP"}`, "one\n"},
		{`read_file {"path":"/tmp/one"}`, "/tmp"},
		{`write_file {"path":"/tmp/inspan-test-two","content":"two\n"}`, "inspan-test-two"},
		{`bash {"command":"cat $TEMP/inspan-test-two"}`, "two\n"},
		{`bash {"command":"rm $TMPDIR/inspan-test-two; ls /tmp"}`, "one\n"},
		{`bash {"command":"cd $TMPDIR && cat one"}`, "now in /tmp"},
		{`bash {"command":"cat one"}`, "/tmp\n"},
	}
	var calls []string
	for _, w := range wants {
		calls = append(calls, w.call)
	}
	for i, e := range results(t, s, err, calls...) {
		if said := e.Parts.Text(); !strings.Contains(said, wants[i].says) {
			t.Errorf("%s says %q, not %q", wants[i].call, said, wants[i].says)
		}
	}
}

// TestResultsInTmp checks that a file in /tmp that a call names as written exists after the session, whether a file
// tool or a command has written it, and that unnamed files do not. A file of the machine stays, and a command that
// writes one of that name reads its own.
func TestResultsInTmp(t *testing.T) {
	name := "/tmp/results-" + rand.Text()
	t.Cleanup(func() {
		for _, end := range []string{".txt", ".csv", ".log", ".old"} {
			_ = os.Remove(name + end)
		}
	})
	if err := os.WriteFile(name+".old", []byte("of the machine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := boxing(t, "").Host(app.Options{Model: "script", Mode: "auto", Unattended: true}, func(string) {}).New(t.Context(), t.TempDir())
	ends := results(t, s, err, `write_file {"path":"`+name+`.txt","content":"of a tool\n"}`, `bash {"command":"echo of a command >`+name+`.csv"}`,
		`bash {"command":"N=`+name+`; sh -c 'echo unnamed >'$N.log"}`,
		`bash {"command":"echo of a command >`+name+`.old; cat `+name+`.old"}`)
	if said := ends[len(ends)-1].Parts.Text(); !strings.Contains(said, "of a command\n") {
		t.Errorf("a command that writes a name of the machine and reads it says %q", said)
	}
	for end, want := range map[string]string{".txt": "of a tool\n", ".csv": "of a command\n", ".log": "", ".old": "of the machine\n"} {
		if got, err := os.ReadFile(name + end); string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%s holds %q, %v", name+end, got, err)
		}
	}
}
