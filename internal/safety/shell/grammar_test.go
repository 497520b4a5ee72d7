package shell

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestGrammarAgainstBash makes up command lines full of quotes, expansions and
// operators around a program that leaves a mark. None that is called a read
// may leave it, so the parser must not see less than bash does.
func TestGrammarAgainstBash(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("NOT CHECKED AGAINST BASH: it is missing")
	}
	dir := t.TempDir()
	mark := filepath.Join(dir, "mark")
	script := "#!/bin/sh\nexec 3>>" + mark + "\n"
	if err := os.WriteFile(filepath.Join(dir, "canary"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	tried := 0
	for range grammarTries {
		command := scramble(random)
		if Explain(command, repo()).Class != Read || !strings.Contains(command, "canary") {
			continue
		}
		tried++
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		cmd := exec.CommandContext(ctx, "bash", "--noprofile", "--norc", "-c", command)
		cmd.Dir, cmd.Env, cmd.WaitDelay = dir, []string{"PATH=" + dir + ":/usr/bin:/bin", "x=canary", "HOME=" + dir}, time.Second
		_ = cmd.Run() // most of them are nonsense
		cancel()
		if _, err := os.Stat(mark); err == nil {
			t.Errorf("%q is read, and ran the canary", command)
			_ = os.Remove(mark)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 1 {
			t.Errorf("%q is read, and left %q", command, left)
			for _, f := range left {
				if filepath.Base(f) != "canary" {
					_ = os.RemoveAll(f)
				}
			}
		}
	}
	t.Logf("%d of %d texts are read and were run", tried, grammarTries)
	if tried < grammarTries/100 {
		t.Errorf("only %d texts were run", tried)
	}
}

const grammarTries = 20000

func scramble(random *rand.Rand) string {
	pieces := []string{
		"canary", "canary", "canary", "echo ", "echo ", "ls ", "cat ", "'", "'", `"`, `"`, `\`, "$(", ")", "`", "`", "#", " #", "\n", " ", " ",
		";", "&", "|", "&&", "||", ">", "<", ">&2 ",
		"<<E\n", "\nE\n", "<<'E'\n", "<<-E\n", "{ ", " }", "{", "}", ",", "(", "((", "))", "$'", `$"`, "$x", "${x}", "${x:-", "}", "$((", "[[ ",
		" ]]", "[ ", " ]", "!", "! ", "if ", "then ", "fi", "for f in ",
		"; do ", "; done", "case a in ", "a) ", ";;", "esac", "<(", "<<<", "~", "*", "?", "=", "f=", "1", "2>", "\t", "\\\n", "-n ", "--",
		"test ", "printf ", "%s", "time ", "env ", "xargs ", "sh -c ", "bash -c ", "true", "\\'", `\"`, "$", "@(",
	}
	var b strings.Builder
	fmt.Fprint(&b, []string{"echo ", "ls ", "", "cat ", "echo '", `echo "`}[random.IntN(6)])
	for range 2 + random.IntN(12) {
		b.WriteString(pieces[random.IntN(len(pieces))])
	}
	return b.String()
}
