package app_test

import (
	"strings"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/app"
	"github.com/inspan/inspan/internal/sandbox"
)

// TestTmpIsOne holds that the folder for temporary files has one name and one content in every call of a session:
// for commands that are proven to read, for all others, and for the tools of files.
func TestTmpIsOne(t *testing.T) {
	root := t.TempDir()
	env, err := sandbox.Local(root, nil, sandbox.Options{Self: "/proc/self/exe"})
	if err != nil {
		t.Fatal(err)
	}
	if !env.Walls.Read || !env.Walls.Workspace {
		t.Skip(env.Walls.Why)
	}
	load(t, "")
	a, err := app.Load("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	s, err := a.Host(app.Options{Model: "script", Mode: "auto", Unattended: true}, func(string) {}).New(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
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
	var calls, said []string
	for _, w := range wants {
		calls = append(calls, "call: "+w.call)
	}
	for e, err := range s.Run(t.Context(), event.Say(strings.Join(calls, "\n"))) {
		if err != nil {
			t.Fatal(err)
		}
		if b, is := e.Body.(event.Ended); is {
			said = append(said, b.Parts.Text())
		}
	}
	if len(said) != len(wants) {
		t.Fatalf("%d calls of %d: %q", len(said), len(wants), said)
	}
	for i, w := range wants {
		if !strings.Contains(said[i], w.says) {
			t.Errorf("%s says %q, not %q", w.call, said[i], w.says)
		}
	}
}
