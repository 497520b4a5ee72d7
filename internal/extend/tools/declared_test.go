package tools

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzDeclared checks against bash that the environment which it declares is the one that
// it has.
func FuzzDeclared(f *testing.F) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		f.Skip("there is no bash")
	}
	f.Add("plain", "")
	f.Add("a\"b$c`d\\e!f'g", "two\nlines\n")
	f.Add("\a\b\t\n\v\f\r\x1b\x01\x7f1", "\xff\xfeé\u2028 €")
	f.Add("\"\ndeclare -x EVIL=\"1\"\n", "$'\\n'")
	f.Add("it's\t\\'", "\x0012")
	f.Fuzz(func(t *testing.T, a, b string) {
		if strings.Contains(a+b, "\x00") {
			t.Skip("no variable holds one")
		}
		want := []string{"A=" + a, "B=" + b}
		cmd := exec.Command(bash, "--noprofile", "--norc", "-c", `export ARRAY=(1 "x)y" $'\n)') NONE; declare -ix N; declare -px`)
		cmd.Env = want
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		got, ok := declared(string(out))
		got = slices.DeleteFunc(got, func(kv string) bool { return !shared(nameOf(kv)) })
		if d := cmp.Diff(want, got); !ok || d != "" {
			t.Errorf("%v\n%s\n%s", ok, d, out)
		}
	})
}

// TestDeclaredTorn checks that incomplete output of bash is ignored.
func TestDeclaredTorn(t *testing.T) {
	whole := "declare -x A=\"1\"\ndeclare -x B=$'\\n'\ndeclare -ax C=([0]=\"x\")\ndeclare -x D\n"
	if _, ok := declared(whole); !ok {
		t.Fatal("the whole is not read")
	}
	for i := range whole {
		if env, ok := declared(whole[:i]); ok && i > 0 && whole[i-1] != '\n' {
			t.Errorf("%q is read as %q", whole[:i], env)
		}
	}
}
