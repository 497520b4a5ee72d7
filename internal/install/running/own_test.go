package running_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/running"
)

// TestOwn checks the report to the session about a command that the person ran, and the allowed text.
func TestOwn(t *testing.T) {
	t.Setenv("SHELL", "/bin/sh")
	t.Setenv("INSPAN_TEST_TOKEN", "theirs")
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a"), []byte("inside\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]struct {
		told  []string
		taint event.Taint
	}{
		"cat a":                     {[]string{"$ cat a\ninside"}, event.Taint{}},
		"cat a ; exit 3":            {[]string{"inside\n[exit 3]"}, event.Taint{}},
		"cat /etc/hosts":            {[]string{"$ cat /etc/hosts\n"}, event.Taint{Private: true}},
		"cat":                       {[]string{"$ cat"}, event.Taint{}}, // there is no input to wait for
		"echo $INSPAN_TEST_TOKEN":   {[]string{"\ntheirs"}, event.Taint{}},
		"echo bad >&2":              {[]string{"\nbad"}, event.Taint{}},
		"seq 1 100000":              {[]string{"\n1\n2\n", "bytes left out]", "\n100000"}, event.Taint{}},
		`printf 'a\377b'`:           {[]string{"\na\uFFFDb"}, event.Taint{}},
		"no-such-program-of-anyone": {[]string{"[exit 127]"}, event.Taint{Untrusted: true}},
	} {
		said, err := (&running.Table{}).Own(t.Context(), root, command)
		if err != nil {
			t.Errorf("%s: %v", command, err)
			continue
		}
		for _, text := range want.told {
			if got := said.Parts.Text(); !strings.Contains(got, text) || len(got) > 20<<10 {
				t.Errorf("%s: no %q in %.200q", command, text, got)
			}
		}
		if said.Taint != want.taint || said.Origin.Leads() || said.By == "" {
			t.Errorf("%s: %+v of %q by %q", command, said.Taint, said.Origin, said.By)
		}
	}
	if _, err := (&running.Table{}).Own(t.Context(), filepath.Join(root, "gone"), "ls"); err == nil {
		t.Error("it ran in a folder that is not there")
	}
}
