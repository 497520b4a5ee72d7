package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// sample is a module with tests of every kind of end. One fails until it has been run twice, another as
// long as it does not run alone.
const sample = `package sample

import (
	"os"
	"strings"
	"testing"
)

func TestPasses(t *testing.T) {}

func TestSkips(t *testing.T) { t.Skip("there is no moon") }

func TestFails(t *testing.T) { t.Error("two herons") }

func TestTwice(t *testing.T) {
	tries, _ := os.ReadFile("tries")
	if len(tries) < 2 {
		_ = os.WriteFile("tries", append(tries, 'x'), 0o600)
		t.Fatalf("egret %d", len(tries))
	}
	t.Log("the third is a stork")
}

func TestParts(t *testing.T) {
	t.Run("a b", func(t *testing.T) {
		if !strings.Contains(strings.Join(os.Args, " "), "TestParts") {
			t.Error("not alone")
		}
	})
	t.Run("c", func(t *testing.T) {})
}
`

func TestReport(t *testing.T) {
	got, code := played(t, map[string]string{"a/a_test.go": sample, "b/b_test.go": "package b\n\nimport \"testing\"\n\nfunc TestB(*testing.T) {}\n"})
	for _, want := range []string{
		`FAIL	sample/a`, `ok  	sample/b`, `=== FAIL sample/a TestFails \(\d+s\)\n(?s:.*)two herons`, `=== FAIL sample/a TestFails, again and alone \(try 2\)`,
		`FLAKY sample/a TestTwice passed when it ran again, alone \(try 2\)\n--- it had failed with\n(?s:.*)egret 0(?s:.*)egret 1(?s:.*)the third is a stork`,
		`FLAKY sample/a TestParts/a_b passed when it ran again, alone \(try 1\)`, `(?m)^FLAKY sample/a TestTwice$`, `(?m)^FAIL sample/a TestFails$`,
		`skipped sample/a TestSkips: a_test.go:\d+: there is no moon`, `5 passed, 1 failed, 1 skipped`,
	} {
		if !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "TestParts (") || code != 1 {
		t.Errorf("the test of a failed part is reported as well, or the exit code is not 1 but %d:\n%s", code, got)
	}
}

// TestBroken checks that a problem other than a failed test counts as a failure too.
func TestBroken(t *testing.T) {
	head := "package a\n\nimport \"testing\"\n\n"
	for name, tt := range map[string]struct{ text, want string }{
		"does not compile": {head + "func TestA(*testing.T) { moon() }\n", `FAIL sample/a\n`},
		"panics once, and another fails": {
			head + "import \"os\"\n\nfunc TestA(*testing.T) {\n\tif os.Mkdir(\"been\", 0o700) == nil {\n\t\tpanic(1)\n\t}\n}\n\n" +
				"func TestB(t *testing.T) { t.Error(\"never seen\") }\n", `FAIL sample/a\n`,
		},
		"panics": {head + "func TestA(*testing.T) { go panic(1); select {} }\n", `=== FAIL sample/a TestA(?s:.*)\nFAIL sample/a\n`},
		"exits":  {head + "import \"os\"\n\nfunc TestMain(m *testing.M) { m.Run(); os.Exit(3) }\n\nfunc TestA(*testing.T) {}\n", `FAIL sample/a\n`},
	} {
		t.Run(name, func(t *testing.T) {
			if got, code := played(t, map[string]string{"a/a_test.go": tt.text}); code != 1 || !regexp.MustCompile(tt.want).MatchString(got) {
				t.Errorf("exit code %d\n%s", code, got)
			}
		})
	}
}

// TestStopped checks that a package that stopped in mid-run is run again as a whole.
func TestStopped(t *testing.T) {
	got, code := played(t, map[string]string{"a/a_test.go": `package a

import (
	"os"
	"testing"
)

func TestA(*testing.T) {
	if os.Mkdir("been", 0o700) == nil {
		panic("a bittern")
	}
}

func TestB(*testing.T) {}
`})
	want := `(?s)a bittern.*FLAKY sample/a passed when it ran again, alone \(try 1\).*\nFLAKY sample/a\n`
	if code != 0 || !regexp.MustCompile(want).MatchString(got) {
		t.Errorf("exit code %d\n%s", code, got)
	}
}

// played reports on a module, and returns the output and the exit code.
func played(t *testing.T, files map[string]string) (string, int) {
	t.Helper()
	t.Chdir(t.TempDir())
	files["go.mod"] = "module sample\n\ngo 1.26\n"
	for path, text := range files {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	code := report{out: &out}.play(2, 3, []string{"./..."})
	return out.String(), code
}
